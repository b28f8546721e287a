"""Live streams of the command, of queries and of monitors: check, start Spark, serve until the end or a signal, report.

What Spark itself prints goes to a log or nowhere (`console.spark_prints_into`).
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event, current_thread, main_thread
from typing import TYPE_CHECKING, Any

import typer

from trendloom.cli.archive import open_archive_at
from trendloom.cli.console import (
    INTERRUPTED,
    errors_console,
    report_note,
    report_refusal,
    report_warnings,
    spark_prints_into,
    user_warnings,
)
from trendloom.cli.options import read_query
from trendloom.cli.watch import Screen, console_of, show_table, watching
from trendloom.diagnosis.monitors import Monitor, find_monitor
from trendloom.engines.spark.streaming.service import Service, serve
from trendloom.engines.spark.streaming.sinks import lasting_forms
from trendloom.engines.spark.streaming.sources import note_columns, open_source
from trendloom.engines.spark.streaming.stream import StreamSettings, check_live
from trendloom.errors import OptionError, QueryWarning, TrendloomError
from trendloom.options import Options
from trendloom.runtime.reading import queries_of
from trendloom.streaming.connectors import Sink, Source, check_file, check_folder

if TYPE_CHECKING:
    from trendloom.archive import Archive
    from trendloom.engines.spark.archive import LiveArchive, LiveArchiver
    from trendloom.engines.spark.streaming.metrics import Metrics
    from trendloom.engines.spark.streaming.workload_changes import ChangingWorkload
    from trendloom.model.schema import Schema


@dataclass(frozen=True)
class Request:
    """A stream of queries: everything that is known before Spark starts."""

    text: str
    source: Source
    target: Sink
    options: Options
    service: Service
    watermark: str
    buckets: int
    late_to: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    watched: str | None = None  # the file that the queries are of, if it may change
    archive: LiveArchive | None = None  # where all events and rows are kept

    @property
    def on_connect(self) -> bool:
        """Whether a server runs the stream; all folders are then the server's."""
        return (self.options.master or "").startswith("sc://")

    def check(self) -> None:
        """Refuse what is wrong before Spark starts, which takes a while."""
        queries = queries_of(self.text, self.options.query)
        StreamSettings(self.watermark, self.buckets, self.late_to)
        if self.watched is not None:
            self._check_watched()
        if self.archive is not None:
            self._check_archive()
        if self.on_connect and self.target.on_console:
            raise OptionError(
                "rows of Spark Connect do not come to this console", hint="give another sink: its place is the server's"
            )
        if not self.on_connect:
            check_folder(self.service.checkpoint, "the checkpoint")
            if self.late_to is not None:
                check_folder(self.late_to, "the folder of late events")
        notes = None if self.on_connect else self.service.checkpoint
        columns = self.source.known_columns(self.options.time_columns, notes)
        if columns is not None:
            check_live(queries, columns, self.options)
            if self.archive is not None:
                self.archive.check(queries, columns, self.options)

    def _check_archive(self) -> None:
        """Refuse what does not go together with an archive."""
        if self.on_connect:
            raise OptionError(
                "a stream through Spark Connect cannot be archived: its folders are the server's",
                hint="run the command where the server is, with another --master",
            )
        if self.target.in_memory:
            raise OptionError(
                "rows in memory are not archived: batches are committed by a sink that lasts",
                hint=f"give another sink: {lasting_forms()}",
            )

    def _check_watched(self) -> None:
        """Refuse what does not go together with a workload that changes."""
        if self.options.query is not None:
            raise OptionError("a file that is watched says itself which queries run", hint="leave out --query")
        if self.target.in_memory:
            raise OptionError(
                "rows in memory are gone when a stream is started again, as it is when its queries change",
                hint=f"give a sink that lasts: {lasting_forms()}",
            )
        if self.on_connect:
            raise OptionError(
                "queries cannot be watched through Spark Connect: the checkpoint is the server's",
                hint="stop the stream and start it again with the changed file",
            )


@dataclass(frozen=True)
class Report:
    """The output beside the rows."""

    format: str | None = None
    metrics: str | None = None
    log: str | None = None
    quiet: bool = False
    debug: bool = False

    def check(self) -> None:
        """Refuse files that cannot be written."""
        for file in filter(None, (self.metrics, self.log)):
            check_file(file)


def serve_request(request: Request, report: Report) -> None:
    """Serve a stream; ends when it is stopped, or when all is read (available-now)."""
    request.check()
    report.check()
    if not report.quiet:
        report_note("starting Spark")
    messages = WorkloadMessages(request.watched, report.quiet)
    with user_warnings(quiet=report.quiet), spark_prints_into(report.log, debug=report.debug):
        workload, schema, spark = _opened(request, messages)
    messages.begin()
    restart = None if request.on_connect or request.service.memory is not None else workload
    opened = OpenedStream(workload.rows, schema, spark, restart, workload.archiver)
    _serve_opened(opened, request, report)


@dataclass(frozen=True, eq=False)
class OpenedStream:
    """The rows of a stream that has not begun, the schema of its events, and its session.

    `restart` decides when it goes on with other rows; `archiver` keeps its events and rows in an archive.
    """

    rows: Any
    schema: Schema
    spark: Any
    restart: ChangingWorkload | None = None
    archiver: LiveArchiver | None = None


def _serve_opened(opened: OpenedStream, request: Request | MonitorRequest, report: Report) -> None:
    """Serve a stream until it ends or is stopped, and report the totals."""
    stop = Event()
    show = console_of(report.format, opened.schema, stop)
    archiver, service = opened.archiver, request.service
    writer = request.target.writer(show)
    sink = writer if archiver is None else archiver.sink(writer)
    name = _stream_name(request.source, request.target)
    screen = Screen(wanted=not report.quiet, metrics=report.metrics, name=name)
    try:
        with _stopped_by_signals(stop), watching(screen) as watch:
            end = serve(opened.rows, sink, service, stop, watch, opened.restart)
            if archiver is not None:
                archiver.close()
    except KeyboardInterrupt:
        errors_console().print("[yellow]stopped at once[/]: the batch under way is done again at the next start")
        raise typer.Exit(INTERRUPTED) from None
    if service.memory is not None:
        show_table(opened.spark.table(service.memory).toArrow(), opened.schema)
    if not report.quiet:
        report_note(_totals(end, stopped=stop.is_set()))
    if show.broken:
        raise BrokenPipeError


def _opened(request: Request, messages: WorkloadMessages) -> tuple[ChangingWorkload, Any, Any]:
    """The workload over a stream of events, planned; the schema of the events; and the session."""
    from trendloom.engines.spark.archive import LiveArchiver
    from trendloom.engines.spark.streaming.workload_changes import ChangingWorkload, WorkloadWatch

    options, file = request.options, request.watched
    notes = None if request.on_connect else request.service.checkpoint
    spark, events = _open_events(request, options, notes, strict=request.late_to is None)
    workload = ChangingWorkload(
        events,
        options,
        StreamSettings(request.watermark, request.buckets, request.late_to),
        request.service.checkpoint,
        queries_of(request.text, options.query),
        WorkloadWatch(messages.warn, messages.refuse),
        look=None if file is None else partial(read_query, file),
        last_seen=request.text,
        archiver=None if request.archive is None else LiveArchiver(request.archive, options.numeric),
    )
    workload.first_rows()
    if notes is not None:
        note_columns(events, notes)
    return workload, workload.plan.frame.schema, spark


def _open_events(
    request: Request | MonitorRequest, options: Options, checkpoint: str | None, *, strict: bool = True
) -> tuple[Any, Any]:
    """A session, and the stream of events."""
    from trendloom.spark import session

    spark = session(options.master, name="trendloom stream", settings=dict(request.settings))
    times, zone = options.time_columns, options.time_zone
    return spark, open_source(spark, request.source, times=times, time_zone=zone, strict=strict, checkpoint=checkpoint)


@dataclass
class WorkloadMessages:
    """Messages about a workload on standard error; those that come while Spark starts, and has standard error, wait."""

    file: str | None
    quiet: bool = False
    waiting: list[tuple[QueryWarning, str | None]] | None = field(default_factory=list)

    def warn(self, warning: QueryWarning, query: str | None) -> None:
        if self.waiting is not None:
            self.waiting.append((warning, query))
        elif not self.quiet:
            report_warnings([warning], query)

    def begin(self) -> None:
        """Print what has waited, and from now on everything at once."""
        waiting, self.waiting = self.waiting or [], None
        for warning, query in waiting:
            self.warn(warning, query)

    def refuse(self, error: TrendloomError) -> None:
        """Printed even with --quiet: nothing else shows that the file is not what runs."""
        report_refusal(error, f"a change of {self.file}")


def _stream_name(source: Source, target: Sink) -> str:
    return f"{source.scheme}:{source.address.place} → {target.scheme}:{target.place}".rstrip(":")


def _totals(end: Metrics, *, stopped: bool) -> str:
    found = f"{'stopped' if stopped else 'ended'} after {_counted(end.batches, 'batch', 'batches')}: "
    found += f"{_counted(end.events, 'event')}, {_counted(end.results, 'row')}, {end.late:,} late"
    return found + (f", {end.untimed:,} without a time" if end.untimed else "")


def _counted(count: int, word: str, words: str | None = None) -> str:
    return f"{count:,} {word if count == 1 else words or word + 's'}"


# ------------------------------------------------------------------------------------- the process around it


@contextmanager
def _stopped_by_signals(stop: Event) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the stream in good order; a second one ends it at once."""
    if current_thread() is not main_thread():
        yield
        return

    def handle(number: int, frame: object) -> None:
        if stop.is_set():
            logging.disable()  # what is cut off now would complain, with stack traces
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# ---------------------------------------------------------------------------------------------- monitors


@dataclass(frozen=True)
class MonitorRequest:
    """A stream of alerts of archived monitors: everything that is known before Spark starts."""

    names: tuple[str, ...]
    archive: str
    source: Source
    target: Sink
    options: Options
    service: Service
    watermark: str
    settings: Mapping[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse what is wrong before Spark starts."""
        StreamSettings(self.watermark, 1)
        if (self.options.master or "").startswith("sc://"):
            raise OptionError(
                "monitors do not run through Spark Connect: the checkpoint is the server's",
                hint="run the command where the server is, with another --master",
            )
        if self.options.time_low is not None or self.options.time_error is not None:
            raise OptionError("monitors need precise times", hint="leave out the options of imprecise time")
        check_folder(self.service.checkpoint, "the checkpoint")


def serve_monitors(request: MonitorRequest, report: Report) -> None:
    """Serve alerts; ends when the stream is stopped, or when all is read (available-now)."""
    request.check()
    report.check()
    with user_warnings(quiet=report.quiet):
        archive = open_archive_at(request.archive)
        monitors = [find_monitor(archive, name) for name in dict.fromkeys(request.names)]
    if not report.quiet:
        for one in monitors:
            report_note(f"{one.name}: {one.formula}")
        report_note("starting Spark")
    with user_warnings(quiet=report.quiet), spark_prints_into(report.log, debug=report.debug):
        opened = _opened_monitors(request, archive, monitors)
    _serve_opened(opened, request, report)


def _opened_monitors(request: MonitorRequest, archive: Archive, monitors: list[Monitor]) -> OpenedStream:
    """The alerts over a stream of events; whole numbers count what they count in the archive, unless said otherwise."""
    from trendloom.engines.spark.monitors import live_alerts

    options = replace(request.options, time_unit=request.options.time_unit or archive.unit)
    checkpoint = request.service.checkpoint
    spark, events = _open_events(request, options, checkpoint)
    rows, frame = live_alerts(
        events, monitors, archive.axis, options, watermark=request.watermark, checkpoint=checkpoint
    )
    note_columns(events, checkpoint)
    return OpenedStream(rows, frame.schema, spark)
