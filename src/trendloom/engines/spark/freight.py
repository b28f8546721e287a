"""Matrices as rows of a DataFrame, and back: what path (a) shuffles instead of events.

A row is either a piece (`PANE` is there) or an event. Both have the key's columns. Numbers travel as little-endian
words: two for each number, or more, in equal number, in a piece that needs them; the length of its bytes tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.kernels.aggregation.pieces import Pieces, Stack

Array = np.ndarray[Any, Any]

CUT, PANE, BEGIN, END, LEAST = " cut", " pane", " begin", " end", " least"
MOST_BYTES = 1 << 25
"""Bytes of matrices in one Arrow batch."""


def freight_schema(events: pa.Schema, stacks: int) -> pa.Schema:
    """Columns of events, then `CUT` for events, then those of pieces."""
    numbers = [pa.field(name, pa.int64()) for name in (CUT, PANE, BEGIN, END)]
    matrices = [pa.field(name, pa.binary()) for name in (*map(_stack_name, range(stacks)), LEAST)]
    return pa.schema([field.with_nullable(True) for field in events] + numbers + matrices)


def event_rows(schema: pa.Schema, events: pa.Table, cut: Array) -> Iterator[pa.RecordBatch]:
    """Events that travel as they are; those of one cut may be reduced together."""
    yield from _filled(schema, {name: events[name] for name in events.column_names} | {CUT: pa.array(cut)}, len(events))


def piece_rows(schema: pa.Schema, keys: pa.Table, pieces: Pieces) -> Iterator[pa.RecordBatch]:
    """Pieces with the key columns of each (`keys` has one row per piece)."""
    width = 16 * sum(stack.low[0].size for stack in pieces.stacks) + 8 * pieces.least[:, 0].size if len(pieces) else 1
    step = max(1, MOST_BYTES // max(1, width))
    for at in range(0, len(pieces), step):
        some = pieces.take(np.arange(at, min(at + step, len(pieces))))
        columns: dict[str, Any] = {name: keys[name].slice(at, len(some)) for name in keys.column_names}
        columns |= {PANE: pa.array(some.pane), BEGIN: pa.array(some.first), END: pa.array(some.last)}
        columns |= {_stack_name(number): _packed(stack) for number, stack in enumerate(some.stacks)}
        columns[LEAST] = _bytes(np.ascontiguousarray(np.moveaxis(some.least, 1, 0)).reshape(len(some), -1))
        yield from _filled(schema, columns, len(some))


def pieces_from(rows: pa.Table, key: Array, model: Pieces) -> Pieces:
    """Pieces out of rows; `model` (of no events) says how their matrices are laid out."""
    extremes, _, slots, lanes = model.least.shape
    least = _words(rows[LEAST], extremes * slots * lanes)
    pane, first, last = (rows[name].to_numpy().astype(np.int64) for name in (PANE, BEGIN, END))
    stacks = tuple(_unpacked(rows[_stack_name(number)], stack) for number, stack in enumerate(model.stacks))
    least = np.ascontiguousarray(np.moveaxis(least.reshape(len(key), extremes, slots, lanes), 0, 1))
    return Pieces(key, pane, first, last, stacks, least)


def _stack_name(number: int) -> str:
    return f" matrix {number}"


def _filled(schema: pa.Schema, columns: dict[str, Any], rows: int) -> Iterator[pa.RecordBatch]:
    arrays = [columns[field.name].cast(field.type) if field.name in columns else pa.nulls(rows, field.type)
              for field in schema]  # fmt: skip
    yield from pa.table(arrays, schema=schema).to_batches()


def _packed(stack: Stack) -> pa.Array:
    count = len(stack.low)
    two = np.concatenate([stack.low.reshape(count, -1).view(np.int64), stack.high.reshape(count, -1)], axis=1)
    if not any(one is not None for one in stack.wide):
        return _bytes(two)
    rows = zip(two, stack.wide, strict=True)
    return pa.array([(row if words is None else words).tobytes() for row, words in rows], pa.binary())


def _bytes(rows: Array) -> pa.Array:
    """One value per row of a matrix of words, without copying them."""
    words = np.ascontiguousarray(rows, np.dtype("<i8"))
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * np.int32(8 * words.shape[1])
    return pa.Array.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(words)])


def _words(column: pa.ChunkedArray, width: int) -> Array:
    """All rows as words, where each has `width` of them."""
    if width == 0:
        return np.zeros((len(column), 0), np.int64)
    data, offsets = _contents(column)
    return np.frombuffer(data, np.int64, len(column) * width, int(offsets[0])).reshape(len(column), width)


def _contents(column: pa.ChunkedArray) -> tuple[pa.Buffer, Array]:
    """The bytes of all rows, and where each begins (one more for the end)."""
    values = column.cast(pa.large_binary()).combine_chunks()
    _, offsets, data = values.buffers()
    return data, np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]


def _unpacked(column: pa.ChunkedArray, model: Stack) -> Stack:
    size, lanes = model.low.shape[1:]
    data, offsets = _contents(column)
    sizes = np.diff(offsets)
    wide = np.full(len(sizes), None, object)
    if (sizes == 16 * size * lanes).all():
        words = np.frombuffer(data, np.int64, len(sizes) * 2 * size * lanes, int(offsets[0]))
    else:
        words = np.zeros(len(sizes) * 2 * size * lanes, np.int64)
        for at in range(len(sizes)):
            mine = np.frombuffer(data, np.int64, int(sizes[at]) // 8, int(offsets[at]))
            if len(mine) == 2 * size * lanes:
                words[at * len(mine) : (at + 1) * len(mine)] = mine
            else:
                wide[at] = mine.view(np.uint64).reshape(size, lanes, -1)
    both = words.reshape(len(sizes), 2, size, lanes)
    low = np.ascontiguousarray(both[:, 0]).view(model.low.dtype)
    return replace(model, low=low, high=np.ascontiguousarray(both[:, 1]), wide=wide)
