"""The probability that events lie one strictly after the other: a running sum per event.

    a_1(t) = p_1(t),    a_j(t) = p_j(t) · sum of a_{j-1}(t') over t' < t,    and the sum of a_n is the answer.

Where no window cuts, the sums of the first events are the same whatever comes after them, so signatures that begin with
the same events, which stand one after the other, share them.

Cost: O(length · points); O(points) for every event that is not shared. After H. Zhang, *High-Performance Complex Event
Processing for Decision Analytics*, chapter 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import IntervalBlock
from trendloom.kernels.columns.numbers import BORROWED, LEAN
from trendloom.kernels.jit.compiled import INSIDE, njit

# ------------------------------------------------------------------------------------------------------------------
# The probabilities of points, one event after another, for sums that never subtract.
#
# Numbers are doubles or fractions: compiled functions read doubles, and the same functions, interpreted over arrays of
# objects, compute exactly. Only sums and products of what is not negative are taken, so doubles lose nothing but a
# rounding per step.


CALLED: Any = {**INSIDE, "_nrt": False}
"""As `BORROWED`, for functions that are too large to be inlined: they allocate nothing, and return no array."""

LOW, HIGH, BEGIN, END = range(4)
"""Columns of `bounds`, and the first two of a box."""

FAR = 1 << 61
"""A point beyond all others, and a span that any signature keeps."""


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


@njit(**BORROWED)
def mass_at(points: PointMasses, event: int, point: int) -> Any:
    """The probability that an event lies at a point. O(1)."""
    if point < points.bounds[event, LOW] or point > points.bounds[event, HIGH]:
        return 0
    begin = points.bounds[event, BEGIN]
    if begin == points.bounds[event, END]:
        return points.share[event]
    return points.values[begin + point - points.bounds[event, LOW]] * points.share[event]


@njit(**BORROWED)
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


@njit(**CALLED)
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


@njit(**CALLED)
def mass_outside(points: PointMasses, event: int, begin: int, end: int) -> Any:
    """The probability that an event does not lie between two points, themselves not included. O(points)."""
    if points.bounds[event, HIGH] <= begin or points.bounds[event, LOW] >= end:
        return 1
    before = mass_within(points, event, points.bounds[event, LOW], begin)
    return before + mass_within(points, event, end, points.bounds[event, HIGH])


@njit(**CALLED)
def fill_up_to(points: PointMasses, event: int, first: int, last: int, into: Array) -> None:
    """For each point from `first` to `last` the probability that an event lies there or before. O(points)."""
    load_masses(points, event, first, last, into)
    total, end = mass_within(points, event, -FAR, first - 1), points.bounds[event, HIGH]
    for place in range(last - first + 1):
        total += into[place]
        into[place] = total
    for place in range(max(end - first, 0), last - first + 1):
        into[place] = 1


@njit(**CALLED)
def fill_from(points: PointMasses, event: int, first: int, last: int, into: Array) -> None:
    """For each point from `first` to `last` the probability that an event lies there or after. O(points)."""
    load_masses(points, event, first, last, into)
    total, begin = mass_within(points, event, last + 1, FAR), points.bounds[event, LOW]
    for place in range(last - first, -1, -1):
        total += into[place]
        into[place] = total
    for place in range(min(begin - first, last - first) + 1):
        into[place] = 1


# ------------------------------------------------------------------------------------------------------------------
# Where the events of a signature can lie: for each a least and a greatest point, as tight as the order allows.
#
# What depends on the times of both the first and the last event (a span, a NOT at either end under a bare WITHIN) is
# summed over boxes in which they are fixed. Cost: O(length) per box.


class TimeLimits(NamedTuple):
    """When a signature may take place: less than `span` points from first to last, in the points of its window.

    Without a span, or without a window, they are `FAR`. `bare`: a NOT at either end looks as far as the span.
    """

    span: int
    first: int
    last: int
    bare: bool


class BoxedSignature(NamedTuple):
    """The events of a signature, where they can lie at all (`whole`), and a part of that (`box`).

    Both are arrays with a row for each event, or more: its `LOW` and `HIGH` point.
    """

    points: PointMasses
    events: Array
    limits: TimeLimits
    whole: Array
    box: Array


@njit(**BORROWED)
def tighten(box: Array, length: int, span: int) -> bool:
    """Leave each event only the points that others leave it; returns whether all have some.

    The lower bounds go forward, the upper ones backward; then the span raises the first lower bound and cuts the last
    upper one, and both go on once more. Cost: O(length).
    """
    if not in_order(box, length):
        return False
    last = length - 1
    if box[last, HIGH] - box[0, LOW] < span:
        return True
    box[0, LOW] = max(box[0, LOW], box[last, LOW] - span + 1)
    box[last, HIGH] = min(box[last, HIGH], box[0, HIGH] + span - 1)
    return in_order(box, length)


@njit(**BORROWED)
def in_order(box: Array, length: int) -> bool:
    """The same without a span."""
    for j in range(1, length):
        box[j, LOW] = max(box[j, LOW], box[j - 1, LOW] + 1)
    for j in range(length - 2, -1, -1):
        box[j, HIGH] = min(box[j, HIGH], box[j + 1, HIGH] - 1)
    possible = True
    for j in range(length):
        possible = possible and box[j, LOW] <= box[j, HIGH]
    return possible


@njit(**BORROWED)
def narrow(boxed: BoxedSignature, starts: tuple[int, int], ends: tuple[int, int]) -> bool:
    """Make the box the part where the first and the last event lie between two points each, if possible."""
    whole, box, last = boxed.whole, boxed.box, len(boxed.events) - 1
    for j in range(last + 1):
        box[j, LOW], box[j, HIGH] = whole[j, LOW], whole[j, HIGH]
    box[0, LOW], box[0, HIGH] = max(box[0, LOW], starts[0]), min(box[0, HIGH], starts[1])
    box[last, LOW], box[last, HIGH] = max(box[last, LOW], ends[0]), min(box[last, HIGH], ends[1])
    return in_order(box, last + 1)


@dataclass(frozen=True, eq=False)
class ForwardVectors:
    """Of prefixes of signatures, a(t) of the last event: row r of `masses` has it for t from `base[r]` on."""

    masses: Array
    base: Array

    def take(self, rows: Array | slice) -> ForwardVectors:
        """Some of them."""
        return ForwardVectors(self.masses[rows], self.base[rows])


def prefix_masses(block: IntervalBlock, before: ForwardVectors | None, events: Array) -> tuple[ForwardVectors, Array]:
    """The forward vectors of prefixes with one event more, and the probabilities that they are in order.

    None: these events are the first. The sums only fall as prefixes grow, and no confidence is above that of its
    prefix: windows, NOTs and runs can only lower it. Doubles, right up to `prefix_error`.
    Cost: O(points) per prefix.
    """
    points, width = masses_of(block), block.most_points
    rows, sums = np.zeros((len(events), width)), np.zeros(len(events))
    if before is None:
        before = ForwardVectors(np.zeros((0, width)), np.zeros(0, np.int64))
    _extend(points, before.masses, before.base, events, rows, sums)
    return ForwardVectors(rows, points.bounds[events, LOW]), sums


def prefix_error(block: IntervalBlock, length: int) -> float:
    """How much larger than in `prefix_masses` the sum of a prefix of so many events can be, relatively."""
    return length * (3 * block.most_points + 4) * 2.0**-52


def surely_below(sums: Array, threshold: Fraction, error: float) -> Array:
    """Which sums are below a threshold, whatever was rounded."""
    return sums * (1 + 2 * error) + 1e-300 < float(threshold) * (1 - 2.0**-50)


# ------------------------------------------------------------------------------------------------ compiled


@njit(**LEAN)
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


@njit(**BORROWED)
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


@njit(**BORROWED)
def mass_in_order(boxed: BoxedSignature, vector: Array, spare: Array) -> Any:
    """The probability that events lie in order and in their box."""
    points, events, box = boxed.points, boxed.events, boxed.box
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


@njit(**BORROWED)
def mass_of_sums(boxed: BoxedSignature, shared: int, sums: Array) -> Any:
    """The probability that events lie in order and in their window; the span does not bind.

    Row j of `sums` is for the j-th event, from its lower end on: how likely is it that all up to it are in order, and
    it lies at that point or before? Those of the first `shared` events are there already.
    """
    points, events, whole = boxed.points, boxed.events, boxed.whole
    before = points.bounds[events[0], LOW], points.bounds[events[0], HIGH]
    for j in range(len(events)):
        now = whole[j, LOW], min(points.bounds[events[j], HIGH], boxed.limits.last)
        if j == 0 and shared == 0:
            load_masses(points, events[0], now[0], now[1], sums[0])
            for place in range(1, now[1] - now[0] + 1):
                sums[0, place] += sums[0, place - 1]
        elif j >= shared:
            _sum_on(points, events[j], before, now, sums[j - 1], sums[j])
        before = now
    return sums[len(events) - 1, before[1] - before[0]]


@njit(**BORROWED)
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


@njit(**BORROWED)
def first_point(points: PointMasses, event: int, first: int, last: int) -> int:
    """The first point between two where an event can lie, or the one after them."""
    while first <= last and mass_at(points, event, first) == 0:
        first += 1
    return first


@njit(**BORROWED)
def last_point(points: PointMasses, event: int, first: int, last: int) -> int:
    """The last point between two where an event can lie, or the one before them."""
    while last >= first and mass_at(points, event, last) == 0:
        last -= 1
    return last
