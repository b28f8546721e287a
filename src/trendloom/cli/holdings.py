"""What an archive holds, for people: its types with their attributes, its queries with their partitions, monitors."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

from trendloom.archive.layout import EVENTS, RESULTS
from trendloom.archive.partitions import MEASURES
from trendloom.cli.console import output_console

if TYPE_CHECKING:
    from trendloom.archive.archive import Archive

MOST = 100
"""Rows of a table that are shown."""


def show_archive(archive: Archive) -> None:
    """Print what an archive holds."""
    console = output_console()
    console.print(_headline(archive))
    for table in (_types(archive), _queries(archive), _monitors(archive)):
        if table.row_count:
            console.print(table)


def _headline(archive: Archive) -> str:
    files = [file for file in archive.files if file.kind == EVENTS]
    size = sum(file.bytes for file in archive.files)
    events = sum(file.rows for file in files)
    if not events:
        return f"{archive.root}: no events"
    low, high = archive.span
    span = f"{_shown(low, archive)} to {_shown(high, archive)}"
    return f"{archive.root}: {events:,} events from {span}, {len(archive.files):,} files, {size / 1e6:,.1f} MB"


def _shown(tick: int, archive: Archive) -> str:
    if archive.unit is not None:
        return str(tick)
    moment = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=tick)
    return moment.isoformat(sep=" ", timespec="seconds")


def _table(*names: str) -> Table:
    numbers = {"events", "rows", "partitions"}
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in names:
        table.add_column(name, justify="right" if name in numbers else "left")
    return table


def _types(archive: Archive) -> Table:
    table = _table("type", "events", "first", "last", "attributes")
    for number, (name, found) in enumerate(archive.types().items()):
        if number == MOST:
            table.add_row(f"... and {len(archive.types()) - MOST:,} more")
            break
        low, high = _shown(found.low, archive), _shown(found.high, archive)
        table.add_row(name, f"{found.rows:,}", low, high, ", ".join(found.columns))
    return table


def _queries(archive: Archive) -> Table:
    table = _table("query", "rows", "partitions", "by", "dimensions", "values")
    for name, query in archive.queries().items():
        rows = sum(file.rows for file in archive.files if file.kind == RESULTS and file.of == name)
        partitions = archive.partitions(name)
        dimensions = [one for one in partitions.column_names if one not in {*query.keys, *MEASURES}]
        table.add_row(
            name, f"{rows:,}", f"{len(partitions):,}", ", ".join(query.keys), ", ".join(dimensions),
            ", ".join(query.values),
        )  # fmt: skip
    return table


def _monitors(archive: Archive) -> Table:
    table = _table("monitor", "formula")
    for name, told in archive.monitors().items():
        table.add_row(name, str(told.get("sentence") or told.get("formula", "")))
    return table
