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
from trendloom.logical.plan import Attributes, KeySet, Workload
from trendloom.planner.plan import Physical
from trendloom.planner.query_group import QueryGroup
from trendloom.planner.workload import PhysicalWorkload
from trendloom.runtime.blocks import Shared, stream_of_table
from trendloom.runtime.partial_aggregates import merge_partials
from trendloom.runtime.task import GroupResults
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
    """Queries whose events meet in one task by the same attributes; `groups`: which kernel answers which."""

    attributes: Attributes
    members: tuple[Member, ...]
    groups: tuple[QueryGroup, ...]


def meetings_of(
    workload: PhysicalWorkload, key_sets: Iterable[KeySet], job_of: Callable[[Physical], Job]
) -> tuple[PartitionGroup, ...]:
    """What tasks need to know of the queries of some sets of keys."""
    found = []
    for keys in key_sets:
        members = tuple(Member(number, job_of(workload.queries[number])) for number in keys.members)
        numeric = members[0].job.numeric
        groups = [group.in_numbers(numeric) for group in workload.groups if set(group.members) <= set(keys.members)]
        found.append(PartitionGroup(keys.attributes, members, tuple(groups)))
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
    jobs = {member.number: member.job for member in partition_group.members}
    for group in partition_group.groups:
        tied = jobs[group.members[0]].tied
        stream = replace(whole, table=whole.table.select(list(group.scanned)), tied=tied)
        results = GroupResults(group, stream, decimals=True)
        for query, number in enumerate(group.members):
            for rows in _rows(jobs[number], results, query):
                route = 0 if jobs[number].in_parts else 1 + task_number()
                payload = pack(pa.Table.from_batches([rows]), compress=False)
                arrays = [pa.array([one], pa.int32()) for one in (number, route)]
                yield pa.RecordBatch.from_arrays([*arrays, pa.array([payload], pa.binary())], schema=PARCEL)


def _rows(job: Job, results: GroupResults, query: int) -> Batches:
    """Rows of a query, or a part where other tasks know more of its groups or windows."""
    if job.plan.ranking is not None:
        yield from ranks_of(job, results.stream)
    elif not job.physical.aggregates:
        yield from rows_of(job, results.stream)
    else:
        partial_rows = results.partial(query)
        yield from as_partials(job, partial_rows) if job.adds_up else finished(job, partial_rows)


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
