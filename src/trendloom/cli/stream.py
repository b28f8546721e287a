"""`trendloom stream`: queries over events as they come, until somebody stops it; rows appear once they are certain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from trendloom.cli.options import STANDARD_INPUT, MaybeQueryFile, Messages, command_options, read_query
from trendloom.errors import OptionError, option
from trendloom.options import Options, StreamOptions

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
    """A command whose help lists the sources and sinks that are registered.

    Registries are read when help is shown: importing the command stays quick.
    """

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from trendloom.engines.spark.streaming.sinks import SINKS
        from trendloom.engines.spark.streaming.sources import SOURCES

        registries = {"source": SOURCES, "sink": SINKS}
        for parameter in self.params:
            if parameter.name in registries:
                parameter.help = registries[parameter.name].help() + "."  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


@command_options("stream")
def stream(live: StreamOptions, options: Options, messages: Messages, query_file: MaybeQueryFile = None) -> None:
    """Run queries over events as they come and give out rows once they are certain."""
    from trendloom.engines.spark.session import require_spark

    require_spark()
    from trendloom.archive.catalog import local_root
    from trendloom.cli.live import MonitorRequest, Report, Request, serve_monitors, serve_request
    from trendloom.engines.spark.archive import LiveArchive
    from trendloom.engines.spark.streaming.service import Service
    from trendloom.engines.spark.streaming.sinks import parse_sink
    from trendloom.engines.spark.streaming.sources import parse_source
    from trendloom.engines.spark.streaming.stream import absolute

    options = replace(options, engine="spark")
    settings = _pairs(live.conf, "conf") | ({"spark.jars.packages": live.packages} if live.packages else {})
    target = parse_sink(live.sink)
    if live.archive is None and live.archive_keep is not None:
        raise OptionError("--archive-keep is for an archive, and there is none", hint="give --archive FOLDER")
    if live.format is not None and not target.on_console:
        raise OptionError("--format is for rows on the console", hint="leave it out, or give --sink console")
    reader = _pairs(live.option, "option")
    events = parse_source(live.source, schema=live.schema, max_files=live.max_files, options=reader)
    memory = target.place if target.in_memory else None
    service = Service(absolute(str(live.checkpoint)), live.trigger, live.retries, memory=memory)
    report = Report(live.format, live.metrics, live.log, quiet=messages.quiet, debug=messages.debug)
    if live.monitor:
        kept = _archive_of_monitors(live, query_file)
        serve_monitors(
            MonitorRequest(live.monitor, kept, events, target, options, service, str(live.watermark), settings), report
        )
        return
    file = _file_of(query_file, live.watch)
    name = None if file == STANDARD_INPUT else Path(file).stem
    place = live.archive
    archive = None if place is None else LiveArchive(local_root(place), live.archive_chunk, live.archive_keep, name)
    request = Request(
        text=read_query(file),
        source=events,
        target=target,
        options=options,
        service=service,
        watermark=str(live.watermark),
        buckets=live.buckets,
        late_to=None if live.late_to is None else absolute(live.late_to),
        settings=settings,
        watched=live.watch,
        archive=archive,
    )
    serve_request(request, report)


def _archive_of_monitors(live: StreamOptions, query_file: str | None) -> str:
    """The archive that keeps monitors; what does not go together with them is refused."""
    queries = query_file or live.watch
    if live.archive is None:
        raise OptionError("which archive keeps the monitor?", hint="give --archive FOLDER")
    if queries is not None:
        raise OptionError(
            f"a stream runs queries ({queries}) or monitors, not both", hint="start two, each with its own --checkpoint"
        )
    if live.late_to is not None:
        raise OptionError(
            "late events are put aside for queries, not for monitors",
            hint="leave out --late-to, or wait longer: --watermark",
        )
    return live.archive


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


def _pairs(given: tuple[str, ...], name: str) -> dict[str, str]:
    """Settings written as KEY=VALUE."""
    found = {}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise OptionError(f"'{pair}' is not a setting", hint=option(name, "KEY=VALUE"))
        found[key] = value
    return found
