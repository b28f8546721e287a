"""Several queries in one job: the input is read once, and events move once for each set of keys that queries have.

Rows leave the tasks as parcels: the number of a query, and some of its rows as Arrow bytes, so that queries need no
columns in common. What a task knows only a part of leaves it as a partial table, or as rows that may be among the best,
and whoever opens the parcels puts it together with the others. With several sets of keys an event moves once for each
set that has a query for it.

Cost: reading, one shuffle of the columns that any query needs, per task one sort for each set of keys, the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from trendloom.engines.spark.batch import rows_of, rows_schema
from trendloom.engines.spark.columns import column, needed_by_any, without_time
from trendloom.engines.spark.ranked_windows import ranked_rows, ranks_of
from trendloom.engines.spark.session import set_arrow_rows
from trendloom.engines.spark.tasks import (
    Batches,
    Job,
    Task,
    as_partials,
    by_key,
    finished,
    key_columns,
    mapped,
    task_number,
)
from trendloom.engines.spark.workload_table import aligned, joint_schema
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import Keys
from trendloom.kernels.contract.totals import Totals
from trendloom.logical.workload import Attributes, KeySet, Workload
from trendloom.planner.plan import Physical
from trendloom.planner.sharing import AnsweredTogether
from trendloom.planner.workload import PhysicalWorkload
from trendloom.runtime import task
from trendloom.runtime.blocks import Shared, Stream, stream_of_table
from trendloom.runtime.partial_aggregates import merge_partials
from trendloom.runtime.task import TogetherResults
from trendloom.streaming.state import pack, unpack

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

GROUP, QUERY, ROUTE, PAYLOAD = " group", "number", "route", "payload"
PARCEL = pa.schema([(QUERY, pa.int32()), (ROUTE, pa.int32()), (PAYLOAD, pa.binary())])
"""Parcels of one query and route belong together: they hold parts of the same groups, if its tasks give parts."""


@dataclass(frozen=True)
class Member:
    """A query of a job, and its number in the workload."""

    number: int
    job: Job


@dataclass(frozen=True)
class PartitionGroup:
    """Queries whose events meet in one task by the same attributes; `together`: those that one kernel answers."""

    attributes: Attributes
    members: tuple[Member, ...]
    together: tuple[AnsweredTogether, ...] = ()


def meetings_of(
    workload: PhysicalWorkload, key_sets: Iterable[KeySet], job_of: Callable[[Physical], Job]
) -> tuple[PartitionGroup, ...]:
    """What tasks need to know of the queries of some sets of keys."""
    found = []
    for keys in key_sets:
        members = tuple(Member(number, job_of(workload.queries[number])) for number in keys.members)
        groups = [group for group in workload.together if set(group.members) <= set(keys.members)]
        numbered = tuple(group.in_numbers(members[0].job.numeric) for group in groups)
        found.append(PartitionGroup(keys.attributes, members, numbered))
    return tuple(found)


def parcels(df: DataFrame, partition_groups: tuple[PartitionGroup, ...], partitions: int | None = None) -> DataFrame:
    """The results of all queries over a DataFrame, as parcels."""
    set_arrow_rows(df.sparkSession)
    jobs = [member.job for partition_group in partition_groups for member in partition_group.members]
    wanted = {name for job in jobs for name in job.plan.scan.columns}
    names = [name for name in df.columns if name in wanted]
    tests = [_any_needs(partition_group, df) for partition_group in partition_groups]
    if len(partition_groups) == 1:
        rows = df if tests[0] is None else df.filter(tests[0])
        moved = by_key(rows.select(*map(column, names)), partition_groups[0].attributes, partitions)
    else:
        moved = _by_keys_of_all(df, names, partition_groups, tests, partitions)
    return mapped(moved, Task(None, Together(partition_groups)), PARCEL)


def in_one_table(found: DataFrame, partition_groups: tuple[PartitionGroup, ...], partitions: int | None) -> DataFrame:
    """Parcels as rows with the columns of all queries, and the name of each row's query."""
    members = tuple(member for partition_group in partition_groups for member in partition_group.members)
    if any(member.job.in_parts for member in members):
        found = by_key(found, (QUERY, ROUTE), partitions)
    return mapped(found, Task(None, Opening(members)), joint_schema(_schemas(members), named=True))


def _any_needs(partition_group: PartitionGroup, df: DataFrame) -> Column | None:
    """Which rows any member needs, those without a time among them, for tasks to refuse; None: all."""
    plans = [member.job.plan for member in partition_group.members]
    test = needed_by_any(plans, df.schema)
    return None if test is None else test | without_time(plans[0].schema)


def _by_keys_of_all(
    df: DataFrame,
    names: list[str],
    partition_groups: tuple[PartitionGroup, ...],
    tests: list[Column | None],
    partitions: int | None,
) -> DataFrame:
    """Every row once for each set of keys that has a query for it; rows of one set with equal keys in one task."""
    from pyspark.sql import functions as F

    numbers = [F.lit(n) if test is None else F.when(test, F.lit(n)) for n, test in enumerate(tests)]
    groups = F.explode(F.array_compact(F.array(*numbers))).alias(GROUP)
    tagged = df.select(*map(column, names), groups)
    place = F.lit(0).cast("bigint")
    for number, partition_group in enumerate(partition_groups):
        if partition_group.attributes:
            keys = F.xxhash64(*key_columns(df, partition_group.attributes))
            place = F.when(column(GROUP) == number, keys).otherwise(place)
    keyed = tagged.select("*", place.alias(" place"))
    return by_key(keyed, (GROUP, " place"), partitions).drop(" place")


# ------------------------------------------------------------------------------------------ inside a task


@dataclass(frozen=True)
class Together:
    """What a task does with the events of its keys: one query after the other, over columns that they share."""

    partition_groups: tuple[PartitionGroup, ...]

    def __call__(self, _: object, batches: Batches) -> Batches:
        found = [batch for batch in batches if batch.num_rows]
        if not found:
            return
        table = pa.Table.from_batches(found)
        for number, partition_group in enumerate(self.partition_groups):
            events = table
            if len(self.partition_groups) > 1:
                events = table.filter(pa.compute.equal(table[GROUP], number)).drop_columns([GROUP])
            if len(events):
                yield from _results(partition_group, events)


def _results(partition_group: PartitionGroup, events: pa.Table) -> Batches:
    plans = tuple(member.job.plan for member in partition_group.members)
    shared = Shared(Workload(plans).shared_attributes)
    whole = replace(stream_of_table(plans[0], events), shared=shared, vectors=shared.vectors)
    groups = [TogetherResults(group, plans[0]) for group in partition_group.together]
    together = {number: one for one in groups for number in one.group.members}
    for member in partition_group.members:
        names = list(member.job.plan.scan.columns)
        stream = replace(whole, table=whole.table.select(names), tied=member.job.tied)
        results = together.get(member.number)
        known = None if results is None else results.of(member.number, replace(whole, tied=member.job.tied))
        for rows in _rows(member.job, stream, known):
            route = 0 if member.job.in_parts else 1 + task_number()
            payload = pack(pa.Table.from_batches([rows]), compress=False)
            arrays = [pa.array([number], pa.int32()) for number in (member.number, route)]
            yield pa.RecordBatch.from_arrays([*arrays, pa.array([payload], pa.binary())], schema=PARCEL)


def _rows(job: Job, stream: Stream, known: tuple[Block, Keys, Totals] | None) -> Batches:
    """Rows of a query, or a part where other tasks know more of its groups or windows; `known`: its totals."""
    if job.plan.ranking is not None:
        yield from ranks_of(job, stream)
        return
    if not job.physical.aggregates:
        yield from rows_of(job, stream)
        return
    if known is not None:
        partial = task.partial_of(job.physical, stream, *known)
    else:
        partial = task.partial(job.physical, stream, numeric=job.numeric, decimals=True)
    yield from as_partials(job, partial) if job.adds_up else finished(job, partial)


@dataclass(frozen=True)
class Opening:
    """What a task makes of parcels: rows with the columns of all queries."""

    members: tuple[Member, ...]

    def __call__(self, _: object, batches: Batches) -> Batches:
        joint = joint_schema(_schemas(self.members), named=True)
        found = by_query(batches)
        for member in self.members:
            if member.number in found:
                yield from aligned(opened(member, found.pop(member.number)), member.job.plan.name, joint)


def _schemas(members: tuple[Member, ...]) -> list[pa.Schema]:
    return [rows_schema(member.job) for member in members]


# --------------------------------------------------------------------------------------------- afterwards


def opened(member: Member, found: list[pa.Table]) -> pa.Table:
    """The rows of a query out of all its parcels, in any order."""
    job = member.job
    schema = rows_schema(job)
    if not found:
        return schema.empty_table()
    if job.adds_up:
        found = [pa.Table.from_batches(list(finished(job, merge_partials(job.plan, found))), schema)]
    elif job.in_parts:
        found = [pa.Table.from_batches(list(ranked_rows(job, pa.concat_tables(found))))]
    return pa.concat_tables(found).cast(schema)


def by_query(received: Iterable[pa.RecordBatch]) -> dict[int, list[pa.Table]]:
    """What is in parcels, by the number of the query."""
    found: dict[int, list[pa.Table]] = {}
    for batch in received:
        for number, payload in zip(batch.column(QUERY).to_pylist(), batch.column(PAYLOAD), strict=True):
            found.setdefault(number, []).append(unpack(payload.as_buffer()))
    return found
