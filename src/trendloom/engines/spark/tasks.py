"""What all paths through Spark share: what a task is told, how it is called, and how its results leave it.

A task is one columnar call over the Arrow batches of a partition: no Python call per key and none per event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from trendloom.engines import precompile
from trendloom.engines.spark.columns import column, needed_rows, without_time
from trendloom.engines.spark.error_transport import COMPLAINT, complaint, heeded
from trendloom.errors import Door, PlanError, TrendloomError, at_door, open_door
from trendloom.kernels.contract.aggregates import Measure
from trendloom.kernels.jit.compiled import packed_code, receive_code
from trendloom.logical.plan import Plan
from trendloom.model.schema import Kind
from trendloom.planner.measures import measures_of
from trendloom.planner.plan import Physical
from trendloom.runtime.aggregates import EXPONENT, WINDOW, finish_aggregates, merge_partials
from trendloom.runtime.blocks import Stream, stream_of_table
from trendloom.runtime.limits import naming_the_way_out
from trendloom.runtime.result_columns import EXACT_ON_SPARK, aggregate_schema
from trendloom.runtime.warnings import Tied

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import Column, DataFrame

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Job:
    """What a task needs to know: the plan, the columns it will see, and how to give out results."""

    physical: Physical
    schema: pa.Schema
    numeric: str
    limit: int | None = None
    order: bool = False  # add the times of the first and last event, for sorting
    counter: Accumulator[int] | None = None  # of rows per match, for whoever watches
    tied: Tied | None = None  # counts events of equal time

    @property
    def plan(self) -> Plan:
        return self.physical.plan

    @property
    def adds_up(self) -> bool:
        """Whether a group has several partitions, so that tasks give parts of results that others add up."""
        return self.physical.aggregates and set(self.plan.keys) != set(self.plan.group_by)

    @property
    def in_parts(self) -> bool:
        """Whether what tasks give out has to meet: they add up parts of groups, or rank the best of each together."""
        return self.adds_up or self.plan.ranks_across_keys

    def counted(self, rows: Batches) -> Batches:
        """Rows per match, on their way past the counter."""
        for batch in rows:
            if self.counter is not None:
                self.counter.add(batch.num_rows)
            yield batch


Partial = Callable[[Job, Batches], pa.Table | None]
"""What a task makes of its rows: a partial table, or None where there is no match."""


def needed(df: DataFrame, plan: Plan) -> DataFrame:
    """Only the columns and rows that can matter; rows without a time stay, so that the task can refuse them."""
    test = needed_rows(plan, df.schema)
    if test is not None:
        df = df.filter(test | without_time(plan.schema))
    return df.select(*(column(name) for name in plan.scan.columns))


def by_key(df: DataFrame, keys: tuple[str, ...], partitions: int | None) -> DataFrame:
    """Rows with equal keys in one task; without keys all rows in one."""
    if not keys:
        return df.repartition(1)
    columns = key_columns(df, keys)
    return df.repartition(*columns) if partitions is None else df.repartition(partitions, *columns)


def key_columns(df: DataFrame, keys: tuple[str, ...]) -> list[Column]:
    """Keys as Spark's hash should see them: adding 0.0 makes −0.0 the same key as 0.0, as it is for us."""
    floats = {field.name for field in df.schema.fields if field.dataType.typeName() in ("double", "float")}
    return [column(name) + 0.0 if name in floats else column(name) for name in keys]


def mapped(df: DataFrame, function: Task, schema: pa.Schema) -> DataFrame:
    """One columnar call per partition. Columns travel by number: PySpark cannot map names with a backtick in them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    _refuse_wide(schema)
    numbered = df.toDF(*map(str, range(len(df.columns))))
    named = replace(function, names=tuple(df.columns), result=schema, code=code_to_send(df))
    return heeded(numbered.mapInArrow(named, from_arrow_schema(complaining(schema), prefer_timestamp_ntz=True)))


def code_to_send(df: DataFrame) -> tuple[str, bytes] | None:
    """The code that the driver has compiled, if tasks run on other machines; on this one they find it by themselves."""
    from pyspark.sql.classic.dataframe import DataFrame as Classic

    if not isinstance(df, Classic) or (df.sparkSession.sparkContext.master or "").startswith("local["):
        return None
    precompile.wait()
    return packed_code()


def _refuse_wide(schema: pa.Schema) -> None:
    """Refuse columns that Spark has no type for."""
    for one in schema:
        if pa.types.is_decimal256(one.type):
            raise PlanError(
                f"'{one.name}' would be {one.type}, and Spark's decimals end at 38 digits",
                hint="round it with round(x, n), divide by 1 for a double, or use the local engine",
            )


# ------------------------------------------------------------------------------------------ inside a task


@dataclass(frozen=True)
class Task:
    """A function over the Arrow batches of one task; our errors leave it as text (`complaints`)."""

    job: Any
    body: Callable[[Any, Batches], Batches]
    names: tuple[str, ...] = ()
    result: pa.Schema = field(default_factory=lambda: pa.schema([]))
    door: Door = field(default_factory=open_door)  # of the driver: how its user spells options
    code: tuple[str, bytes] | None = None  # compiled by the driver, for machines that have none

    def __call__(self, batches: Batches) -> Batches:
        if self.code is not None:
            receive_code(*self.code)
        try:
            with at_door(self.door), naming_the_way_out():
                for rows in self.body(self.job, (batch.rename_columns(list(self.names)) for batch in batches)):
                    yield self._with_complaints(rows.columns, pa.nulls(rows.num_rows, pa.string()))
        except TrendloomError as error:
            nothing = [pa.nulls(1, one.type) for one in self.result]
            yield self._with_complaints(nothing, pa.array([complaint(error)], pa.string()))

    def _with_complaints(self, columns: list[pa.Array], complaints: pa.Array) -> pa.RecordBatch:
        fitting = [
            values if values.type == wanted.type else values.cast(wanted.type)  # they may differ in what may be NULL
            for values, wanted in zip(columns, self.result, strict=True)
        ]
        return pa.RecordBatch.from_arrays([*fitting, complaints], schema=complaining(self.result))


def complaining(result: pa.Schema) -> pa.Schema:
    """The columns that leave a task: those of its results, any of which is NULL beside a complaint."""
    return pa.schema([one.with_nullable(True) for one in result] + [pa.field(COMPLAINT, pa.string())])


def stream_of(job: Job, batches: Batches, tied: Tied | None = None) -> Stream | None:
    """The events of a task; None where there are none."""
    found = [batch for batch in batches if batch.num_rows]
    return stream_of_table(job.plan, pa.Table.from_batches(found), tied) if found else None


def task_number() -> int:
    """The number of the task that runs this; 0 outside of Spark."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


def keyed_by(physical: Physical, name: str) -> Physical:
    """The plan with one more column that keeps events apart."""
    plan = physical.plan
    return replace(physical, plan=replace(plan, partition=(*plan.partition, name)))


def as_partials(job: Job, found: pa.Table | None) -> Batches:
    """A partial table, on its way to the task that adds up its groups."""
    if found is not None:
        schema = partial_schema(job)
        yield from found.select(schema.names).cast(schema).to_batches()


def merged(job: Job, batches: Batches) -> Batches:
    """Partial tables of many tasks, added up."""
    found = [batch for batch in batches if batch.num_rows]
    if found:
        yield from finished(job, merge_partials(job.plan, [pa.Table.from_batches(found)]))


def finished(job: Job, whole: pa.Table | None) -> Batches:
    """Result rows of a table with all there is of its groups."""
    if whole is not None:
        result = finish_aggregates(job.plan, job.schema, whole, job.numeric, spark=True)
        yield from result.cast(aggregate_schema(job.plan, job.schema, job.numeric)).to_batches()


def partial_schema(job: Job) -> pa.Schema:
    """The columns of partial tables."""
    plan = job.plan
    fields = [pa.field(name, job.schema.field(name).type) for name in plan.group_by]
    if plan.window.sliding:
        fields.append(pa.field(WINDOW, pa.int64()))
    for measure in measures_of(plan):
        kind = _measure_type(measure, plan, job.schema)
        linear = measure.function in ("matches", "count", "sum")
        scaled = job.physical.kernel.adds_up and linear and (job.numeric != "exact" or kind != pa.string())
        if scaled or plan.schema.imprecise:
            fields += [pa.field(measure.name, pa.float64()), pa.field(measure.name + EXPONENT, pa.int64())]
        else:
            fields.append(pa.field(measure.name, kind))
    return pa.schema(fields)


def _measure_type(measure: Measure, plan: Plan, schema: pa.Schema) -> pa.DataType:
    function, name, kind = measure.function, measure.column, measure.kind
    if function in ("matches", "count"):
        return pa.string()
    of = plan.schema.kind(name) if name is not None and name != plan.schema.time else Kind.INT
    if function == "sum":
        return pa.float64() if of is Kind.FLOAT else pa.string()
    if name is not None and pa.types.is_decimal(schema.field(name).type):
        return schema.field(name).type if of is Kind.DECIMAL else EXACT_ON_SPARK
    known = {Kind.FLOAT: pa.float64(), Kind.STRING: pa.string(), Kind.BOOL: pa.bool_(), Kind.NULL: pa.null()}
    return known.get(of or kind, pa.int64())
