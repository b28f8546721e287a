"""A query over a batch DataFrame: project and filter → repartition by key → one columnar call per task.

No Python call per key and none per event: a task receives Arrow batches, sorts them once and runs the same kernels as
the local engine. Aggregates whose groups are coarser than the partition are added up by a second, small shuffle.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from trendloom.engines import task
from trendloom.engines.events import Stream
from trendloom.engines.finish import finish_aggregates
from trendloom.engines.partials import EXPONENT, WINDOW, merge_partials
from trendloom.engines.results import aggregate_schema, row_schema
from trendloom.engines.spark.columns import column, needed_rows
from trendloom.engines.spark.session import ARROW_ROWS
from trendloom.errors import DataError, TrendloomError
from trendloom.io.events import ticks, without_nan
from trendloom.model.schema import Kind
from trendloom.physical.aggregation import measures_of
from trendloom.physical.plan import Physical
from trendloom.plan.logical import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIRST, LAST = "_first_time", "_last_time"
ERROR = "trendloom-error:"
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Job:
    """What a task needs to know: the plan, the columns it will see, and how to give out results."""

    physical: Physical
    schema: pa.Schema
    numeric: str
    limit: int | None
    order: bool  # add the times of the first and last event, for sorting

    @property
    def plan(self) -> Plan:
        return self.physical.plan


def run(
    df: DataFrame, physical: Physical, schema: pa.Schema, *, numeric: str = "exact", limit: int | None = None,
    order: bool = False, partitions: int | None = None,
) -> DataFrame:  # fmt: skip
    """The rows of a query over a DataFrame whose columns have these Arrow types."""
    plan = physical.plan
    scanned = pa.schema([schema.field(name) for name in plan.scan.columns])
    job = Job(physical, scanned, numeric, limit, order)
    _set_arrow_rows(df)
    moved = _by_key(_needed(df, plan), plan.partition, partitions)
    if not physical.aggregates:
        return _map(moved, _Task(job, _rows), _rows_schema(job))
    final = aggregate_schema(plan, scanned, numeric)
    if set(plan.partition) == set(plan.group_by):
        return _map(moved, _Task(job, _whole_groups), final)
    partial = _map(moved, _Task(job, _partials), _partial_schema(job))
    keys = [name for name in (WINDOW, *plan.group_by) if name != WINDOW or plan.window.sliding]
    return _map(_by_key(partial, tuple(keys), partitions), _Task(job, _merged), final)


def _needed(df: DataFrame, plan: Plan) -> DataFrame:
    """Only the columns and rows that can matter; rows without a time stay, so that the task can refuse them."""
    decimals = frozenset(field.name for field in df.schema.fields if field.dataType.typeName() == "decimal")
    test = needed_rows(plan, decimals)
    if test is not None:
        df = df.filter(test | column(plan.schema.time).isNull())
    return df.select(*(column(name) for name in plan.scan.columns))


def _by_key(df: DataFrame, keys: tuple[str, ...], partitions: int | None) -> DataFrame:
    if not keys:
        return df.repartition(1)
    floats = {field.name for field in df.schema.fields if field.dataType.typeName() in ("double", "float")}
    # Adding 0.0 makes −0.0 the same key as 0.0 for Spark's hash, as it is for us.
    columns = [column(name) + 0.0 if name in floats else column(name) for name in keys]
    return df.repartition(*columns) if partitions is None else df.repartition(partitions, *columns)


def _set_arrow_rows(df: DataFrame) -> None:
    """Larger Arrow batches than Spark's default, unless the user chose a size."""
    conf = df.sparkSession.conf
    if conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == "10000":
        conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(ARROW_ROWS))


def _map(df: DataFrame, function: _Task, schema: pa.Schema) -> DataFrame:
    """One columnar call per partition. Columns travel by number: PySpark cannot map names with a backtick in them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    numbered = df.toDF(*map(str, range(len(df.columns))))
    named = replace(function, names=tuple(df.columns))
    return numbered.mapInArrow(named, from_arrow_schema(schema, prefer_timestamp_ntz=True))


# ------------------------------------------------------------------------------------------ inside a task


@dataclass(frozen=True)
class _Task:
    """A function over the Arrow batches of one task; our errors travel to the driver as text it can read."""

    job: Job
    body: Callable[[Job, Batches], Batches]
    names: tuple[str, ...] = ()

    def __call__(self, batches: Batches) -> Batches:
        try:
            yield from self.body(self.job, (batch.rename_columns(list(self.names)) for batch in batches))
        except TrendloomError as error:
            told = json.dumps({"class": type(error).__name__, "message": error.message, "hint": error.hint})
            raise RuntimeError(f"{ERROR}{told}") from error


def _stream(job: Job, batches: Batches) -> Stream | None:
    found = [batch for batch in batches if batch.num_rows]
    if not found:
        return None
    table = without_nan(pa.Table.from_batches(found))
    plan = job.plan
    times = table[plan.schema.time]
    if times.null_count:
        raise DataError(
            f"{times.null_count} of {len(times)} events in a task have no time", hint="remove them, or give them a time"
        )
    kinds = {column.name: column.kind for column in plan.schema.columns}
    return Stream(table, kinds, ticks(times, plan.schema.axis))


def _rows_schema(job: Job) -> pa.Schema:
    schema = row_schema(job.plan, job.schema)
    if job.order:
        schema = schema.append(pa.field(FIRST, pa.int64())).append(pa.field(LAST, pa.int64()))
    return schema


def _rows(job: Job, batches: Batches) -> Batches:
    stream = _stream(job, batches)
    if stream is not None:
        times = (FIRST, LAST) if job.order else None
        yield from task.rows(job.physical, stream, limit=job.limit, with_times=times, ordered=False)


def _partial(job: Job, batches: Batches) -> pa.Table | None:
    stream = _stream(job, batches)
    return None if stream is None else task.partial(job.physical, stream, numeric=job.numeric)


def _whole_groups(job: Job, batches: Batches) -> Batches:
    yield from _finished(job, _partial(job, batches))


def _partials(job: Job, batches: Batches) -> Batches:
    found = _partial(job, batches)
    if found is not None:
        yield from found.select(_partial_schema(job).names).cast(_partial_schema(job)).to_batches()


def _merged(job: Job, batches: Batches) -> Batches:
    found = [batch for batch in batches if batch.num_rows]
    if found:
        yield from _finished(job, merge_partials(job.plan, [pa.Table.from_batches(found)]))


def _finished(job: Job, merged: pa.Table | None) -> Batches:
    if merged is not None:
        result = finish_aggregates(job.plan, job.schema, merged, job.numeric, spark=True)
        yield from result.cast(aggregate_schema(job.plan, job.schema, job.numeric)).to_batches()


def _partial_schema(job: Job) -> pa.Schema:
    plan = job.plan
    fields = [pa.field(name, job.schema.field(name).type) for name in plan.group_by]
    if plan.window.sliding:
        fields.append(pa.field(WINDOW, pa.int64()))
    for measure in measures_of(plan):
        kind = _measure_type(measure.function, measure.column, measure.kind, plan)
        linear = measure.function in ("matches", "count", "sum")
        if job.physical.one_step and linear and (job.numeric != "exact" or kind != pa.string()):
            fields += [pa.field(measure.name, pa.float64()), pa.field(measure.name + EXPONENT, pa.int64())]
        else:
            fields.append(pa.field(measure.name, kind))
    return pa.schema(fields)


def _measure_type(function: str, name: str | None, kind: Kind, plan: Plan) -> pa.DataType:
    if function in ("matches", "count"):
        return pa.string()
    of = plan.schema.kind(name) if name is not None and name != plan.schema.time else Kind.INT
    if function == "sum":
        return pa.float64() if of is Kind.FLOAT else pa.string()
    known = {Kind.FLOAT: pa.float64(), Kind.STRING: pa.string(), Kind.BOOL: pa.bool_(), Kind.NULL: pa.null()}
    return known.get(of or kind, pa.int64())


def unwrap(error: Exception) -> Exception:
    """The error that a task raised, out of what Spark made of it."""
    from trendloom import errors

    text = str(error)
    at = text.find(ERROR)
    if at < 0:
        return error
    told: dict[str, Any] = json.JSONDecoder().raw_decode(text[at + len(ERROR) :])[0]
    known = getattr(errors, told["class"], errors.RunError)
    found: Exception = known(told["message"], hint=told["hint"])
    return found
