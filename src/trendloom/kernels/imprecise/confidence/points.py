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

from trendloom.kernels.compiled import INSIDE, njit
from trendloom.kernels.imprecise.block import IntervalBlock

Array = np.ndarray[Any, Any]


class PointMasses(NamedTuple):
    """Event e lies at one of the points from `low[e]` to `high[e]`, each with the probability `share[e]`.

    If it has `values[offsets[e]:offsets[e + 1]]`, one for every point, these are multiplied by its share.
    `least[e]`: no probability of the event but zero is below two to this power.
    """

    low: Array
    high: Array
    share: Array
    offsets: Array
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
        return PointMasses(low, high, share, np.zeros(len(low) + 1, np.int64), np.zeros(0), np.floor(least) - 1)
    offsets, values = block.masses.offsets.astype(np.int64), block.masses.values.astype(np.float64)
    given = np.flatnonzero(np.diff(offsets))
    if len(given):
        begins = offsets[given]
        share[given] = 1.0 / np.add.reduceat(values, begins)
        least[given] = np.log2(np.minimum.reduceat(np.where(values > 0, values, np.inf), begins) * share[given])
    return PointMasses(low, high, share, offsets, values, np.floor(least) - 1)


def exact_masses(intervals: tuple[tuple[int, int, tuple[float, ...]], ...]) -> PointMasses:
    """Of events by their first and last points and their masses, if there are any: in fractions."""
    share, values, sizes = np.zeros(len(intervals), object), [], []
    for event, (first, last, masses) in enumerate(intervals):
        own = [Fraction(mass) for mass in masses]
        share[event] = 1 / sum(own) if own else Fraction(1, last - first + 1)
        values += own
        sizes.append(len(own))
    return PointMasses(
        np.array([first for first, _, _ in intervals], np.int64),
        np.array([last for _, last, _ in intervals], np.int64),
        share,
        np.r_[0, np.cumsum(sizes)].astype(np.int64),
        np.array(values, object),
        np.zeros(len(intervals)),
    )


# ------------------------------------------------------------------------------------------------ compiled


@njit(**INSIDE)
def mass_at(points: PointMasses, event: int, point: int) -> Any:
    """The probability that an event lies at a point. O(1)."""
    if point < points.low[event] or point > points.high[event]:
        return 0
    begin = points.offsets[event]
    if begin == points.offsets[event + 1]:
        return points.share[event]
    return points.values[begin + point - points.low[event]] * points.share[event]


@njit(**INSIDE)
def mass_within(points: PointMasses, event: int, first: int, last: int) -> Any:
    """The probability that an event lies at a point from `first` to `last`; exactly 1 if it must. O(points)."""
    first, last = max(first, points.low[event]), min(last, points.high[event])
    if first > last:
        return 0
    if first == points.low[event] and last == points.high[event]:
        return 1
    total = mass_at(points, event, first)
    for point in range(first + 1, last + 1):
        total += mass_at(points, event, point)
    return total


@njit(**INSIDE)
def mass_outside(points: PointMasses, event: int, begin: int, end: int) -> Any:
    """The probability that an event does not lie between two points, themselves not included. O(points)."""
    if points.high[event] <= begin or points.low[event] >= end:
        return 1
    return mass_within(points, event, points.low[event], begin) + mass_within(points, event, end, points.high[event])


@njit(**INSIDE)
def fill_up_to(points: PointMasses, event: int, first: int, last: int, into: Array) -> None:
    """For each point from `first` to `last` the probability that an event lies there or before. O(points)."""
    total = mass_within(points, event, points.low[event], first - 1)
    for point in range(first, last + 1):
        total += mass_at(points, event, point)
        into[point - first] = total
        if point >= points.high[event]:
            into[point - first] = 1


@njit(**INSIDE)
def fill_from(points: PointMasses, event: int, first: int, last: int, into: Array) -> None:
    """For each point from `first` to `last` the probability that an event lies there or after. O(points)."""
    total = mass_within(points, event, last + 1, points.high[event])
    for point in range(last, first - 1, -1):
        total += mass_at(points, event, point)
        into[point - first] = total
        if point <= points.low[event]:
            into[point - first] = 1
