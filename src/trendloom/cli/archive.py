"""`trendloom archive`: put events and the rows of queries into an archive, show what one holds, keep it small."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from trendloom.cli.console import Shown, output_console, plain_table, progress, report_note, user_warnings
from trendloom.cli.options import STANDARD_INPUT, Messages, SomeEvents, command_options, read_query
from trendloom.errors import OptionError, option
from trendloom.options import ARCHIVE, Options, columns_named, option_field

if TYPE_CHECKING:
    from trendloom.archive.archive import Archive
    from trendloom.archive.requests import Archived, ArchiveRequest


def open_archive_at(place: str) -> Archive:
    """The archive in a folder."""
    from trendloom.archive import open_archive

    return open_archive(Path(place))


# --------------------------------------------------------------------------------- what an archive holds


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
    from trendloom.archive.commits import EVENTS

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
    table = plain_table()
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
    from trendloom.archive.commits import RESULTS
    from trendloom.archive.partitions import MEASURES

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
    for name, found in archive.monitors().items():
        table.add_row(name, str(found.get("sentence") or found.get("formula", "")))
    return table


EPILOG = """
[bold]Examples[/]

  trendloom archive plant --events monday.parquet --queries load.tql --engine local

  trendloom archive plant --events day.parquet --queries load.tql --chunk 10min --keep 30d --dimensions line

  trendloom archive plant

  trendloom archive plant --compact

The same files archived again replace themselves. A live stream archives itself: trendloom stream ... --archive plant
"""


@dataclass(frozen=True, kw_only=True)
class ArchiveOptions:
    """What is archived, and how the archive is kept."""

    # fmt: off
    queries: str | None = option_field(
        None, "Queries whose rows are archived too; - reads them from standard input.", ARCHIVE,
        commands="archive", metavar="QUERY.tql")
    chunk: str = option_field(
        "1h", "The stretch of time that a file holds, e.g. 10min; chosen once, for all that comes later.", ARCHIVE,
        commands="archive", metavar="DURATION")
    keep: str | None = option_field(
        None, "Drop what is older than that, e.g. 30d, counted from the newest event; else nothing is dropped.",
        ARCHIVE, commands="archive", metavar="AGE")
    dimensions: tuple[str, ...] = option_field(
        (), "Columns beside texts that may tell partitions apart; may be repeated.", ARCHIVE,
        commands="archive", metavar="COLUMN,...", read=columns_named)
    compact: bool = option_field(False, "Put small files together.", ARCHIVE, commands="archive")
    commit: str | None = option_field(
        None, "The name under which it comes in: the same again replaces it. Default: by the files of events.", ARCHIVE,
        commands="archive", metavar="NAME")
    # fmt: on


@command_options("archive")
def archive(
    folder: Annotated[
        str, typer.Argument(metavar="ARCHIVE", show_default=False, help="The folder; alone: show what it holds.")
    ],
    *,
    events: SomeEvents = None,
    kept: ArchiveOptions,
    options: Options,
    messages: Messages,
) -> None:
    """Archive events and the rows of queries over them; show what an archive holds."""
    with user_warnings(quiet=messages.quiet):
        from trendloom.archive.catalog import local_root
        from trendloom.archive.requests import ArchiveRequest, commit_name

        root = local_root(folder)
        if not events:
            _refuse_without_events(kept)
            _look_after(root, compact=kept.compact, quiet=messages.quiet)
            return
        text = "" if kept.queries is None else read_query(kept.queries)
        name = None if kept.queries in (None, STANDARD_INPUT) else Path(str(kept.queries)).stem
        request = ArchiveRequest(
            root, text, kept.commit or commit_name(events), name, kept.chunk, kept.keep, kept.dimensions
        )
        with progress(wanted=not messages.quiet) as shown:
            archived = _archived(request, events, options, shown, messages)
        if not messages.quiet:
            report_note(_summary(archived, folder))
        if kept.compact:
            _look_after(root, compact=True, quiet=True)


def _refuse_without_events(kept: ArchiveOptions) -> None:
    for name in ("queries", "keep", "dimensions"):
        if getattr(kept, name):
            raise OptionError(
                f"{option(name)} is for events that come in, and there are none", hint="give --events FILE"
            )


def _archived(
    request: ArchiveRequest, events: list[str], options: Options, shown: Shown, messages: Messages
) -> Archived:
    from trendloom.cli.run import watch_of

    watch = watch_of(shown, [], quiet=messages.quiet, debug=messages.debug)
    if options.engine == "spark":
        from trendloom.engines.spark.session import require_spark

        require_spark()
        from trendloom.engines.spark.archive import archive_on_spark

        return archive_on_spark(request, events, options, watch)
    from trendloom.engines.local.archive import archive_locally

    return archive_locally(request, events, options, watch)


def _summary(archived: Archived, folder: str) -> str:
    parts = [f"{archived.events:,} events"] if "events" not in archived.there else []
    parts += [f"{rows:,} rows of query {name}" for name, rows in archived.rows.items() if rows or not archived.there]
    text = f"archived in {folder}: {', '.join(parts)}" if parts else f"nothing new for {folder}"
    if archived.there:
        text += f"; there already, put together with others: {', '.join(archived.there)}"
    return text


def _look_after(root: Path, *, compact: bool, quiet: bool) -> None:
    from trendloom.archive.archive import open_archive
    from trendloom.archive.upkeep import compact as put_together

    if not compact:
        show_archive(open_archive(root))
        return
    open_archive(root)
    fewer = put_together(root)
    if not quiet:
        report_note(f"{fewer:,} files fewer in {root}" if fewer else f"there are no small files in {root}")
