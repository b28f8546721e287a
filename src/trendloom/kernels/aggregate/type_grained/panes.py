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
from trendloom.kernels.aggregate.measures import ABSENT
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
    """Whether a lane spilled since this was asked last."""
    found = False
    for lane in range(lanes_of(numbers)):
        found |= spilled(numbers, lane)
    forgive(numbers)
    return found


@njit(**INSIDE, forceinline=True)
def _copy_rows(to: Numbers, at: int, of: Numbers, first: int, rows: int) -> None:
    for row in range(rows):
        copy(to, at + row, of, first + row)


@njit(**INSIDE, forceinline=True)
def _put_least(to: Array, of: Array) -> None:
    """to = of, [extreme, slot, lane]; written out, as a slice would allocate."""
    for extreme in range(to.shape[0]):
        for slot in range(to.shape[1]):
            for lane in range(to.shape[2]):
                to[extreme, slot, lane] = of[extreme, slot, lane]


def slide(
    out: Numbers, bad_out: Array, least_out: Array, first: Array, last: Array, pieces: Numbers, bad: Array,
    least: Array, shape: MatrixLayout,
) -> None:  # fmt: skip
    """Results of spans, each the product of pieces first..last. `least` is [extreme, piece, slot, lane].

    `bad` notes pieces, and `bad_out` spans, whose numbers spilled. Spans come in order of their pieces.
    """
    size, lanes = shape.slots * (shape.measures + 1), len(shape.columns)
    longest = int((last - first).max(initial=1))
    stack = Stacks(
        zeros_like(pieces, size, lanes),
        zeros_like(pieces, size, lanes),
        zeros_like(pieces, size, lanes),
        zeros_like(pieces, size * longest, 1),
        zeros_like(pieces, size, 1),
    )
    extremes = len(least)
    least_stack = LeastStacks(
        np.empty((extremes, shape.slots, lanes), np.int64),
        np.empty((extremes, shape.slots, lanes), np.int64),
        np.empty((extremes, shape.slots, lanes), np.int64),
        np.empty((longest, extremes, shape.slots, 1), np.int64),
        np.empty((shape.slots, 1), np.int64),
    )
    sliding = _roomy_slide if isinstance(pieces, Limbs) else _lean_slide
    sliding(
        out, bad_out, least_out, first, last, pieces, bad, least, shape, stack, least_stack, np.zeros(longest, np.bool_)
    )


class Stacks(NamedTuple):
    """The product at hand, room for another, the product of the back; vectors of the front, and of a window."""

    product: Numbers
    other: Numbers
    back: Numbers
    fronts: Numbers
    result: Numbers


class LeastStacks(NamedTuple):
    product: Array
    other: Array
    back: Array
    fronts: Array
    result: Array


def _slide(
    out: Numbers, bad_out: Array, least_out: Array, first: Array, last: Array, pieces: Numbers, bad: Array,
    least: Array, shape: MatrixLayout, stacks: Stacks, least_stacks: LeastStacks, bad_front: Array,
) -> None:  # fmt: skip
    product, other, back, fronts, result = stacks.product, stacks.other, stacks.back, stacks.fronts, stacks.result
    least_product, least_other, least_back = least_stacks.product, least_stacks.other, least_stacks.back
    least_fronts, least_result = least_stacks.fronts, least_stacks.result
    size, extremes, bad_back = shape.slots * (shape.measures + 1), len(least), False
    base, middle, top = 0, 0, 0  # the front holds pieces base..middle, the back middle..top
    for span in range(len(first)):
        low, high = first[span], last[span]
        if low >= middle:
            base, middle, top, bad_back = low, high, high, False
            spoilt = False
            for piece in range(high - 1, low - 1, -1):
                if piece == high - 1:
                    _copy_rows(product, 0, pieces, piece * size, size)
                    _put_least(least_product, least[:, piece])
                else:
                    compose(other, product, 0, pieces, piece * size, shape)
                    spoilt |= any_spilled(other)
                    _copy_rows(product, 0, other, 0, size)
                    for x in range(extremes):
                        compose_least(least_other[x], least_product[x], least[x, piece], shape)
                    _put_least(least_product, least_other)
                spoilt |= bad[piece]
                bad_front[piece - base] = spoilt
                for row in range(size):
                    clear(fronts, (piece - base) * size + row)
                    add_lane(fronts, (piece - base) * size + row, 0, product, row, shape.begin)
                _put_least(least_fronts[piece - base], least_product[:, :, shape.begin : shape.begin + 1])
        while top < high:
            bad_back |= bad[top]
            if top == middle:
                _copy_rows(back, 0, pieces, top * size, size)
                _put_least(least_back, least[:, top])
            else:
                compose(other, pieces, top * size, back, 0, shape)
                bad_back |= any_spilled(other)
                _copy_rows(back, 0, other, 0, size)
                for x in range(extremes):
                    compose_least(least_other[x], least[x, top], least_back[x], shape)
                _put_least(least_back, least_other)
            top += 1
        at = low - base
        bad_out[span] = bad_front[at] or (top > middle and bad_back)
        if top == middle:
            give_out(out, span, fronts, at * size, shape)
            for x in range(extremes):
                least_out[span, x] = accepted_least(least_fronts[at, x], shape)
        else:
            compose(result, back, 0, fronts, at * size, shape)
            bad_out[span] |= any_spilled(result)
            for x in range(extremes):
                compose_least(least_result, least_back[x], least_fronts[at, x], shape)
                least_out[span, x] = accepted_least(least_result, shape)
            give_out(out, span, result, 0, shape)


_lean_slide, _roomy_slide = njit(**LEAN)(_slide), njit(nogil=True)(_slide)
