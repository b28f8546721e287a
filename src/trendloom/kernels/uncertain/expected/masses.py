"""The events of a sequence with the probabilities of their points, as tables: in doubles, or exactly as fractions.

Kernels are written once. Compiled they compute with doubles; interpreted, over arrays of fractions, exactly.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.interval_block import IntervalBlock
from trendloom.kernels.columns.numbers import BORROWED
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.jit.interpreted import interpret
from trendloom.model.imprecision import Masses


class LikelyPoints(NamedTuple):
    """Events of a sequence, each of which fits one of its places, sorted by key and first point.

    Event e may be at the points from `first[e]` to `last[e]`, and stands at number `place[e]` of the sequence. The
    probability of each point is `even[e]`, or, where they differ, in `mass[offsets[e]:offsets[e + 1]]`. `above` is
    of the same shape: the probability of all points after that one; `below`: of that one and those before.
    """

    key_starts: Array
    first: Array
    last: Array
    place: Array
    even: Array
    offsets: Array
    mass: Array
    above: Array
    below: Array


def likely_points(
    block: IntervalBlock, sequence: tuple[int, ...], *, exact: bool = False
) -> tuple[LikelyPoints, Array]:
    """The events that fit the positions of a sequence, and their indices in the block. O(their points).

    No event may fit two of the positions: who plans has made sure of that.
    """
    place = np.full(len(block), -1, np.int64)
    for number, position in enumerate(sequence):
        members = block.members[position]
        assert (place[members] < 0).all(), "an event fits two places of a sequence"
        place[members] = number
    events = np.flatnonzero(place >= 0)
    first, last = block.first_point[events], block.last_point[events]
    even = _even(last - first + 1, exact)
    masses = None if block.masses is None else block.masses.take(events)
    offsets = np.zeros(len(events) + 1, np.int64) if masses is None else masses.offsets
    tables = _tables(masses, even)
    key_starts = np.searchsorted(events, block.key_starts)
    return LikelyPoints(key_starts, first, last, place[events], even, offsets, *tables), events


def _even(points: Array, exact: bool) -> Array:
    if not exact:
        return 1.0 / points
    found = np.empty(len(points), object)
    found[:] = [Fraction(1, number) for number in points.tolist()]
    return found


def _tables(masses: Masses | None, like: Array) -> tuple[Array, Array, Array]:
    """Probabilities of points, of all that come after, and of all up to them."""
    if masses is None:
        nothing = np.zeros(0, like.dtype)
        return nothing, nothing, nothing
    given: Array = masses.values.astype(np.float64)
    mass, above, below = (np.zeros(len(given), like.dtype) for _ in range(3))
    if like.dtype == object:
        mass[:] = [Fraction(value) for value in given.tolist()]
        interpret(_divide_and_sum, masses.offsets, mass, above, below)
    else:
        mass[:] = given
        _divide_and_sum(masses.offsets, mass, above, below)
    return mass, above, below


@njit(nogil=True)
def _divide_and_sum(offsets: Array, mass: Array, above: Array, below: Array) -> None:
    """Make probabilities of what was given for each point, and add them up from either end. O(points)."""
    for event in range(len(offsets) - 1):
        begin, end = offsets[event], offsets[event + 1]
        if begin == end:
            continue
        whole = mass[begin]
        for at in range(begin + 1, end):
            whole += mass[at]
        mass[begin] = mass[begin] / whole
        below[begin] = mass[begin]
        for at in range(begin + 1, end):
            mass[at] = mass[at] / whole
            below[at] = below[at - 1] + mass[at]
        for at in range(end - 2, begin - 1, -1):
            above[at] = above[at + 1] + mass[at + 1]


@njit(**BORROWED)
def mass_at(events: LikelyPoints, event: int, point: int) -> Any:
    """The probability that an event is at one of its points."""
    begin = events.offsets[event]
    if events.offsets[event + 1] == begin:
        return events.even[event]
    return events.mass[begin + point - events.first[event]]


@njit(**BORROWED)
def mass_after(events: LikelyPoints, event: int, point: int) -> Any:
    """The probability that an event is after a point, which is one of its own or the one before them."""
    begin = events.offsets[event]
    if events.offsets[event + 1] == begin:
        return events.even[event] * (events.last[event] - point)
    if point < events.first[event]:
        return events.below[events.offsets[event + 1] - 1]
    return events.above[begin + point - events.first[event]]


@njit(**BORROWED)
def mass_until(events: LikelyPoints, event: int, point: int) -> Any:
    """The probability that an event is at a point or before it; its last point is later."""
    if point < events.first[event]:
        return 0 * events.even[event]
    begin = events.offsets[event]
    if events.offsets[event + 1] == begin:
        return events.even[event] * (point - events.first[event] + 1)
    return events.below[begin + point - events.first[event]]
