"""A live stream played in this process: micro-batches, watermark, buckets and restarts as on a cluster, without Java.

For tests of queries and of kernels: the rows of a stream can be compared, batch by batch, with the same query over
all events. The watermark follows Spark's rule: after a batch it is the greatest time seen, less the delay; it never
goes back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from trendloom.io.events import without_nan
from trendloom.runtime.blocks import Stream, earliest_times, has_time, key_codes
from trendloom.streaming.state import Kept
from trendloom.streaming.step import QueryStep
from trendloom.streaming.streaming_query import StreamingQuery


@dataclass
class Replay:
    """A stream under way: `delay` in ticks, events of a key in one of `buckets`. All late events are in `late`."""

    streaming_query: StreamingQuery
    delay: int
    buckets: int = 1
    watermark: int | None = None
    greatest: int | None = None
    late: list[pa.Table] = field(default_factory=list)
    memories: dict[int, Kept] = field(default_factory=dict)
    numbers: dict[tuple[object, ...], int] = field(default_factory=dict)  # of keys, as they appear

    def batch(self, events: pa.Table) -> pa.Table:
        """Rows that are certain now; then the watermark moves."""
        found: list[pa.RecordBatch] = []
        for bucket, arrived in self._by_bucket(without_nan(events)):
            memory = self.memories.setdefault(bucket, Kept())
            awake = memory.wakes is not None and self.watermark is not None and memory.wakes <= self.watermark
            if not len(arrived) and not awake:
                continue
            step = QueryStep(self.streaming_query, memory, self.watermark, self.buckets)
            found += step.rows(arrived if len(arrived) else None)
            if step.late is not None:
                self.late.append(step.late)
        self._move(events)
        return self._rows(found)

    def joined_by(self, streaming_query: StreamingQuery) -> Replay:
        """The stream as a query sees it that is added now: it begins after all events there have been."""
        since = None if self.watermark is None else self.watermark + self.delay + 1
        return Replay(replace(streaming_query, since=since), self.delay, self.buckets, self.watermark, self.greatest)

    def flush(self) -> pa.Table:
        """The rest, as if an event came after all windows have ended."""
        self.watermark = 2**61
        return self.batch(self.streaming_query.schema.empty_table())

    @property
    def kept(self) -> int:
        """Bytes of state."""
        return sum(len(chunk) for memory in self.memories.values() for chunk in memory.chunks.values())

    def _by_bucket(self, events: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        partition = self.streaming_query.physical.plan.keys
        kinds = {column.name: column.kind for column in self.streaming_query.physical.plan.schema.columns}
        codes = key_codes(partition, Stream(events, kinds, np.zeros(len(events), np.int64))).codes
        names = events.select(list(partition)).to_pylist() if partition else [{}] * len(events)
        bucket = np.zeros(len(events), np.int64)
        for code in np.unique(codes):
            row = int(np.flatnonzero(codes == code)[0])
            number = self.numbers.setdefault(tuple(names[row].values()), len(self.numbers))
            bucket[codes == code] = number % self.buckets
        for number in range(self.buckets):
            yield number, events.filter(pa.array(bucket == number))

    def _move(self, events: pa.Table) -> None:
        schema = self.streaming_query.physical.plan.schema
        times = earliest_times(events.filter(pa.array(has_time(events, schema))), schema)
        if len(times):
            self.greatest = max(int(times.max()), -(2**62) if self.greatest is None else self.greatest)
            moved = self.greatest - self.delay
            self.watermark = moved if self.watermark is None else max(self.watermark, moved)

    def _rows(self, found: list[pa.RecordBatch]) -> pa.Table:
        if self.streaming_query.in_parts and found:
            found = list(self.streaming_query.joined([pa.Table.from_batches([part]) for part in found]))
        return pa.Table.from_batches(found, self.streaming_query.result)
