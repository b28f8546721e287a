"""Stretches of events as matrices that can be stored, sent and multiplied: what is left of events that need not move.

A piece is a stretch of one key's events in one pane. Pieces are multiplied in order of time, wherever they were made:
by tasks that read different parts of a stream, or by steps that see it chunk after chunk. Exact numbers stay exact: a
piece whose numbers do not fit two words has as many as it needs.

Cost: that of `reduce_numbers` to make them; one product of matrices each to put them together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.measures import (
    Sortable,
    Spans,
    SpanTotals,
    empty_totals,
    linear_of,
    prepare,
    sortable,
    spans_between,
    totals_of,
)
from trendloom.kernels.aggregate.type_grained import Prepared, pane_of, pieces_of, reduce_least, reduce_numbers
from trendloom.kernels.aggregate.type_grained.panes import (
    MatrixLayout,
    StretchMatrices,
    compose_least,
    copy_matrix,
    multiply,
    no_matrices,
    slide,
)
from trendloom.kernels.aggregate.widening import Layout, bits_of, layout_of, repeat_wider, words_of
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.fenwick import words_of as word_count
from trendloom.kernels.columns.numbers import Limbs, Numbers, Scaled, Wides, zeros
from trendloom.kernels.columns.words import STEP
from trendloom.kernels.contract import PANE
from trendloom.kernels.contract.aggregates import AggregationSpec, Totals
from trendloom.kernels.jit.compiled import njit

Compute = Callable[[Array, Numbers], StretchMatrices]
"""The matrices of some pieces, by their numbers, in a number system."""


@dataclass(frozen=True, eq=False)
class Stack:
    """The matrices of many pieces in one part of the layout, [piece, row, lane]: exact (`high`) or scaled (`exponent`).

    `wide[piece]` holds the words, [row, lane, word], of a piece that two words are too few for.
    """

    low: Array  # low words, or mantissas
    high: Array  # high words, or exponents
    exact: bool
    wide: Array

    def take(self, pieces: Array) -> Stack:
        return Stack(self.low[pieces], self.high[pieces], self.exact, self.wide[pieces])

    def numbers(self, like: Numbers) -> tuple[Numbers, Array]:
        """Rows of numbers, piece after piece, and which pieces do not fit the number system of `like`."""
        count, size, lanes = self.low.shape
        wide = np.array([one is not None for one in self.wide], np.bool_)
        flat = (count * size, lanes)
        if not self.exact:
            return Scaled(self.low.reshape(flat), self.high.reshape(flat)), np.zeros(count, np.bool_)
        if isinstance(like, Wides):
            return Wides(self.low.reshape(flat), self.high.reshape(flat), np.zeros(lanes, np.int64)), wide
        if isinstance(like, Scaled):
            return self._as_scaled(), np.zeros(count, np.bool_)
        words = word_count(like)
        found = np.empty((count, size, lanes, words), np.uint64)
        found[..., 0], found[..., 1] = self.low, self.high.view(np.uint64)
        found[..., 2:] = np.where(self.high < 0, np.uint64(2**64 - 1), np.uint64(0))[..., None]
        bad = np.zeros(count, np.bool_)
        for piece in np.flatnonzero(wide):
            mine = self.wide[piece]
            bad[piece] = mine.shape[-1] > words
            if not bad[piece]:
                found[piece] = np.where(mine[..., -1:].view(np.int64) < 0, np.uint64(2**64 - 1), np.uint64(0))
                found[piece][..., : mine.shape[-1]] = mine
        return Limbs(found.reshape(*flat, words), np.zeros(lanes, np.int64)), bad

    def _as_scaled(self) -> Scaled:
        mantissa = self.low.astype(np.float64) + self.high.astype(np.float64) * 2.0**64
        exponent = np.zeros(mantissa.shape, np.int64)
        for piece in np.flatnonzero([one is not None for one in self.wide]):
            for place in np.ndindex(mantissa.shape[1:]):
                value = int.from_bytes(self.wide[piece][place].tobytes(), "little", signed=True)
                steps = max(0, (value.bit_length() - 200) // STEP)
                mantissa[piece][place], exponent[piece][place] = float(value >> STEP * steps), steps
        flat = (-1, mantissa.shape[2])
        return Scaled(mantissa.reshape(flat), exponent.reshape(flat))


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces by key, pane and time. `pane` counts panes from time 0; `first` and `last` are times of events."""

    key: Array
    pane: Array
    first: Array
    last: Array
    stacks: tuple[Stack, ...]
    least: Array  # [piece, extreme, slot, lane]

    def __len__(self) -> int:
        return len(self.key)

    def with_keys(self, key: Array) -> Pieces:
        """The same pieces with other numbers of their keys."""
        return replace(self, key=key)

    def take(self, rows: Array) -> Pieces:
        stacks = tuple(stack.take(rows) for stack in self.stacks)
        return Pieces(self.key[rows], self.pane[rows], self.first[rows], self.last[rows], stacks, self.least[rows])


def reduce_block(spec: AggregationSpec, block: Block, numeric: str) -> Pieces | None:
    """The pieces of a block; None where values have no meaning outside of it (texts, integers beyond 64 bits)."""
    layout, pane = layout_of(spec, numeric), pane_of(spec.pattern_spec.window)
    extremes = [(m, sortable(m, block.columns[m.column])) for m in layout.extremes if m.column]
    if any(one.table is not None or one.dictionary is not None for _, one in extremes):
        return None
    stretches = pieces_of(block, pane) if pane is not None else _whole_keys(block)
    begin, end = stretches[:, 0], stretches[:, 1]
    stacks, least = [], np.zeros((len(begin), 0, 0, 0), np.int64)
    for number, part in enumerate(layout.parts):
        linear, lanes = linear_of(part.measures, block, doubles=not part.exact)
        if any(len(digits) > 1 for digits in lanes.values()):
            return None
        prepared = Prepared(prepare(spec, block, linear, extremes if number == 0 else []))
        if number == 0:
            least = reduce_least(prepared, begin, end)
        compute = partial(_reduce_some, prepared, begin, end)
        stacks.append(_matrices(compute, len(begin), prepared.shape, exact=part.exact))
    time = block.time[begin]
    panes = np.zeros(len(begin), np.int64) if pane is None else np.floor_divide(time, pane)
    return Pieces(block.key[begin], panes, time, block.time[end - 1], tuple(stacks), least)


def join(parts: list[Pieces]) -> Pieces:
    """Pieces of different origins in one order."""
    names = ("key", "pane", "first", "last", "least")
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    stacks = tuple(_joined(stacks) for stacks in zip(*(part.stacks for part in parts), strict=True))
    whole = Pieces(**arrays, stacks=stacks)
    return whole.take(np.lexsort((whole.first, whole.pane, whole.key)))


def compact(spec: AggregationSpec, numeric: str, pieces: Pieces) -> Pieces:
    """One piece per key and pane; pieces of a key must not overlap in time."""
    begin = np.flatnonzero(np.r_[True, np.diff(pieces.key) | np.diff(pieces.pane)]) if len(pieces) else np.zeros(0, int)
    if len(begin) == len(pieces):
        return pieces
    end = np.r_[begin[1:], len(pieces)]
    stacks, shapes = [], _shapes(spec, layout_of(spec, numeric))
    for stack, shape in zip(pieces.stacks, shapes, strict=True):
        compute = partial(_multiply_some, stack, begin, end, shape)
        stacks.append(_matrices(compute, len(begin), shape, exact=stack.exact))
    least = np.empty((len(begin), *pieces.least.shape[1:]), np.int64)
    _multiply_least(least, pieces.least, begin, end, shapes[0])
    kept = pieces.take(begin)
    return replace(kept, last=pieces.last[end - 1], stacks=tuple(stacks), least=least)


def results(
    spec: AggregationSpec, numeric: str, pieces: Pieces, block_columns: dict[str, Any],
    starts: tuple[int, int] | None = None,
) -> Totals:  # fmt: skip
    """What all windows amount to. `block_columns` are the columns of MIN and MAX, for the way back to values.

    `starts`: only windows that start from the one time on and before the other.
    """
    layout, window = layout_of(spec, numeric), spec.pattern_spec.window
    pane = pane_of(window)
    keys = int(pieces.key.max(initial=-1)) + 1
    key_starts = np.searchsorted(pieces.key, np.arange(keys + 1))
    spans = spans_between(key_starts, pieces.pane * (pane or 1), window)
    spans = spans if starts is None else spans.starting(*starts)
    runs = []
    for number, (part, shape) in enumerate(zip(layout.parts, _shapes(spec, layout), strict=True)):
        least = pieces.least if number == 0 else pieces.least[:, :0]
        runs.append((part, *part.run(Multiplied(pieces.stacks[number], least, shape), spans)))
    values: dict[str, Any] = {
        m.name: amounts[1 + at] for part, amounts, _ in runs for at, m in enumerate(part.measures)
    }
    _, (matches, *_), least = runs[0]
    values |= {m.name: block_columns[m.name].restore(least[:, at]) for at, m in enumerate(layout.extremes)}
    return totals_of(spec, spans.key, spans.start, matches, values)


@dataclass(frozen=True, eq=False)
class Multiplied:
    """Pieces as something that can be added up in any number system; spans are ranges of pieces."""

    stack: Stack
    least: Array
    shape: MatrixLayout

    @property
    def lanes(self) -> int:
        return self.shape.measures + 1

    def sweep(self, spans: Spans, numbers: Numbers) -> SpanTotals:
        """Windows as products of pieces."""
        used = np.zeros(len(self.stack.low) + 1, np.int64)
        np.add.at(used, spans.low, 1)
        np.add.at(used, spans.high, -1)
        some = np.flatnonzero(np.cumsum(used)[:-1] > 0)
        matrices = StretchMatrices(*self.stack.take(some).numbers(numbers), self.least[some])
        found = empty_totals(matrices.numbers, len(spans), self.lanes, self.least.shape[1])
        first, last = np.searchsorted(some, spans.low), np.searchsorted(some, spans.high)
        slide(found, first, last, matrices, self.shape)
        return found

    def without_least(self) -> Multiplied:
        return replace(self, least=self.least[:, :0])


# -------------------------------------------------------------------------------------------- exact matrices


def _matrices(compute: Compute, count: int, layout: MatrixLayout, *, exact: bool) -> Stack:
    """Matrices number 0 to `count`, in two words or scaled; those that do not fit in as many words as they need."""
    size, lanes = layout.slots * (layout.measures + 1), len(layout.columns)
    shape, everything = (count, size, lanes), np.arange(count)
    wide = np.full(count, None, object)
    if not exact:
        scaled = compute(everything, zeros(Scaled, 1, 1)).numbers
        assert isinstance(scaled, Scaled)
        return Stack(scaled.mantissa.reshape(shape), scaled.exponent.reshape(shape), False, wide)
    found, spilled, _ = compute(everything, zeros(Wides, 1, 1))
    assert isinstance(found, Wides)
    again = np.flatnonzero(spilled)

    def compute_wider(rows: Array, words: int) -> Array:
        limbs, spilled, _ = compute(rows, zeros(Limbs, 1, 1, words))
        assert isinstance(limbs, Limbs)
        matrices = limbs.words.reshape(len(rows), size, lanes, words)
        for row, matrix in zip(rows, matrices, strict=True):
            wide[row] = matrix
        return spilled

    if len(again):
        bits = bits_of(compute(again, zeros(Scaled, 1, 1)).numbers)
        repeat_wider(again, words_of(bits.reshape(len(again), -1).max(axis=1)), compute_wider)
    return Stack(found.low.reshape(shape), found.high.reshape(shape), True, wide)


def _reduce_some(prepared: Prepared, begin: Array, end: Array, rows: Array, like: Numbers) -> StretchMatrices:
    return reduce_numbers(prepared, begin[rows], end[rows], like)


def _multiply_some(
    stack: Stack, begin: Array, end: Array, shape: MatrixLayout, rows: Array, like: Numbers
) -> StretchMatrices:
    sizes = end[rows] - begin[rows]
    last = np.cumsum(sizes)
    some = np.arange(last[-1]) + np.repeat(begin[rows] - (last - sizes), sizes)
    matrices = StretchMatrices(*stack.take(some).numbers(like), np.empty((len(some), 0, 0, 0), np.int64))
    lanes = len(shape.columns)
    out, product, other = (no_matrices(matrices.numbers, count, 0, shape, lanes) for count in (len(rows), 1, 1))
    _multiply(out, matrices, last - sizes, last, product, other, shape)
    return out


# ---------------------------------------------------------------------------------------------------- parts


def _whole_keys(block: Block) -> Array:
    some = np.flatnonzero(np.diff(block.key_starts) > 0)
    return np.stack([block.key_starts[some], block.key_starts[some + 1]], axis=1)


def _joined(stacks: tuple[Stack, ...]) -> Stack:
    low = np.concatenate([stack.low for stack in stacks])
    high = np.concatenate([stack.high for stack in stacks])
    return Stack(low, high, stacks[0].exact, np.concatenate([stack.wide for stack in stacks]))


def _shapes(spec: AggregationSpec, layout: Layout) -> list[MatrixLayout]:
    """The shape of the matrices of every part; it needs no events."""
    nothing = Block(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), {})
    shape = Prepared(prepare(spec, nothing, [], [])).shape
    return [shape._replace(measures=len(part.measures)) for part in layout.parts]


def sortables(spec: AggregationSpec, block: Block) -> dict[str, Sortable]:
    """How values of MIN and MAX come back from the integers they were compared as."""
    extremes = [m for m in spec.measures if m.function in ("min", "max") and m.column]
    return {m.name: sortable(m, block.columns[m.column]) for m in extremes if m.column}


@njit(nogil=True)
def _multiply(
    out: StretchMatrices, pieces: StretchMatrices, begin: Array, end: Array, product: StretchMatrices,
    other: StretchMatrices, shape: MatrixLayout,
) -> None:  # fmt: skip
    """The product of pieces begin..end, in order, of every group; `product` and `other` are room for a matrix each."""
    for group in range(len(begin)):
        copy_matrix(product, 0, pieces, begin[group], shape)
        for piece in range(begin[group] + 1, end[group]):
            multiply(other, pieces, piece, product, 0, shape)
            copy_matrix(product, 0, other, 0, shape)
        copy_matrix(out, group, product, 0, shape)


@njit(nogil=True)
def _multiply_least(out: Array, least: Array, begin: Array, end: Array, shape: MatrixLayout) -> None:
    for group in range(len(begin)):
        for x in range(out.shape[1]):
            product = least[begin[group], x].copy()
            for piece in range(begin[group] + 1, end[group]):
                other = np.empty_like(product)
                compose_least(other, least[piece, x], product, shape)
                product = other
            out[group, x] = product


# Pieces as columns of a table, and back: how matrices travel and how they are stored.
#
# Numbers are little-endian words: two for each, or more, in equal number, in a piece that needs them; the length of its
# bytes is the number of words.


BEGIN, END, LEAST = " begin", " end", " least"


def piece_columns(pieces: Pieces) -> dict[str, pa.Array]:
    """The columns of pieces, without their keys."""
    columns = {PANE: pa.array(pieces.pane), BEGIN: pa.array(pieces.first), END: pa.array(pieces.last)}
    columns |= {stack_name(number): _packed(stack) for number, stack in enumerate(pieces.stacks)}
    columns[LEAST] = _bytes(pieces.least.reshape(len(pieces), -1))
    return columns


def pieces_from(rows: pa.Table, key: Array, model: Pieces) -> Pieces:
    """Pieces out of rows; their matrices are laid out as those of `model`, which has no events."""
    shape = model.least.shape[1:]
    least = _words(rows[LEAST], math.prod(shape)).reshape(len(key), *shape)
    pane, first, last = (rows[name].to_numpy().astype(np.int64) for name in (PANE, BEGIN, END))
    stacks = tuple(_unpacked(rows[stack_name(number)], stack) for number, stack in enumerate(model.stacks))
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
