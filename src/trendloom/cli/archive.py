"""`trendloom archive`: put events and the rows of queries into an archive, show what one holds, keep it small."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from trendloom.cli import options as o
from trendloom.cli.console import Shown, output_console, progress, reporting, tell_note, warnings_told
from trendloom.cli.options import STANDARD_INPUT, read_query
from trendloom.errors import OptionError

if TYPE_CHECKING:
    from trendloom.archive.archive import Archive
    from trendloom.archive.requests import Archived, ArchiveRequest
    from trendloom.options import Options


# An archive as commands open it.


def open_archive_at(place: str) -> Archive:
    """The archive in a folder."""
    from trendloom.archive import open_archive

    return open_archive(Path(place))


# What an archive holds, for people: its types with their attributes, its queries with their partitions, monitors.


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
    for name, told in archive.monitors().items():
        table.add_row(name, str(told.get("sentence") or told.get("formula", "")))
    return table


ARCHIVE = "Archive"
EPILOG = """
[bold]Examples[/]

  trendloom archive plant --events monday.parquet --queries load.tql --engine local

  trendloom archive plant --events day.parquet --queries load.tql --chunk 10min --keep 30d --dimensions line

  trendloom archive plant

  trendloom archive plant --compact

The same files archived again replace themselves. A live stream archives itself: trendloom stream ... --archive plant
"""


def archive(
    folder: Annotated[
        str, typer.Argument(metavar="ARCHIVE", show_default=False, help="The folder; alone: show what it holds.")
    ],
    events: o.SomeEvents = None,
    queries: Annotated[
        str | None,
        typer.Option(
            "--queries", metavar="QUERY.tql", rich_help_panel=ARCHIVE, show_default=False,
            help="Queries whose rows are archived too; - reads them from standard input.",
        ),
    ] = None,
    query: o.QueryName = None,
    chunk: Annotated[
        str,
        typer.Option(
            "--chunk", metavar="DURATION", rich_help_panel=ARCHIVE,
            help="The stretch of time that a file holds, e.g. 10min; chosen once, for all that comes later.",
        ),
    ] = "1h",
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep", metavar="AGE", rich_help_panel=ARCHIVE, show_default=False,
            help="Drop what is older than that, e.g. 30d, counted from the newest event; else nothing is dropped.",
        ),
    ] = None,
    dimensions: Annotated[
        list[str] | None,
        typer.Option(
            "--dimensions", metavar="COLUMN,...", rich_help_panel=ARCHIVE, show_default=False,
            help="Columns beside texts that may tell partitions apart; may be repeated.",
        ),
    ] = None,
    compact: Annotated[
        bool, typer.Option("--compact", rich_help_panel=ARCHIVE, help="Put small files together.")
    ] = False,
    commit: Annotated[
        str | None,
        typer.Option(
            "--commit", metavar="NAME", rich_help_panel=ARCHIVE, show_default=False,
            help="The name under which it comes in: the same again replaces it. Default: by the files of events.",
        ),
    ] = None,
    time: o.Time = "time",
    type: o.Type = "type",
    time_unit: o.TimeUnit = None,
    time_low: o.TimeLow = None,
    time_high: o.TimeHigh = None,
    time_error: o.TimeError = None,
    order: o.Order = None,
    schema: o.Columns = None,
    time_zone: o.TimeZone = None,
    engine: o.EngineName = o.Engine.spark,
    master: o.Master = None,
    numeric: o.NumericName = o.Numeric.exact,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:  # fmt: skip
    """Archive events and the rows of queries over them; show what an archive holds."""
    with reporting(debug=debug), warnings_told(quiet=quiet):
        from trendloom.archive.requests import ArchiveRequest, commit_name
        from trendloom.archive.settings import local_root
        from trendloom.options import Options, columns_named

        root = local_root(folder)
        if not events:
            _refuse_without_events(queries, keep, dimensions)
            _look_after(root, compact=compact, quiet=quiet)
            return
        options = Options(
            engine.value, time, type, time_unit, time_low, time_high, numeric.value, query=query, master=master,
            order=columns_named(order), schema=schema, time_zone=time_zone, time_error=time_error,
        )  # fmt: skip
        text = "" if queries is None else read_query(queries)
        name = None if queries in (None, STANDARD_INPUT) else Path(str(queries)).stem
        request = ArchiveRequest(
            root, text, commit or commit_name(events), name, chunk, keep, columns_named(dimensions)
        )
        with progress(wanted=not quiet) as shown:
            archived = _archived(request, events, options, shown, quiet=quiet, debug=debug)
        if not quiet:
            tell_note(_told(archived, folder))
        if compact:
            _look_after(root, compact=True, quiet=True)


def _refuse_without_events(queries: str | None, keep: str | None, dimensions: list[str] | None) -> None:
    for name, given in (("--queries", queries), ("--keep", keep), ("--dimensions", dimensions)):
        if given:
            raise OptionError(f"{name} is for events that come in, and there are none", hint="give --events FILE")


def _archived(
    request: ArchiveRequest, events: list[str], options: Options, shown: Shown, *, quiet: bool, debug: bool
) -> Archived:
    from trendloom.cli.run import watch_of

    watch = watch_of(shown, [], quiet=quiet, debug=debug)
    if options.engine == "spark":
        from trendloom.engines.spark.prerequisites import require_spark

        require_spark()
        from trendloom.engines.spark.archive.batch import archive_on_spark

        return archive_on_spark(request, events, options, watch)
    from trendloom.engines.local.archive import archive_locally

    return archive_locally(request, events, options, watch)


def _told(archived: Archived, folder: str) -> str:
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
        tell_note(f"{fewer:,} files fewer in {root}" if fewer else f"there are no small files in {root}")
