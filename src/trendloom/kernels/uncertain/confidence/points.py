"""The probabilities of points, one event after another, for sums that never subtract.

Numbers are doubles or fractions: compiled functions read doubles, and the same functions, interpreted over arrays of
objects, compute exactly. Only sums and products of what is not negative are taken, so doubles lose nothing but a
rounding per step.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.interval_block import IntervalBlock
from trendloom.kernels.jit.compiled import INSIDE, njit

LOW, HIGH, BEGIN, END = range(4)
"""Columns of `bounds`, and the first two of a box."""

FAR = 1 << 61
"""A point beyond all others, and a span that binds nobody."""


class PointMasses(NamedTuple):
    """Event e lies at one of the points from `bounds[e, LOW]` to `bounds[e, HIGH]`, each of probability `share[e]`.

    If it has values, one for every point from `bounds[e, BEGIN]` up to `bounds[e, END]` on, these are multiplied by its
    share. `least[e]`: no probability of the event but zero is below two to this power.
    """

    bounds: Array
    share: Array
    values: Array
    least: Array


_of_blocks: WeakKeyDictionary[IntervalBlock, PointMasses] = WeakKeyDictionary()


def masses_of(block: IntervalBlock) -> PointMasses:
    """Those of all events of a block, in doubles; made once for a block."""
    if block not in _of_blocks:
        _of_blocks[block] = _as_doubles(block)
    return _of_blocks[block]


def _as_doubles(block: IntervalBlock) -> PointMasses:
    low, high = block.first_point.astype(np.int64), block.last_point.astype(np.int64)
    share = 1.0 / (high - low + 1)
    least = np.log2(share)
    if block.masses is None:
        none = np.zeros(len(low), np.int64)
        return PointMasses(np.column_stack((low, high, none, none)), share, np.zeros(0), np.floor(least) - 1)
    offsets, values = block.masses.offsets.astype(np.int64), block.masses.values.astype(np.float64)
    given = np.flatnonzero(np.diff(offsets))
    if len(given):
        begins = offsets[given]
        share[given] = 1.0 / np.add.reduceat(values, begins)
        least[given] = np.log2(np.minimum.reduceat(np.where(values > 0, values, np.inf), begins) * share[given])
    bounds = np.column_stack((low, high, offsets[:-1], offsets[1:]))
    return PointMasses(bounds, share, values, np.floor(least) - 1)


def exact_masses(intervals: tuple[tuple[int, int, tuple[float, ...]], ...]) -> PointMasses:
    """Of events by their first and last points and their masses, if there are any: in fractions."""
    share, bounds = np.zeros(len(intervals), object), np.zeros((len(intervals), 4), np.int64)
    values: list[Fraction] = []
    for event, (first, last, masses) in enumerate(intervals):
        own = [Fraction(mass) for mass in masses]
        share[event] = 1 / sum(own) if own else Fraction(1, last - first + 1)
        bounds[event] = first, last, len(values), len(values) + len(own)
        values += own
    return PointMasses(bounds, share, np.array(values, object), np.zeros(len(intervals)))


# ------------------------------------------------------------------------------------------------ compiled


@njit(**INSIDE, forceinline=True)
def mass_at(points: PointMasses, event: int, point: int) -> Any:
    """The probability that an event lies at a point. O(1)."""
    if point < points.bounds[event, LOW] or point > points.bounds[event, HIGH]:
        return 0
    begin = points.bounds[event, BEGIN]
    if begin == points.bounds[event, END]:
        return points.share[event]
    return points.values[begin + point - points.bounds[event, LOW]] * points.share[event]


@njit(**INSIDE, forceinline=True)
def load_masses(points: PointMasses, event: int, first: int, last: int, into: Array) -> None:
    """The probabilities that an event lies at each point from `first` to `last`. O(points)."""
    bounds, share, values = points.bounds, points.share[event], points.values
    low, high, begin = bounds[event, LOW], bounds[event, HIGH], bounds[event, BEGIN]
    alike = begin == bounds[event, END]
    for point in range(first, last + 1):
        if point < low or point > high:
            into[point - first] = 0
        elif alike:
            into[point - first] = share
        else:
            into[point - first] = values[begin + point - low] * share


@njit(**INSIDE)
def mass_within(points: PointMasses, event: int, first: int, last: int) -> Any:
    """The probability that an event lies at a point from `first` to `last`; exactly 1 if it must. O(points)."""
    bounds, share, values = points.bounds, points.share[event], points.values
    low, begin = bounds[event, LOW], bounds[event, BEGIN]
    first, last = max(first, low), min(last, bounds[event, HIGH])
    if first > last:
        return 0
    if first == low and last == bounds[event, HIGH]:
        return 1
    if begin == bounds[event, END]:
        return share * int(last - first + 1)
    total = values[begin + first - low]
    for point in range(first + 1, last + 1):
        total += values[begin + point - low]
    return total * share


@njit(**INSIDE)
def mass_outside(points: PointMasses, event: int, begin: int, end: int) -> Any:
    """The probability that an event does not lie between two points, themselves not included. O(points)."""
    if points.bounds[event, HIGH] <= begin or points.bounds[event, LOW] >= end:
        return 1
    before = mass_within(points, event, points.bounds[event, LOW], begin)
    return before + mass_within(points, event, end, points.bounds[event, HIGH])


@njit(**INSIDE)
def fill_up_to(points: PointMasses, event: int, first: int, last: int, into: Array) -> None:
    """For each point from `first` to `last` the probability that an event lies there or before. O(points)."""
    load_masses(points, event, first, last, into)
    total, end = mass_within(points, event, -FAR, first - 1), points.bounds[event, HIGH]
    for place in range(last - first + 1):
        total += into[place]
        into[place] = total
    for place in range(max(end - first, 0), last - first + 1):
        into[place] = 1


@njit(**INSIDE)
def fill_from(points: PointMasses, event: int, first: int, last: int, into: Array) -> None:
    """For each point from `first` to `last` the probability that an event lies there or after. O(points)."""
    load_masses(points, event, first, last, into)
    total, begin = mass_within(points, event, last + 1, FAR), points.bounds[event, LOW]
    for place in range(last - first, -1, -1):
        total += into[place]
        into[place] = total
    for place in range(min(begin - first, last - first) + 1):
        into[place] = 1
