"""Windows as products of panes: the cost per event does not grow with the number of windows that overlap.

A pane is the greatest common divisor of WITHIN and SLIDE; within one key its events are one matrix. A window is the
product of its panes. As windows slide, two stacks hold the products at hand: the front has, for every older pane, the
product from it to the end of the front, the back the product of all newer panes. A window costs one product of a
matrix and a vector; a pane costs two products of matrices, whatever the number of windows.

Matrices are rows of numbers: row = piece · size + slot (and once more all slots per linear measure); lanes are columns,
one for each slot in `columns`. Slots that are not columns only ever grow (`grows`). Measures share the columns of the
matches: with C the matches and N a measure, C' = M·C and N' = M·N + D·C.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.measures import ABSENT, SpanTotals
from trendloom.kernels.columns.numbers import (
    INLINE,
    LEAN,
    Factor,
    Limbs,
    Numbers,
    add_lane,
    by_system,
    clear,
    copy,
    forgive,
    lanes_of,
    multiply_into,
    spilled,
    zeros_like,
)
from trendloom.kernels.jit.compiled import INSIDE, implements, njit, operation


class MatrixLayout(NamedTuple):
    """How rows and lanes of matrices are laid out."""

    slots: int
    measures: int  # linear measures besides the matches
    columns: Array  # the slot of every lane
    grows: Array  # by slot, whether it is not a column
    begin: int  # the lane of the empty match
    accepts: Array  # slots that hold matches


@operation
def compose(to: Numbers, later: Numbers, second: int, earlier: Numbers, first: int, shape: MatrixLayout) -> None:
    """to = later · earlier; `second` and `first` are the first rows of their matrices.

    `earlier` may be a vector: it has as many lanes as `to`. O(slots · columns · lanes · measures).
    """


@implements(compose, INLINE)
def _compose(to: Any, later: Any, second: Any, earlier: Any, first: Any, shape: Any) -> Any:
    def doubles(to: Any, later: Any, second: Any, earlier: Any, first: Any, shape: Any) -> None:
        into, left, right, columns, slots = to.value, later.value, earlier.value, shape.columns, shape.slots
        for row in range(slots * (shape.measures + 1)):
            slot, base = row % slots, row - row % slots
            for lane in range(into.shape[1]):
                total = right[first + row, lane] if shape.grows[slot] else 0.0
                for k in range(len(columns)):
                    total += left[second + row, k] * right[first + columns[k], lane]
                    if base > 0:
                        total += left[second + slot, k] * right[first + base + columns[k], lane]
                into[row, lane] = total

    def others(to: Any, later: Any, second: Any, earlier: Any, first: Any, shape: Any) -> None:
        for row in range(shape.slots * (shape.measures + 1)):
            slot, base = row % shape.slots, row - row % shape.slots
            if shape.grows[slot]:
                copy(to, row, earlier, first + row)
            else:
                clear(to, row)
            for lane in range(lanes_of(to)):
                for k in range(len(shape.columns)):
                    column = first + shape.columns[k]
                    multiply_into(to, row, lane, Factor(later, second + row, k), Factor(earlier, column, lane))
                    if base > 0:
                        growth = Factor(later, second + slot, k)
                        multiply_into(to, row, lane, growth, Factor(earlier, base + column, lane))

    return by_system(to, doubles=doubles, wides=others, limbs=others, scaled=others)


@njit(**INSIDE, forceinline=True)
def compose_least(to: Array, later: Array, earlier: Array, shape: MatrixLayout) -> None:
    """The same for least values: [slot, lane] each."""
    for slot in range(shape.slots):
        for lane in range(to.shape[1]):
            best = earlier[slot, lane] if shape.grows[slot] else ABSENT
            for k in range(len(shape.columns)):
                before, after = earlier[shape.columns[k], lane], later[slot, k]
                if before != ABSENT and after != ABSENT:
                    best = min(best, before, after)
            to[slot, lane] = best


@njit(**INSIDE, forceinline=True)
def give_out(out: Numbers, span: int, rows: Numbers, first: int, shape: MatrixLayout) -> None:
    """What the accepting slots hold is the result of a span."""
    for measure in range(shape.measures + 1):
        for slot in shape.accepts:
            add_lane(out, span, measure, rows, first + measure * shape.slots + slot, 0)


@njit(**INSIDE, forceinline=True)
def accepted_least(least: Array, shape: MatrixLayout) -> int:
    """The least value of the accepting slots; `least` is [slot, lane]."""
    best = ABSENT
    for slot in shape.accepts:
        best = min(best, least[slot, 0])
    return best


@njit(**INSIDE, forceinline=True)
def any_spilled(numbers: Numbers) -> bool:
    """Whether a lane spilled since the last call."""
    found = False
    for lane in range(lanes_of(numbers)):
        found |= spilled(numbers, lane)
    forgive(numbers)
    return found


class StretchMatrices(NamedTuple):
    """The matrices of stretches of events, one after the other.

    Matrix p is the rows from p · size on of `numbers`, and `least[p, extreme, slot, lane]`. `spilled[p]`: its numbers
    did not fit.
    """

    numbers: Numbers
    spilled: Array
    least: Array


def no_matrices(like: Numbers, count: int, extremes: int, shape: MatrixLayout, lanes: int) -> StretchMatrices:
    """Room for so many matrices, all zero, in the number system of `like`."""
    numbers = zeros_like(like, count * shape.slots * (shape.measures + 1), lanes)
    least = np.empty((count, extremes, shape.slots, lanes), np.int64)
    return StretchMatrices(numbers, np.zeros(count, np.bool_), least)


@njit(**INSIDE, forceinline=True)
def copy_matrix(to: StretchMatrices, at: int, of: StretchMatrices, first: int, shape: MatrixLayout) -> None:
    """to[at] = of[first]. Least values are copied one by one, as a slice would allocate."""
    size = shape.slots * (shape.measures + 1)
    for row in range(size):
        copy(to.numbers, at * size + row, of.numbers, first * size + row)
    for extreme in range(to.least.shape[1]):
        for slot in range(to.least.shape[2]):
            for lane in range(to.least.shape[3]):
                to.least[at, extreme, slot, lane] = of.least[first, extreme, slot, lane]
    to.spilled[at] = of.spilled[first]


@njit(**INSIDE, forceinline=True)
def multiply(
    to: StretchMatrices, later: StretchMatrices, second: int, earlier: StretchMatrices, first: int, shape: MatrixLayout
) -> None:
    """to[0] = later[second] · earlier[first]; `earlier` may hold vectors."""
    size = shape.slots * (shape.measures + 1)
    compose(to.numbers, later.numbers, second * size, earlier.numbers, first * size, shape)
    for x in range(to.least.shape[1]):
        compose_least(to.least[0, x], later.least[second, x], earlier.least[first, x], shape)
    to.spilled[0] = later.spilled[second] | earlier.spilled[first] | any_spilled(to.numbers)


class Stacks(NamedTuple):
    """The product at hand, room for another, the product of the back; vectors of the front, and of a window."""

    product: StretchMatrices
    other: StretchMatrices
    back: StretchMatrices
    fronts: StretchMatrices
    result: StretchMatrices


def slide(found: SpanTotals, first: Array, last: Array, pieces: StretchMatrices, shape: MatrixLayout) -> None:
    """Fill the totals of spans, each the product of pieces first..last. Spans come in order of their pieces."""
    longest, extremes, columns = int((last - first).max(initial=1)), pieces.least.shape[1], len(shape.columns)
    sizes = (1, columns), (1, columns), (1, columns), (longest, 1), (1, 1)
    stacks = Stacks(*(no_matrices(pieces.numbers, count, extremes, shape, lanes) for count, lanes in sizes))
    sliding = _roomy_slide if isinstance(pieces.numbers, Limbs) else _lean_slide
    sliding(found, first, last, pieces, shape, stacks)


def _slide(
    found: SpanTotals, first: Array, last: Array, pieces: StretchMatrices, shape: MatrixLayout, stacks: Stacks
) -> None:
    product, other, back, fronts, result = stacks
    base, middle, top = 0, 0, 0  # the front holds pieces base..middle, the back middle..top
    for span in range(len(first)):
        low, high = first[span], last[span]
        if low >= middle:
            base, middle, top = low, high, high
            for piece in range(high - 1, low - 1, -1):
                if piece == high - 1:
                    copy_matrix(product, 0, pieces, piece, shape)
                else:
                    multiply(other, product, 0, pieces, piece, shape)
                    copy_matrix(product, 0, other, 0, shape)
                _put_vector(fronts, piece - base, product, shape)
        while top < high:
            if top == middle:
                copy_matrix(back, 0, pieces, top, shape)
            else:
                multiply(other, pieces, top, back, 0, shape)
                copy_matrix(back, 0, other, 0, shape)
            top += 1
        if top == middle:
            _give_out_vector(found, span, fronts, low - base, shape)
        else:
            multiply(result, back, 0, fronts, low - base, shape)
            _give_out_vector(found, span, result, 0, shape)


@njit(**INSIDE, forceinline=True)
def _put_vector(to: StretchMatrices, at: int, of: StretchMatrices, shape: MatrixLayout) -> None:
    """The vector that the first matrix of `of` makes of the empty match."""
    size = shape.slots * (shape.measures + 1)
    for row in range(size):
        clear(to.numbers, at * size + row)
        add_lane(to.numbers, at * size + row, 0, of.numbers, row, shape.begin)
    for extreme in range(to.least.shape[1]):
        for slot in range(shape.slots):
            to.least[at, extreme, slot, 0] = of.least[0, extreme, slot, shape.begin]
    to.spilled[at] = of.spilled[0]


@njit(**INSIDE, forceinline=True)
def _give_out_vector(found: SpanTotals, span: int, vectors: StretchMatrices, at: int, shape: MatrixLayout) -> None:
    """Vector `at` is the result of a span."""
    give_out(found.numbers, span, vectors.numbers, at * shape.slots * (shape.measures + 1), shape)
    for x in range(found.least.shape[1]):
        found.least[span, x] = accepted_least(vectors.least[at, x], shape)
    found.spilled[span] = vectors.spilled[at]


_lean_slide, _roomy_slide = njit(**LEAN)(_slide), njit(nogil=True)(_slide)
