"""Expected numbers of matches, and of what their events hold, in one sweep over time points.

Idea: a sequence of events at p_1 < p_2 < ... < p_k is in order with the product of their probabilities. If each event
stands at one place of the sequence only, the sum over all sequences of events is the sum over all rising points of the
products of *densities*: the density of a place at a point is the sum of the probabilities of its events to be there. So
one running number per place is enough, as in type-grained aggregation of precise times, and a sum over what events
hold is a number beside it: the weighed density times what came before, and the density times the sum before.

Cost: O(points of events), and for every point that an event can be at, O(places · (1 + sums)) in each window over it.

Error: all numbers are sums of products of positive ones, so nothing cancels. With k places, m events at most at a point
and n points in a window, a count is right up to a relative error of k · (n + m + 4) · 2^-53 (2 n more where
probabilities are given); a sum up to that share of the sum of its absolute values. Windows in which a number leaves the
range of doubles are marked, and computed again exactly.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import IntervalBlock
from trendloom.kernels.columns.numbers import BORROWED, LEAN
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.jit.interpreted import interpret
from trendloom.model.imprecision import Masses

# ------------------------------------------------------------------------------------------------------------------
# The events of a sequence with the probabilities of their points, as tables: in doubles, or exactly as fractions.
#
# Kernels are written once. Compiled they compute with doubles; interpreted, over arrays of fractions, exactly.


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

    No event may fit two of the positions; the planner checks that.
    """
    place = np.full(len(block), -1, np.int64)
    for number, position in enumerate(sequence):
        members = block.members[position]
        assert (place[members] < 0).all(), "an event fits two places of a sequence"
        place[members] = number
    events = np.flatnonzero(place >= 0)
    first, last = block.first_point[events], block.last_point[events]
    even = 1 / as_fractions(last - first + 1) if exact else 1.0 / (last - first + 1)
    masses = None if block.masses is None else block.masses.take(events)
    offsets = np.zeros(len(events) + 1, np.int64) if masses is None else masses.offsets
    tables = _tables(masses, even)
    key_starts = np.searchsorted(events, block.key_starts)
    return LikelyPoints(key_starts, first, last, place[events], even, offsets, *tables), events


def as_fractions(values: Array) -> Array:
    """The same numbers, exactly."""
    return np.array([Fraction(value) for value in values.tolist()], object)


def _tables(masses: Masses | None, like: Array) -> tuple[Array, Array, Array]:
    """Probabilities of points, of all that come after, and of all up to them."""
    if masses is None:
        nothing = np.zeros(0, like.dtype)
        return nothing, nothing, nothing
    mass: Array = masses.values.astype(np.float64)
    if like.dtype == object:
        mass = as_fractions(mass)
    above, below = np.zeros_like(mass), np.zeros_like(mass)
    if like.dtype == object:
        interpret(_divide_and_sum, masses.offsets, mass, above, below)
    else:
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


TINY = 2.0**-1000
"""Products below this are near the end of the range of doubles."""
NO_WINDOWS = 0


class SlidingPoints(NamedTuple):
    """Windows over points of `grain` ticks; only those numbered from `oldest` to `newest` are computed.

    Window w is [w · slide, w · slide + within) in ticks; `within` NO_WINDOWS: everything is in one.
    """

    grain: int
    within: int
    slide: int
    oldest: int
    newest: int


class WeighedEvents(NamedTuple):
    """Sum s adds up, over events at the places of `weighs[s]`, the weights in row `weight_of[s]` (−1: each is one)."""

    weights: Array
    weight_of: Array
    weighs: Array


class SweepWorkspace(NamedTuple):
    """Numbers while a key is swept; everything is computed in numbers of the type of `sums` and `density`.

    `density[place, lane]` at a point; `sums[window, place, lane]` of partial sequences that end before `place`, lane 0
    counts them. `reached`: there are some; `lost`: a number came too near to zero. Windows go round. `active`: events
    that can be at the point.
    """

    density: Array
    sums: Array
    reached: Array
    lost: Array
    active: Array


class SweptWindows(NamedTuple):
    """One row for each window: (key, start, lost), and its numbers."""

    place: Array
    numbers: Array


def sweep_workspace(
    events: LikelyPoints, weighed: WeighedEvents, windows: SlidingPoints, places: int
) -> SweepWorkspace:
    """Workspace for a sweep, with numbers as those of the events."""
    lanes, kind = 1 + len(weighed.weight_of), events.even.dtype
    overlap = 1 if windows.within == NO_WINDOWS else -(-windows.within // windows.slide)
    return SweepWorkspace(
        np.zeros((places, lanes), kind),
        np.zeros((overlap, places + 1, lanes), kind),
        np.zeros((overlap, places + 1), np.bool_),
        np.zeros(overlap, np.bool_),
        np.zeros(max(int(np.diff(events.key_starts).max(initial=0)), 1), np.int64),
    )


@njit(nogil=True)
def expect(
    events: LikelyPoints, weighed: WeighedEvents, windows: SlidingPoints, space: SweepWorkspace
) -> tuple[Array, Array]:
    """All windows with a sequence in some world: (key, start, lost), and the numbers of each, by key and start."""
    found = SweptWindows(np.empty((16, 3), np.int64), np.empty((16, space.density.shape[1]), space.density.dtype))
    count = 0
    for key in range(len(events.key_starts) - 1):
        found = _roomier(found, count, count + _most_windows(events, windows, key))
        count = _sweep_key(events, weighed, windows, space, key, found, count)
    return found.place[:count], found.numbers[:count]


@njit(**LEAN)
def _most_windows(events: LikelyPoints, windows: SlidingPoints, key: int) -> int:
    """At least as many as a key has windows with events."""
    begin, end = events.key_starts[key], events.key_starts[key + 1]
    if windows.within == NO_WINDOWS or begin == end:
        return 1
    each, latest = 0, events.last[begin]
    for event in range(begin, end):
        ticks = (events.last[event] - events.first[event]) * windows.grain
        each += (ticks + windows.within) // windows.slide + 1
        latest = max(latest, events.last[event])
    return min(each, ((latest - events.first[begin]) * windows.grain + windows.within) // windows.slide + 1)


@njit(**LEAN)
def _sweep_key(
    events: LikelyPoints, weighed: WeighedEvents, windows: SlidingPoints, space: SweepWorkspace, key: int,
    found: SweptWindows, count: int,
) -> int:  # fmt: skip
    """Note the windows of a key after `count` others; gives how many there are then."""
    following, end = events.key_starts[key], events.key_starts[key + 1]
    active, point = 0, 0
    oldest, newest = 0, -1  # windows that are open
    while active > 0 or following < end:
        if active == 0:
            point = events.first[following]
        while following < end and events.first[following] <= point:
            space.active[active] = following
            active += 1
            following += 1
        active = _weigh_point(events, weighed, space, active, point)
        low, high = _windows_at(windows, point)
        while oldest <= newest and oldest < low:
            count = _close(windows, space, key, oldest, found, count)
            oldest += 1
        if oldest > newest:
            oldest, newest = low, low - 1
        while newest < high:
            newest += 1
            _open(space, newest % len(space.lost))
        for window in range(oldest, newest + 1):
            _extend(space, window % len(space.lost))
        point += 1
    for window in range(oldest, newest + 1):
        count = _close(windows, space, key, window, found, count)
    return count


@njit(**BORROWED)
def _windows_at(windows: SlidingPoints, point: int) -> tuple[int, int]:
    """The first and the last of the computed windows that contain a point."""
    if windows.within == NO_WINDOWS:
        return 0, 0
    tick = point * windows.grain
    low, high = (tick - windows.within) // windows.slide + 1, tick // windows.slide
    return max(low, windows.oldest), min(high, windows.newest)


@njit(**BORROWED)
def _weigh_point(events: LikelyPoints, weighed: WeighedEvents, space: SweepWorkspace, active: int, point: int) -> int:
    """Set the densities of a point; give the number of events that can be later, too, which are kept."""
    density = space.density
    for place in range(density.shape[0]):
        for lane in range(density.shape[1]):
            density[place, lane] = 0
    kept = 0
    for at in range(active):
        event = space.active[at]
        place, mass = events.place[event], mass_at(events, event, point)
        density[place, 0] += mass
        for number in range(len(weighed.weight_of)):
            if weighed.weighs[number, place] and mass > 0:
                row = weighed.weight_of[number]
                density[place, 1 + number] += mass if row < 0 else mass * weighed.weights[row, event]
        if events.last[event] > point:
            space.active[kept] = event
            kept += 1
    return kept


@njit(**BORROWED)
def _open(space: SweepWorkspace, row: int) -> None:
    """A window in which nothing has happened: there is one empty sequence."""
    for place in range(space.sums.shape[1]):
        for lane in range(space.sums.shape[2]):
            space.sums[row, place, lane] = 0
        space.reached[row, place] = place == 0
    space.sums[row, 0, 0] = 1
    space.lost[row] = False


@njit(**BORROWED)
def _extend(space: SweepWorkspace, row: int) -> None:
    """Sequences of earlier points go on with the events of this one; later places first, as points must rise."""
    density, sums = space.density, space.sums
    for place in range(density.shape[0] - 1, -1, -1):
        here = density[place, 0]
        if not (here > 0 and space.reached[row, place]):
            continue
        before = sums[row, place, 0]
        more = here * before
        if here < TINY or more < TINY:
            space.lost[row] = True
        sums[row, place + 1, 0] += more
        for lane in range(1, density.shape[1]):
            sums[row, place + 1, lane] += here * sums[row, place, lane] + density[place, lane] * before
        space.reached[row, place + 1] = True


@njit(**BORROWED)
def _close(
    windows: SlidingPoints, space: SweepWorkspace, key: int, window: int, found: SweptWindows, count: int
) -> int:
    """Note a window that is over, if it has a sequence."""
    row, last = window % len(space.lost), space.sums.shape[1] - 1
    if not space.reached[row, last]:
        return count
    found.place[count, 0], found.place[count, 1] = key, window * windows.slide
    found.place[count, 2] = space.lost[row]
    for lane in range(space.sums.shape[2]):
        found.numbers[count, lane] = space.sums[row, last, lane]
    return count + 1


@njit(nogil=True)
def _roomier(found: SweptWindows, count: int, needed: int) -> SweptWindows:
    """The same tables, or longer ones with the same rows if they hold fewer than needed."""
    if needed <= len(found.place):
        return found
    size = max(needed, 2 * len(found.place))
    more = SweptWindows(
        np.empty((size, found.place.shape[1]), np.int64),
        np.empty((size, found.numbers.shape[1]), found.numbers.dtype),
    )
    more.place[:count], more.numbers[:count] = found.place[:count], found.numbers[:count]
    return more
