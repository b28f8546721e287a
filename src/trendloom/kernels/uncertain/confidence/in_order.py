"""The probability that events lie one strictly after the other: a running sum per event.

    a_1(t) = p_1(t),    a_j(t) = p_j(t) · sum of a_{j-1}(t') over t' < t,    and the sum of a_n is the answer.

Where no window cuts, the sums of the first events are the same whatever comes after them, so signatures that begin with
the same events, which stand one after the other, share them.

Cost: O(length · points); O(points) for every event that is not shared. After H. Zhang, *High-Performance Complex Event
Processing for Decision Analytics*, chapter 3.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.interval_block import IntervalBlock
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.uncertain.confidence.points import (
    BEGIN,
    END,
    HIGH,
    LOW,
    PointMasses,
    load_masses,
    mass_at,
    masses_of,
)


def prefix_masses(
    block: IntervalBlock, previous: Array | None, base: Array | None, events: Array
) -> tuple[Array, Array, Array]:
    """One event more for many prefixes: the new forward vectors, their bases, and the probabilities of being in order.

    Row r of `previous` has a(t) of the last event so far for t from `base[r]` on, zero beyond its interval; None: these
    events are the first. The sums only fall as prefixes grow, and no confidence is above that of its prefix: windows,
    NOTs and runs can only lower it. Doubles, right up to `prefix_error`.
    Cost: O(points) per prefix.
    """
    points = masses_of(block)
    width = block.most_points
    rows = np.zeros((len(events), width))
    if previous is None or base is None:
        previous, base = np.zeros((0, width)), np.zeros(0, np.int64)
    sums = np.zeros(len(events))
    _extend(points, previous, base, events, rows, sums)
    return rows, points.bounds[events, LOW], sums


def prefix_error(block: IntervalBlock, length: int) -> float:
    """How much larger than what `prefix_masses` says the sum of a prefix of so many events can be, relatively."""
    return length * (3 * block.most_points + 4) * 2.0**-52


def surely_below(sums: Array, threshold: Fraction, error: float) -> Array:
    """Which sums are below a threshold, whatever was rounded."""
    return sums * (1 + 2 * error) + 1e-300 < float(threshold) * (1 - 2.0**-50)


# ------------------------------------------------------------------------------------------------ compiled


@njit(nogil=True)
def _extend(points: PointMasses, previous: Array, base: Array, events: Array, rows: Array, sums: Array) -> None:
    for row in range(len(events)):
        event = events[row]
        first, last = points.bounds[event, LOW], points.bounds[event, HIGH]
        if len(previous) == 0:
            load_masses(points, event, first, last, rows[row])
        else:
            end = base[row] + previous.shape[1] - 1
            go_on(points, event, (base[row], end), (first, last), previous[row], rows[row])
        for point in range(last - first + 1):
            sums[row] += rows[row, point]


@njit(**INSIDE, forceinline=True)
def go_on(
    points: PointMasses, event: int, before: tuple[int, int], now: tuple[int, int], vector: Array, into: Array
) -> None:
    """The forward vector of an event at the points `now`, out of that of its predecessor at the points `before`."""
    load_masses(points, event, now[0], now[1], into)
    total = vector[0] * 0
    for earlier in range(before[0], min(now[0], before[1] + 1)):
        total += vector[earlier - before[0]]
    for point in range(now[0], now[1] + 1):
        into[point - now[0]] *= total
        if before[0] <= point <= before[1]:
            total += vector[point - before[0]]


@njit(**INSIDE, forceinline=True)
def mass_in_order(points: PointMasses, events: Array, box: Array, vector: Array, spare: Array) -> Any:
    """The probability that events lie in order and in their box."""
    load_masses(points, events[0], box[0, LOW], box[0, HIGH], vector)
    for j in range(1, len(events)):
        before, now = (box[j - 1, LOW], box[j - 1, HIGH]), (box[j, LOW], box[j, HIGH])
        go_on(points, events[j], before, now, vector, spare)
        vector, spare = spare, vector
    last = len(events) - 1
    total = vector[0]
    for place in range(1, box[last, HIGH] - box[last, LOW] + 1):
        total += vector[place]
    return total


@njit(**INSIDE, forceinline=True)
def mass_of_sums(points: PointMasses, events: Array, box: Array, last: int, shared: int, sums: Array) -> Any:
    """The probability that events lie in order from the lower ends of their box on, none after the point `last`.

    Row j of `sums` is for the j-th event, from its lower end on: how likely is it that all up to it are in order, and
    it lies at that point or before? Those of the first `shared` events are there already.
    """
    before = points.bounds[events[0], LOW], points.bounds[events[0], HIGH]
    for j in range(len(events)):
        now = box[j, LOW], min(points.bounds[events[j], HIGH], last)
        if j == 0 and shared == 0:
            load_masses(points, events[0], now[0], now[1], sums[0])
            for place in range(1, now[1] - now[0] + 1):
                sums[0, place] += sums[0, place - 1]
        elif j >= shared:
            _sum_on(points, events[j], before, now, sums[j - 1], sums[j])
        before = now
    return sums[len(events) - 1, before[1] - before[0]]


@njit(**INSIDE, forceinline=True)
def _sum_on(
    points: PointMasses, event: int, before: tuple[int, int], now: tuple[int, int], earlier: Array, into: Array
) -> None:
    """The sums of an event, at points of its interval that are `now`, out of those of the one before it."""
    share, begin = points.share[event], points.bounds[event, BEGIN]
    alike = begin == points.bounds[event, END]
    begin += now[0] - points.bounds[event, LOW]
    shift, count = now[0] - 1 - before[0], now[1] - now[0] + 1
    growing = max(min(count, before[1] - now[0] + 2), 0)
    total, whole = share * 0, earlier[before[1] - before[0]]
    for place in range(growing):
        total += (share if alike else points.values[begin + place] * share) * earlier[place + shift]
        into[place] = total
    for place in range(growing, count):
        total += (share if alike else points.values[begin + place] * share) * whole
        into[place] = total


@njit(**INSIDE, forceinline=True)
def first_point(points: PointMasses, event: int, first: int, last: int) -> int:
    """The first point between two where an event can lie, or the one after them."""
    while first <= last and mass_at(points, event, first) == 0:
        first += 1
    return first


@njit(**INSIDE, forceinline=True)
def last_point(points: PointMasses, event: int, first: int, last: int) -> int:
    """The last point between two where an event can lie, or the one before them."""
    while last >= first and mass_at(points, event, last) == 0:
        last -= 1
    return last
