"""`trendloom stream`: queries over events as they come, until somebody stops it; rows appear once they are certain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from trendloom.cli import options as o
from trendloom.cli.console import reporting
from trendloom.cli.options import STANDARD_INPUT, read_query
from trendloom.errors import OptionError

SOURCE_FORMS, SINK_FORMS = "sources", "sinks"
"""Stand for the help of the registries, which is read when it is shown: importing the command stays quick."""

STREAM = "Stream"
ARCHIVE = "Archive"
EPILOG = """
[bold]Examples[/]

  trendloom stream kites.tql --source parquet:checks --sink sqlite:rows.db/kites --checkpoint state

  trendloom stream --watch all.tql --source parquet:checks --sink parquet:rows --checkpoint state

  trendloom stream pulse.tql --source rate:1000 --sink console --checkpoint state

  trendloom stream all.tql --source kafka:broker:9092/trades --schema "time timestamp, type string, price double"
  --sink parquet:rows --checkpoint state --trigger "5 seconds" --late-to late --metrics trendloom.prom

  trendloom stream --monitor memory_low --archive history --source parquet:checks --sink jsonl:alerts --checkpoint watch

Ctrl-C ends the stream in good order; started again with the same --checkpoint, it goes on where it was.
"""


class StreamCommand(TyperCommand):
    """A command whose help lists the sources and sinks that are registered."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from trendloom.engines.spark.streaming.sinks import SINKS
        from trendloom.engines.spark.streaming.sources import SOURCES

        registries = {SOURCE_FORMS: SOURCES.help, SINK_FORMS: SINKS.help}
        for parameter in self.params:
            forms = registries.get(getattr(parameter, "help", None) or "")
            if forms is not None:
                parameter.help = forms() + "."  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


def stream(
    source: Annotated[
        str,
        typer.Option(
            "--source", "-s", metavar="KIND:PLACE", rich_help_panel=o.INPUT, show_default=False,
            help=SOURCE_FORMS,
        ),
    ],
    checkpoint: Annotated[
        str,
        typer.Option(
            "--checkpoint", metavar="FOLDER", rich_help_panel=STREAM, show_default=False,
            help="Where the stream keeps its state and how far it is; the same folder goes on.",
        ),
    ],
    query_file: o.MaybeQueryFile = None,
    watch: Annotated[
        str | None,
        typer.Option(
            "--watch", metavar="QUERIES.tql", rich_help_panel=STREAM, show_default=False,
            help="Instead of QUERY.tql: a file that may change. Queries that are added, removed or changed in it are "
            "taken between two batches; what is wrong is refused and told, and the others go on.",
        ),
    ] = None,
    sink: Annotated[
        str,
        typer.Option(
            "--sink", metavar="KIND:PLACE", rich_help_panel=o.OUTPUT,
            help=SINK_FORMS,
        ),
    ] = "console",
    schema: Annotated[
        str | None,
        typer.Option(
            "--schema", metavar="COLUMNS", rich_help_panel=o.INPUT, show_default=False,
            help='The columns, e.g. "time timestamp, type string, x long"; else what the files there have.',
        ),
    ] = None,
    max_files: Annotated[
        int | None,
        typer.Option(
            "--max-files", metavar="N", rich_help_panel=o.INPUT, show_default=False, help="At most N files per batch."
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", metavar="KEY=VALUE", rich_help_panel=o.INPUT, show_default=False,
            help="An option of Spark's reader, e.g. startingOffsets=latest; may be given several times.",
        ),
    ] = None,
    query: o.QueryName = None,
    time: o.Time = "time",
    type: o.Type = "type",
    time_unit: o.TimeUnit = None,
    time_low: o.TimeLow = None,
    time_high: o.TimeHigh = None,
    time_error: o.TimeError = None,
    time_probability: o.TimeProbability = None,
    time_grain: o.TimeGrain = None,
    time_points: o.TimePoints = None,
    order: o.Order = None,
    time_zone: o.TimeZone = None,
    watermark: Annotated[
        str,
        typer.Option(
            "--watermark", metavar="DELAY", rich_help_panel=STREAM,
            help="How long to wait for events that come late; what comes later still is set apart and counted.",
        ),
    ] = "10 seconds",
    late_to: Annotated[
        str | None,
        typer.Option(
            "--late-to", metavar="FOLDER", rich_help_panel=STREAM, show_default=False,
            help="Parquet of events that came too late, have no time or cannot be read.",
        ),
    ] = None,
    archive: Annotated[
        str | None,
        typer.Option(
            "--archive", metavar="FOLDER", rich_help_panel=ARCHIVE, show_default=False,
            help="Keep all events of the source and all rows of the queries there, by type and time.",
        ),
    ] = None,
    monitor: Annotated[
        list[str] | None,
        typer.Option(
            "--monitor", metavar="NAME", rich_help_panel=ARCHIVE, show_default=False,
            help="Instead of queries: watch for a reason that `trendloom diagnose --save-as NAME` kept in the archive, "
            "which then is only read; may be repeated. Rows are alerts.",
        ),
    ] = None,
    archive_chunk: Annotated[
        str,
        typer.Option(
            "--archive-chunk", metavar="DURATION", rich_help_panel=ARCHIVE,
            help="The stretch of time that a file of the archive holds.",
        ),
    ] = "1h",
    archive_keep: Annotated[
        str | None,
        typer.Option(
            "--archive-keep", metavar="AGE", rich_help_panel=ARCHIVE, show_default=False,
            help="Drop what is older than that, e.g. 30d, counted from the newest event; else nothing is dropped.",
        ),
    ] = None,
    trigger: Annotated[
        str | None,
        typer.Option(
            "--trigger", metavar="WHEN", rich_help_panel=STREAM, show_default=False,
            help='A batch every so often, e.g. "5 seconds", or available-now: what is there, then end. '
            "Default: one batch after another.",
        ),
    ] = None,
    buckets: Annotated[
        int,
        typer.Option(
            "--buckets", metavar="N", rich_help_panel=STREAM,
            help="Into how many parts keys are spread; belongs to the checkpoint.",
        ),
    ] = 8,
    retries: Annotated[
        int,
        typer.Option(
            "--retries", metavar="N", rich_help_panel=STREAM,
            help="How often a failed batch is tried again before the command gives up.",
        ),
    ] = 3,
    numeric: o.NumericName = o.Numeric.exact,
    master: o.Master = None,
    packages: Annotated[
        str | None,
        typer.Option(
            "--packages", metavar="MAVEN", rich_help_panel=o.ENGINE, show_default=False,
            help="Packages that Spark fetches, e.g. its connector to Kafka.",
        ),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(
            "--conf", metavar="KEY=VALUE", rich_help_panel=o.ENGINE, show_default=False,
            help="A setting of the Spark session; may be given several times.",
        ),
    ] = None,
    format: Annotated[
        o.LiveFormat | None,
        typer.Option(
            "--format", "-f", rich_help_panel=o.OUTPUT, show_default=False,
            help="Rows on the console. Default: table on a terminal, else jsonl.",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics", metavar="FILE", rich_help_panel=o.OUTPUT, show_default=False,
            help="Rewrite this file after every batch, as Prometheus reads it.",
        ),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(
            "--log", metavar="FILE", rich_help_panel=o.OUTPUT, show_default=False,
            help="What Spark itself says; else it is not kept (--debug shows it).",
        ),
    ] = None,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:  # fmt: skip
    """Run queries over events as they come and give out rows once they are certain."""
    with reporting(debug=debug):
        from trendloom.engines.spark.prerequisites import require_spark

        require_spark()
        from trendloom.archive.settings import local_root
        from trendloom.cli.live import MonitorRequest, Report, Request, serve_monitors, serve_request
        from trendloom.engines.spark.archive.streaming import LiveArchive
        from trendloom.engines.spark.streaming.service import Service
        from trendloom.engines.spark.streaming.settings import absolute
        from trendloom.engines.spark.streaming.sinks import parse_sink
        from trendloom.engines.spark.streaming.sources import parse_source
        from trendloom.options import Options, columns_named

        settings = _pairs(conf, "--conf") | ({"spark.jars.packages": packages} if packages else {})
        target = parse_sink(sink)
        if archive is None and archive_keep is not None:
            raise OptionError("--archive-keep is for an archive, and there is none", hint="give --archive FOLDER")
        memory = target.place if target.in_memory else None
        if format is not None and not target.on_console:
            raise OptionError("--format is for rows on the console", hint="leave it out, or give --sink console")
        events = parse_source(source, schema=schema, max_files=max_files, options=_pairs(option, "--option"))
        options = Options(
            "spark",
            time,
            type,
            time_unit,
            time_low,
            time_high,
            numeric=numeric.value,
            query=query,
            master=master,
            order=columns_named(order),
            time_zone=time_zone,
            time_error=time_error,
            time_probability=time_probability,
            time_grain=time_grain,
            time_points=time_points,
        )
        service = Service(absolute(checkpoint), trigger, retries, memory=memory)
        report = Report(format.value if format else None, metrics, log, quiet=quiet, debug=debug)
        if monitor:
            kept = _archive_of_monitors(archive, query_file or watch, late_to)
            serve_monitors(
                MonitorRequest(tuple(monitor), kept, events, target, options, service, watermark, settings), report
            )
            return
        file = _file_of(query_file, watch)
        name = None if file == STANDARD_INPUT else Path(file).stem
        request = Request(
            text=read_query(file),
            source=events,
            target=target,
            options=options,
            service=service,
            watermark=watermark,
            buckets=buckets,
            late_to=None if late_to is None else absolute(late_to),
            settings=settings,
            watched=watch,
            archive=None if archive is None else LiveArchive(local_root(archive), archive_chunk, archive_keep, name),
        )
        serve_request(request, report)


def _archive_of_monitors(archive: str | None, queries: str | None, late_to: str | None) -> str:
    """The archive that keeps monitors; what does not go together with them is refused."""
    if archive is None:
        raise OptionError("which archive keeps the monitor?", hint="give --archive FOLDER")
    if queries is not None:
        raise OptionError(
            f"a stream runs queries ({queries}) or monitors, not both", hint="start two, each with its own --checkpoint"
        )
    if late_to is not None:
        raise OptionError(
            "late events are put aside for queries, not for monitors",
            hint="leave out --late-to, or wait longer: --watermark",
        )
    return archive


def _file_of(query_file: str | None, watched: str | None) -> str:
    """The file of queries, fixed or watched."""
    if query_file is not None and watched is not None:
        raise OptionError(
            f"queries come from one file: {query_file}, or {watched} with --watch", hint="leave out one of the two"
        )
    if watched == STANDARD_INPUT:
        raise OptionError("standard input cannot be watched", hint="write the queries into a file: --watch FILE")
    found = query_file if query_file is not None else watched
    if found is None:
        raise OptionError("there are no queries to run", hint="give a file of queries; --watch FILE if it may change")
    return found


def _pairs(given: list[str] | None, name: str) -> dict[str, str]:
    """Settings written as KEY=VALUE."""
    found = {}
    for pair in given or ():
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise OptionError(f"'{pair}' is not a setting", hint=f"{name} KEY=VALUE")
        found[key] = value
    return found
