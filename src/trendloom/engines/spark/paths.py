"""Which path events take through Spark: what the query allows (`allowed_paths`), and then what the data are like.

- Times of the input's parts that hardly overlap: matrices instead of events are shuffled (`reduce`, `direct`).
- Few keys and many windows: time is cut into segments (`cut`).
- All else: events are shuffled by key.

Finding out costs one small job over the needed rows, or nothing where Parquet's footers know.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from trendloom.engines.spark import reduce, time_cut
from trendloom.engines.spark.columns import column
from trendloom.engines.spark.plan_steps import Path, obstacle, summed, ways
from trendloom.engines.spark.reduce import InputPart, Zones, contested
from trendloom.engines.spark.tasks import Batches, Job, Partial, Task, by_key, mapped, needed, stream_of
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
SEGMENTS_PER_CORE = 3
FEW_KEYS = 2
"""Keys per core below which tasks by key would leave cores idle."""


def refuse(physical: Physical, path: Path | None) -> None:
    """Refuse a path that the query does not allow."""
    problem = None if path is None else obstacle(physical, path)
    if path is not None and problem is not None:
        raise OptionError(f"the query cannot take the path '{path.value}': {problem}", hint=_LEAVE)


_LEAVE = "leave the choice of the path to the engine"


def spread(df: DataFrame, job: Job, partitions: int | None, path: Path | None, files: tuple[FilePath, ...]) -> Spread:
    """The rows that tasks see, moved to where they belong, and what tasks make of them. `path` None: the best."""
    refuse(job.physical, path)
    for way in ways(job.physical) if path is None else ():
        found = _try(way.path, df, job, partitions, files, forced=False)
        if not isinstance(found, str):
            return found
    found = _try(path or Path.GENERAL, df, job, partitions, files, forced=True)
    if isinstance(found, str):
        raise OptionError(f"the data cannot take the path '{(path or Path.GENERAL).value}': {found}", hint=_LEAVE)
    return found


def _try(
    path: Path, df: DataFrame, job: Job, partitions: int | None, files: tuple[FilePath, ...], *, forced: bool
) -> Spread | str:
    """The path, or why the data do not suit it. A forced path is refused only where it cannot be right."""
    if path in (Path.REDUCED, Path.DIRECT) and (problem := _unfit_types(job)):
        return problem
    rows = needed(df, job.plan)
    if path is Path.DIRECT:
        return _direct(df, job, partitions, files, forced=forced)
    if path is Path.REDUCED:
        return _reduced(rows, job, partitions, forced=forced)
    if path is Path.CUT:
        return _cut(rows, job, partitions, forced=forced)
    return by_key(rows, job.plan.keys, partitions), general


def general(job: Job, batches: Batches) -> pa.Table | None:
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


# ------------------------------------------------------------------------------------------- reduced, direct


def _direct(
    df: DataFrame, job: Job, partitions: int | None, files: tuple[FilePath, ...], *, forced: bool
) -> Spread | str:
    if not files:
        return "the events do not come from Parquet files of this machine"
    if not forced and not (df.sparkSession.conf.get("spark.master", "") or "").startswith("local"):
        return "tasks on other machines may not see the files"
    groups = reduce.row_groups(files, job)
    if isinstance(groups, str):
        return groups
    divided = reduce.shares(groups, 2 * cores(df))
    parts = [reduce.part_of(share) for share in divided]
    zones = contested(parts)
    if not forced and zones.share(parts) > MOST_CONTESTED:
        return "most times are in several row groups"
    return reduce.read_and_reduced(df.sparkSession, divided, job, zones, partitions), reduce.multiplied


def _reduced(rows: DataFrame, job: Job, partitions: int | None, *, forced: bool) -> Spread | str:
    found = _zones(rows, job, forced=forced)
    if isinstance(found, str):
        return found
    return reduce.reduced(rows, job, found, partitions), reduce.multiplied


def _zones(rows: DataFrame, job: Job, *, forced: bool) -> Zones | str:
    """Contested times; or why reducing first would not pay, or not be right."""
    found = _parts_by_number(rows, job)
    if len(found) < 2:
        if not forced:
            return "the input has one part"
        found = mapped(rows, Task(job, _range), _RANGE).toArrow()
    _refuse_missing(found)
    for at, name in enumerate(reduce.exact_columns(job)):
        if f"min {at}" in found.column_names and reduce.any_near_bounds(found[f"min {at}"], found[f"max {at}"]):
            return f"column '{name}' has integers near the bounds of 64 bits"
    bounds = zip(*(_ticks(found[name], job) for name in ("first", "last")), strict=True)
    events = found["events"].to_pylist()
    parts = [InputPart(first, last, count) for (first, last), count in zip(bounds, events, strict=True)]
    zones = contested(parts)
    if not forced and zones.share(parts) > MOST_CONTESTED:
        return "most times are in several parts of the input"
    return zones


def _ticks(times: pa.ChunkedArray, job: Job) -> list[int]:
    """Times as ticks; tasks give ticks already."""
    found: list[int] = (
        times.to_pylist() if pa.types.is_int64(times.type) else ticks(times, job.plan.schema.axis).tolist()
    )
    return found


def _parts_by_number(rows: DataFrame, job: Job) -> pa.Table:
    """Per part of the input what `contested` asks for.

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


# ---------------------------------------------------------------------------------------------------- cut


def _cut(rows: DataFrame, job: Job, partitions: int | None, *, forced: bool) -> Spread | str:
    plan, width = job.plan, cores(rows)
    known = counted(rows, plan)
    if known.first is None or known.last is None:
        return by_key(rows, plan.keys, partitions), general
    keys = known.spread(plan.keys)
    if not forced and plan.keys and keys is not None and keys.distinct >= FEW_KEYS * width:
        return "there are enough keys for all tasks"
    segments = time_cut.segments_of(plan.window, known.first, known.last, SEGMENTS_PER_CORE * width)
    if not forced and segments.count < 2:
        return "a window is as long as the stream"
    return time_cut.spread_by_segment(rows, job, segments, partitions), partial(time_cut.cut_aggregates, segments)


def counted(rows: DataFrame, plan: Plan) -> Statistics:
    """What one small job over the needed rows tells: how many there are, their times, about how many keys."""
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


def cores(df: DataFrame) -> int:
    """How many tasks run at a time."""
    return cores_of(df.sparkSession)


def cores_of(spark: SparkSession) -> int:
    """How many tasks run at a time; over Spark Connect nobody says, so as many as shuffles have partitions."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:
        return int(spark.conf.get("spark.sql.shuffle.partitions") or "2")
