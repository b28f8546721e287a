"""State as it is stored: chunks of Arrow bytes that are written once, and an index of what is in them.

A chunk holds events or summaries of a stretch of time. A batch writes chunks for what it brings, and expiry drops whole
chunks: nothing is rewritten, except that many small chunks are now and then joined (`crowded`). The index is small and
read first, so that only chunks that matter are fetched.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from trendloom.errors import StateError
from trendloom.expr.arrays import Array
from trendloom.kernels.contract import Kernel
from trendloom.kernels.contract.emission import EmissionPolicy
from trendloom.model.schema import Schema
from trendloom.runtime.blocks import at_grain, earliest_times, has_time

FORMAT = 1
"""The version of indexes and chunks; see `UPGRADES`."""

MOST_CHUNKS = 16
"""Chunks of one kind that lie side by side before they are joined."""
CUTS = 4
"""Into how many chunks the events of a batch are cut that covers more time than WITHIN, so that old ones can go."""
CHUNKS = 1 << 32
"""Numbers of chunks in a namespace."""


class Holds(Enum):
    """What a chunk is made of."""

    EVENTS = "events"
    SUMMARIES = "summaries"


@dataclass(frozen=True)
class Chunk:
    """`low` and `high`: the least and the greatest tick in it."""

    number: int
    holds: Holds
    low: int
    high: int
    rows: int


@dataclass(frozen=True)
class ChunkIndex:
    """What is kept of one query in one of its buckets. `before`: the watermark of the last step."""

    fingerprint: str
    kernel: int
    buckets: int = 1
    generation: int = 0
    before: int | None = None
    following: int = 0  # the number of the next chunk
    chunks: tuple[Chunk, ...] = field(default=())

    def of(self, holds: Holds) -> tuple[Chunk, ...]:
        return tuple(chunk for chunk in self.chunks if chunk.holds is holds)

    def with_chunk(self, holds: Holds, low: int, high: int, rows: int) -> tuple[ChunkIndex, Chunk]:
        chunk = Chunk(self.following, holds, low, high, rows)
        return replace(self, following=self.following + 1, chunks=(*self.chunks, chunk)), chunk

    def without(self, gone: set[int]) -> ChunkIndex:
        return replace(self, chunks=tuple(chunk for chunk in self.chunks if chunk.number not in gone))


def crowded(chunks: tuple[Chunk, ...], length: int) -> Iterator[list[Chunk]]:
    """Groups of chunks to join: those that end in one stretch of time, where there are too many in all."""
    if len(chunks) <= MOST_CHUNKS:
        return
    cells: dict[int, list[Chunk]] = {}
    for chunk in chunks:
        cells.setdefault(chunk.high // max(length, 1), []).append(chunk)
    yield from (group for group in cells.values() if len(group) > 1)


# --------------------------------------------------------------------------------------------------- bytes


def pack(table: pa.Table, *, compress: bool = True) -> bytes:
    """A table as Arrow bytes."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4" if compress else None)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def unpack(content: bytes | pa.Buffer) -> pa.Table:
    """The table that `pack` wrote; columns are views of the bytes where they are not compressed."""
    return pa.ipc.open_stream(content).read_all()


def pack_index(index: ChunkIndex) -> bytes:
    chunks = [[c.number, c.holds.value, c.low, c.high, c.rows] for c in index.chunks]
    return json.dumps({"format": FORMAT} | asdict(index) | {"chunks": chunks}).encode()


def unpack_index(content: bytes) -> ChunkIndex:
    """The index that `pack_index` wrote, of this version or an earlier one."""
    found = json.loads(content)
    version = found.pop("format")
    while version in UPGRADES:
        version, found = version + 1, UPGRADES[version](found)
    if version != FORMAT:
        raise StateError(
            f"the state has format {version}, and this version of Trendloom reads formats up to {FORMAT}",
            hint="go on with the version that wrote it, or start with a new checkpoint",
        )
    chunks = tuple(Chunk(n, Holds(kind), low, high, rows) for n, kind, low, high, rows in found.pop("chunks"))
    return ChunkIndex(**found, chunks=chunks)


UPGRADES: dict[int, Callable[[dict[str, object]], dict[str, object]]] = {}
"""For every older format the function that turns its index into that of the next."""


# ------------------------------------------------------------------------------- where state is kept


class Memory(Protocol):
    """The state of one query in one bucket."""

    def index(self) -> bytes | None: ...

    def set_index(self, content: bytes) -> None: ...

    def chunk(self, number: int) -> bytes: ...

    def set_chunk(self, number: int, content: bytes) -> None: ...

    def drop_chunk(self, number: int) -> None: ...

    def clear(self) -> None:
        """Forget everything, the wake-up call too."""
        ...

    def wake_at(self, watermark: int) -> None:
        """Cause a step when the watermark has come so far, even if nothing arrives."""
        ...


class Kept:
    """State in this process."""

    def __init__(self) -> None:
        self.head: bytes | None = None
        self.chunks: dict[int, bytes] = {}
        self.wakes: int | None = None

    def index(self) -> bytes | None:
        return self.head

    def set_index(self, content: bytes) -> None:
        self.head = content

    def chunk(self, number: int) -> bytes:
        return self.chunks[number]

    def set_chunk(self, number: int, content: bytes) -> None:
        self.chunks[number] = content

    def drop_chunk(self, number: int) -> None:
        del self.chunks[number]

    def clear(self) -> None:
        self.head, self.wakes = None, None
        self.chunks.clear()

    def wake_at(self, watermark: int) -> None:
        self.wakes = watermark


# --------------------------------------------------------- the states of several queries in that of one bucket
#
# Each query has a namespace. The index of the bucket is a table of contents: for every query the number of its
# namespace and its own index. A chunk has the number of its namespace and its number there. The bucket is called at the
# first watermark at which one of the queries is to be. Cost: as the states one by one; opening and closing reads and
# writes one table of contents.


class StateNamespace:
    """The state of one query; it is stored once `NamespacedState` is closed."""

    def __init__(self, whole: Memory, number: int, content: bytes | None = None) -> None:
        self.whole, self.number, self.content = whole, number, content
        self.wakes: int | None = None
        self.chunks = set() if content is None else {chunk.number for chunk in unpack_index(content).chunks}

    def index(self) -> bytes | None:
        return self.content

    def set_index(self, content: bytes) -> None:
        self.content = content

    def chunk(self, number: int) -> bytes:
        return self.whole.chunk(self._placed(number))

    def set_chunk(self, number: int, content: bytes) -> None:
        self.chunks.add(number)
        self.whole.set_chunk(self._placed(number), content)

    def drop_chunk(self, number: int) -> None:
        self.chunks.remove(number)
        self.whole.drop_chunk(self._placed(number))

    def clear(self) -> None:
        for number in sorted(self.chunks):
            self.drop_chunk(number)
        self.content, self.wakes = None, None

    def wake_at(self, watermark: int) -> None:
        self.wakes = watermark

    def _placed(self, number: int) -> int:
        return self.number * CHUNKS + number


class NamespacedState:
    """All namespaces of a bucket, open between `__init__` and `close`."""

    def __init__(self, whole: Memory) -> None:
        content = whole.index()
        stored = {} if content is None else json.loads(content)
        self.whole = whole
        self.namespaces = {
            name: StateNamespace(whole, number, index.encode()) for name, (number, index) in stored.items()
        }

    def of(self, name: str) -> StateNamespace:
        """The namespace of a query, a new one if it has none."""
        if name not in self.namespaces:
            taken = {namespace.number for namespace in self.namespaces.values()}
            free = next(number for number in range(len(taken) + 1) if number not in taken)
            self.namespaces[name] = StateNamespace(self.whole, free)
        return self.namespaces[name]

    def keep_only(self, names: Collection[str]) -> None:
        """Clear the namespaces of queries that have been removed."""
        for name, namespace in self.namespaces.items():
            if name not in names:
                namespace.clear()

    def close(self) -> None:
        """Write the table of contents, and wake up at the first watermark of any query."""
        contents = {
            name: (namespace.number, namespace.content.decode())
            for name, namespace in self.namespaces.items()
            if namespace.content is not None
        }
        if not contents:
            self.whole.clear()
            return
        self.whole.set_index(json.dumps(contents).encode())
        wakes = [namespace.wakes for namespace in self.namespaces.values() if namespace.wakes is not None]
        if wakes:
            self.whole.wake_at(min(wakes))


# --------------------------------------------------------------------------------- events between two steps


class EventBuffer(ABC):
    """The part of a step that reads and writes chunks: events that arrived in time are kept, late ones set apart.

    The counts are right when all that has arrived is kept. Cost: one pass over what has arrived; joining small chunks
    now and then.
    """

    memory: Memory
    watermark: int | None
    index: ChunkIndex
    kept: int
    untimed: int
    late: pa.Table | None  # events that came too late or have no time

    @property
    @abstractmethod
    def kernel(self) -> Kernel[Any, Any]:
        """The kernel that the events are kept for."""

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
        """The tick from which on events count; None: all do."""

    @property
    def emission(self) -> EmissionPolicy:
        return self.kernel.emission

    @property
    def within(self) -> int:
        """The length of the windows."""
        return self.emission.window.within or 1

    @property
    def needed_from(self) -> int:
        """The tick from which on events are needed, after the last step."""
        return -(2**63) if self.index.before is None else self.emission.needs(self.index.before)

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
        """Write events as chunks, those of a long time as several chunks."""
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

    def certain_chunks(self, watermark: int) -> list[Chunk]:
        """The chunks with events before a watermark that are still needed."""
        needed = self.needed_from
        return [chunk for chunk in self.index.of(Holds.EVENTS) if chunk.low < watermark and chunk.high >= needed]

    def closes(self) -> int:
        """The next watermark at which a window or a span may end."""
        earliest = min(chunk.low for chunk in self.index.chunks)
        return self.emission.closes(earliest, earliest if self.index.before is None else self.index.before)

    def due(self) -> int:
        """The watermark at which there is something to do, even if nothing arrives."""
        return self.closes()

    def save(self) -> None:
        """Write the index and the next wake-up call, or forget the state where nothing is kept."""
        if not self.index.chunks:
            self.memory.clear()
            return
        self.memory.set_index(pack_index(self.index))
        self.memory.wake_at(at_grain(self.due(), self.meaning))
