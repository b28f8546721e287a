"""A ledger of runs: what all runs that stand at one event in one state amount to, one entry each, one lane per window.

Under skip-till-next-match and contiguous the future of a run depends on the event and state where it stands, so all
runs that stand there share an entry: their number, the sums of the linear measures, the least values. Windows that
overlap share everything but where runs may start and where matches must end; so they are the *lanes* of one pass over
the events of all of them: a run starts in the lanes whose window has begun, and a match counts in the lanes whose
window has not ended.

Entry r has the rows r·width to r·width + width − 1 of the numbers (the number of runs, then each linear measure) and
`least[r, extreme, lane]`. Cost: O(lanes · width) per operation.

Where entries come and go, those that are not in use are a list, and a pass that runs out of them is interrupted until
there are more (`Progress`).

The operations are compiled into the passes that use them (`forceinline`), and the passes count no references to arrays
(`LEAN`): a call that hands on a dozen arrays costs more than the addition it is made for. Only numbers of many words
need scratch arrays, and so references.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.measures import ABSENT, EMPTY, Addends, Spans, SpanTotals
from trendloom.kernels.columns.fenwick import words_of
from trendloom.kernels.columns.numbers import (
    Numbers,
    add,
    add_lane,
    add_times,
    add_unit,
    clear,
    copy,
    forgive,
    spilled,
    zeros,
)
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.matching.gaps import Gaps
from trendloom.kernels.matching.successors import NONE
from trendloom.kernels.matching.tables import Checks, Moves, checks_of, moves_of
from trendloom.pattern.template import Crossings

# What decides where runs start, go on and end, and what they gain: tables for compiled code, by state and event.
#
# Cost: O(events) for each condition on two events and each NOT.


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


class RunRules(NamedTuple):
    """All that does not depend on the way runs are followed. `position_of`: by state."""

    position_of: Array
    start_of: Array  # by state: the start that leads there, or NONE
    moves: Moves
    checks: Checks
    gains: Gains
    bounds: Bounds


def rules_of(addends: Addends) -> RunRules:
    automaton, pairs, bounds = addends.automaton, addends.spec.pairs, _bounds_of(addends)
    position_of = np.array(automaton.spec.scopes[0].template.position_of, np.int64)
    start_of = np.full(len(position_of), NONE, np.int64)
    start_of[bounds.start_state] = np.arange(len(bounds.start_state))
    moves, checks = moves_of(automaton, pairs), checks_of(automaton, pairs, addends.block)
    return RunRules(position_of, start_of, moves, checks, _gains_of(addends), bounds)


def _gains_of(addends: Addends) -> Gains:
    position_of = list(addends.spec.pattern_spec.scopes[0].template.position_of)
    weighs = np.ascontiguousarray(addends.weighs[:, position_of])
    valued = np.ascontiguousarray(addends.valued[:, position_of])
    return Gains(addends.weights, addends.weight_of, weighs, addends.values, valued)


def _bounds_of(addends: Addends) -> Bounds:
    automaton, block = addends.automaton, addends.block
    gaps = Gaps(automaton, block)
    starts = automaton.starts[0]
    before = [step.ways for step in starts]
    after = list(automaton.spec.scopes[0].template.accepts)
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


MOST_LANES = 16
"""Windows that one pass over the events adds up side by side."""


class RunLedger(NamedTuple):
    """Entries, each with `width` numbers, and the totals of the windows of the pass under way."""

    width: int
    numbers: Numbers
    least: Array
    total: Numbers
    total_least: Array


class KeySpans(NamedTuple):
    """The spans: events `low` to `high` of a key."""

    key: Array
    low: Array
    high: Array


class Lanes(NamedTuple):
    """The windows of one pass: span `first` + l up to `end` is lane l."""

    first: int
    end: int
    spans: KeySpans


class Progress(NamedTuple):
    """How far the passes have come (`place`), and the numbers of entries that are not in use, in front."""

    place: Array
    free: Array


FIRST, END, AT, CLOSED, UNUSED, RESERVE = range(6)
"""What `place` holds: the spans of the pass under way, its next event, its closed lanes; how many entries are free, and
how many must be."""


def ledger_of(addends: Addends, found: SpanTotals, entries: int, lanes: int) -> RunLedger:
    """A ledger in the number system of the totals that are to be found."""
    width, system, words = addends.linear + 1, type(found.numbers), words_of(found.numbers)
    numbers, total = (zeros(system, rows * width, lanes, words) for rows in (entries, 1))
    least, total_least = (np.empty((rows, addends.extremes, lanes), np.int64) for rows in (entries, 1))
    return RunLedger(width, numbers, least, total, total_least[0])


def before_all(entries: int, reserve: int) -> Progress:
    """Nothing has been done, and all entries are free."""
    return Progress(np.array([0, 0, -1, 0, entries, reserve], np.int64), np.arange(entries))


def with_more(ledger: RunLedger, progress: Progress) -> tuple[RunLedger, Progress]:
    """Twice as many entries; the new ones are free."""
    place, free, unused = *progress, progress.place[UNUSED]
    doubled = (np.concatenate([a, np.zeros_like(a)]) if a.ndim > 1 else a for a in ledger.numbers)
    place[UNUSED] += len(free)
    return (
        ledger._replace(numbers=type(ledger.numbers)(*doubled), least=np.concatenate([ledger.least, ledger.least])),
        Progress(place, np.concatenate([free[:unused], np.arange(len(free), 2 * len(free)), free[unused:]])),
    )


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


@njit(**INSIDE, forceinline=True)
def batch_end(first: int, lanes: int, spans: KeySpans) -> int:
    """Spans `first` to the result make one pass: windows of one key that overlap the first."""
    key, low, high, end = spans.key, spans.low, spans.high, first + 1
    while end < len(key) and end - first < lanes and key[end] == key[first] and low[end] < high[first]:
        end += 1
    return end


# ------------------------------------------------------------------------------------------ entries, compiled


@njit(**INSIDE, forceinline=True)
def wipe(r: int, ledger: RunLedger) -> None:
    """Entry r is empty."""
    width, least = ledger.width, ledger.least
    for k in range(width):
        clear(ledger.numbers, r * width + k)
    for x in range(least.shape[1]):
        for lane in range(least.shape[2]):
            least[r, x, lane] = ABSENT


@njit(**INSIDE, forceinline=True)
def move_entry(r: int, other: int, ledger: RunLedger) -> None:
    """Entry r becomes a copy of another."""
    width, numbers, least = ledger.width, ledger.numbers, ledger.least
    for k in range(width):
        copy(numbers, r * width + k, numbers, other * width + k)
    for x in range(least.shape[1]):
        for lane in range(least.shape[2]):
            least[r, x, lane] = least[other, x, lane]


@njit(**INSIDE, forceinline=True)
def join_entry(r: int, other: int, ledger: RunLedger) -> None:
    """The runs of another entry stand at entry r too."""
    width, numbers, least = ledger.width, ledger.numbers, ledger.least
    for k in range(width):
        add(numbers, r * width + k, numbers, other * width + k)
    for x in range(least.shape[1]):
        for lane in range(least.shape[2]):
            least[r, x, lane] = min(least[r, x, lane], least[other, x, lane])


@njit(**INSIDE, forceinline=True)
def start_entry(r: int, start: int, e: int, lanes: Lanes, bounds: Bounds, ledger: RunLedger) -> bool:
    """Runs start at event e in every lane that lets them; whether any does."""
    first, spans, least, found = lanes.first, lanes.spans, ledger.least, False
    for span in range(first, lanes.end):
        if spans.low[span] > e:
            break
        if e < spans.high[span] and (bounds.start_free[start] or _may_start(start, e, spans.low[span], bounds)):
            found = True
            add_unit(ledger.numbers, r * ledger.width, span - first, 1)
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
def gain_number(r: int, m: int, e: int, state: int, gains: Gains, ledger: RunLedger) -> None:
    """Linear measure m of all runs of entry r grows by weight · runs; a weight of 0 adds nothing, even to infinity."""
    if gains.weighs[m, state]:
        numbers, mine, row = ledger.numbers, r * ledger.width, gains.weight_of[m]
        if row < 0:
            add(numbers, mine + 1 + m, numbers, mine)
        elif gains.weights[row, e] != 0:
            add_times(numbers, mine + 1 + m, numbers, mine, gains.weights[row, e])


@njit(**INSIDE, forceinline=True)
def gain(r: int, e: int, state: int, gains: Gains, ledger: RunLedger) -> None:
    """All runs of entry r bind event e in this state."""
    least = ledger.least
    for m in range(ledger.width - 1):
        gain_number(r, m, e, state, gains, ledger)
    for x in range(least.shape[1]):
        if gains.valued[x, state]:
            value = gains.values[x, e]
            for lane in range(least.shape[2]):
                if least[r, x, lane] != ABSENT:
                    least[r, x, lane] = min(least[r, x, lane], value)


@njit(nogil=True, forceinline=True)
def count(r: int, e: int, state: int, lanes: Lanes, bounds: Bounds, ledger: RunLedger) -> None:
    """The matches that end at event e in this state are added to the totals of the lanes where they count."""
    first, spans, width = lanes.first, lanes.spans, ledger.width
    least, total_least = ledger.least, ledger.total_least
    for span in range(first, lanes.end):
        if spans.low[span] > e:
            break
        if e < spans.high[span] and (bounds.end_free[state] or _may_end(state, e, spans.high[span], bounds)):
            lane = span - first
            for k in range(width):
                add_lane(ledger.total, k, lane, ledger.numbers, r * width + k, lane)
            for x in range(least.shape[1]):
                total_least[x, lane] = min(total_least[x, lane], least[r, x, lane])


@njit(**INSIDE, forceinline=True)
def bind_event(
    r: int, stands: bool, e: int, state: int, start: int, lanes: Lanes, rules: RunRules, ledger: RunLedger
) -> bool:
    """Runs of entry r, if any stand there, and those that start at event e bind it; whether there are any.

    `start`: the start that leads to this state, or NONE. Matches that end here are counted.
    """
    if start != NONE:
        if not stands:
            wipe(r, ledger)
        stands |= start_entry(r, start, e, lanes, rules.bounds, ledger)
    if stands:
        gain(r, e, state, rules.gains, ledger)
        if rules.bounds.end_begin[state] < rules.bounds.end_begin[state + 1]:
            count(r, e, state, lanes, rules.bounds, ledger)
    return stands


@njit(**INSIDE, forceinline=True)
def open_lanes(ledger: RunLedger) -> None:
    """A new pass begins."""
    forgive(ledger.numbers)
    forgive(ledger.total)
    for k in range(ledger.width):
        clear(ledger.total, k)
    total_least = ledger.total_least
    for x in range(total_least.shape[0]):
        for lane in range(total_least.shape[1]):
            total_least[x, lane] = ABSENT


@njit(**INSIDE, forceinline=True)
def close_lanes(e: int, closed: int, lanes: Lanes, ledger: RunLedger, found: SpanTotals) -> int:
    """Write down the totals of windows that end at or before event e, from lane `closed` on; the first still open."""
    first, total, total_least = lanes.first, ledger.total, ledger.total_least
    while first + closed < lanes.end and lanes.spans.high[first + closed] <= e:
        for k in range(ledger.width):
            add_lane(found.numbers, first + closed, k, total, k, closed)
        for x in range(total_least.shape[0]):
            found.least[first + closed, x] = total_least[x, closed]
        found.spilled[first + closed] = spilled(ledger.numbers, closed) or spilled(total, closed)
        closed += 1
    return closed


# ------------------------------------------------------------------------- entries that come and go, compiled


@njit(**INSIDE, forceinline=True)
def open_pass(lanes: int, spans: KeySpans, progress: Progress, ledger: RunLedger) -> bool:
    """Go on with the pass that was interrupted, or begin the next, of so many lanes at most; False: all are done."""
    place = progress.place
    if place[AT] < 0:
        place[FIRST] = place[END]
        if place[FIRST] >= len(spans.key):
            return False
        place[END] = batch_end(place[FIRST], lanes, spans)
        place[AT], place[CLOSED] = spans.low[place[FIRST]], 0
        open_lanes(ledger)
    return True


@njit(**INSIDE, forceinline=True)
def take_entry(progress: Progress) -> int:
    """An entry that is not in use."""
    progress.place[UNUSED] -= 1
    return progress.free[progress.place[UNUSED]]


@njit(**INSIDE, forceinline=True)
def give_back(entry: int, progress: Progress) -> None:
    """An entry is not in use any more."""
    progress.free[progress.place[UNUSED]] = entry
    progress.place[UNUSED] += 1


@njit(**INSIDE, forceinline=True)
def stand(
    entry: int, e: int, state: int, lanes: Lanes, rules: RunRules, progress: Progress, ledger: RunLedger
) -> int:  # fmt: skip
    """Runs that have arrived at event e (their entry, or NONE), and those that start, bind it: their entry, or NONE."""
    start, arrived = rules.start_of[state], entry != NONE
    if not arrived and start == NONE:
        return NONE
    if not arrived:
        entry = take_entry(progress)
    if not bind_event(entry, arrived, e, state, start, lanes, rules, ledger):
        give_back(entry, progress)
        entry = NONE
    return entry
