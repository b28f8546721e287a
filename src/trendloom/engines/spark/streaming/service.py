"""A live stream as a service: start it, watch it, start it again where something outside failed, stop it in good order.

A failure of the sink, of the source or of a machine loses nothing: the checkpoint has the last batch that is done,
and Spark repeats the one after it. So the query is simply started again, a few times, with growing pauses; a batch
that is done in between makes the count begin again. What would fail again in the same way (a bad query, unreadable
events, a broken checkpoint) is not tried again.

A workload may be renewed while it runs: between two batches the query is stopped and another one started on the same
checkpoint. To Spark that is a restart like any other, so no row is lost and none comes twice.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any

from trendloom.engines.spark.errors import explained, is_lasting
from trendloom.engines.spark.streaming.metrics import Metrics, MetricsTotal, reports_of
from trendloom.engines.spark.streaming.sinks import BatchWriter
from trendloom.errors import OptionError, RunError, TrendloomError, option
from trendloom.streaming.statistics import Figures, figures_at, keep_figures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from trendloom.engines.spark.streaming.workload_changes import ChangingWorkload

AVAILABLE_NOW = "available-now"
INTERVAL = re.compile(r"\s*\d+(\.\d+)?\s+(millisecond|second|minute|hour)s?\s*", re.IGNORECASE)
LOOK_EVERY = 0.2
"""Seconds between two looks at the stream."""
GRACE = 10.0
"""Seconds that a batch under way gets to end when the stream is stopped; then it is cancelled, and done again later."""


@dataclass(frozen=True)
class Service:
    """How a stream is run. `trigger`: a batch every so often ("5 seconds"), "available-now", or as fast as it goes."""

    checkpoint: str
    trigger: str | None = None
    retries: int = 3
    pause: float = 1.0
    memory: str | None = None  # a table in Spark's memory, instead of a sink

    def __post_init__(self) -> None:
        if self.trigger is not None and self.trigger != AVAILABLE_NOW and not INTERVAL.fullmatch(self.trigger):
            raise OptionError(
                f"'{self.trigger}' does not say when to run a batch", hint='"5 seconds", "1 minute" or available-now'
            )
        if self.retries < 0:
            raise OptionError(f"{option('retries')} is a number of times, 0 or more")


@dataclass(frozen=True)
class StreamWatch:
    """Callbacks: after every batch, and after every failure that will be retried."""

    batch: Callable[[Metrics], None] = lambda _: None
    failed: Callable[[TrendloomError, float], None] = lambda _error, _pause: None


UNWATCHED = StreamWatch()


def serve(
    rows: DataFrame,
    sink: BatchWriter,
    service: Service,
    stop: Event,
    watch: StreamWatch = UNWATCHED,
    restart: ChangingWorkload | None = None,
) -> Metrics:
    """Run a stream until it ends or `stop` is set; its metrics at the end. An error is one of ours."""
    ours = hasattr(rows, "_jdf")  # a server of Spark Connect has its own disk, and gets a copy of the sink
    total, failures = MetricsTotal(figures=figures_at(service.checkpoint) if ours else Figures()), 0
    reporter = _BatchReporter(watch, service.checkpoint if ours else None, total)
    while True:
        stoppable, done = _StoppableSink(sink, stop), total.metrics.batches
        try:
            query = start(rows, stoppable if ours else sink, service)
            if not _follow(query, stoppable, reporter, restart) or restart is None:
                return total.metrics
            rows, failures = restart.rows_after_restart(), 0
        except Exception as error:
            found = explained(stoppable.error or error, service.checkpoint)
            failures = 1 if total.metrics.batches > done else failures + 1
            if stop.is_set():
                return total.metrics
            if is_lasting(found) or failures > service.retries:
                raise _given_up(found, failures) from error
            pause = service.pause * 2 ** (failures - 1)
            watch.failed(found, pause)
            stop.wait(pause)


def start(rows: DataFrame, sink: BatchWriter, service: Service) -> StreamingQuery:
    """Start the stream on its checkpoint."""
    writer = rows.writeStream.outputMode("append").option("checkpointLocation", service.checkpoint)
    if service.trigger == AVAILABLE_NOW:
        writer = writer.trigger(availableNow=True)
    elif service.trigger is not None:
        writer = writer.trigger(processingTime=service.trigger)
    if service.memory is not None:
        return writer.format("memory").queryName(service.memory).start()
    return writer.foreachBatch(sink).start()


@dataclass(frozen=True)
class _BatchReporter:
    """Reports finished batches to the caller, and keeps the stream's figures beside its checkpoint."""

    watch: StreamWatch
    checkpoint: str | None
    total: MetricsTotal

    def report(self, query: StreamingQuery) -> None:
        finished = self.total.add(reports_of(query, self.total.metrics.batch))
        for metrics in finished:
            self.watch.batch(metrics)
        if finished and self.checkpoint is not None:
            keep_figures(self.total.figures, self.checkpoint)


@dataclass
class _StoppableSink:
    """A sink that refuses new batches when the stream is to stop, and keeps its last error.

    Spark reports that only in a long text.
    """

    sink: BatchWriter
    stop: Event
    renew: Event = field(default_factory=Event)  # the stream is to stop, and another one goes on
    error: Exception | None = field(default=None)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        if self.stop.is_set() or self.renew.is_set():
            raise RunError("the stream is being stopped")
        try:
            self.sink(rows, batch)
        except Exception as error:
            self.error = error
            raise


def _follow(
    query: StreamingQuery, stoppable: _StoppableSink, reporter: _BatchReporter, restart: ChangingWorkload | None
) -> bool:
    """Report every batch until the query ends; return whether to restart it, or raise its error."""
    stop, renew = stoppable.stop, stoppable.renew
    try:
        while query.isActive and not stop.is_set():
            reporter.report(query)
            if restart is not None and restart.is_due(reporter.total.figures):
                renew.set()
                _finish_batch(query, stop, patience=None)
                break
            stop.wait(LOOK_EVERY)
        if stop.is_set():
            _finish_batch(query, stop, patience=GRACE)
    finally:
        query.stop()
        reporter.report(query)
    error: Any = query.exception()
    if error is not None and not stop.is_set() and not renew.is_set():
        raise error
    return renew.is_set() and not stop.is_set()


def _finish_batch(query: StreamingQuery, stop: Event, patience: float | None) -> None:
    """Wait for the batch under way, at most for `patience` seconds; None: until the stream is to stop for good."""
    until = None if patience is None else time.monotonic() + patience
    running = query.lastProgress
    while query.isActive and query.status["isTriggerActive"]:
        if stop.is_set() if until is None else time.monotonic() >= until:
            return
        last = query.lastProgress
        if (last and last.batchId) != (running and running.batchId):
            return
        time.sleep(LOOK_EVERY)


def _given_up(error: TrendloomError, failures: int) -> TrendloomError:
    if failures == 1 or not isinstance(error, RunError):
        return error
    return RunError(f"{error.message} (tried {failures} times)", hint=error.hint)
