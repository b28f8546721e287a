"""State as it is stored: chunks of Arrow bytes that are written once, and an index that says what is in them.

A chunk holds events or summaries of a stretch of time. A batch writes chunks for what it brings, and expiry drops whole
chunks: nothing is rewritten, except that many small chunks are now and then joined (`crowded`). The index is small and
read first, so that only chunks that matter are fetched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from enum import Enum

import pyarrow as pa

from trendloom.errors import StateError

FORMAT = 1
"""The version of indexes and chunks; see `UPGRADES`."""

MOST_CHUNKS = 16
"""Chunks of one kind that lie side by side before they are joined."""


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
    told = json.loads(content)
    version = told.pop("format")
    while version in UPGRADES:
        version, told = version + 1, UPGRADES[version](told)
    if version != FORMAT:
        raise StateError(
            f"the state has format {version}, and this version of Trendloom reads formats up to {FORMAT}",
            hint="go on with the version that wrote it, or start with a new checkpoint",
        )
    chunks = tuple(Chunk(n, Holds(kind), low, high, rows) for n, kind, low, high, rows in told.pop("chunks"))
    return ChunkIndex(**told, chunks=chunks)


UPGRADES: dict[int, Callable[[dict[str, object]], dict[str, object]]] = {}
"""For every older format the function that turns its index into that of the next."""
