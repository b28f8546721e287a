"""An option is one field: every door that the field names takes it, with its default, and the reference page lists it.

`python tests/contracts/test_options.py` writes the page.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

import trendloom
import trendloom.spark
from trendloom import options as listed
from trendloom.cli.main import app
from trendloom.cli.options import Messages, command_options
from trendloom.errors import Door, at_door
from trendloom.options import COMMAND, OUTPUT, Options, fields_at, keywords_at, option_field, spec_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "options.md"
GROUP = vars(typer.main.get_command(app))
COMMANDS: dict[str, Any] = {f"{COMMAND} {name}": one for name, one in GROUP["commands"].items()}


def takes_options(function: Any) -> bool:
    return inspect.isfunction(function) and bool(function.__code__.co_flags & inspect.CO_VARKEYWORDS)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    f"{name}()": getattr(module, name)
    for module in (trendloom, trendloom.spark)
    for name in module.__all__
    if takes_options(getattr(module, name))
}


def kinds() -> list[type]:
    """Every class of options: those of the list first, then those of single commands."""
    names = [f"trendloom.cli.{path.stem}" for path in sorted((ROOT / "src" / "trendloom" / "cli").glob("*.py"))]
    found: dict[type, None] = {}
    for module in (listed, *map(import_module, names)):
        for one in vars(module).values():
            if isinstance(one, type) and is_dataclass(one) and any("option" in field.metadata for field in fields(one)):
                found[one] = None
    return list(found)


KINDS = kinds()
LISTED = [one for kind in KINDS for one in fields(kind) if "option" in one.metadata]
DOORS = sorted({door for one in LISTED for door in spec_of(one).doors})


def shown_default(one: Field[Any], door: str) -> Any:
    default = spec_of(one).default_at(door, one.default)
    return None if default is MISSING or default == () else list(default) if isinstance(default, tuple) else default


def arguments_of(function: Callable[..., Any]) -> type:
    """The names that editors and type checkers see."""
    found = re.fullmatch(r"Unpack\[(\w+)\]", function.__annotations__["options"])
    assert found is not None
    return getattr(listed, found[1])  # type: ignore[no-any-return]


def test_every_door_exists() -> None:
    assert set(DOORS) <= {*COMMANDS, *FUNCTIONS}
    assert set(FUNCTIONS) <= set(DOORS)


@pytest.mark.parametrize("door", COMMANDS)
def test_a_command_has_a_flag_for_every_field(door: str) -> None:
    flags = {one.name: one for one in COMMANDS[door].params}
    for one in fields_at(door, *KINDS):
        flag = flags[one.name]
        assert "--" + one.name.rstrip("_").replace("_", "-") in flag.opts
        assert flag.required or flag.default == shown_default(one, door)
        with at_door(Door.COMMAND):
            assert flag.help.startswith(spec_of(one).sentence)
        assert f"`{flag.opts[0]}`" in PAGE.read_text()


@pytest.mark.parametrize("door", FUNCTIONS)
def test_a_function_takes_a_keyword_for_every_field(door: str) -> None:
    function = FUNCTIONS[door]
    named = fields_at(door, *KINDS)
    assert set(arguments_of(function).__annotations__) == {one.name for one in named}, "a name that editors see"
    parameters = inspect.signature(function).parameters
    for one in named:
        assert parameters[one.name].default == shown_default(one, door)
    usual = {one.name: spec_of(one).default_at(door, one.default) for one in named}
    engine = {"engine": "local"} if "engine" in usual else {}  # `run` chooses one by the kind of events
    keywords_at(door, usual | engine, *KINDS)
    with pytest.raises(TypeError, match="unexpected keyword"):
        keywords_at(door, {"tyme": "x"}, *KINDS)


def test_every_option_has_a_type_and_a_sentence() -> None:
    for one in LISTED:
        assert one.type
        assert spec_of(one).help.endswith("."), one.name
        assert spec_of(one).doors, one.name


@dataclass(frozen=True, kw_only=True)
class MoreOptions(Options):
    """One field more."""

    flavour: str = option_field("plain", "How rows taste.", OUTPUT, commands="run", functions="run", metavar="TASTE")


def test_one_field_makes_a_flag_and_a_keyword() -> None:
    heard: list[MoreOptions] = []

    def run(options: MoreOptions, messages: Messages) -> None:
        heard.append(options)

    run.__annotations__ = {"options": MoreOptions, "messages": Messages, "return": None}
    other = typer.Typer()
    other.command()(command_options("run")(run))
    command = typer.main.get_command(other)
    command.main(["--flavour", "hot", "--time", "at"], standalone_mode=False)
    (options,) = keywords_at("run()", {"flavour": "hot", "engine": "local"}, MoreOptions)
    assert [(one.flavour, one.time, one.engine) for one in heard] == [("hot", "at", "spark")]
    assert options.flavour == "hot"
    assert "flavour" in page([MoreOptions])


# ---------------------------------------------------------------------------------------- the reference page


def page(listed_kinds: list[type]) -> str:
    """One table for each class of options."""
    parts = [
        "# All options\n\nWritten from the fields of `trendloom.options`; [command-line.md](command-line.md) explains "
        'them. A flag of the command is a keyword argument of the functions: `--time-unit ms` is `time_unit="ms"`.\n'
    ]
    for kind in listed_kinds:
        rows = [_row(one) for one in fields(kind) if "option" in one.metadata]
        heading = (kind.__doc__ or "").split("\n")[0].rstrip(".")
        parts.append(f"## {heading}\n\n| flag | default | meaning | commands | functions |\n|---|---|---|---|---|\n")
        parts[-1] += "\n".join(rows) + "\n"
    return "\n".join(parts)


def _row(one: Field[Any]) -> str:
    spec = spec_of(one)
    commands = [door.split()[1] for door in spec.doors if door.startswith(COMMAND)]
    functions = [door.removesuffix("()") for door in spec.doors if door.endswith("()")]
    flag = "--" + one.name.rstrip("_").replace("_", "-") if commands else f"{one.name}="
    usual = spec.default_at(spec.doors[0], one.default)
    default = "required" if usual is MISSING else "" if usual in (None, (), False) else f"`{_text(usual)}`"
    others = {door: value for door, value in spec.defaults.items() if door != COMMAND}
    default += "".join(f"; `{door}`: {'none' if value is None else value}" for door, value in others.items())
    with at_door(Door.COMMAND):
        meaning = spec.sentence.replace("|", "\\|")
    choices = " One of " + ", ".join(f"`{choice}`" for choice in spec.choices) + "." if spec.choices else ""
    short = f", `{spec.short}`" if spec.short else ""
    cells = (f"`{flag}`{short}", default, meaning + choices, " ".join(commands), " ".join(functions))
    return f"| {' | '.join(cells)} |"


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def test_the_page_lists_every_option() -> None:
    assert PAGE.read_text() == page(KINDS), "python tests/contracts/test_options.py writes it"


if __name__ == "__main__":
    PAGE.write_text(page(KINDS))
