"""Which path events take through Spark: what the query allows (`plan_steps`), and then what the data are like.

- Parts of a large input whose times hardly overlap: matrices instead of events are shuffled (`reduce`).
- Few keys and many windows: time is cut into segments (`time_cut`).
- All else: events are shuffled by key.

Cost of the choice: one small job over the needed rows; nothing where Parquet's footers have their times, or where the
input of a query whose events are matrices is small.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from trendloom.engines.spark import reduce
from trendloom.engines.spark.columns import column
from trendloom.engines.spark.plan_steps import Path, obstacle, summed, ways
from trendloom.engines.spark.reduce import InputPart, UnsuitedInput, contested
from trendloom.engines.spark.tasks import Batches, Job, Partial, by_key, mapped, needed, stream_of
from trendloom.engines.spark.time_cut import cut_aggregates, segments_of, spread_by_segment
from trendloom.errors import DataError, OptionError
from trendloom.io.events import ticks
from trendloom.logical.plan import Plan
from trendloom.logical.statistics import KeySpread, Origin, Statistics
from trendloom.model.schema import DIGITS_IN_WORD
from trendloom.planner.plan import Physical
from trendloom.runtime import task

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Spread = tuple["DataFrame", Partial]

MOST_CONTESTED = 0.5
"""Share of events in contested times beyond which reducing the others first does not pay."""
WORTH_A_LOOK = 1 << 26
"""Bytes of input, as Spark estimates them, below which moving events takes less than a job that reads their times."""
SEGMENTS_PER_CORE = 3
FEW_KEYS = 2
"""Keys per core below which tasks by key would leave cores idle."""


LEAVE = "leave the choice of the path to the engine"


def refuse(physical: Physical, path: Path | None) -> None:
    """Refuse a path that the query does not allow."""
    if path is not None and (problem := obstacle(physical, path)) is not None:
        raise OptionError(f"the query cannot take the path '{path.value}': {problem}", hint=LEAVE)


def spread(df: DataFrame, job: Job, partitions: int | None, path: Path | None, files: tuple[FilePath, ...]) -> Spread:
    """The rows in the tasks that add them up, and the function of these tasks. `path` None: the best one."""
    refuse(job.physical, path)
    for way in ways(job.physical) if path is None else ():
        with suppress(UnsuitedInput):
            return _PathAttempt(df, job, partitions, files, forced=False).on(way.path)
    path = path or Path.GENERAL
    try:
        return _PathAttempt(df, job, partitions, files, forced=True).on(path)
    except UnsuitedInput as problem:
        raise OptionError(f"the data cannot take the path '{path.value}': {problem}", hint=LEAVE) from None


def counted(rows: DataFrame, plan: Plan) -> Statistics:
    """The number of the needed rows, their times, and about how many keys they have; by a small job."""
    wanted = _first_last(column(plan.schema.time))
    if plan.keys:
        wanted.append(F.approx_count_distinct(F.struct(*map(column, plan.keys))).alias("keys"))
    found = rows.agg(*wanted).toArrow()
    _refuse_missing(found)
    events = found["events"][0].as_py()
    if not events:
        return Statistics(Origin.EVENTS, 0)
    first, last = (int(ticks(found[name], plan.schema.axis)[0]) for name in ("first", "last"))
    keys = {plan.keys: KeySpread(found["keys"][0].as_py())} if plan.keys else {}
    return Statistics(Origin.EVENTS, events, first=first, last=last, keys=keys)


def cores(spark: SparkSession) -> int:
    """How many tasks run at a time; over Spark Connect that is unknown, so as many as shuffles have partitions."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:
        return int(spark.conf.get("spark.sql.shuffle.partitions") or "2")


def _size(df: DataFrame) -> float:
    """Spark's estimate of the bytes of a DataFrame; unknown over Spark Connect, so as large as can be."""
    plan = getattr(df, "_jdf", None)
    return math.inf if plan is None else float(str(plan.queryExecution().optimizedPlan().stats().sizeInBytes()))


@dataclass(frozen=True)
class _PathAttempt:
    """A query over a DataFrame; on a path that is `forced` an input is unsuited only where rows could be wrong."""

    df: DataFrame
    job: Job
    partitions: int | None
    files: tuple[FilePath, ...]
    forced: bool

    def on(self, path: Path) -> Spread:
        """The query on a path; `UnsuitedInput` where the data do not suit it."""
        if path in (Path.REDUCED, Path.DIRECT) and (problem := _unfit_types(self.job)):
            raise UnsuitedInput(problem)
        if path is Path.DIRECT:
            return self._direct()
        rows = needed(self.df, self.job.plan)
        if path is Path.REDUCED:
            return self._reduced(rows)
        return self._cut(rows) if path is Path.CUT else self._by_key(rows)

    def _by_key(self, rows: DataFrame) -> Spread:
        return by_key(rows, self.job.plan.keys, self.partitions), _aggregated

    def _direct(self) -> Spread:
        spark = self.df.sparkSession
        if not self.files:
            raise UnsuitedInput("the events do not come from Parquet files of this machine")
        if not self.forced and not (spark.conf.get("spark.master", "") or "").startswith("local"):
            raise UnsuitedInput("tasks on other machines may not see the files")
        divided = reduce.shares(reduce.row_groups(self.files, self.job), 2 * cores(spark))
        parts = [reduce.part_of(share) for share in divided]
        zones = contested(parts)
        if not self.forced and zones.share(parts) > MOST_CONTESTED:
            raise UnsuitedInput("most times are in several row groups")
        return reduce.read_and_reduced(spark, divided, self.job, zones, self.partitions), reduce.multiplied

    def _reduced(self, rows: DataFrame) -> Spread:
        if not self.forced and _size(self.df) < WORTH_A_LOOK:
            raise UnsuitedInput("the input is small")
        found = _parts_by_number(rows, self.job)
        if len(found) < 2:
            if not self.forced:
                raise UnsuitedInput("the input has one part")
            found = mapped(rows, partial(_range, self.job), _RANGE).toArrow()
        _refuse_missing(found)
        for at, name in enumerate(reduce.exact_columns(self.job)):
            if f"min {at}" in found.column_names and reduce.any_near_bounds(found[f"min {at}"], found[f"max {at}"]):
                raise UnsuitedInput(f"column '{name}' has integers near the bounds of 64 bits")
        columns = (_ticks(found["first"], self.job), _ticks(found["last"], self.job), found["events"].to_pylist())
        parts = list(map(InputPart, *columns))
        zones = contested(parts)
        if not self.forced and zones.share(parts) > MOST_CONTESTED:
            raise UnsuitedInput("most times are in several parts of the input")
        return reduce.reduced(rows, self.job, zones, self.partitions), reduce.multiplied

    def _cut(self, rows: DataFrame) -> Spread:
        plan, width = self.job.plan, cores(self.df.sparkSession)
        known = counted(rows, plan)
        if known.first is None or known.last is None:
            return self._by_key(rows)
        keys = known.spread(plan.keys)
        if not self.forced and plan.keys and keys is not None and keys.distinct >= FEW_KEYS * width:
            raise UnsuitedInput("there are enough keys for all tasks")
        segments = segments_of(plan.window, known.first, known.last, SEGMENTS_PER_CORE * width)
        if not self.forced and segments.count < 2:
            raise UnsuitedInput("a window is as long as the stream")
        return spread_by_segment(rows, self.job, segments, self.partitions), partial(cut_aggregates, segments)


def _aggregated(job: Job, batches: Batches) -> pa.Table | None:
    """The partial table of all events of some keys."""
    stream = stream_of(job, batches, job.tied)
    return None if stream is None else task.partial(job.physical, stream, numeric=job.numeric, decimals=True)


def _unfit_types(job: Job) -> str | None:
    """Wide decimals and unsigned integers may be beyond 64 bits, which matrices do not hold."""
    measured = {m.column for m in summed(job.physical).measures if m.column}
    for name in sorted(measured):
        kind = job.schema.field(name).type
        if (pa.types.is_decimal(kind) and kind.precision > DIGITS_IN_WORD) or pa.types.is_uint64(kind):
            return f"column '{name}' is of type {kind}"
    return None


def _parts_by_number(rows: DataFrame, job: Job) -> pa.Table:
    """The times of each part of the input, as `contested` needs them.

    All columns are read, so that Spark divides the rows as it will when they are reduced. Rows that Spark holds in the
    driver seem to be one part, because it then numbers parts before it divides the rows.
    """
    time = column(job.plan.schema.time)
    wanted = [*_first_last(time), *(F.count(column(name)).alias(f"count {at}") for at, name in enumerate(rows.columns))]
    for at, name in enumerate(reduce.exact_columns(job)):
        wanted += [F.min(column(name)).alias(f"min {at}"), F.max(column(name)).alias(f"max {at}")]
    return rows.groupBy(F.spark_partition_id().alias("part")).agg(*wanted).toArrow()


_RANGE = pa.schema([(name, pa.int64()) for name in ("first", "last", "events", "missing")])


def _range(job: Job, batches: Batches) -> Batches:
    """The same for one part, found by a task: always right, but all rows pass through Python."""
    stream = stream_of(job, batches)
    if stream is not None:
        row = {"first": int(stream.ticks.min()), "last": int(stream.ticks.max()), "events": len(stream.ticks)}
        yield pa.RecordBatch.from_pylist([row | {"missing": 0}], _RANGE)


def _first_last(time: Column) -> list[Column]:
    return [
        F.min(time).alias("first"),
        F.max(time).alias("last"),
        F.count(F.lit(1)).alias("events"),
        F.count_if(time.isNull()).alias("missing"),
    ]


def _refuse_missing(found: pa.Table) -> None:
    missing = sum(found["missing"].to_pylist())
    if missing:
        raise DataError(
            f"{missing} of {sum(found['events'].to_pylist())} events have no time",
            hint="remove them, or give them a time",
        )


def _ticks(times: pa.ChunkedArray, job: Job) -> list[int]:
    """Times as ticks; tasks give ticks already."""
    given = pa.types.is_int64(times.type)
    return list(times.to_pylist() if given else ticks(times, job.plan.schema.axis).tolist())
