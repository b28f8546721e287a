"""A workload over a streaming DataFrame: pack events by bucket → step the state → unpack result rows.

The watermark is Spark's own. Spark does not drop late events here, because what reaches the stateful operator are
parcels without a time; the step itself sets late events apart, and counts them.

Queries with the same partition attributes form a partition group: one set of parcels, one state each.
Buckets of one query step at the same watermark, so all that is known of a window leaves them in one micro-batch. Groups
that span buckets are therefore added up by a plain shuffle within the batch: no second state is needed. So are the best
of all partitions ranked (LIMIT k OVERALL): every bucket gives the k best of its keys, and the events stay spread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from trendloom.engines.spark.columns import clock_of, column, needed_by_any, without_time
from trendloom.engines.spark.errors import raise_errors
from trendloom.engines.spark.frames import Frame, describe
from trendloom.engines.spark.session import set_arrow_rows
from trendloom.engines.spark.streaming.checkpoint import shares_parcels, watermark_after, write_manifest
from trendloom.engines.spark.streaming.metrics import EVENTS, FIGURES, RESULTS, observed_figures
from trendloom.engines.spark.streaming.processor import OUTPUT, Processor
from trendloom.engines.spark.streaming.sources import MARKS
from trendloom.engines.spark.streaming.stepping import BUCKET, BUNDLE, PARCEL, Label, Packing, Stepping, packed
from trendloom.engines.spark.tasks import PAYLOAD, QUERY, Batches, aligned, joint_schema, key_columns, mapped, unpacked
from trendloom.errors import OptionError, QueryNote, open_door, option
from trendloom.frontend.tree import Query
from trendloom.io.events import prepare
from trendloom.logical.bind.workload import for_every_query, refuse_clashing_columns
from trendloom.model.schema import Schema
from trendloom.model.time import MICROSECONDS, UNIT_WORDS
from trendloom.options import Options, StreamOptions
from trendloom.planner.plan import Physical
from trendloom.planner.workload import PhysicalWorkload
from trendloom.runtime.planning import planned
from trendloom.runtime.reading import for_queries
from trendloom.runtime.warnings import report_warnings, warn_in_python
from trendloom.streaming.partition_groups import (
    StreamPartitionGroup,
    alone,
    group_names,
    partition_groups_of,
    queries_of_member,
)
from trendloom.streaming.statistics import Figures, figures_at, statistics_of_batches
from trendloom.streaming.streaming_query import StreamingQuery, streaming_query_of
from trendloom.streaming.workload_diff import news_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

CLOCK = "_trendloom_clock"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
DELAY = re.compile(r"\s*(\d+(?:\.\d+)?)\s+(microsecond|millisecond|second|minute|hour|day|week)s?\s*", re.IGNORECASE)
WEEK = 7 * 86_400_000_000


@dataclass(frozen=True)
class StreamSettings:
    """How long to wait for late events, into how many buckets keys are put, and where later events go."""

    watermark: str | None
    buckets: int
    late_to: str | None = None

    def __post_init__(self) -> None:
        if self.watermark is None:
            raise no_watermark()
        if DELAY.fullmatch(self.watermark) is None:
            raise OptionError(
                f"'{self.watermark}' is not a delay", hint='a number and a unit, e.g. "10 seconds" or "2 minutes"'
            )
        if self.buckets < 1:
            raise OptionError("there must be at least one bucket")

    @property
    def delay(self) -> int:
        """The delay of the watermark in milliseconds, rounded up."""
        found = DELAY.fullmatch(self.watermark or "")
        assert found is not None
        number, unit = found[1], found[2].lower()
        length = WEEK if unit == "week" else MICROSECONDS[UNIT_WORDS[unit]]
        return ceil(Fraction(number) * length / 1000)


def no_watermark() -> OptionError:
    return OptionError(
        "a live stream needs a watermark: how long to wait for events that come late",
        hint=f'{option("watermark", "10 seconds")}, or "0 seconds" where events come in order',
    )


def absolute(place: str) -> str:
    """The whole path of a folder: Spark and its workers may run elsewhere than we do. What is on no disk stays."""
    return place if "://" in place else str(Path(place).resolve())


@dataclass(frozen=True, eq=False)
class LivePlan:
    """A workload planned over a stream, before its checkpoint is read. `figures`: those of the events so far."""

    frame: Frame
    workload: PhysicalWorkload
    streaming_queries: tuple[StreamingQuery, ...]
    figures: Figures


def detect_live(df: DataFrame, queries: tuple[Query, ...], options: Options, stream: StreamOptions) -> DataFrame:
    """The rows of a workload over a streaming DataFrame; see `trendloom.spark.detect`."""
    late_to, checkpoint, early = stream.late_to, stream.checkpoint, stream.early
    setting = StreamSettings(stream.watermark, stream.buckets, None if late_to is None else absolute(late_to))
    place = None if checkpoint is None else absolute(checkpoint)
    plan = plan_live(df, queries, options, Figures() if place is None else figures_at(place), early=early)
    report_warnings(plan.frame.warnings, plan.workload.bound, warn_in_python)
    rows, news = open_live(plan, setting, place)
    for note in news:
        warn_in_python(note)
    return rows


def plan_live(
    df: DataFrame,
    queries: tuple[Query, ...],
    options: Options,
    figures: Figures,
    *,
    early: bool = False,
    search: bool = False,
) -> LivePlan:
    """Bind and plan queries; what cannot run on a live stream, or together, is refused, and nothing is written.

    `search`: without a limit, for what the queries share.
    """
    limits = replace(options.limits, sharing_steps=None) if search else options.limits
    frame = without_marks(describe(df, options.columns()))
    workload = planned(queries, frame.schema, limits, lambda plan: statistics_of_batches(plan, figures))
    refuse_clashing_columns(workload.bound)
    grouped = {number for group in workload.shared_groups for number in group.members if not early}
    found = _streaming_queries(workload.queries, frame.arrow, options.numeric, early=early)
    streaming_queries = tuple(replace(one, grouped=number in grouped) for number, one in enumerate(found))
    result_schema(streaming_queries)
    return LivePlan(frame, workload, streaming_queries, figures)


def open_live(
    plan: LivePlan, setting: StreamSettings, checkpoint: str | None
) -> tuple[DataFrame, tuple[QueryNote, ...]]:
    """The rows of a planned workload, and notes for the user; the checkpoint then has its manifest."""
    frame, streaming_queries = plan.frame, plan.streaming_queries
    if checkpoint is None:
        return _run(frame.df, alone(streaming_queries), frame.schema, setting, group_names(streaming_queries)), ()
    streaming_queries = write_manifest(checkpoint, streaming_queries, setting.buckets, setting.delay)
    known = partial(statistics_of_batches, figures=plan.figures)
    partition_groups = (
        partition_groups_of(streaming_queries, known) if shares_parcels(checkpoint) else alone(streaming_queries)
    )
    reached = watermark_after(checkpoint)
    news = news_of(streaming_queries, None if reached is None else reached * 1000)
    return _run(frame.df, partition_groups, frame.schema, setting), tuple(news)


def check_live(queries: tuple[Query, ...], columns: pa.Schema, options: Options) -> None:
    """Refuse a workload that cannot run over a stream of events with these columns."""
    events = prepare(columns.empty_table(), **for_queries(options, queries).columns())
    schema = replace(events.schema, present=None)
    workload = planned(queries, schema, options.limits)
    refuse_clashing_columns(workload.bound)
    _streaming_queries(workload.queries, events.table.schema, options.numeric)


def without_marks(frame: Frame) -> Frame:
    """The frame without the columns about events that could not be read in its schema."""
    columns = tuple(one for one in frame.schema.columns if one.name not in MARKS)
    arrow = pa.schema([one for one in frame.arrow if one.name not in MARKS])
    return replace(frame, arrow=arrow, schema=replace(frame.schema, columns=columns))


def result_schema(queries: tuple[StreamingQuery, ...]) -> pa.Schema:
    """The columns of all queries together; a workload adds `query`."""
    return joint_schema([one.result for one in queries], named=any(one.name for one in queries))


def _streaming_queries(
    queries: tuple[Physical, ...], columns: pa.Schema, numeric: str, *, early: bool = False
) -> tuple[StreamingQuery, ...]:
    """The queries over events with these columns; an error names all that cannot run on a live stream."""
    by_name = {physical.plan.name: physical for physical in queries}
    plans = [physical.plan for physical in queries]
    return tuple(
        for_every_query(plans, lambda plan: streaming_query_of(by_name[plan.name], columns, numeric, early=early))
    )


# -------------------------------------------------------------------------------------------- the stream


def _run(
    df: DataFrame,
    partition_groups: tuple[StreamPartitionGroup, ...],
    schema: Schema,
    setting: StreamSettings,
    probes: tuple[str, ...] = (),
) -> DataFrame:
    """The rows of a workload over a streaming DataFrame; `probes`: bundles that must not have any state."""
    queries = tuple(query for group in partition_groups for query in group.streaming_queries)
    _prepare(df.sparkSession)
    result = result_schema(queries)
    assert setting.watermark is not None
    timed = df.withColumn(CLOCK, clock_of(df, schema)).withWatermark(CLOCK, setting.watermark)
    timed = timed.observe(FIGURES, *observed_figures(timed, partition_groups, schema, CLOCK))
    parcels = _parcels(timed, partition_groups, column(CLOCK).isNull() | without_time(schema), setting, probes)
    processor = Processor(Stepping(partition_groups, setting.buckets, setting.late_to, open_door(), probes))
    mode = "update" if any(query.early for query in queries) else "append"
    stepped = parcels.groupBy(BUNDLE, BUCKET).transformWithState(processor, OUTPUT, mode, "EventTime")
    stepped = raise_errors(stepped).observe(
        EVENTS, *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in ("kept", "late", "untimed"))
    )
    if any(query.in_parts for query in queries):
        stepped = stepped.repartition(QUERY, "route")
    rows = mapped(stepped.select(QUERY, PAYLOAD), partial(_rows_of_parcels, queries), result)
    return rows.observe(RESULTS, F.count(F.lit(1)).alias("rows"))


def _prepare(spark: SparkSession) -> None:
    """Settings of the session that stateful operators need."""
    set_arrow_rows(spark)
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    spark.conf.set("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")


def _parcels(
    df: DataFrame,
    partition_groups: tuple[StreamPartitionGroup, ...],
    untimed: Column,
    setting: StreamSettings,
    probes: tuple[str, ...],
) -> DataFrame:
    """Events as parcels; those that are `untimed` go along, to be refused or put aside."""
    given = [name for name in df.columns if name != CLOCK]
    labels: list[Label] = []
    flags: list[Column] = []
    for group in partition_groups:
        keys = F.xxhash64(*key_columns(df, group.attributes)) if group.attributes else F.lit(0)
        bucket = f" bucket {len(labels)}"
        flags.append(F.pmod(keys, F.lit(setting.buckets)).cast("int").alias(bucket))
        needed: list[str | None] = []
        for member in group.members:
            test = needed_by_any([query.physical.plan for query in queries_of_member(member)], df.schema)
            needed.append(None if test is None else f" needed {len(labels)} {len(needed)}")
            if test is not None and needed[-1] is not None:
                # Naming the clock keeps Spark from moving the test below the watermark, which all events shall move.
                flags.append((F.coalesce(test, F.lit(False)) | untimed).alias(needed[-1]))
        read = {name for query in group.streaming_queries for name in query.schema.names}
        kept = [name for name in given if setting.late_to is not None or name in read]
        labels.append(Label(group.name, tuple(kept), bucket, tuple(needed)))
    columns = [name for name in given if any(name in label.columns for label in labels)]
    chosen = df.select(*(column(name) for name in columns), *flags)
    tests = [name for label in labels for name in label.needed]
    if None not in tests:
        chosen = chosen.filter(" OR ".join(f"`{name}`" for name in tests))
    return mapped(chosen, partial(packed, Packing(tuple(labels), probes, setting.buckets)), PARCEL)


def _rows_of_parcels(queries: tuple[StreamingQuery, ...], batches: Batches) -> Batches:
    """Task function: the rows in results that leave the state, put together where buckets gave parts of them."""
    known, result = {query.name: query for query in queries}, result_schema(queries)
    parts: dict[str, list[pa.Table]] = {}
    for name, table in unpacked(batches, QUERY):
        if known[name].in_parts:
            parts.setdefault(name, []).append(table)
        else:
            yield from aligned(table, name, result)
    for name, tables in parts.items():
        for rows in known[name].joined(tables):
            yield from aligned(pa.Table.from_batches([rows]), name, result)
