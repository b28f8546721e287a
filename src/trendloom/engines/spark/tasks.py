"""What all paths through Spark share: the arguments of a task, its invocation, and the transport of its results.

A task is one columnar call over the Arrow batches of a partition: no Python call per key and none per event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from trendloom.engines import precompile
from trendloom.engines.spark.columns import column, needed_rows, without_time
from trendloom.engines.spark.errors import ERROR, error_text, raise_errors
from trendloom.errors import Door, PlanError, TrendloomError, at_door, open_door
from trendloom.kernels.jit.compiled import packed_code, receive_code
from trendloom.logical.plan import Plan
from trendloom.planner.plan import Physical
from trendloom.runtime.blocks import Stream, stream_of_table
from trendloom.runtime.limits import naming_the_way_out
from trendloom.runtime.result_columns import joint_schema_of, with_columns
from trendloom.runtime.warnings import Tied
from trendloom.streaming.state import unpack

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import Column, DataFrame, SparkSession

Batches = Iterator[pa.RecordBatch]

QUERY = "query"
"""The column of rows of several queries that names the query of a row."""
PAYLOAD = "payload"
"""The column of parcels that holds a table as Arrow bytes."""
DIGITS_ON_SPARK = 38
"""Digits of the widest decimals of Spark."""


@dataclass(frozen=True)
class Job:
    """The arguments of a task: a plan, the columns of its events, and the form of its results."""

    physical: Physical
    schema: pa.Schema
    numeric: str
    limit: int | None = None
    order: bool = False  # add the times of the first and last event, for sorting
    counter: Accumulator[int] | None = None  # of rows per match
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

    def counted(self, rows: Iterable[pa.RecordBatch]) -> Batches:
        """The same rows; adds their number to the counter."""
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


def listed(spark: SparkSession, shares: Sequence[Sequence[tuple[object, ...]]], columns: str) -> DataFrame:
    """Rows that list work for tasks, those of a share in one task; the number of the task comes first."""
    rows = [(number, *row) for number, share in enumerate(shares) for row in share]
    found = spark.createDataFrame(rows, f"task int, {columns}")
    return found.repartitionById(max(len(shares), 1), column("task"))


def mapped(df: DataFrame, body: Callable[[Batches], Batches], schema: pa.Schema) -> DataFrame:
    """One columnar call per partition. Columns travel by number: PySpark cannot map names with a backtick in them."""
    _refuse_wide(schema)
    numbered = df.toDF(*map(str, range(len(df.columns))))
    task = Task(body, tuple(df.columns), schema, open_door(), code_to_send(df))
    columns = from_arrow_schema(with_error_column(schema), prefer_timestamp_ntz=True)
    return raise_errors(numbered.mapInArrow(task, columns))


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


def joint_schema(results: Sequence[pa.Schema], *, named: bool) -> pa.Schema:
    """The columns of all queries together; `named`: a column for the names of the queries comes first."""
    joint = joint_schema_of(results, most_digits=DIGITS_ON_SPARK)
    return pa.schema([pa.field(QUERY, pa.string()), *joint]) if named else joint


def aligned(table: pa.Table, name: str | None, joint: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows of one query with all columns."""
    if QUERY in joint.names and QUERY not in table.column_names:
        table = table.add_column(0, QUERY, pa.repeat(pa.scalar(name, pa.string()), len(table)))
    yield from with_columns(table, joint).to_batches()


# ------------------------------------------------------------------------------------------ inside a task


@dataclass(frozen=True)
class Task:
    """A function over the Arrow batches of one task; errors of ours leave it as text (`errors`)."""

    body: Callable[[Batches], Batches]
    names: tuple[str, ...]
    result: pa.Schema
    door: Door  # of the driver: how its user spells options
    code: tuple[str, bytes] | None  # compiled by the driver, for machines that have none

    def __call__(self, batches: Batches) -> Batches:
        if self.code is not None:
            receive_code(*self.code)
        try:
            with at_door(self.door), naming_the_way_out():
                for rows in self.body(batch.rename_columns(list(self.names)) for batch in batches):
                    yield self._with_errors(rows.columns, pa.nulls(rows.num_rows, pa.string()))
        except TrendloomError as error:
            nothing = [pa.nulls(1, one.type) for one in self.result]
            yield self._with_errors(nothing, pa.array([error_text(error)], pa.string()))

    def _with_errors(self, columns: list[pa.Array], errors: pa.Array) -> pa.RecordBatch:
        fitting = [
            values if values.type == wanted.type else values.cast(wanted.type)  # they may differ in what may be NULL
            for values, wanted in zip(columns, self.result, strict=True)
        ]
        return pa.RecordBatch.from_arrays([*fitting, errors], schema=with_error_column(self.result))


def with_error_column(result: pa.Schema) -> pa.Schema:
    """The columns that leave a task: those of its results, which are NULL beside an error, and the text of an error."""
    return pa.schema([one.with_nullable(True) for one in result] + [pa.field(ERROR, pa.string())])


def gathered(batches: Batches) -> pa.Table | None:
    """The rows of a task as one table; None where there are none."""
    found = [batch for batch in batches if batch.num_rows]
    return pa.Table.from_batches(found) if found else None


def unpacked(parcels: Iterable[pa.RecordBatch], key: str) -> Iterator[tuple[Any, pa.Table]]:
    """The tables in parcels, each with the value of a column; parcels may be empty."""
    for batch in parcels:
        for value, payload in zip(batch.column(key).to_pylist(), batch.column(PAYLOAD), strict=True):
            if payload.is_valid:
                yield value, unpack(payload.as_buffer())


def stream_of(job: Job, batches: Batches, tied: Tied | None = None) -> Stream | None:
    """The events of a task; None where there are none."""
    events = gathered(batches)
    return None if events is None else stream_of_table(job.plan, events, tied)


def task_number() -> int:
    """The number of the task that runs this; 0 outside of Spark."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


def keyed_by(physical: Physical, name: str) -> Physical:
    """The plan with one more column that keeps events apart."""
    plan = physical.plan
    return replace(physical, plan=replace(plan, partition=(*plan.partition, name)))
