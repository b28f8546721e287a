"""The runnable blocks of a page: what is written between fences, executed, and shown as the page should show it.

The word behind a fence says what the block is:

- events: a stream. A table with columns apart by blanks, `-` is NULL; or in short `a1 b2 b3`: an event of type A at
  time 1 with id a1, and so on. It holds until the next such block.
- tql: a query, run over the stream by the local and the reference engine. `tql reference`: by the reference engine
  alone; the local one must refuse it by name, so that the page is changed when it no longer does. `tql order=line`:
  with the column `line` to order events of equal time; other options are written likewise, as `time_error=2`.
- result: what the query before it gives, as `trendloom run --format table` prints it; error: its message instead;
  warning: what `check` says.
- python: a program; the programs of a page share their names. output: what the one before it prints.
- console: lines with `$ trendloom` are run, what follows them is what they print. Other commands are not run.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
from rich.console import Console
from typer.testing import CliRunner

import trendloom as tl
from trendloom.cli.main import app
from trendloom.cli.output import preview, show
from trendloom.engines.answers import answers
from trendloom.errors import PlanError, TrendloomError
from trendloom.options import Options

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
SHORT = re.compile(r"([a-z]+)(\d+)")
ANSWERS = ("result", "error", "warning", "output")
WIDTH = 110


@dataclass(frozen=True)
class Block:
    """A fenced block; `span` is where its text stands in the page, `line` the line of its fence."""

    kind: str
    options: tuple[str, ...]
    text: str
    span: tuple[int, int]
    line: int


@dataclass(frozen=True)
class Example:
    """A block that can be run, the stream it runs over, and the block that says what it gives, if there is one."""

    page: str
    block: Block
    events: str | None
    expected: Block | None

    @property
    def settings(self) -> dict[str, Any]:
        """The options of the call that the fence names."""
        named = dict(word.split("=", 1) for word in self.block.options if "=" in word)
        return named | ({"order": (named["order"],)} if "order" in named else {})

    @property
    def name(self) -> str:
        spark = "-spark" if "spark" in self.block.options else ""
        return f"{self.page}:{self.block.line}-{self.block.kind}{spark}"


def blocks(text: str) -> Iterator[Block]:
    for found in FENCE.finditer(text):
        kind, *options = found.group(1).split() or [""]
        yield Block(kind, tuple(options), found.group(2), found.span(2), text.count("\n", 0, found.start()) + 1)


def examples(page: Path) -> list[Example]:
    """The queries, programs and commands of a page, in order."""
    listed = list(blocks(page.read_text()))
    events: str | None = None
    found = []
    for number, block in enumerate(listed):
        after = listed[number + 1] if number + 1 < len(listed) else None
        expected = after if after is not None and after.kind in ANSWERS else None
        if block.kind == "events":
            events = block.text
        elif block.kind in ("tql", "python", "console"):
            found.append(Example(str(page.relative_to(ROOT)), block, events, expected))
    return found


# --------------------------------------------------------------------------------------------------- running


def table_of(text: str) -> pa.Table:
    """The events of a block."""
    words = text.split()
    if all(SHORT.fullmatch(word) for word in words):
        pairs = [SHORT.fullmatch(word).groups() for word in words]  # type: ignore[union-attr]
        return pa.table(
            {
                "time": pa.array([int(time) for _, time in pairs]),
                "type": pa.array([kind.upper() for kind, _ in pairs]),
                "id": pa.array(words),
            }
        )
    rows = [["" if cell == "-" else cell for cell in line.split()] for line in text.splitlines() if line.strip()]
    text = "\n".join(",".join(row) for row in rows)
    options = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
    return pyarrow.csv.read_csv(io.BytesIO(text.encode()), convert_options=options)


def run_query(example: Example, engine: str) -> str:
    """What a page shows for a query: its rows as a table, or its error."""
    assert example.events is not None, "a query needs events: put an ```events block before it"
    events = table_of(example.events)
    try:
        if example.expected is not None and example.expected.kind == "warning":
            return "\n".join(str(warning) for warning in tl.check(example.block.text, events, **example.settings))
        options = Options(engine=engine, **example.settings)
        found = [preview(answer) for answer in answers(example.block.text, events, options)]
    except TrendloomError as error:
        return str(error)
    screen = Console(file=io.StringIO(), width=WIDTH, highlight=False, color_system=None)
    show(found, screen)
    return screen.file.getvalue()  # type: ignore[attr-defined]


def refusal(example: Example) -> str | None:
    """How the local engine refuses the query; None if it does not."""
    assert example.events is not None
    try:
        tl.run(example.block.text, table_of(example.events), engine="local", **example.settings)
    except PlanError as error:
        return error.message
    return None


def run_python(example: Example, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example.block.text, example.name, "exec"), names)
    return printed.getvalue()


def commands(block: Block) -> list[tuple[str, str]]:
    """Each command of a console block, and what is printed below it."""
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]


def run_command(command: str) -> str:
    """What `trendloom ...` prints, on both of its streams."""
    words = shlex.split(command, comments=True)
    assert words[0] == "trendloom", "only commands of trendloom are run"
    result = CliRunner(env={"COLUMNS": str(WIDTH)}).invoke(app, words[1:], prog_name="trendloom")
    return result.output


# ------------------------------------------------------------------------------------------------- comparing


def normal(text: str) -> list[str]:
    """Lines without what is only looks: rules, widths of columns, and the number of rows below them."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return [line for line in lines if line and not set(line) <= set("─━ ") and not re.fullmatch(r"[\d,]+ rows?", line)]


def filled(page: Path) -> str:
    """The page with every answer as it is now."""
    text = page.read_text()
    names: dict[str, Any] = {}
    changes: list[tuple[tuple[int, int], str]] = []
    for example in examples(page):
        if example.block.kind == "console":
            shown = [
                (cmd, run_command(cmd) if cmd.startswith("trendloom") else old) for cmd, old in commands(example.block)
            ]
            changes.append((example.block.span, "".join(f"$ {command}\n{_trimmed(out)}" for command, out in shown)))
        elif example.expected is not None:
            if example.block.kind == "python":
                out = run_python(example, names)
            else:
                out = run_query(example, "reference" if "reference" in example.block.options else "local")
            changes.append((example.expected.span, _trimmed(out)))
    for (start, end), new in reversed(changes):
        text = text[:start] + new + text[end:]
    return text


def _trimmed(text: str) -> str:
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    if len(lines) > 1 and re.fullmatch(r"[\d,]+ rows?", lines[-1]):
        lines.pop()
    return "\n".join(lines) + "\n" if lines else ""
