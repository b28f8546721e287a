"""Add up the matches of contiguous runs: only the entries of the time before are ever needed.

A contiguous run goes on at the very next time of its key or not at all. So one pass forward holds two groups of entries
(see `ledger`): the events of the last time and those of this one. A move without predicates takes the sum of the last
group, a move with predicates compares every event of one group with every event of the other. No NOT can be violated
between them, for nothing lies between.

Mostly a time has one event and the event fits one state. Then all runs under way stand in one entry, which stays where
it is: it goes on or is wiped, and nothing is copied (`_one_by_one`).

Cost: O(events · moves · lanes) without ties; a predicate on events of equal time costs the product of the two groups.
Memory: two groups.   See Poppe, "Event Stream Analytics", ch. 16.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.measures import EMPTY, NEVER, Addends, EventTerms, Spans, SpanTotals
from trendloom.kernels.aggregate.pattern_grained.ledger import (
    KeySpans,
    Lanes,
    RunLedger,
    RunRules,
    batch_end,
    bind_event,
    close_lanes,
    count,
    gain,
    gain_number,
    join_entry,
    ledger_of,
    most_lanes,
    move_entry,
    open_lanes,
    rules_of,
    start_entry,
    wipe,
)
from trendloom.kernels.columns.numbers import LEAN, Limbs, add_lane, add_unit, clear
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.matching.tables import Checks, compare, fits_at, fitting_bits, possible

NO_STATE, MANY = -1, -2
"""Instead of a state: no run stands there; several events of one time, or several states of one event."""
GOES_ON, STARTS, ENDS = 1, 2, 4
"""What can happen at an event: runs that stand at the event before it go on to it, runs start, matches end."""
MOST_PAIRS = 64
"""Predicates whose truth fits into a word; with more of them every event is treated as one of a group."""


class ConsecutiveCourse(NamedTuple):
    """How runs move: what each event fits, and the moves between states."""

    fits: Array
    lone: Array  # the one state of an event that is alone at its time; NO_STATE, MANY
    fate: Array  # of such an event: GOES_ON, STARTS, ENDS, added
    source: Array  # of each move
    group: int  # events of equal time, at most
    stands: Array  # by entry: whether runs stand there


def add_up_consecutive(addends: Addends, spans: Spans, found: SpanTotals) -> None:
    """Fill the totals of every span."""
    rules, lanes = rules_of(addends, found.numbers), most_lanes(spans)
    course = _course(fitting_bits(addends.block), rules)
    pass_ = _with_scratch if isinstance(found.numbers, Limbs) else _lean
    ledger = ledger_of(addends, found, len(course.stands), lanes)
    pass_(KeySpans(spans.key, spans.low, spans.high), lanes, course, rules, ledger, found)


def _course(fits: Array, rules: RunRules) -> ConsecutiveCourse:
    position, moves, checks = rules.position_of, rules.moves, rules.checks
    source = np.repeat(np.arange(len(position)), np.diff(moves.begin))
    move_of = np.full((len(position), len(position)), NO_STATE, np.int64)
    move_of[source, moves.target] = np.arange(len(source))
    needs = np.array([_bits(checks.pairs[a:b]) for a, b in pairwise(checks.pairs_begin.tolist())], np.uint64)
    bounds = rules.bounds
    always = np.where(bounds.lead == NEVER, 0, STARTS) + np.where(bounds.trail == NEVER, 0, ENDS)
    lone, fate = np.empty(len(fits), np.int8), np.empty(len(fits), np.int8)
    group = _find_fates(lone, fate, fits, rules, always, move_of, needs, _truths(checks))
    if len(checks.operators) > MOST_PAIRS:
        lone[:] = MANY
    entries = 1 + (2 * group + 1) * len(position)  # the lone one, two groups, and the sum of the last by state
    return ConsecutiveCourse(fits, lone, fate, source, group, np.zeros(entries, np.bool_))


def _bits(pairs: Array) -> int:
    return sum(1 << int(pair) for pair in pairs if pair < MOST_PAIRS)


def _truths(checks: Checks) -> Array:
    """Per event a bit for each pair that is true of the event before it and itself; nothing if there are no pairs."""
    count = min(len(checks.operators), MOST_PAIRS)
    truths = np.zeros(checks.left.shape[1] if count else 0, np.uint8 if count <= 8 else np.uint64)
    for pair in range(count):
        left, right, known = checks.left[pair], checks.right[pair], checks.known[:, pair]
        _add_truths(truths, pair, checks.operators[pair], left, right, known[0], known[1])
    return truths


@njit(**LEAN)
def _add_truths(
    truths: Array, pair: int, operator: int, left: Array, right: Array, left_known: Array, right_known: Array
) -> None:
    """One bit of every event. Nothing branches: whether a predicate holds is hard to foresee."""
    for e in range(1, len(truths)):
        holds = left_known[e - 1] & right_known[e] & compare(operator, left[e - 1], right[e])
        truths[e] |= truths.dtype.type(holds) << truths.dtype.type(pair)


@njit(**LEAN)
def _find_fates(
    lone: Array, fate: Array, fits: Array, rules: RunRules, always: Array, move_of: Array, needs: Array, truths: Array
) -> int:
    """Fill the columns of `ConsecutiveCourse`; returns the size of the greatest group of events of equal time.

    `always`: what happens at every event of a state; `needs`: the truths that each move requires. That the event before
    is one of another key does no harm, for no run stands there when a pass begins.
    """
    position, tie_end = rules.position_of, rules.checks.tie_end
    group, begin, before = 1, 0, NO_STATE
    for e in range(len(fits)):
        if e >= tie_end[begin]:
            begin = e
        group = max(group, e + 1 - begin)
        state = NO_STATE
        for each in range(len(position)):
            if fits_at(fits[e], position[each]):
                state = each if state == NO_STATE else MANY
        state = MANY if tie_end[e] - begin > 1 else state
        found = always[state] if state >= 0 else 0
        if state >= 0 and before >= 0 and move_of[before, state] != NO_STATE:
            need = needs[move_of[before, state]]
            found += GOES_ON * (need == 0 or truths[e] & need == need)
        lone[e], fate[e], before = state, found, state
    return group


# ---------------------------------------------------------------------------------------------- the pass


@njit(**INSIDE, forceinline=True)
def _zero() -> int:
    """The constant 0 is a type of its own, for which everything would be compiled once more."""
    return int(np.int64(0))


def _pass(
    spans: KeySpans, most: int, course: ConsecutiveCourse, rules: RunRules, ledger: RunLedger, found: SpanTotals
) -> None:
    """All spans, as many at once as there are lanes."""
    zero, lone, tie_end = _zero(), course.lone, rules.checks.tie_end
    end, simple = zero, len(rules.bounds.bars) == 0
    while end < len(spans.key):
        first, end = end, batch_end(end, most, spans)
        lanes = Lanes(first, end, spans)
        open_lanes(ledger)
        at, stop, closed, size, side = spans.low[first], spans.high[end - 1], zero, zero, zero
        while at < stop:
            if lone[at] != MANY and (size == 0 or lone[at - 1] != MANY):
                standing = _leave_group(size, side, course, rules.position_of, ledger)
                if most == 1 and simple:
                    at, standing = _one_by_one_alone(at, stop, standing, course, rules.terms, ledger)
                else:
                    at, closed, standing = _one_by_one(at, standing, closed, lanes, course, rules, ledger, found)
                size = _enter_group(standing, side, course, rules.position_of, ledger)
                continue
            closed = close_lanes(at, closed, lanes, ledger, found)
            after = tie_end[at]
            _group(at, after, size, side, lanes, course, rules, ledger)
            size, side, at = after - at, 1 - side, after
        close_lanes(stop, closed, lanes, ledger, found)


@njit(**INSIDE)
def _one_by_one(
    at: int, standing: int, closed: int, lanes: Lanes, course: ConsecutiveCourse, rules: RunRules, ledger: RunLedger,
    found: SpanTotals,
) -> tuple[int, int, int]:  # fmt: skip
    """Follow events that are alone at their time, as long as there are some. All runs stand in entry 0."""
    mine, bounds, stop = _zero(), rules.bounds, lanes.spans.high[lanes.end - 1]
    while at < stop and course.lone[at] != MANY:
        closed = close_lanes(at, closed, lanes, ledger, found)
        state, fate = int(course.lone[at]), course.fate[at]
        stands = standing != NO_STATE and fate & GOES_ON != 0
        if not stands:
            wipe(mine, ledger)
        if fate & STARTS:
            stands |= start_entry(mine, state, at, lanes, bounds, ledger)
        if stands:
            gain(mine, at, state, rules.terms, ledger)
            if fate & ENDS:
                count(mine, at, state, lanes, bounds, ledger)
        standing = state if stands else NO_STATE
        at += 1
    return at, closed, standing


@njit(**INSIDE)
def _one_by_one_alone(
    at: int, stop: int, standing: int, course: ConsecutiveCourse, terms: EventTerms, ledger: RunLedger
) -> tuple[int, int]:
    """The same for a pass of one window, if no NOT leads or trails: nothing depends on the window but its ends."""
    lone, fates, values, width, numbers = course.lone, course.fate, terms.values, ledger.width, ledger.numbers
    least, total, total_least, extremes = ledger.least, ledger.total, ledger.total_least, ledger.least.shape[1]
    stands, mine = standing != NO_STATE, _zero()
    while at < stop and lone[at] != MANY:
        state, fate = int(lone[at]), fates[at]
        stands &= fate & GOES_ON != 0
        if not stands:
            for k in range(width):
                clear(numbers, k)
            for x in range(extremes):
                least[0, x, 0] = EMPTY
        if fate & STARTS:
            stands = True
            add_unit(numbers, 0, 0, 1)
        if stands:
            for m in range(width - 1):
                gain_number(mine, m, at, state, terms, ledger)
            for x in range(extremes):
                if terms.valued[x, state]:
                    least[0, x, 0] = min(least[0, x, 0], values[x, at])
            if fate & ENDS:
                for k in range(width):
                    add_lane(total, k, 0, numbers, k, 0)
                for x in range(extremes):
                    total_least[x, 0] = min(total_least[x, 0], least[0, x, 0])
        at += 1
    return at, lone[at - 1] if stands else NO_STATE


@njit(**INSIDE, forceinline=True)
def _leave_group(size: int, side: int, course: ConsecutiveCourse, position_of: Array, ledger: RunLedger) -> int:
    """The state in which runs stand at the lone event of the last group, or NO_STATE; their entry becomes entry 0."""
    states = len(position_of)
    for state in range(states if size == 1 else 0):
        if course.stands[1 + side * course.group * states + state]:
            move_entry(_zero(), 1 + side * course.group * states + state, ledger)
            return state
    return NO_STATE


@njit(**INSIDE, forceinline=True)
def _enter_group(standing: int, side: int, course: ConsecutiveCourse, position_of: Array, ledger: RunLedger) -> int:
    """Make a group of entry 0, where runs stand in that state; returns its size."""
    states = len(position_of)
    mine = 1 + side * course.group * states
    for state in range(states):
        course.stands[mine + state] = state == standing
    if standing != NO_STATE:
        move_entry(mine + standing, _zero(), ledger)
    return 1


@njit(**INSIDE)
def _group(
    at: int, after: int, size: int, side: int, lanes: Lanes, course: ConsecutiveCourse, rules: RunRules,
    ledger: RunLedger,
) -> None:  # fmt: skip
    """Events of one time, after a group of `size` events."""
    states, stands = len(rules.position_of), course.stands
    old, sums = 1 + side * course.group * states, 1 + 2 * course.group * states
    new = 1 + (1 - side) * course.group * states
    _sum_group(old, size, sums, states, stands, ledger)
    for e in range(at, after):
        mine = new + (e - at) * states
        for state in range(states):
            stands[mine + state] = False
        _go_on(e, mine, at - size, size, old, course, rules, ledger)
        for state in range(states):
            if fits_at(course.fits[e], rules.position_of[state]):
                entry = mine + state
                stands[entry] = bind_event(entry, stands[entry], e, state, lanes, rules, ledger)


@njit(**INSIDE)
def _sum_group(old: int, size: int, sums: int, states: int, stands: Array, ledger: RunLedger) -> None:
    """The sum of the last group, by state."""
    for state in range(states):
        stands[sums + state] = False
        for p in range(size):
            _arrive(sums + state, old + p * states + state, stands, ledger)


@njit(**INSIDE, forceinline=True)
def _arrive(entry: int, other: int, stands: Array, ledger: RunLedger) -> None:
    """Add the runs of another entry, if there are any, to this one."""
    if stands[other]:
        if stands[entry]:
            join_entry(entry, other, ledger)
        else:
            move_entry(entry, other, ledger)
            stands[entry] = True


@njit(**INSIDE)
def _go_on(
    e: int, mine: int, before: int, size: int, old: int, course: ConsecutiveCourse, rules: RunRules, ledger: RunLedger
) -> None:
    """All runs that stand at the last group and can go on to event e."""
    states, stands, moves = len(rules.position_of), course.stands, rules.moves
    sums = 1 + 2 * course.group * states
    for move in range(len(course.source)):
        if not fits_at(course.fits[e], moves.position[move]):
            continue
        entry, source = mine + moves.target[move], course.source[move]
        if moves.free[move]:
            _arrive(entry, sums + source, stands, ledger)
            continue
        for p in range(size):
            if stands[old + p * states + source] and possible(before + p, e, move, rules.checks):
                _arrive(entry, old + p * states + source, stands, ledger)


_lean = njit(**LEAN)(_pass)
_with_scratch = njit(nogil=True)(_pass)
