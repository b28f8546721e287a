"""What commands share: flags made from the fields of `trendloom.options`, other arguments, and their files.

`command_options("run")` replaces a parameter that is an options object by one flag for each field that `trendloom run`
takes. The command itself receives the object, and whatever it raises becomes a message and an exit status.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, is_dataclass
from enum import StrEnum
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer

from trendloom.cli.console import reporting
from trendloom.errors import Door, OptionError, at_door, did_you_mean
from trendloom.options import (
    COMMAND,
    EVENTS,
    OUTPUT,
    fields_at,
    option_field,
    options_at,
    spec_of,
)

ALL_COMMANDS = "run stream archive check explain diagnose monitor dashboard warm"


class Format(StrEnum):
    table = "table"
    jsonl = "jsonl"
    csv = "csv"
    parquet = "parquet"


@dataclass(frozen=True, kw_only=True)
class Messages:
    """What a command says beside its result."""

    # fmt: off
    quiet: bool = option_field(
        False, "No warnings, notes or progress; errors only.", OUTPUT,
        commands="run stream archive check diagnose monitor warm", short="-q")
    debug: bool = option_field(False, "Show the traceback of an error.", OUTPUT, commands=ALL_COMMANDS)
    # fmt: on


QUERY_HELP = "A file of one query or of a workload; - reads it from standard input."
QueryFile = Annotated[str, typer.Argument(metavar="QUERY.tql", show_default=False, help=QUERY_HELP)]
MaybeQueryFile = Annotated[str | None, typer.Argument(metavar="[QUERY.tql]", show_default=False, help=QUERY_HELP)]
EVENTS_HELP = "Parquet, CSV or JSON lines: a file, a folder, a glob in quotes, or a URI; may be repeated."
EVENTS_FLAG = typer.Option(
    "--events", "-e", metavar="FILE", rich_help_panel=EVENTS, show_default=False, help=EVENTS_HELP
)
SomeEvents = Annotated[list[str] | None, EVENTS_FLAG]
AllEvents = Annotated[list[str], EVENTS_FLAG]


def command_options(command: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function of options objects; see above."""
    door = f"{COMMAND} {command}"

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)
        hints.pop("return")
        kinds = {name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)}
        parameters: list[Parameter] = []
        for name, one in signature(function).parameters.items():
            if name not in kinds:
                parameters.append(one.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY))
                continue
            types = get_type_hints(kinds[name])
            parameters += [_flag(field, types[field.name], door) for field in fields_at(door, kinds[name])]

        @wraps(function)
        def run(**given: Any) -> None:
            with reporting(debug=given["debug"]):
                plain = {name: value.value if isinstance(value, StrEnum) else value for name, value in given.items()}
                objects = {name: options_at(door, kind, plain) for name, kind in kinds.items()}
                function(**{name: given[name] for name in hints if name not in kinds}, **objects)

        run.__signature__ = signature(function).replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorate


def _flag(one: Field[Any], kind: Any, door: str) -> Parameter:
    """The flag of a field."""
    spec = spec_of(one)
    default = spec.default_at(door, one.default)
    name = "--" + one.name.rstrip("_").replace("_", "-")
    with at_door(Door.COMMAND):
        help = spec.sentence
    shown = typer.Option(
        *filter(None, (name, spec.short)),
        metavar=spec.metavar,
        rich_help_panel=spec.group or None,
        show_default=default not in (None, (), MISSING),
        help=help,
    )
    usual = {MISSING: Parameter.empty, (): None}.get(default, list(default) if isinstance(default, tuple) else default)
    read: Any = _type_of(one, kind, required=default is MISSING)
    annotation = Annotated[read, shown]
    return Parameter(one.name, Parameter.KEYWORD_ONLY, default=usual, annotation=annotation)


def _type_of(one: Field[Any], kind: Any, *, required: bool) -> Any:
    """The type of a flag: text where the field may be text, a list for several values, an enum for choices."""
    spec = spec_of(one)
    if get_origin(kind) is tuple:
        return list[str] if required else list[str] | None
    choices = [each for each in get_args(kind) if each is not type(None)] if _is_union(kind) else [kind]
    named: Any = StrEnum
    base: Any = str if str in choices else choices[0]
    if spec.choices:
        base = named(one.name, {choice: choice for choice in spec.choices})
    return base if required or not _is_union(kind) else base | None


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType)


# ------------------------------------------------------------------------------------------------- files


STANDARD_INPUT = "-"


def read_query(name: str) -> str:
    """The text, or an error that helps to find it."""
    try:
        if name == STANDARD_INPUT:
            return sys.stdin.buffer.read().decode("utf-8-sig")
        return Path(name).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise OptionError(f"there is no query file {name}", hint=_nearby(Path(name))) from None
    except IsADirectoryError:
        raise OptionError(f"{name} is a folder, not a query file", hint=_nearby(Path(name) / "any.tql")) from None
    except UnicodeDecodeError:
        raise OptionError(f"{name} is not text in UTF-8", hint="a query file is plain text, by habit *.tql") from None
    except OSError as problem:
        raise OptionError(f"{name} cannot be read: {problem.strerror or problem}") from None


def _nearby(path: Path) -> str:
    if not path.parent.is_dir():
        return f"there is no folder {path.parent} either"
    names = [found.name for found in path.parent.glob("*.tql")]
    return did_you_mean(path.name, names) or "write the query into a file, or give - and write it to standard input"


def picture_target(path: str) -> Path:
    """Where to draw, if that can be done."""
    from trendloom.viz.canvas import check_picture, require_matplotlib

    require_matplotlib()
    return check_picture(path)
