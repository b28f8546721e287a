"""Every error Trendloom raises: one root, one branch per stage, and messages have what, where and the way out.

A `QueryError` has its place in the query text and draws it::

    Trade has no attribute 'prise'  (line 2, column 9)
      WHERE t.prise > 10
              ^^^^^
    hint: did you mean 'price'?

Messages that name an option of the call never spell it themselves, because the command and Python spell it differently.
`option` does::

    DataError("...", hint=f"say what its numbers count: {option('time_unit', 'ms')}")
        Python         hint: say what its numbers count: time_unit="ms"
        the command    hint: say what its numbers count: --time-unit ms

    option("limit", 10)        limit=10          --limit 10
    option("analyze", True)    analyze=True      --analyze
    option("time")             time=             --time          the option itself, whatever its value

The name is that of the Python parameter. `option` gives plain text, so it may stand in warnings, notes and plans as
well as in errors. Python is the default; the command opens its own door around everything it does (`at_door`), and
tasks on Spark take the door of the driver along.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Self


@dataclass(frozen=True)
class Span:
    """A stretch of query text on one line: 1-based line and column, and its length."""

    line: int
    column: int
    length: int = 1


# ---------------------------------------------------------------------------------- options in messages


class Door(Enum):
    """Where a user came in, which decides how options are spelled."""

    PYTHON = "python"
    COMMAND = "command"


_open = Door.PYTHON


def open_door() -> Door:
    """The door of this process now."""
    return _open


@contextmanager
def at_door(door: Door) -> Iterator[None]:
    """Spell options as users of that door write them, for as long as the block runs."""
    global _open
    before, _open = _open, door
    try:
        yield
    finally:
        _open = before


def option(name: str, value: str | float | None = None) -> str:
    """An option of the call as the user would write it; `name` is that of the Python parameter."""
    if _open is Door.PYTHON:
        return f"{name}=" + ("" if value is None else _python(value))
    flag = "--" + name.replace("_", "-")
    return flag if value is None or value is True else f"{flag} {_shell(value)}"


def _python(value: str | float) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _shell(value: str | float) -> str:
    text = str(value)
    return text if text and not set(text) & set(" \t'\"$`\\*?<>|&;()") else '"' + text + '"'


# ---------------------------------------------------------------------------------------------- errors


MOST_PARTS = 12
"""So many queries of a workload are shown with what is wrong with them; the message names them all."""


class TrendloomError(Exception):
    """The root. `message` is what is wrong, `hint` the way out."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


class QueryError(TrendloomError):
    """The query is wrong: syntax, names, types, or a feature that no algorithm supports yet.

    An error of a workload has `parts`: what is wrong with each query, and where.
    """

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        *,
        hint: str | None = None,
        text: str | None = None,
        parts: Sequence[QueryError] = (),
    ) -> None:
        super().__init__(message, hint=hint)
        self.span = span
        self.text = text
        self.parts = tuple(parts)

    @property
    def line(self) -> int | None:
        return self.span.line if self.span else None

    @property
    def column(self) -> int | None:
        return self.span.column if self.span else None

    def __str__(self) -> str:
        if not self.parts:
            return describe(self.message, self.span, self.text, self.hint)
        shown = [*map(str, self.parts[:MOST_PARTS])]
        more = [f"... and {len(self.parts) - MOST_PARTS} more"] if len(self.parts) > MOST_PARTS else []
        return "\n".join([self.message, *shown, *more, *([] if self.hint is None else [f"hint: {self.hint}"])])

    def of_query(self, name: str | None) -> Self:
        """The same error, saying of which query it is."""
        if name is None:
            return self
        return type(self)(f"query {name}: {self.message}", self.span, hint=self.hint, text=self.text, parts=self.parts)


class ParseError(QueryError):
    """The text is not a query."""


class BindError(QueryError):
    """The query names something that is not there, or puts types together that do not go together."""


class PlanError(QueryError):
    """The query is right, but no algorithm of the chosen engine runs it."""


class OptionError(TrendloomError):
    """An option of the call is wrong or contradicts another."""


class DataError(TrendloomError):
    """The events cannot be read by the query and options."""


class RunError(TrendloomError):
    """A run that had started could not be completed."""


class StateError(RunError):
    """What a live stream has stored cannot be read, or belongs to something else: trying again would not help."""


class ArchiveWarning(UserWarning):
    """Something of an archive is damaged, and was left out."""


@dataclass(frozen=True)
class QueryWarning:
    """Something that is allowed but probably not meant."""

    message: str
    span: Span | None = None
    hint: str | None = None
    text: str | None = None

    def __str__(self) -> str:
        return describe(self.message, self.span, self.text, self.hint)


@dataclass(frozen=True)
class QueryNote(QueryWarning):
    """Something that was decided for the caller, and should be known."""


def describe(message: str, span: Span | None, text: str | None, hint: str | None) -> str:
    """The message with its place drawn below it, as people see it."""
    lines = [message if span is None else f"{message}  (line {span.line}, column {span.column})"]
    source = text.splitlines() if text is not None else []
    if span is not None and 1 <= span.line <= len(source):
        shown = source[span.line - 1].replace("\t", " ")
        indent = len(shown) - len(shown.lstrip())
        lines.append("  " + shown.strip())
        lines.append("  " + " " * max(0, span.column - 1 - indent) + "^" * max(1, span.length))
    if hint is not None:
        lines.append(f"hint: {hint}")
    return "\n".join(lines)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint that names the closest known name, or lists what there is."""
    names = sorted(set(known))
    folded = {candidate.lower(): candidate for candidate in names}
    close = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{folded[close[0]]}'?"
    if names:
        return "there is " + ", ".join(f"'{candidate}'" for candidate in names[:8]) + (" ..." if len(names) > 8 else "")
    return None
