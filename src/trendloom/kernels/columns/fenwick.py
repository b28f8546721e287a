"""Fenwick trees of cells: merge everything at places below p, in O(log n) per insertion and per question.

A tree of n places takes n consecutive cells. Cell i holds what was inserted at the last lowbit(i + 1) places up to i
(lowbit: the value of the lowest bit that is set), so the places below p are the union of one cell per set bit of p.
Neighbouring places lie side by side in memory: the many short steps of a walk stay in one cache line.

*Nested* trees answer two bounds at once: an outer tree by the first rank, in which cell i is itself a tree, over the
second ranks of the places it covers. Only ranks that can occur get a cell: n/2 · log2(n) + n cells in all, O(log² n)
per operation. Insert-only: what must go is wiped place by place, at the cost of having been inserted.
See Fenwick, "A New Data Structure for Cumulative Frequency Tables".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.numbers import Limbs, Numbers, add, add_lane, clear, zeros_like
from trendloom.kernels.jit.compiled import INSIDE, njit

NOTHING = np.int64(2**63 - 1)
"""The least value of a cell that nothing was merged into: greater than every value."""


class Cells(NamedTuple):
    """All that is added up about sets of partial matches, each set a unit that can be merged with others.

    A cell is `width` numbers (how many matches, and sums over them) and some least values, each in every lane. Cells
    merge by adding numbers and taking the lesser of least values; nothing is ever subtracted, so doubles lose no small
    number beside a large one that leaves again. Cost of a merge: O(width · lanes).

    Number m of cell c is row c · `width` + m of `numbers`; `least[c, lane, x]` are its least values.
    """

    numbers: Numbers
    least: Array
    width: int


def empty_cells(like: Numbers, count: int, lanes: int, width: int, extremes: int) -> Cells:
    """Cells of the same number system as `like`, with nothing in them."""
    return Cells(zeros_like(like, count * width, lanes), np.full((count, lanes, extremes), NOTHING), width)


def words_of(like: Numbers) -> int:
    """How many words a number has."""
    return like.words.shape[2] if isinstance(like, Limbs) else 2


@njit(**INSIDE, forceinline=True)
def merge(a: Any, i: Any, b: Any, j: Any) -> None:
    """Merge cell j of b into cell i of a, in all lanes."""
    for m in range(a.width):
        if a.least.shape[1] == 1:  # loops over lanes are vectorised, which one lane would pay for
            add_lane(a.numbers, i * a.width + m, 0, b.numbers, j * a.width + m, 0)
        else:
            add(a.numbers, i * a.width + m, b.numbers, j * a.width + m)
    for x in range(a.least.shape[2]):
        for lane in range(a.least.shape[1]):
            if b.least[j, lane, x] < a.least[i, lane, x]:
                a.least[i, lane, x] = b.least[j, lane, x]


@njit(**INSIDE, forceinline=True)
def merge_lane(a: Any, i: Any, b: Any, j: Any, lane: Any) -> None:
    """Merge cell j of b into cell i of a, in one lane."""
    for m in range(a.width):
        add_lane(a.numbers, i * a.width + m, lane, b.numbers, j * a.width + m, lane)
    for x in range(a.least.shape[2]):
        a.least[i, lane, x] = min(a.least[i, lane, x], b.least[j, lane, x])


@njit(**INSIDE, forceinline=True)
def wipe(a: Any, i: Any) -> None:
    """Make cell i of a empty."""
    for m in range(a.width):
        clear(a.numbers, i * a.width + m)
    if a.least.shape[2] > 0:
        a.least[i] = NOTHING


@njit(**INSIDE, forceinline=True)
def insert(nodes: Any, begin: Any, count: Any, place: Any, values: Any, cell: Any) -> None:
    """Insert a cell of `values` at a place of the tree in `nodes` whose `count` cells start at `begin`."""
    at = place
    while at < count:
        merge(nodes, begin + at, values, cell)
        at |= at + 1


@njit(**INSIDE, forceinline=True)
def gather(values: Any, cell: Any, nodes: Any, begin: Any, prefix: Any) -> None:
    """Merge everything inserted at the first `prefix` places into a cell of `values`."""
    at = prefix
    while at > 0:
        merge(values, cell, nodes, begin + at - 1)
        at &= at - 1


@njit(**INSIDE)
def erase(nodes: Any, begin: Any, count: Any, place: Any) -> None:
    """Empty every cell that an insertion at this place has touched."""
    at = place
    while at < count:
        wipe(nodes, begin + at)
        at |= at + 1


# ------------------------------------------------------------------------------------------------- nested


class InnerTrees(NamedTuple):
    """`begins[i]`: where the inner tree of outer cell i begins. `ranks`: the second rank of each of their cells, in
    order within a tree; those of one outer tree begin where its cells do.
    """

    ranks: Array
    begins: Array


def inner_begins(places: int) -> Array:
    """Where the inner tree of every outer cell begins; the last entry is the number of cells of them all."""
    numbers = np.arange(1, places + 1, dtype=np.int64)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(numbers & -numbers)])


def nested_cells(places: int) -> int:
    """How many cells nested trees of so many places take."""
    return sum((places // size - places // (2 * size)) * size for size in (1 << b for b in range(places.bit_length())))


@njit(**INSIDE)
def arrange(inner: Any, begin: Any, outer: Any, count: Any, filled: Any) -> None:
    """Write the second ranks of every inner tree, in order.

    `outer[r]` is the first rank of the place with second rank r. `filled` is scratch of `count` zeros, left as zeros.
    """
    for second in range(count):
        at = outer[second]
        while at < count:
            inner.ranks[begin + inner.begins[at] + filled[at]] = second
            filled[at] += 1
            at |= at + 1
    filled[:count] = 0


@njit(**INSIDE)
def _below(ranks: Any, begin: Any, size: Any, bound: Any) -> Any:
    """How many of `size` sorted ranks are less than the bound."""
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if ranks[begin + middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low


@njit(**INSIDE)
def insert_nested(
    nodes: Any, begin: Any, inner: Any, count: Any, first: Any, second: Any, values: Any, cell: Any
) -> None:
    """Insert a cell at a place given by its two ranks, into the tree of `count` places that begins at `begin`."""
    at = first
    while at < count:
        tree, size = begin + inner.begins[at], (at + 1) & -(at + 1)
        insert(nodes, tree, size, _below(inner.ranks, tree, size, second), values, cell)
        at |= at + 1


@njit(**INSIDE)
def gather_nested(values: Any, cell: Any, nodes: Any, begin: Any, inner: Any, first: Any, second: Any) -> None:
    """Merge everything whose first rank is below `first` and whose second rank is below `second`."""
    at = first
    while at > 0:
        tree, size = begin + inner.begins[at - 1], at & -at
        gather(values, cell, nodes, tree, _below(inner.ranks, tree, size, second))
        at &= at - 1


@njit(**INSIDE)
def erase_nested(nodes: Any, begin: Any, inner: Any, count: Any, first: Any, second: Any) -> None:
    """Empty every cell that an insertion at this place has touched."""
    at = first
    while at < count:
        tree, size = begin + inner.begins[at], (at + 1) & -(at + 1)
        erase(nodes, tree, size, _below(inner.ranks, tree, size, second))
        at |= at + 1
