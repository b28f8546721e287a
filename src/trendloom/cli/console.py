"""Output beside the result: warnings, notes, progress and errors, all on standard error.

An error is one message and an exit status: 2 for a bad query or bad options, 1 for bad data or a failed run. A place in
a query is drawn with a caret, so these messages are never wrapped.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TextIO

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trendloom.errors import (
    ArchiveWarning,
    Door,
    OptionError,
    QueryError,
    QueryNote,
    QueryWarning,
    TrendloomError,
    at_door,
)

BAD_QUERY_OR_OPTIONS = 2
BAD_DATA_OR_FAILED_RUN = 1
INTERRUPTED = 130
WIDTH_OF_A_FILE = 160


def errors_console() -> Console:
    """Standard error as it is now: one console per stream, so that messages and progress make room for each other."""
    return _console(sys.stderr)


@cache
def _console(stream: TextIO) -> Console:
    return Console(file=stream, highlight=False, soft_wrap=True)


def output_console() -> Console:
    """Standard output as it is now; a file or pipe has no width of its own."""
    has_width = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(file=sys.stdout, highlight=False, width=None if has_width else WIDTH_OF_A_FILE)


def plain_table() -> Table:
    """An empty table without a frame."""
    return Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")


# ------------------------------------------------------------------------------------------------ errors


@contextmanager
def reporting(*, debug: bool = False) -> Iterator[None]:
    """Run the body of a command: every error becomes its message and its exit status."""
    try:
        with at_door(Door.COMMAND):
            yield
    except (typer.Exit, typer.Abort):
        raise
    except BrokenPipeError:
        _forget_standard_output()
        raise typer.Exit(0) from None
    except KeyboardInterrupt:
        errors_console().print("[yellow]stopped[/]: nothing was written")
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        if debug:
            errors_console().print_exception()
        report_error(understood(error))
        raise typer.Exit(exit_status(error)) from None


def understood(error: Exception) -> TrendloomError:
    """The error in our words."""
    if isinstance(error, TrendloomError):
        return error
    if isinstance(error, MemoryError):
        return TrendloomError(
            "there is not enough memory", hint="narrow the query (WITHIN, [key], predicates), or use --limit"
        )
    first_line = str(error).strip().partition("\n")[0]
    return TrendloomError(
        f"unexpected {type(error).__name__}: {first_line}" if first_line else f"unexpected {type(error).__name__}",
        hint="this should not happen; --debug shows where it did",
    )


def exit_status(error: Exception) -> int:
    wrong_call = isinstance(error, QueryError | OptionError)
    return BAD_QUERY_OR_OPTIONS if wrong_call else BAD_DATA_OR_FAILED_RUN


def _forget_standard_output() -> None:
    """After a reader closed our output (`| head`), writing what is buffered would only fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def report_error(error: TrendloomError) -> None:
    errors_console().print(_marked("error", "bold red", str(error)))


def report_refusal(error: TrendloomError, what: str) -> None:
    """Say that something was refused, and everything else goes on."""
    errors_console().print(_marked("refused", "bold yellow", f"{what}: {error}"))


# ------------------------------------------------------------------------------------- warnings and notes


def report_warnings(warnings: Iterable[QueryWarning | str], query: str | None = None) -> None:
    of = f" in query {query}" if query is not None else ""
    for warning in warnings:
        if isinstance(warning, QueryNote):
            report_note(str(warning))
        else:
            errors_console().print(_marked(f"warning{of}", "bold yellow", str(warning)))


@contextmanager
def user_warnings(*, quiet: bool) -> Iterator[None]:
    """Print Python's warnings for users like our own, when the block is over."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            if not quiet:
                report_warnings(str(one.message) for one in caught if one.category in (UserWarning, ArchiveWarning))


def report_note(text: str) -> None:
    errors_console().print(_marked("note", "bold cyan", text))


def _marked(word: str, style: str, text: str) -> Text:
    """`error: message`, with the caret in the colour of the word and the hint set apart."""
    shown = Text.assemble((f"{word}:", style), " ")
    lines = text.split("\n")
    for number, line in enumerate(lines):
        is_caret = number > 0 and line.strip() != "" and set(line.strip()) == {"^"}
        if line.startswith("hint: "):
            shown.append_text(Text.assemble(("hint:", "bold green"), line.removeprefix("hint:")))
        else:
            shown.append(line, style if is_caret else "")
        shown.append("\n" if number < len(lines) - 1 else "")
    return shown


# ---------------------------------------------------------------------------------------------- progress


@dataclass(frozen=True)
class Shown:
    """Callbacks for progress, None where it is not shown.

    `found`: the number of matches so far; `foreseen`: the number to come; `say`: the current step; `compiling`: the
    function that is being compiled, then None; `stop`: the progress is over.
    """

    found: Callable[[int], None] | None = None
    foreseen: Callable[[str], None] | None = None
    say: Callable[[str], None] = lambda _: None
    compiling: Callable[[str | None], None] | None = None
    stop: Callable[[], None] = lambda: None


@contextmanager
def progress(*, wanted: bool) -> Iterator[Shown]:
    """A line on standard error that shows the progress of a run; only on a terminal."""
    console = errors_console()
    if not wanted or not console.is_terminal:
        yield Shown()
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    # Rows go to the real standard output, and messages to this same console, so neither needs to be redirected.
    plain = {"redirect_stdout": False, "redirect_stderr": False}
    with Progress(*columns, console=console, transient=True, **plain) as shown:  # type: ignore[arg-type]
        task = shown.add_task("reading and planning", total=None)

        stage = ""

        def say(text: str) -> None:
            nonlocal stage
            stage = text
            shown.update(task, description=text)

        def compiling(name: str | None) -> None:
            text = stage if name is None else f"compiling {name}, once"
            shown.update(task, description=text, refresh=True)  # at once: nothing is drawn while the compiler runs

        of = ""

        def foreseen(number: str) -> None:
            nonlocal of
            of = f" of {number}"
            say(f"{number} matches to find")

        yield Shown(lambda matches: say(f"{matches:,}{of} matches so far"), foreseen, say, compiling, shown.stop)


# What Spark itself prints: into a log, or nowhere, so that standard error is ours.
#
# Java and Spark's workers inherit standard error when they start and keep it, so it is exchanged for just as long as
# Spark starts. Errors of Spark's reach us as exceptions, and are shown in our words.


@contextmanager
def spark_prints_into(log: str | None, *, debug: bool) -> Iterator[None]:
    """Start Spark in this block: all it ever prints goes to the log; without one nowhere, or here if `debug`."""
    if debug and log is None:
        yield
        return
    # The link to Spark logs a traceback for every failure, which is shown in our words anyway.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    sys.stderr.flush()
    ours = os.dup(2)
    theirs = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(theirs, 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(ours, 2)
        os.close(theirs)
        os.close(ours)
