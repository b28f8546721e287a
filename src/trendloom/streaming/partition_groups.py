"""Queries of a live stream by their partition attributes: their events travel, and may be kept, together.

Queries of a partition group travel as one parcel of events in each bucket of keys. A checkpoint made before there were
such groups has a state for every query and bucket; its queries travel apart, and so do queries over a checkpoint that
was not named beforehand. If that holds states of groups, these must not be overlooked: so as long as queries travel
apart, every batch also reads states under the names of groups (*probes*).

Queries of a partition group that are marked `grouped` have their events kept once, and one kernel answers them when
windows end. Their state are events alone, so neither the way in which they are counted nor the other queries are part
of it: queries join and leave, and the way changes, between two steps. A query that joins has no window that begins
before it sees all events (`StreamingQuery.since`), so what older chunks lack does not matter to it.

Cost: when windows end, one sweep over the events since the earliest of them began; events are kept as long as a window
needs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.errors import StateError
from trendloom.kernels.contract import Failed, Kernel
from trendloom.logical.plan import Attributes, Workload
from trendloom.logical.statistics import StatisticsOf, nothing_known
from trendloom.model.amounts import show_names
from trendloom.model.schema import Schema
from trendloom.optimizer.share_scan import find_key_sets
from trendloom.planner.plan import EventFilter
from trendloom.planner.sharing.groups import kernel_for
from trendloom.planner.workload import QueryGroup
from trendloom.runtime.blocks import Stream, build_block, stream_of_table
from trendloom.runtime.match_rows import Arranged
from trendloom.streaming.state import ChunkIndex, EventBuffer, Memory, unpack_index
from trendloom.streaming.streaming_query import StreamingQuery

GROUP_NAMESPACE = " together"
"""The name of the namespace that holds the events of a group."""
FINGERPRINT = "events of queries that are answered together"
VERSION = 1


@dataclass(frozen=True)
class StreamQueryGroup:
    """Queries with the same keys, in sliding windows, and the kernel for all of them."""

    streaming_queries: tuple[StreamingQuery, ...]
    kernel: Kernel[Any, Any]
    filters: tuple[EventFilter, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns that any of them reads."""
        fields = {field.name: field for one in self.streaming_queries for field in one.schema}
        return pa.schema(list(fields.values()))

    def named(self) -> str:
        return show_names([one.name for one in self.streaming_queries], 3)


@dataclass
class GroupStep(EventBuffer):
    """A step of a group under way; see `QueryStep`."""

    group: StreamQueryGroup
    memory: Memory
    watermark: int | None
    buckets: int = 1
    kept: int = 0
    untimed: int = 0
    late: pa.Table | None = None
    index: ChunkIndex = field(init=False)

    def __post_init__(self) -> None:
        stored = self.memory.index()
        self.index = ChunkIndex(FINGERPRINT, VERSION, self.buckets)
        if stored is not None:
            self.index = _checked(unpack_index(stored), self.index)

    @property
    def kernel(self) -> Kernel[Any, Any]:
        return self.group.kernel

    @property
    def meaning(self) -> Schema:
        return self.group.streaming_queries[0].physical.plan.schema

    @property
    def schema(self) -> pa.Schema:
        return self.group.schema

    @property
    def since(self) -> int | None:
        """The tick from which on the first of the queries sees all events."""
        begins = [one.since for one in self.group.streaming_queries]
        known = [since for since in begins if since is not None]
        return min(known) if len(known) == len(begins) else None

    def rows(self, arrived: pa.Table | None = None) -> Iterator[tuple[StreamingQuery, pa.RecordBatch]]:
        """Results that have become certain, with their queries; then the events that have arrived are kept."""
        if self.watermark is not None:
            if self._moves(self.watermark):
                yield from self._step(self.watermark)
            self.index = replace(self.index, before=self.watermark)
        if arrived is not None and len(arrived):
            self.keep(*self.in_time(arrived))
        if self.watermark is not None:
            needed = self.emission.needs(self.watermark)
            self.forget(needed, needed)
        self.save()

    def _moves(self, watermark: int) -> bool:
        before = self.index.before
        if not self.index.chunks or (before is not None and watermark <= before):
            return False
        return self.closes() <= watermark

    def _step(self, watermark: int) -> Iterator[tuple[StreamingQuery, pa.RecordBatch]]:
        chosen = self.certain_chunks(watermark)
        plan = self.group.streaming_queries[0].physical.plan
        whole = stream_of_table(plan, _with_all_columns(self.events_of(chosen), self.schema))
        certain = np.flatnonzero((whole.ticks >= self.needed_from) & (whole.ticks < watermark))
        stream = Stream(whole.table.take(pa.array(certain)), whole.kinds, whole.ticks[certain])
        queries = tuple(one.physical for one in self.group.streaming_queries)
        group = QueryGroup(tuple(range(len(queries))), queries, self.kernel, self.group.filters)
        block, keys = build_block(group, stream)
        results, _ = self.kernel.step(self.kernel.load(None, self.index.before), block, watermark)
        for found in results:
            if isinstance(found, Failed):
                raise found.error
            streaming_query = self.group.streaming_queries[found.query]
            if len(found):
                shown = Arranged(streaming_query.physical, stream, block, keys)
                batches = streaming_query.rows(shown, iter([found]))
                yield from ((streaming_query, batch) for batch in batches)


def _with_all_columns(events: pa.Table, schema: pa.Schema) -> pa.Table:
    """The events with the columns of all queries, without values where older chunks have none."""
    columns = [
        events[one.name].cast(one.type) if one.name in events.column_names else pa.nulls(len(events), one.type)
        for one in schema
    ]
    return pa.table(columns, schema)


def _checked(found: ChunkIndex, wanted: ChunkIndex) -> ChunkIndex:
    if (found.fingerprint, found.kernel) != (wanted.fingerprint, wanted.kernel):
        raise StateError(
            "what the checkpoint holds for queries that are answered together was written by another version",
            hint="go on with the version of Trendloom that wrote it, or start with a new checkpoint",
        )
    if found.buckets != wanted.buckets:
        raise StateError(
            f"the state of queries was made with {found.buckets} buckets, not {wanted.buckets}",
            hint=f"use {found.buckets} buckets, or a new checkpoint",
        )
    return found


# ------------------------------------------------------------------------------- what travels together


@dataclass(frozen=True)
class StreamPartitionGroup:
    """`name` stands in parcels and keys of state. `shared`: state has a namespace for each of the queries.

    `group`: those of the queries that are answered together.
    """

    name: str
    attributes: Attributes
    streaming_queries: tuple[StreamingQuery, ...]
    shared: bool = True
    group: StreamQueryGroup | None = None

    @cached_property
    def members(self) -> tuple[StreamingQuery | StreamQueryGroup, ...]:
        """What has a state of its own: single queries, and the group."""
        if self.group is None:
            return self.streaming_queries
        return (*(one for one in self.streaming_queries if one not in self.group.streaming_queries), self.group)


def queries_of_member(member: StreamingQuery | StreamQueryGroup) -> tuple[StreamingQuery, ...]:
    return member.streaming_queries if isinstance(member, StreamQueryGroup) else (member,)


def partition_groups_of(
    streaming_queries: tuple[StreamingQuery, ...], statistics: StatisticsOf = nothing_known
) -> tuple[StreamPartitionGroup, ...]:
    """The queries by their sets of partition attributes."""
    found = []
    for keys in find_key_sets(Workload(tuple(one.physical.plan for one in streaming_queries))).key_sets:
        some = tuple(streaming_queries[number] for number in keys.members)
        group = _group([one for one in some if one.grouped], keys.attributes, statistics)
        found.append(StreamPartitionGroup(f" by {', '.join(keys.attributes)}", keys.attributes, some, group=group))
    return tuple(found)


def _group(
    streaming_queries: list[StreamingQuery], attributes: Attributes, statistics: StatisticsOf
) -> StreamQueryGroup | None:
    if not streaming_queries:
        return None
    physical = [one.physical for one in streaming_queries]
    kernel = kernel_for(physical, attributes, statistics, streaming_queries[0].numeric)
    return StreamQueryGroup(tuple(streaming_queries), kernel, kernel.asked)


def group_names(streaming_queries: tuple[StreamingQuery, ...]) -> tuple[str, ...]:
    """The names under which the states of queries would be stored if they travelled together."""
    return tuple(partition_group.name for partition_group in partition_groups_of(streaming_queries))


def alone(streaming_queries: tuple[StreamingQuery, ...]) -> tuple[StreamPartitionGroup, ...]:
    """Every query by itself, under its own name."""
    return tuple(
        StreamPartitionGroup(one.name, one.physical.plan.keys, (one,), shared=False) for one in streaming_queries
    )
