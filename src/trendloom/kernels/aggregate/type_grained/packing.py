"""Pieces as columns of a table, and back: how matrices travel and how they are stored.

Numbers are little-endian words: two for each, or more, in equal number, in a piece that needs them; the length of its
bytes tells.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.kernels.aggregate.type_grained.pieces import Pieces, Stack
from trendloom.kernels.contract import PANE

Array = np.ndarray[Any, Any]

BEGIN, END, LEAST = " begin", " end", " least"


def piece_columns(pieces: Pieces) -> dict[str, pa.Array]:
    """The columns of pieces, without their keys."""
    columns = {PANE: pa.array(pieces.pane), BEGIN: pa.array(pieces.first), END: pa.array(pieces.last)}
    columns |= {stack_name(number): _packed(stack) for number, stack in enumerate(pieces.stacks)}
    columns[LEAST] = _bytes(np.ascontiguousarray(np.moveaxis(pieces.least, 1, 0)).reshape(len(pieces), -1))
    return columns


def pieces_from(rows: pa.Table, key: Array, model: Pieces) -> Pieces:
    """Pieces out of rows; `model` (of no events) says how their matrices are laid out."""
    extremes, _, slots, lanes = model.least.shape
    least = _words(rows[LEAST], extremes * slots * lanes)
    pane, first, last = (rows[name].to_numpy().astype(np.int64) for name in (PANE, BEGIN, END))
    stacks = tuple(_unpacked(rows[stack_name(number)], stack) for number, stack in enumerate(model.stacks))
    least = np.ascontiguousarray(np.moveaxis(least.reshape(len(key), extremes, slots, lanes), 0, 1))
    return Pieces(key, pane, first, last, stacks, least)


def stack_name(number: int) -> str:
    """The column of a part's matrices."""
    return f" matrix {number}"


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
