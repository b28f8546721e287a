"""A ledger of runs: what all runs that stand at one event in one state amount to, one entry each, one lane per window.

Under skip-till-next-match and contiguous the future of a run depends on the event and state where it stands, so all
runs that stand there share an entry: their number, the sums of the linear measures, the least values. Windows that
overlap share everything but where runs may start and where matches must end; so they are the *lanes* of one pass over
the events of all of them: a run starts in the lanes whose window has begun, and a match counts in the lanes whose
window has not ended.

Entry r has the rows r·width to r·width + width − 1 of the numbers (the number of runs, then each linear measure) and
`least[r, extreme, lane]`. Cost: O(lanes · width) per operation.

Where entries come and go, those that are not in use are a list, and a pass that runs out of them is interrupted until
there are more (`with_more`).

The operations are compiled into the passes that use them (`forceinline`), and the passes count no references to arrays
(`LEAN`): a call that hands on a dozen arrays costs more than the addition it is made for. Only numbers of many words
need scratch arrays, and so references.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.measures import (
    ABSENT,
    EMPTY,
    FREE,
    NEVER,
    Addends,
    Bars,
    EventTerms,
    Spans,
    SpanTotals,
    terms_of,
)
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
from trendloom.kernels.matching.successors import NONE
from trendloom.kernels.matching.tables import Checks, Moves, checks_of, moves_of


class Bounds(NamedTuple):
    """By state the bar before a match that begins there and after one that ends there, rows of `bars`; see `Bars`."""

    lead: Array
    trail: Array
    bars: Array
    tie_start: Array
    tie_end: Array


class RunRules(NamedTuple):
    """Where runs start, go on and end, and what they gain, as tables for compiled code. `position_of`: by state."""

    position_of: Array
    moves: Moves
    checks: Checks
    terms: EventTerms
    bounds: Bounds


def rules_of(addends: Addends, like: Numbers) -> RunRules:
    """The rules of a block. O(events) for each condition on two events and each NOT."""
    automaton, pairs, block, bars = addends.automaton, addends.spec.pairs, addends.block, Bars(addends)
    position_of = np.array(automaton.spec.scopes[0].template.position_of, np.int64)
    bounds = Bounds(bars.lead(), bars.trail(), bars.table(), block.tie_start, block.tie_end)
    moves, checks = moves_of(automaton, pairs), checks_of(automaton, pairs, block)
    return RunRules(position_of, moves, checks, terms_of(addends, like), bounds)


MOST_LANES = 16
"""Windows that one pass over the events adds up side by side."""


class RunLedger(NamedTuple):
    """Entries, each with `width` numbers, and the totals of the windows of the pass under way.

    `place`: how far the passes have come (see `FIRST`); `free`: the numbers of entries, in front those not in use.
    """

    width: int
    numbers: Numbers
    least: Array
    total: Numbers
    total_least: Array
    place: Array
    free: Array


FIRST, END, AT, CLOSED, UNUSED, RESERVE = range(6)
"""What `place` holds: the spans of the pass under way, its next event, its closed lanes; how many entries are free, and
how many must be."""


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


def ledger_of(addends: Addends, found: SpanTotals, entries: int, lanes: int, reserve: int = 0) -> RunLedger:
    """A ledger in the number system of the totals that are to be found; all entries are free, no pass has begun."""
    width, system, words = addends.linear + 1, type(found.numbers), words_of(found.numbers)
    numbers, total = (zeros(system, rows * width, lanes, words) for rows in (entries, 1))
    least, total_least = (np.empty((rows, addends.extremes, lanes), np.int64) for rows in (entries, 1))
    place = np.array([0, 0, -1, 0, entries, reserve], np.int64)
    return RunLedger(width, numbers, least, total, total_least[0], place, np.arange(entries))


def with_more(ledger: RunLedger) -> RunLedger:
    """Twice as many entries; the new ones are free."""
    free, unused = ledger.free, ledger.place[UNUSED]
    doubled = (np.concatenate([a, np.zeros_like(a)]) if a.ndim > 1 else a for a in ledger.numbers)
    ledger.place[UNUSED] += len(free)
    return ledger._replace(
        numbers=type(ledger.numbers)(*doubled),
        least=np.concatenate([ledger.least, ledger.least]),
        free=np.concatenate([free[:unused], np.arange(len(free), 2 * len(free)), free[unused:]]),
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
def start_entry(r: int, state: int, e: int, lanes: Lanes, bounds: Bounds, ledger: RunLedger) -> bool:
    """Runs start at event e in every lane that lets them; whether any does."""
    first, spans, least, found, lead = lanes.first, lanes.spans, ledger.least, False, bounds.lead[state]
    bar = np.int64(-1) if lead == FREE else bounds.bars[lead, bounds.tie_start[e]]
    for span in range(first, lanes.end):
        if spans.low[span] > e:
            break
        if e < spans.high[span] and bar < spans.low[span]:
            found = True
            add_unit(ledger.numbers, r * ledger.width, span - first, 1)
            for x in range(least.shape[1]):
                least[r, x, span - first] = min(least[r, x, span - first], EMPTY)
    return found


@njit(**INSIDE, forceinline=True)
def gain_number(r: int, m: int, e: int, state: int, terms: EventTerms, ledger: RunLedger) -> None:
    """Linear measure m of all runs of entry r grows by weight · runs; a weight of 0 adds nothing, even to infinity."""
    if terms.weighs[m, state]:
        numbers, mine, row = ledger.numbers, r * ledger.width, terms.weight_of[m]
        if row < 0:
            add(numbers, mine + 1 + m, numbers, mine)
        elif terms.weights[row, e] != 0:
            add_times(numbers, mine + 1 + m, numbers, mine, terms.weights[row, e])


@njit(**INSIDE, forceinline=True)
def gain(r: int, e: int, state: int, terms: EventTerms, ledger: RunLedger) -> None:
    """All runs of entry r bind event e in this state."""
    least = ledger.least
    for m in range(ledger.width - 1):
        gain_number(r, m, e, state, terms, ledger)
    for x in range(least.shape[1]):
        if terms.valued[x, state]:
            value = terms.values[x, e]
            for lane in range(least.shape[2]):
                if least[r, x, lane] != ABSENT:
                    least[r, x, lane] = min(least[r, x, lane], value)


@njit(nogil=True, forceinline=True)
def count(r: int, e: int, state: int, lanes: Lanes, bounds: Bounds, ledger: RunLedger) -> None:
    """The matches that end at event e in this state are added to the totals of the lanes where they count."""
    first, spans, width, trail = lanes.first, lanes.spans, ledger.width, bounds.trail[state]
    least, total_least = ledger.least, ledger.total_least
    for span in range(first, lanes.end):
        if spans.low[span] > e:
            break
        if e < spans.high[span] and (trail == FREE or bounds.bars[trail, spans.high[span]] < bounds.tie_end[e]):
            lane = span - first
            for k in range(width):
                add_lane(ledger.total, k, lane, ledger.numbers, r * width + k, lane)
            for x in range(least.shape[1]):
                total_least[x, lane] = min(total_least[x, lane], least[r, x, lane])


@njit(**INSIDE, forceinline=True)
def bind_event(r: int, stands: bool, e: int, state: int, lanes: Lanes, rules: RunRules, ledger: RunLedger) -> bool:
    """Runs of entry r, if any stand there, and those that start at event e bind it; whether there are any.

    Matches that end here are counted.
    """
    bounds = rules.bounds
    if bounds.lead[state] != NEVER:
        if not stands:
            wipe(r, ledger)
        stands |= start_entry(r, state, e, lanes, bounds, ledger)
    if stands:
        gain(r, e, state, rules.terms, ledger)
        if bounds.trail[state] != NEVER:
            count(r, e, state, lanes, bounds, ledger)
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
def open_pass(lanes: int, spans: KeySpans, ledger: RunLedger) -> bool:
    """Go on with the pass that was interrupted, or begin the next, of so many lanes at most; False: all are done."""
    place = ledger.place
    if place[AT] < 0:
        place[FIRST] = place[END]
        if place[FIRST] >= len(spans.key):
            return False
        place[END] = batch_end(place[FIRST], lanes, spans)
        place[AT], place[CLOSED] = spans.low[place[FIRST]], 0
        open_lanes(ledger)
    return True


@njit(**INSIDE, forceinline=True)
def take_entry(ledger: RunLedger) -> int:
    """An entry that is not in use."""
    ledger.place[UNUSED] -= 1
    return ledger.free[ledger.place[UNUSED]]


@njit(**INSIDE, forceinline=True)
def give_back(entry: int, ledger: RunLedger) -> None:
    """An entry is not in use any more."""
    ledger.free[ledger.place[UNUSED]] = entry
    ledger.place[UNUSED] += 1


@njit(**INSIDE, forceinline=True)
def stand(entry: int, e: int, state: int, lanes: Lanes, rules: RunRules, ledger: RunLedger) -> int:
    """Runs that have arrived at event e (their entry, or NONE), and those that start, bind it: their entry, or NONE."""
    arrived = entry != NONE
    if not arrived and rules.bounds.lead[state] == NEVER:
        return NONE
    if not arrived:
        entry = take_entry(ledger)
    if not bind_event(entry, arrived, e, state, lanes, rules, ledger):
        give_back(entry, ledger)
        entry = NONE
    return entry
