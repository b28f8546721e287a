"""Events that a step keeps: what has arrived in time, as chunks of a state; what came too late, apart.

Cost: one pass over what has arrived; joining small chunks now and then.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from trendloom.expr.arrays import Array
from trendloom.model.schema import Schema
from trendloom.runtime.blocks import earliest_times, has_time
from trendloom.streaming.state import Chunk, ChunkIndex, Holds, Memory, crowded, pack, unpack

CUTS = 4
"""Into how many chunks the events of a batch are cut that covers more time than WITHIN, so that old ones can go."""


class EventBuffer(ABC):
    """The part of a step that reads and writes chunks. The counts are right when all that has arrived is kept."""

    memory: Memory
    watermark: int | None
    index: ChunkIndex
    kept: int
    untimed: int
    late: pa.Table | None  # events that came too late or have no time

    @property
    @abstractmethod
    def meaning(self) -> Schema:
        """What the columns of the stream mean."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns that are kept."""

    @property
    @abstractmethod
    def since(self) -> int | None:
        """Events before this tick are none of ours; None: all are."""

    @property
    @abstractmethod
    def within(self) -> int:
        """The length of the windows."""

    def in_time(self, arrived: pa.Table) -> tuple[pa.Table, Array]:
        """The events that have arrived, apart from those that came too late, or happened before the query's time."""
        timed = has_time(arrived, self.meaning)
        self.untimed = int(len(timed) - timed.sum())
        with_time = arrived if timed.all() else arrived.filter(pa.array(timed))
        times = earliest_times(with_time, self.meaning)
        if self.since is not None and len(times) and int(times.min()) < self.since:
            seen = times >= self.since
            with_time, times = with_time.filter(pa.array(seen)), times[seen]
        late = np.zeros(len(times), np.bool_) if self.watermark is None else times < self.watermark
        if self.untimed or late.any():
            parts = [arrived.filter(pa.array(~timed)), with_time.filter(pa.array(late))]
            self.late = pa.concat_tables(parts)
            with_time, times = with_time.filter(pa.array(~late)), times[~late]
        events = with_time.select(self.schema.names).cast(self.schema)
        self.kept = len(events)
        return events, times

    def keep(self, events: pa.Table, times: Array) -> None:
        """Write events as chunks, those of a long time as several."""
        for part, its_times in self._parts(events, times):
            self.write(Holds.EVENTS, part, its_times)

    def _parts(self, events: pa.Table, times: Array) -> Iterator[tuple[pa.Table, Array]]:
        if not len(times) or int(times.max()) - int(times.min()) <= self.within:
            yield events, times
            return
        low, span = int(times.min()), int(times.max()) - int(times.min()) + 1
        part = (times - low) // -(-span // CUTS)
        for number in np.unique(part):
            rows = np.flatnonzero(part == number)
            yield events.take(pa.array(rows)), times[rows]

    def forget(self, events: int, summaries: int) -> None:
        """Drop chunks whose events or summaries are all before a tick, join small ones."""
        bounds = {Holds.EVENTS: events, Holds.SUMMARIES: summaries}
        self.drop([chunk for chunk in self.index.chunks if chunk.high < bounds[chunk.holds]])
        for group in list(crowded(self.index.of(Holds.EVENTS), self.within // CUTS)):
            table = self.events_of(group)
            times = earliest_times(table, self.meaning)
            rows = np.flatnonzero(times >= events)
            self.drop(group)
            self.write(Holds.EVENTS, table.take(pa.array(rows)), times[rows])

    def events_of(self, chunks: list[Chunk]) -> pa.Table:
        """The events of chunks; a column that some lack has no values there."""
        tables = [self.read(chunk) for chunk in chunks]
        return pa.concat_tables(tables, promote_options="default") if tables else self.schema.empty_table()

    def read(self, chunk: Chunk) -> pa.Table:
        return unpack(self.memory.chunk(chunk.number))

    def write(self, holds: Holds, table: pa.Table, times: Array) -> None:
        if len(table):
            self.index, chunk = self.index.with_chunk(holds, int(times.min()), int(times.max()), len(table))
            self.memory.set_chunk(chunk.number, pack(table))

    def drop(self, gone: list[Chunk]) -> None:
        for chunk in gone:
            self.memory.drop_chunk(chunk.number)
        self.index = self.index.without({chunk.number for chunk in gone})
