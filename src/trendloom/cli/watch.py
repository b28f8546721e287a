"""The display of a live stream: its rows on standard output, its progress on standard error.

On a terminal a small table stays at the bottom and is kept up to date; in a file or pipe there is one line per batch.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import pyarrow as pa
import pyarrow.compute as pc
import typer
from rich.live import Live
from rich.table import Table
from rich.text import Text

from trendloom.cli.console import errors_console, output_console, report_warnings
from trendloom.cli.output import MOST_ROWS, Preview, show
from trendloom.engines.spark.streaming.metrics import Metrics, shown_watermark, write_prometheus
from trendloom.engines.spark.streaming.service import StreamWatch
from trendloom.errors import TrendloomError
from trendloom.io.write import json_lines
from trendloom.model.schema import Schema

UNITS = ("B", "kB", "MB", "GB", "TB")


# --------------------------------------------------------------------------------------------------- rows


@dataclass
class Rows:
    """Rows on standard output; a reader that has seen enough (`| head`) ends the stream."""

    format: str
    schema: Schema
    stop: Event
    broken: bool = False

    def __call__(self, rows: pa.Table, batch: int) -> None:
        try:
            if self.format == "table":
                show_table(rows, self.schema, empty=False)
            else:
                for some in rows.to_batches():
                    sys.stdout.write("".join(line + "\n" for line in json_lines(some)))
                sys.stdout.flush()
        except BrokenPipeError:
            self.broken = True
            self.stop.set()


def console_of(format: str | None, schema: Schema, stop: Event) -> Rows:
    """Rows in the given format; by default a table on a terminal, else JSON lines."""
    return Rows(format or ("table" if sys.stdout.isatty() else "jsonl"), schema, stop)


def show_table(rows: pa.Table, schema: Schema, *, empty: bool = True) -> None:
    """The first rows of each query, without columns that only other queries have."""
    named = "query" in rows.column_names
    names = pc.unique(rows["query"]).to_pylist() if named else [None]
    found = []
    for name in names:
        part = rows.filter(pc.equal(rows["query"], name)).drop_columns(["query"]) if named else rows
        used = [column for column in part.column_names if part[column].null_count < len(part)] if named else None
        part = part if used is None else part.select(used)
        if len(part) or empty:
            found.append(Preview(name, schema, part.slice(0, MOST_ROWS), len(part)))
    show(found, output_console())


# ------------------------------------------------------------------------------------------- how it is doing


@dataclass
class Screen:
    """The state of the display of a running stream, and its metrics file."""

    wanted: bool
    metrics: str | None
    name: str
    last: Metrics = Metrics()
    trouble: str | None = None

    def write(self, metrics: Metrics) -> None:
        self.last, self.trouble = metrics, None
        if self.metrics is not None:
            try:
                write_prometheus(metrics, Path(self.metrics), time.time())
            except OSError as problem:  # the stream matters more than its metrics
                report_warnings([f"{self.metrics} cannot be written: {problem.strerror or problem}"])


@contextmanager
def watching(screen: Screen) -> Iterator[StreamWatch]:
    """Follow a stream: a table that changes on a terminal, a line per batch elsewhere, nothing if not wanted."""
    console = errors_console()
    if not screen.wanted:
        yield StreamWatch(screen.write)
        return
    if console.is_terminal:
        # Rows that go to the same terminal are printed above the table; rows for a pipe go straight there.
        shared = sys.stdout.isatty()
        with Live(
            get_renderable=lambda: status(screen, time.time()), console=console, refresh_per_second=2,
            redirect_stdout=shared, redirect_stderr=False, transient=False,
        ):  # fmt: skip
            yield StreamWatch(screen.write, lambda error, pause: _note_trouble(screen, error, pause))
        return

    def report(metrics: Metrics) -> None:
        screen.write(metrics)
        typer.echo(line(metrics, time.time()), err=True)

    yield StreamWatch(report, lambda error, pause: report_warnings([_trouble(error, pause)]))


def status(screen: Screen, now: float) -> Table:
    """The table at the bottom of the terminal."""
    metrics, lag = screen.last, screen.last.lag(now)
    table = Table.grid(padding=(0, 2))
    table.title, table.title_justify, table.title_style = screen.name, "left", "bold"
    waiting = metrics.batches == 0
    state = f"{metrics.state_rows:,} rows, {size(metrics.state_bytes)}"
    rows = [
        ("batch", "waiting for the first" if waiting else f"{metrics.batch:,} in {metrics.batch_seconds:.1f} s"),
        ("events", f"{metrics.events:,}, {metrics.events_per_second:,.0f} a second"),
        ("rows", f"{metrics.results:,}, {metrics.batch_results:,} in the last batch"),
        ("watermark", shown_watermark(metrics) + (f", {duration(lag)} behind" if lag is not None else "")),
        ("state", state),
        ("late", f"{metrics.late:,}" + (f", {metrics.untimed:,} without a time" if metrics.untimed else "")),
    ]
    for name, value in rows:
        table.add_row(Text(name, "dim"), Text(value))
    if screen.trouble is not None:
        table.add_row(Text("trouble", "bold yellow"), Text(screen.trouble))
    return table


def line(metrics: Metrics, now: float) -> str:
    """One batch in one line, for logs."""
    lag = metrics.lag(now)
    parts = [
        f"batch {metrics.batch}",
        f"{metrics.batch_events:,} events in {metrics.batch_seconds:.1f} s ({metrics.events_per_second:,.0f}/s)",
        f"{metrics.batch_results:,} rows",
        f"watermark {shown_watermark(metrics)}" + (f" ({duration(lag)} behind)" if lag is not None else ""),
        f"state {metrics.state_rows:,} rows, {size(metrics.state_bytes)}",
        f"late {metrics.late:,}",
    ]
    return " · ".join(parts) + (f" · without a time {metrics.untimed:,}" if metrics.untimed else "")


def size(count: int) -> str:
    """Bytes as people read them."""
    value = float(count)
    for unit in UNITS[:-1]:
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} {UNITS[-1]}"


def duration(seconds: float) -> str:
    """Seconds as people read them."""
    whole = max(0, round(seconds))
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min"
    return f"{whole // 3600} h" if whole < 172_800 else f"{whole // 86_400} d"


def _trouble(error: TrendloomError, pause: float) -> str:
    return f"{error.message}; tried again in {pause:g} s"


def _note_trouble(screen: Screen, error: TrendloomError, pause: float) -> None:
    screen.trouble = _trouble(error, pause)
