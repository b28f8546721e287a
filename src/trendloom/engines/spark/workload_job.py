"""Several queries in one job: the input is read once, and events move once for each set of keys that queries have.

Rows leave the tasks as parcels: the number of a query, and some of its rows as Arrow bytes, so that queries need no
columns in common. Where a task sees only a part of a group or window, the parcel holds a partial table, or rows that
may be among the best, and these are put together when the parcels are opened. With several sets of keys an event moves
once for each set that has a query for it.

Cost: reading, one shuffle of the columns that any query needs, per task one sort for each set of keys, the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from trendloom.engines.spark.batch import aggregates_of, joined, rows_of, rows_schema
from trendloom.engines.spark.columns import column, needed_by_any, without_time
from trendloom.engines.spark.session import set_arrow_rows
from trendloom.engines.spark.tasks import (
    PAYLOAD,
    Batches,
    Job,
    aligned,
    by_key,
    gathered,
    joint_schema,
    key_columns,
    mapped,
    task_number,
    unpacked,
)
from trendloom.logical.plan import Attributes, KeySet, Plan, Workload
from trendloom.planner.plan import Physical
from trendloom.planner.workload import PhysicalWorkload, QueryGroup
from trendloom.runtime.blocks import Shared, stream_of_table
from trendloom.runtime.task import GroupResults
from trendloom.streaming.state import pack

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

GROUP, NUMBER, ROUTE = " group", "number", "route"
PARCEL = pa.schema([(NUMBER, pa.int32()), (ROUTE, pa.int32()), (PAYLOAD, pa.binary())])
"""Parcels of one query and route belong together: they hold parts of the same groups, if its tasks give parts."""


@dataclass(frozen=True)
class Member:
    """A query of a job, and its number in the workload."""

    number: int
    job: Job


@dataclass(frozen=True)
class PartitionGroup:
    """Queries whose events meet in one task by the same attributes; `groups`: which kernel answers which."""

    attributes: Attributes
    members: tuple[Member, ...]
    groups: tuple[QueryGroup, ...]

    @property
    def plans(self) -> tuple[Plan, ...]:
        return tuple(member.job.plan for member in self.members)


def partition_groups_of(
    workload: PhysicalWorkload, key_sets: Iterable[KeySet], job_of: Callable[[Physical], Job]
) -> tuple[PartitionGroup, ...]:
    """The arguments of tasks for the queries of some sets of keys."""
    found = []
    for keys in key_sets:
        members = tuple(Member(number, job_of(workload.queries[number])) for number in keys.members)
        numeric = members[0].job.numeric
        groups = [group.in_numbers(numeric) for group in workload.groups if set(group.members) <= set(keys.members)]
        found.append(PartitionGroup(keys.attributes, members, tuple(groups)))
    return tuple(found)


def members_of(partition_groups: Iterable[PartitionGroup]) -> tuple[Member, ...]:
    return tuple(member for group in partition_groups for member in group.members)


def parcels(df: DataFrame, partition_groups: tuple[PartitionGroup, ...], partitions: int | None = None) -> DataFrame:
    """The results of all queries over a DataFrame, as parcels."""
    set_arrow_rows(df.sparkSession)
    wanted = {name for member in members_of(partition_groups) for name in member.job.plan.scan.columns}
    names = [name for name in df.columns if name in wanted]
    tests = [_any_needs(group.plans, df) for group in partition_groups]
    if len(partition_groups) == 1:
        rows = df if tests[0] is None else df.filter(tests[0])
        moved = by_key(rows.select(*map(column, names)), partition_groups[0].attributes, partitions)
    else:
        moved = _by_keys_of_all(df.select(*map(column, names), _groups(tests)), partition_groups, partitions)
    return mapped(moved, partial(_results, partition_groups), PARCEL)


def meeting(found: DataFrame, members: tuple[Member, ...], partitions: int | None = None) -> DataFrame:
    """Parcels with parts of the same results in one task."""
    return by_key(found, (NUMBER, ROUTE), partitions) if any(member.job.in_parts for member in members) else found


def in_one_table(found: DataFrame, members: tuple[Member, ...], partitions: int | None) -> DataFrame:
    """Parcels as rows with the columns of all queries, and the name of each row's query."""
    joint = joint_schema([rows_schema(member.job) for member in members], named=True)
    return mapped(meeting(found, members, partitions), partial(_opened, members, joint), joint)


def _any_needs(plans: tuple[Plan, ...], df: DataFrame) -> Column | None:
    """Which rows any of the plans needs, those without a time among them, for tasks to refuse; None: all."""
    test = needed_by_any(plans, df.schema)
    return None if test is None else test | without_time(plans[0].schema)


def _groups(tests: list[Column | None]) -> Column:
    """The numbers of the groups that need a row, a row for each."""
    numbers = [F.lit(n) if test is None else F.when(test, F.lit(n)) for n, test in enumerate(tests)]
    return F.explode(F.array_compact(F.array(*numbers))).alias(GROUP)


def _by_keys_of_all(
    tagged: DataFrame, partition_groups: tuple[PartitionGroup, ...], partitions: int | None
) -> DataFrame:
    """The rows of one group with equal keys in one task."""
    place = F.lit(0).cast("bigint")
    for number, group in enumerate(partition_groups):
        if group.attributes:
            keys = F.xxhash64(*key_columns(tagged, group.attributes))
            place = F.when(column(GROUP) == number, keys).otherwise(place)
    return by_key(tagged.select("*", place.alias(" place")), (GROUP, " place"), partitions).drop(" place")


# ------------------------------------------------------------------------------------------ inside a task


def _results(partition_groups: tuple[PartitionGroup, ...], batches: Batches) -> Batches:
    """The results of one query after the other, over columns that they share."""
    table = gathered(batches)
    if table is None:
        return
    for number, group in enumerate(partition_groups):
        events = table
        if len(partition_groups) > 1:
            events = table.filter(pa.compute.equal(table[GROUP], number)).drop_columns([GROUP])
        if len(events):
            yield from _results_of_group(group, events)


def _results_of_group(partition_group: PartitionGroup, events: pa.Table) -> Batches:
    plans = partition_group.plans
    shared = Shared(Workload(plans).shared_attributes)
    whole = replace(stream_of_table(plans[0], events), shared=shared, vectors=shared.vectors)
    jobs = {member.number: member.job for member in partition_group.members}
    for group in partition_group.groups:
        tied = jobs[group.members[0]].tied
        stream = replace(whole, table=whole.table.select(list(group.scanned)), tied=tied)
        results = GroupResults(group, stream, decimals=True)
        for query, number in enumerate(group.members):
            job = jobs[number]
            aggregates = job.physical.aggregates
            found = aggregates_of(job, results.partial(query)) if aggregates else rows_of(job, stream)
            for rows in found:
                route = 0 if job.in_parts else 1 + task_number()
                payload = pack(pa.Table.from_batches([rows]), compress=False)
                arrays = [pa.array([one], pa.int32()) for one in (number, route)]
                yield pa.RecordBatch.from_arrays([*arrays, pa.array([payload], pa.binary())], schema=PARCEL)


def _opened(members: tuple[Member, ...], joint: pa.Schema, batches: Batches) -> Batches:
    """Rows of parcels with the columns of all queries."""
    for member, rows in opened(members, batches):
        yield from aligned(rows, member.job.plan.name, joint)


# --------------------------------------------------------------------------------------------- afterwards


def opened(members: Iterable[Member], received: Iterable[pa.RecordBatch]) -> Iterator[tuple[Member, pa.Table]]:
    """The rows of each query out of all its parcels, in any order; queries without parcels are left out."""
    found = by_query(received)
    for member in members:
        if member.number in found:
            yield member, rows_of_parts(member.job, found.pop(member.number))


def rows_of_parts(job: Job, found: list[pa.Table]) -> pa.Table:
    """The rows of a query out of what all tasks found for it."""
    schema = rows_schema(job)
    if found and job.in_parts:
        found = [pa.Table.from_batches([rows]) for rows in joined(job, found)]
    return pa.concat_tables(found).cast(schema) if found else schema.empty_table()


def by_query(received: Iterable[pa.RecordBatch]) -> dict[int, list[pa.Table]]:
    """The tables in parcels, by the number of the query."""
    found: dict[int, list[pa.Table]] = {}
    for number, table in unpacked(received, NUMBER):
        found.setdefault(number, []).append(table)
    return found
