"""A ledger of runs: what all runs that stand at one event in one state amount to, one entry each, one lane per window.

Under skip-till-next-match and contiguous the future of a run depends on the event and state where it stands, so all
runs that stand there share an entry: their number, the sums of the linear measures, the least values. Windows that
overlap share everything but where runs may start and where matches must end; so they are the *lanes* of one pass over
the events of all of them: a run starts in the lanes whose window has begun, and a match counts in the lanes whose
window has not ended.

Entry r has the rows r·width to r·width + width − 1 of the numbers (the number of runs, then each linear measure) and
`least[r, extreme, lane]`. Cost: O(lanes · width) per operation.

The operations are compiled into the passes that use them (`forceinline`), and the passes count no references to arrays
(`LEAN`): a call that hands on a dozen arrays costs more than the addition it is made for. Only numbers of many words
need scratch arrays, and so references.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.kernels.columns.numbers import Numbers, add, add_lane, add_times, add_unit, clear, copy, forgive, spilled
from trendloom.kernels.compiled import INSIDE, njit
from trendloom.kernels.ground.expansion import Expansion
from trendloom.kernels.ground.gaps import Gaps
from trendloom.kernels.totals.summing import ABSENT, EMPTY, Addends, Spans
from trendloom.pattern.template import Crossings

Array = np.ndarray[Any, Any]

MOST_LANES = 16
"""Windows that one pass over the events adds up side by side."""


class Gains(NamedTuple):
    """What a run gains by binding an event in a state: see `Addends`, by state instead of position."""

    weights: Array
    weight_of: Array
    weighs: Array  # [measure, state]
    values: Array
    valued: Array  # [extreme, state]


class Bounds(NamedTuple):
    """The NOTs before a match (`start_*`, by start) and after it (`end_*`, by state), each as a list of ways.

    The ways of item i are `begin[i]` to `begin[i + 1]`, the NOTs of way w `nots_begin[w]` to `nots_begin[w + 1]`: rows
    of `thresholds`. One way without a violated NOT is enough; no way at all: a match cannot begin or end there.
    """

    start_position: Array
    start_state: Array
    start_begin: Array
    start_nots_begin: Array
    start_nots: Array
    end_begin: Array
    end_nots_begin: Array
    end_nots: Array
    thresholds: Array
    start_free: Array  # whether there is a way without NOTs
    end_free: Array
    tie_start: Array
    tie_end: Array


class Stretches(NamedTuple):
    """The spans. Those of one pass follow each other; lane l of a pass that begins with span f is span f + l."""

    key: Array
    low: Array
    high: Array


class Results(NamedTuple):
    """What is found out about each span; see `addends.Found`."""

    numbers: Numbers
    least: Array
    spilled: Array


# ------------------------------------------------------------------------------------------------ tables


def gains_of(addends: Addends) -> Gains:
    position_of = list(addends.spec.detection.scopes[0].template.position_of)
    weighs = np.ascontiguousarray(addends.weighs[:, position_of])
    valued = np.ascontiguousarray(addends.valued[:, position_of])
    return Gains(addends.weights, addends.weight_of, weighs, addends.values, valued)


def bounds_of(addends: Addends) -> Bounds:
    machine, block = addends.machine, addends.block
    gaps = Gaps(machine, block, lambda gaps, scope: Expansion(machine, block, gaps, scope))
    starts = machine.starts[0]
    before = [step.ways for step in starts]
    after = list(machine.spec.scopes[0].template.accepts)
    crossed = sorted({crossing.scope for ways in (*before, *after) for way in ways for crossing in way})
    thresholds = [gaps.threshold(scope) for scope in crossed]
    return Bounds(
        np.array([step.position for step in starts], np.int64),
        np.array([step.target for step in starts], np.int64),
        *_flat(before, crossed),
        *_flat(after, crossed),
        np.stack(thresholds) if thresholds else np.zeros((0, len(block) + 1), np.int64),
        np.array([frozenset() in ways for ways in before], np.bool_),
        np.array([frozenset() in ways for ways in after], np.bool_),
        block.tie_start,
        block.tie_end,
    )


def _flat(items: list[tuple[Crossings, ...]], crossed: list[int]) -> tuple[Array, Array, Array]:
    ways = [way for item in items for way in item]
    nots = [crossed.index(crossing.scope) for way in ways for crossing in way]
    begin = np.cumsum([0, *(len(item) for item in items)])
    nots_begin = np.cumsum([0, *(len(way) for way in ways)])
    return begin.astype(np.int64), nots_begin.astype(np.int64), np.array(nots, np.int64)


def most_lanes(spans: Spans) -> int:
    """How many windows a pass takes: as many as overlap, for more would idle."""
    if len(spans) == 0:
        return 1
    return int(_overlapping(spans.key, spans.low, spans.high))


@njit(nogil=True)
def _overlapping(key: Array, low: Array, high: Array) -> int:
    most, first = 1, 0
    for span in range(len(key)):
        while key[first] != key[span] or high[first] <= low[span]:
            first += 1
        most = max(most, span - first + 1)
    return min(most, MOST_LANES)


def with_more(numbers: Numbers) -> Numbers:
    """The same numbers and as many more, which are zero."""
    return type(numbers)(*(np.concatenate([a, np.zeros_like(a)]) if a.ndim > 1 else a for a in numbers))


@njit(**INSIDE, forceinline=True)
def batch_end(first: int, lanes: int, key: Array, low: Array, high: Array) -> int:
    """Spans `first` to the result make one pass: windows of one key that overlap the first."""
    end = first + 1
    while end < len(key) and end - first < lanes and key[end] == key[first] and low[end] < high[first]:
        end += 1
    return end


# ------------------------------------------------------------------------------------------ entries, compiled


@njit(**INSIDE, forceinline=True)
def wipe(r: int, width: int, numbers: Numbers, least: Array) -> None:
    """Entry r is empty."""
    for k in range(width):
        clear(numbers, r * width + k)
    for x in range(least.shape[1]):
        for lane in range(least.shape[2]):
            least[r, x, lane] = ABSENT


@njit(**INSIDE, forceinline=True)
def move_entry(r: int, other: int, width: int, numbers: Numbers, least: Array) -> None:
    """Entry r becomes a copy of another."""
    for k in range(width):
        copy(numbers, r * width + k, numbers, other * width + k)
    for x in range(least.shape[1]):
        for lane in range(least.shape[2]):
            least[r, x, lane] = least[other, x, lane]


@njit(**INSIDE, forceinline=True)
def join_entry(r: int, other: int, width: int, numbers: Numbers, least: Array) -> None:
    """The runs of another entry stand at entry r too."""
    for k in range(width):
        add(numbers, r * width + k, numbers, other * width + k)
    for x in range(least.shape[1]):
        for lane in range(least.shape[2]):
            least[r, x, lane] = min(least[r, x, lane], least[other, x, lane])


@njit(**INSIDE, forceinline=True)
def start_entry(
    r: int, start: int, e: int, first: int, end: int, spans: Stretches, bounds: Bounds, width: int, numbers: Numbers,
    least: Array,
) -> bool:  # fmt: skip
    """Runs start at event e in every lane that lets them; whether any does."""
    found = False
    for span in range(first, end):
        if spans.low[span] > e:
            break
        if e < spans.high[span] and (bounds.start_free[start] or _may_start(start, e, spans.low[span], bounds)):
            found = True
            add_unit(numbers, r * width, span - first, 1)
            for x in range(least.shape[1]):
                least[r, x, span - first] = min(least[r, x, span - first], EMPTY)
    return found


@njit(**INSIDE)
def _may_start(start: int, e: int, low: int, bounds: Bounds) -> bool:
    """Whether the NOTs before a match that begins at event e hold in a window that begins at `low`."""
    for way in range(bounds.start_begin[start], bounds.start_begin[start + 1]):
        holds = True
        for at in range(bounds.start_nots_begin[way], bounds.start_nots_begin[way + 1]):
            holds &= bounds.thresholds[bounds.start_nots[at], bounds.tie_start[e]] < low
        if holds:
            return True
    return False


@njit(**INSIDE)
def _may_end(state: int, e: int, high: int, bounds: Bounds) -> bool:
    """Whether a match that ends at event e in this state counts in a window that ends at `high`."""
    for way in range(bounds.end_begin[state], bounds.end_begin[state + 1]):
        holds = True
        for at in range(bounds.end_nots_begin[way], bounds.end_nots_begin[way + 1]):
            holds &= bounds.thresholds[bounds.end_nots[at], high] < bounds.tie_end[e]
        if holds:
            return True
    return False


@njit(**INSIDE, forceinline=True)
def gain_number(r: int, m: int, e: int, state: int, gains: Gains, width: int, numbers: Numbers) -> None:
    """Linear measure m of all runs of entry r grows by weight · runs; a weight of 0 adds nothing, even to infinity."""
    if gains.weighs[m, state]:
        row = gains.weight_of[m]
        if row < 0:
            add(numbers, r * width + 1 + m, numbers, r * width)
        elif gains.weights[row, e] != 0:
            add_times(numbers, r * width + 1 + m, numbers, r * width, gains.weights[row, e])


@njit(**INSIDE, forceinline=True)
def gain(r: int, e: int, state: int, gains: Gains, width: int, numbers: Numbers, least: Array) -> None:
    """All runs of entry r bind event e in this state."""
    for m in range(width - 1):
        gain_number(r, m, e, state, gains, width, numbers)
    for x in range(least.shape[1]):
        if gains.valued[x, state]:
            value = gains.values[x, e]
            for lane in range(least.shape[2]):
                if least[r, x, lane] != ABSENT:
                    least[r, x, lane] = min(least[r, x, lane], value)


@njit(nogil=True, forceinline=True)
def count(
    r: int, e: int, state: int, first: int, end: int, spans: Stretches, bounds: Bounds, width: int, numbers: Numbers,
    least: Array, total: Numbers, total_least: Array,
) -> None:  # fmt: skip
    """The matches that end at event e in this state are added to the totals of the lanes where they count."""
    for span in range(first, end):
        if spans.low[span] > e:
            break
        if e < spans.high[span] and (bounds.end_free[state] or _may_end(state, e, spans.high[span], bounds)):
            lane = span - first
            for k in range(width):
                add_lane(total, k, lane, numbers, r * width + k, lane)
            for x in range(least.shape[1]):
                total_least[x, lane] = min(total_least[x, lane], least[r, x, lane])


@njit(**INSIDE, forceinline=True)
def open_lanes(width: int, numbers: Numbers, total: Numbers, total_least: Array) -> None:
    """A new pass begins."""
    forgive(numbers)
    forgive(total)
    for k in range(width):
        clear(total, k)
    for x in range(total_least.shape[0]):
        for lane in range(total_least.shape[1]):
            total_least[x, lane] = ABSENT


@njit(**INSIDE, forceinline=True)
def close_lanes(
    e: int, closed: int, first: int, end: int, spans: Stretches, width: int, numbers: Numbers, total: Numbers,
    total_least: Array, results: Results,
) -> int:  # fmt: skip
    """Write down the totals of windows that end at or before event e, from lane `closed` on; the first still open."""
    while first + closed < end and spans.high[first + closed] <= e:
        for k in range(width):
            add_lane(results.numbers, first + closed, k, total, k, closed)
        for x in range(total_least.shape[0]):
            results.least[first + closed, x] = total_least[x, closed]
        results.spilled[first + closed] = spilled(numbers, closed) or spilled(total, closed)
        closed += 1
    return closed
