"""Cells: everything that is added up about a set of partial matches, as one unit that can be merged.

A cell is `width` numbers (how many matches, and sums over them) and some least values, each in every lane. Cells merge
by adding numbers and taking the lesser of least values; nothing is ever subtracted, so doubles lose no small number
beside a large one that leaves again. Cost of a merge: O(width · lanes).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.kernels.columns.interpreted_sums import merge_cells, wipe_cell
from trendloom.kernels.columns.numbers import Limbs, Numbers, add, add_lane, clear, zeros
from trendloom.kernels.jit.compiled import INSIDE, njit

Array = np.ndarray[Any, Any]

NOTHING = np.int64(2**63 - 1)
"""The least value of a cell that nothing was merged into: greater than every value."""


class Cells(NamedTuple):
    """Number m of cell c is row c · `width` + m of `numbers`; `least[c, lane, x]` are its least values."""

    numbers: Numbers
    least: Array
    width: int


def empty_cells(like: Numbers, count: int, lanes: int, width: int, extremes: int) -> Cells:
    """Cells of the same number system as `like`, with nothing in them."""
    return Cells(
        zeros(type(like), count * width, lanes, words_of(like)),
        np.full((count, lanes, extremes), NOTHING),
        width,
    )


def words_of(like: Numbers) -> int:
    """How many words a number has."""
    return like.words.shape[2] if isinstance(like, Limbs) else 2


@njit(**INSIDE, forceinline=True, interpreted=merge_cells)
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


@njit(**INSIDE, forceinline=True, interpreted=wipe_cell)
def wipe(a: Any, i: Any) -> None:
    """Make cell i of a empty."""
    for m in range(a.width):
        clear(a.numbers, i * a.width + m)
    if a.least.shape[2] > 0:
        a.least[i] = NOTHING
