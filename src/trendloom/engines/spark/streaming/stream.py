"""A workload over a streaming DataFrame: pack events by bucket → step the state → unpack result rows.

The watermark is Spark's own. Spark does not drop late events here, because what reaches the stateful operator are
parcels without a time; the step itself sets late events apart, and counts them.

Queries with the same partition attributes form a partition group: one set of parcels, one state each.
Buckets of one query step at the same watermark, so all that is known of a window leaves them in one micro-batch. Groups
that span buckets are therefore added up by a plain shuffle within the batch: no second state is needed. So are the best
of all partitions ranked (LIMIT k OVERALL): every bucket gives the k best of its keys, and the events stay spread.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import ceil
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from trendloom.engines.spark.columns import column, needed_by_any, without_time
from trendloom.engines.spark.error_transport import heeded
from trendloom.engines.spark.session import set_arrow_rows
from trendloom.engines.spark.streaming.batch_figures import FIGURES, observed_figures
from trendloom.engines.spark.streaming.packing import BUCKET, BUNDLE, PARCEL, PAYLOAD, Label, Packing
from trendloom.engines.spark.streaming.processor import OUTPUT, Processor
from trendloom.engines.spark.streaming.settings import StreamSettings
from trendloom.engines.spark.streaming.stepping import Stepping
from trendloom.engines.spark.tasks import Batches, Task, key_columns, mapped
from trendloom.engines.spark.timestamps import moment_of
from trendloom.engines.spark.workload_table import QUERY, aligned, joint_schema
from trendloom.errors import open_door
from trendloom.model.imprecision import Imprecision
from trendloom.model.schema import Schema
from trendloom.streaming.partition_groups import StreamPartitionGroup, queries_of_member
from trendloom.streaming.state import unpack
from trendloom.streaming.streaming_query import StreamingQuery

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


# When an event happened, for Spark's watermark: where its time is imprecise, the earliest time it may have had.
#
# So the watermark promises that no event comes that may have happened earlier. Events that no query wants move it, too.
# What is less than a tick is rounded so that a clock is never ahead of its event.


SECOND = 1_000_000
"""Microseconds."""


def clock_of(df: DataFrame, schema: Schema) -> Column:
    """The earliest time of an event as a timestamp."""
    time, kinds = column(schema.times), dict(df.dtypes)
    how = schema.imprecision if schema.bounds is None else None
    if not schema.axis.timestamp:
        number = time.cast("long") if how is None else time.cast("long") - _error(how, schema, kinds)
        return F.timestamp_micros(F.try_multiply(number, F.lit(int(schema.axis.tick))))
    moment = time if kinds[schema.times] == "timestamp" else moment_of(time)
    if how is None:
        return moment
    if how.error_column is not None and kinds[how.error_column].startswith("interval"):
        return moment - column(how.error_column)
    return F.timestamp_micros(F.unix_micros(moment) - _error(how, schema, kinds))


def _error(how: Imprecision, schema: Schema, kinds: dict[str, str]) -> Column:
    """How many ticks an event may be earlier than its time, rounded up."""
    if how.error_column is None:
        given = F.lit(ceil(how.error))
        kind = column(schema.type)
        return reduce(lambda rest, one: F.when(kind == one[0], F.lit(ceil(one[1]))).otherwise(rest), how.by_type, given)
    number = column(how.error_column)
    if not schema.axis.timestamp:
        return F.ceil(number).cast("long")
    if kinds[how.error_column] in ("tinyint", "smallint", "int", "bigint"):
        return number.cast("long") * SECOND
    return F.ceil(number * SECOND).cast("long")


CLOCK = "_trendloom_clock"
EVENTS, RESULTS = "trendloom_events", "trendloom_results"
"""Names of observed metrics: of what came in, and of the rows given out."""

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def run(
    df: DataFrame,
    partition_groups: tuple[StreamPartitionGroup, ...],
    schema: Schema,
    setting: StreamSettings,
    probes: tuple[str, ...] = (),
) -> DataFrame:
    """The rows of a workload over a streaming DataFrame; `probes`: bundles that must not have any state."""
    streaming_queries = tuple(
        streaming_query for partition_group in partition_groups for streaming_query in partition_group.streaming_queries
    )
    _prepare(df.sparkSession)
    result = result_schema(streaming_queries)
    assert setting.watermark is not None
    timed = df.withColumn(CLOCK, clock_of(df, schema)).withWatermark(CLOCK, setting.watermark)
    timed = timed.observe(FIGURES, *observed_figures(timed, partition_groups, schema, CLOCK))
    parcels = _parcels(timed, partition_groups, column(CLOCK).isNull() | without_time(schema), setting, probes)
    stepping = Stepping(partition_groups, setting.buckets, setting.late_to, open_door(), probes)
    processor = Processor(stepping)
    mode = "update" if any(streaming_query.early for streaming_query in streaming_queries) else "append"
    stepped = parcels.groupBy(BUNDLE, BUCKET).transformWithState(processor, OUTPUT, mode, "EventTime")
    stepped = heeded(stepped).observe(
        EVENTS, *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in ("kept", "late", "untimed"))
    )
    if any(streaming_query.in_parts for streaming_query in streaming_queries):
        stepped = stepped.repartition(QUERY, "route")
    rows = mapped(stepped.select(QUERY, PAYLOAD), Task(None, Unpacking(streaming_queries)), result)
    return rows.observe(RESULTS, F.count(F.lit(1)).alias("rows"))


def result_schema(streaming_queries: tuple[StreamingQuery, ...]) -> pa.Schema:
    """The columns of all queries together; a workload adds `query`."""
    return joint_schema(
        [streaming_query.result for streaming_query in streaming_queries],
        named=any(streaming_query.name for streaming_query in streaming_queries),
    )


def _prepare(spark: SparkSession) -> None:
    """What stateful operators of this kind need, unless the session has it already."""
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
    for partition_group in partition_groups:
        keys = F.xxhash64(*key_columns(df, partition_group.attributes)) if partition_group.attributes else F.lit(0)
        bucket = f" bucket {len(labels)}"
        flags.append(F.pmod(keys, F.lit(setting.buckets)).cast("int").alias(bucket))
        wanted: list[str | None] = []
        for taker in partition_group.members:
            test = needed_by_any(
                [streaming_query.physical.plan for streaming_query in queries_of_member(taker)], df.schema
            )
            wanted.append(None if test is None else f" wanted {len(labels)} {len(wanted)}")
            if test is not None and wanted[-1] is not None:
                # Naming the clock keeps Spark from moving the test below the watermark, which all events shall move.
                flags.append((F.coalesce(test, F.lit(False)) | untimed).alias(wanted[-1]))
        needed = {
            name for streaming_query in partition_group.streaming_queries for name in streaming_query.schema.names
        }
        kept = [name for name in given if setting.late_to is not None or name in needed]
        labels.append(Label(partition_group.name, tuple(kept), bucket, tuple(wanted)))
    columns = [name for name in given if any(name in label.columns for label in labels)]
    chosen = df.select(*(column(name) for name in columns), *flags)
    tests = [name for label in labels for name in label.wanted]
    if None not in tests:
        chosen = chosen.filter(" OR ".join(f"`{name}`" for name in tests))
    return mapped(chosen, Task(None, Packing(tuple(labels), probes, setting.buckets)), PARCEL)


@dataclass(frozen=True)
class Unpacking:
    """What a task makes of results that leave the state: rows, put together where buckets gave parts of them."""

    streaming_queries: tuple[StreamingQuery, ...]

    def __call__(self, _: object, batches: Batches) -> Batches:
        known = {streaming_query.name: streaming_query for streaming_query in self.streaming_queries}
        result = result_schema(self.streaming_queries)
        parts: dict[str, list[pa.Table]] = {}
        for batch in batches:
            names, payloads = batch.column(QUERY).to_pylist(), batch.column(PAYLOAD)
            for name, payload in zip(names, payloads, strict=True):
                if not payload.is_valid:
                    continue
                table = unpack(payload.as_buffer())
                if known[name].in_parts:
                    parts.setdefault(name, []).append(table)
                else:
                    yield from aligned(table, name, result)
        for name, tables in parts.items():
            for rows in known[name].joined(tables):
                yield from aligned(pa.Table.from_batches([rows]), name, result)
