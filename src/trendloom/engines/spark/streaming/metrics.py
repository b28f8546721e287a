"""Metrics of a live stream: totals and the last batch, from Spark's own reports of progress.

A report comes after every batch that is done. Spark keeps the last hundred; `MetricsTotal` adds them up, each batch
once, no matter whether a listener delivers them or a caller reads them. Totals begin when this process first saw the
stream.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import reduce
from operator import and_
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from trendloom.logical.plan import Plan
from trendloom.model.schema import Schema
from trendloom.optimizer.nesting_costs import compared_values
from trendloom.pattern.algebra import atoms
from trendloom.streaming.partition_groups import StreamPartitionGroup
from trendloom.streaming.statistics import Figures

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType


EVENTS, RESULTS, READ, FIGURES = "trendloom_events", "trendloom_results", "trendloom_read", "trendloom_figures"
"""Names of Spark's observations of a stream: of steps, of rows given out, of events out of files, and figures."""
COUNT, FIRST, LAST, TYPE, KEYS, FITTING, DOMAIN = "events", "first", "last", "type", "keys", "fitting", "domain"
"""How the names of figures begin."""
MOST = 50
"""Figures of one kind."""

COUNTED_FROM_1970 = 1e9
"""Watermarks before 2001 belong to whole numbers that count from some other time: there is no lag to report."""


@dataclass(frozen=True)
class Metrics:
    """Totals of a stream, and its last batch. An event counts as late once for every query that needs it."""

    batch: int = -1
    batches: int = 0
    events: int = 0
    late: int = 0
    untimed: int = 0
    results: int = 0
    batch_events: int = 0
    batch_results: int = 0
    batch_seconds: float = 0.0
    events_per_second: float = 0.0
    watermark: float | None = None  # seconds since 1970
    state_rows: int = 0
    state_bytes: int = 0

    def lag(self, now: float) -> float | None:
        """Seconds from the watermark to now; None where times do not count from 1970."""
        if self.watermark is None or self.watermark < COUNTED_FROM_1970:
            return None
        return now - self.watermark


def metrics_of(query: StreamingQuery) -> Metrics:
    """Totals and the last batch of a stream that `detect` made, as of now.

    The first call makes the session report every batch from then on; before that, Spark remembers the last hundred.
    """
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None:
        listen(session)
    total = total_of(str(query.id))
    total.add(reports_of(query, total.metrics.batch))
    return total.metrics


def listen(spark: SparkSession) -> None:
    """Have the session report every batch, so that totals are right however seldom they are read."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    if getattr(spark, "_trendloom_listens", False):
        return

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:
            pass

        def onQueryProgress(self, event: Any) -> None:
            report = json.loads(event.progress.json)
            if EVENTS in report.get("observedMetrics", {}):
                total_of(report["id"]).add([report])

        def onQueryIdle(self, event: Any) -> None:
            pass

        def onQueryTerminated(self, event: Any) -> None:
            pass

    spark.streams.addListener(Listener())
    spark._trendloom_listens = True  # type: ignore[attr-defined]


def reports_of(query: StreamingQuery, seen: int) -> list[dict[str, Any]]:
    """The reports of batches after `seen`; usually one, so the other ninety-nine are not read."""
    last = query.lastProgress
    if last is None:
        return []
    report = json.loads(last.json)
    if report["batchId"] <= seen + 1:
        return [report]
    return [json.loads(each.json) for each in query.recentProgress]


# ------------------------------------------------------------------------------------------------- totals


@dataclass
class MetricsTotal:
    """Adds up the reports of one stream: what it did, and what it counted of its events."""

    metrics: Metrics = Metrics()
    figures: Figures = field(default_factory=Figures)
    lock: Lock = field(default_factory=Lock)

    def add(self, reports: Iterable[dict[str, Any]]) -> list[Metrics]:
        """Take in reports; the metrics after each batch that is new (Spark also reports a look that found nothing)."""
        with self.lock:
            found = []
            for report in reports:
                if report["batchId"] > self.metrics.batch and "addBatch" in report.get("durationMs", {}):
                    self.metrics = after(self.metrics, report)
                    self.figures = self.figures.and_(figures_of(self.metrics.batch, _observed(report, FIGURES)))
                    found.append(self.metrics)
            return found


_totals: dict[str, MetricsTotal] = {}


def total_of(stream: str) -> MetricsTotal:
    """The totals of this process for a stream, whose identity survives restarts of a query."""
    return _totals.setdefault(stream, MetricsTotal())  # atomic: listeners have threads of their own


def after(before: Metrics, report: dict[str, Any]) -> Metrics:
    """The metrics after one more batch."""
    seconds = report.get("durationMs", {}).get("triggerExecution", 0) / 1000
    counted = _observed(report, EVENTS)
    results = int(_observed(report, RESULTS).get("rows", 0))
    rows = sum(max(0, int(source.get("numInputRows", 0))) for source in report.get("sources", []))
    read = int(_observed(report, READ).get("rows", rows))  # where tasks read files, Spark counts the files
    states = report.get("stateOperators", [])
    # Spark's own aggregations (monitors) drop what comes late; they count it after adding up what came together
    dropped = sum(int(state.get("numRowsDroppedByWatermark", 0)) for state in states)
    moment = report.get("eventTime", {}).get("watermark")
    watermark = None if moment is None else _seconds(moment)
    return Metrics(
        batch=int(report["batchId"]),
        batches=before.batches + 1,
        events=before.events + read,
        late=before.late + int(counted.get("late", 0)) + dropped,
        untimed=before.untimed + int(counted.get("untimed", 0)),
        results=before.results + results,
        batch_events=read,
        batch_results=results,
        batch_seconds=seconds,
        events_per_second=read / seconds if seconds else 0.0,
        watermark=watermark if watermark else before.watermark,  # Spark's is 0 as long as it has none
        state_rows=sum(int(state.get("numRowsTotal", 0)) for state in states),
        state_bytes=sum(_bytes(state) for state in states),
    )


def _observed(report: dict[str, Any], name: str) -> dict[str, Any]:
    """What was counted under a name; Spark Connect delivers values and their names separately."""
    found: dict[str, Any] = report.get("observedMetrics", {}).get(name) or {}
    if "schema" not in found:
        return found
    return dict(zip((field["name"] for field in found["schema"]["fields"]), found["values"], strict=True))


def _bytes(state: dict[str, Any]) -> int:
    """The size of a state: RocksDB's files, or the memory of another store."""
    return int(state.get("customMetrics", {}).get("rocksdbSstFileSize") or state.get("memoryUsedBytes", 0))


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()


def shown_watermark(metrics: Metrics) -> str:
    """The watermark as people read it."""
    if metrics.watermark is None:
        return "none yet"
    moment = datetime.fromtimestamp(metrics.watermark, UTC)
    return moment.isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")


# ------------------------------------------------------------------------------------------------ figures


def observed_figures(
    df: DataFrame, partition_groups: tuple[StreamPartitionGroup, ...], schema: Schema, clock: str
) -> list[Column]:
    """The counts to observe of the events, for the statistics of later plans; `clock`: the column of their timestamps.

    Each is named by what it counts. Cost: a comparison for each event and type, set of keys, tested
    position and compared column; there are at most `MOST` of each.
    """
    from pyspark.sql import functions as F

    from trendloom.engines.spark.columns import column
    from trendloom.engines.spark.tasks import key_columns

    def named(found: Column, *what: object) -> Column:
        return found.alias(json.dumps(what))

    plans = [(query.name, query.physical.plan) for group in partition_groups for query in group.streaming_queries]
    moment, kind = F.unix_micros(column(clock)), column(schema.type)
    types = sorted({atom.type for _, plan in plans for atom in atoms(plan.pattern)})
    sets = sorted({group.attributes for group in partition_groups if group.attributes})
    fitting = [one for name, plan in plans for one in _position_tests(name, plan, df.schema)]
    compared = sorted({one for _, plan in plans for one in compared_values(plan)})
    return [
        named(F.count(F.lit(1)), COUNT),
        named(F.min(moment), FIRST),
        named(F.max(moment), LAST),
        *(named(F.count_if(kind == name), TYPE, name) for name in types[:MOST]),
        *(named(F.approx_count_distinct(F.xxhash64(*key_columns(df, one))), KEYS, one) for one in sets[:MOST]),
        *(named(F.count_if((kind == name) & test), FITTING, *which) for which, name, test in fitting[:MOST]),
        *(
            named(F.approx_count_distinct(F.when(kind == of, column(name))), DOMAIN, of, name)
            for of, name in compared[:MOST]
        ),
    ]


def _position_tests(name: str, plan: Plan, schema: StructType) -> Iterator[tuple[tuple[str, int], str, Column]]:
    """The positions of a query with conditions that Spark can test: which, of which type, the test."""
    from trendloom.engines.spark.columns import exact_test

    for atom in atoms(plan.pattern):
        tests = [exact_test(expr, schema) for position, expr in plan.filters if position == atom.position]
        known = [test for test in tests if test is not None]
        if tests and len(known) == len(tests):
            yield (name, atom.position), atom.type, reduce(and_, known)


def figures_of(batch: int, observed: dict[str, Any]) -> Figures:
    """The figures of one batch, as Spark reports them."""
    counts = [(json.loads(name), value) for name, value in observed.items()]
    plain = {what[0]: value for what, value in counts if len(what) == 1}
    return Figures(
        batch,
        int(plain.get(COUNT) or 0),
        plain.get(FIRST),
        plain.get(LAST),
        {what[1]: int(value) for what, value in counts if what[0] == TYPE},
        {tuple(what[1]): int(value) for what, value in counts if what[0] == KEYS},
        {(what[1], what[2]): int(value) for what, value in counts if what[0] == FITTING},
        {(what[1], what[2]): int(value) for what, value in counts if what[0] == DOMAIN},
    )


# --------------------------------------------------------------------------------------------- Prometheus


def prometheus_text(metrics: Metrics, now: float) -> str:
    """The metrics in the text format that Prometheus reads, from a file (the textfile collector) or over HTTP."""
    lag = metrics.lag(now)
    values: list[tuple[str, str, str, float | None]] = [
        ("events_total", "counter", "Events read from the source.", metrics.events),
        ("late_events_total", "counter", "Events that came after the watermark, per query.", metrics.late),
        ("untimed_events_total", "counter", "Events without a time, per query.", metrics.untimed),
        ("results_total", "counter", "Rows given out.", metrics.results),
        ("batches_total", "counter", "Batches done.", metrics.batches),
        ("batch", "gauge", "Number of the last batch.", metrics.batch),
        ("batch_events", "gauge", "Events of the last batch.", metrics.batch_events),
        ("batch_duration_seconds", "gauge", "Time that the last batch took.", metrics.batch_seconds),
        ("events_per_second", "gauge", "Events of the last batch by its time.", metrics.events_per_second),
        ("watermark_seconds", "gauge", "Event time up to which rows are certain, since 1970.", metrics.watermark),
        ("watermark_lag_seconds", "gauge", "How far the watermark is behind now.", lag),
        ("state_rows", "gauge", "Rows in Spark's state store.", metrics.state_rows),
        ("state_bytes", "gauge", "Size of Spark's state store.", metrics.state_bytes),
    ]
    lines = []
    for name, kind, help_text, value in values:
        if value is not None:
            lines += [f"# HELP trendloom_{name} {help_text}", f"# TYPE trendloom_{name} {kind}"]
            lines.append(f"trendloom_{name} {value!r}")
    return "\n".join(lines) + "\n"


def write_prometheus(metrics: Metrics, path: Path, now: float) -> None:
    """Replace the file by the metrics of now; readers see the old or the new one, never a half."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        part.write_text(prometheus_text(metrics, now))
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
