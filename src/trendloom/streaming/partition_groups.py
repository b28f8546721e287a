"""Queries of a live stream whose events are kept once and that one kernel answers when windows end.

What is kept are events alone, so neither the way in which they are counted nor who else is in the group is part of the
state: queries join and leave, and the way changes, between two steps. A query that joins has no window that begins
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
from trendloom.planner.query_group import QueryGroup
from trendloom.planner.sharing.groups import kernel_for
from trendloom.runtime.blocks import Stream, build_block, stream_of_table
from trendloom.streaming.event_buffer import EventBuffer
from trendloom.streaming.state import ChunkIndex, Holds, Memory, pack_index, unpack_index
from trendloom.streaming.streaming_query import StreamingQuery

TOGETHER = " together"
"""The name of the drawer that holds the events of a group."""
FINGERPRINT = "events of queries that are answered together"
VERSION = 1


@dataclass(frozen=True)
class StreamQueryGroup:
    """Flows with the same keys, in sliding windows, and the kernel for all of them."""

    streaming_queries: tuple[StreamingQuery, ...]
    kernel: Kernel[Any, Any]
    filters: tuple[EventFilter, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns that any of them reads."""
        fields = {one.name: one for streaming_query in self.streaming_queries for one in streaming_query.schema}
        return pa.schema(list(fields.values()))

    def named(self) -> str:
        return show_names([streaming_query.name for streaming_query in self.streaming_queries], 3)


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
    def meaning(self) -> Schema:
        return self.group.streaming_queries[0].physical.plan.schema

    @property
    def schema(self) -> pa.Schema:
        return self.group.schema

    @property
    def since(self) -> int | None:
        """Since when the first of the flows sees all events."""
        begins = [
            streaming_query.since
            for streaming_query in self.group.streaming_queries
            if streaming_query.since is not None
        ]
        return min(begins) if len(begins) == len(self.group.streaming_queries) else None

    @property
    def within(self) -> int:
        return self.group.kernel.emission.window.within or 1

    def rows(self, arrived: pa.Table | None = None) -> Iterator[tuple[StreamingQuery, pa.RecordBatch]]:
        """Results that have become certain, with whose they are; then the events that have arrived are kept."""
        if self.watermark is not None:
            if self._moves(self.watermark):
                yield from self._step(self.watermark)
            self.index = replace(self.index, before=self.watermark)
        if arrived is not None and len(arrived):
            self.keep(*self.in_time(arrived))
        if self.watermark is not None:
            needed = self.group.kernel.emission.needs(self.watermark)
            self.forget(needed, needed)
        if not self.index.chunks:
            self.memory.clear()
            return
        self.memory.set_index(pack_index(self.index))
        self.memory.wake_at(self._closes())

    def _moves(self, watermark: int) -> bool:
        before = self.index.before
        if not self.index.chunks or (before is not None and watermark <= before):
            return False
        return self._closes() <= watermark

    def _closes(self) -> int:
        earliest = min(chunk.low for chunk in self.index.chunks)
        return self.group.kernel.emission.closes(earliest, earliest if self.index.before is None else self.index.before)

    def _step(self, watermark: int) -> Iterator[tuple[StreamingQuery, pa.RecordBatch]]:
        before, kernel = self.index.before, self.group.kernel
        needs = -(2**63) if before is None else self.group.kernel.emission.needs(before)
        chosen = [one for one in self.index.of(Holds.EVENTS) if one.low < watermark and one.high >= needs]
        plan = self.group.streaming_queries[0].physical.plan
        whole = stream_of_table(plan, _with_all_columns(self.events_of(chosen), self.schema))
        certain = np.flatnonzero((whole.ticks >= needs) & (whole.ticks < watermark))
        stream = Stream(whole.table.take(pa.array(certain)), whole.kinds, whole.ticks[certain])
        queries = tuple(one.physical for one in self.group.streaming_queries)
        group = QueryGroup(tuple(range(len(queries))), queries, kernel, self.group.filters)
        block, keys = build_block(group, stream)
        results, _ = kernel.step(kernel.load(None, before), block, watermark)
        for found in results:
            if isinstance(found, Failed):
                raise found.error
            streaming_query = self.group.streaming_queries[found.query]
            if len(found):
                yield from (
                    (streaming_query, batch) for batch in streaming_query.rows(stream, block, keys, iter([found]))
                )


def _with_all_columns(events: pa.Table, schema: pa.Schema) -> pa.Table:
    """The events with the columns of all flows, without values where older chunks have none."""
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


# Queries of a live stream whose events travel together: one parcel of events for all of them, in each bucket of keys.
#
# A checkpoint made before bundles existed has a state for every query and bucket; its queries travel alone, as ever. So
# do queries over a checkpoint that nobody named beforehand. If that holds states of bundles, these must not be passed
# over: so as long as queries travel alone, every batch also asks for states under the names of bundles (*probes*).
#
# Within a bundle, those flows that are marked so are answered together, and have one state (`together`).


@dataclass(frozen=True)
class StreamPartitionGroup:
    """`name` stands in parcels and keys of state. `shared`: state has a drawer for each of the flows.

    `group`: those of the flows that are answered together.
    """

    name: str
    attributes: Attributes
    streaming_queries: tuple[StreamingQuery, ...]
    shared: bool = True
    group: StreamQueryGroup | None = None

    @cached_property
    def takers(self) -> tuple[StreamingQuery | StreamQueryGroup, ...]:
        """Who keeps events: single flows, and the group."""
        apart = tuple(
            streaming_query
            for streaming_query in self.streaming_queries
            if self.group is None or streaming_query not in self.group.streaming_queries
        )
        return apart if self.group is None else (*apart, self.group)


def flows_of_taker(taker: StreamingQuery | StreamQueryGroup) -> tuple[StreamingQuery, ...]:
    return taker.streaming_queries if isinstance(taker, StreamQueryGroup) else (taker,)


def bundles_of(
    streaming_queries: tuple[StreamingQuery, ...], statistics: StatisticsOf = nothing_known
) -> tuple[StreamPartitionGroup, ...]:
    """The flows by their sets of partition attributes."""
    key_sets = find_key_sets(
        Workload(tuple(streaming_query.physical.plan for streaming_query in streaming_queries))
    ).key_sets
    found = []
    for keys in key_sets:
        some = tuple(streaming_queries[number] for number in keys.members)
        group = _group(
            [streaming_query for streaming_query in some if streaming_query.together], keys.attributes, statistics
        )
        found.append(StreamPartitionGroup(f" by {', '.join(keys.attributes)}", keys.attributes, some, group=group))
    return tuple(found)


def _group(
    streaming_queries: list[StreamingQuery], attributes: Attributes, statistics: StatisticsOf
) -> StreamQueryGroup | None:
    if not streaming_queries:
        return None
    kernel = kernel_for(
        [streaming_query.physical for streaming_query in streaming_queries],
        attributes,
        statistics,
        streaming_queries[0].numeric,
    )
    return StreamQueryGroup(tuple(streaming_queries), kernel, kernel.asked)


def names_together(streaming_queries: tuple[StreamingQuery, ...]) -> tuple[str, ...]:
    """Under which names the states of flows would lie if they travelled together."""
    return tuple(partition_group.name for partition_group in bundles_of(streaming_queries))


def alone(streaming_queries: tuple[StreamingQuery, ...]) -> tuple[StreamPartitionGroup, ...]:
    """Every flow by itself, under its own name."""
    return tuple(
        StreamPartitionGroup(streaming_query.name, streaming_query.physical.plan.keys, (streaming_query,), shared=False)
        for streaming_query in streaming_queries
    )
