"""Add up the matches of skip-till-next-match runs in one pass, where each state waits for one inequality at most.

Idea: runs that stand at an event wait until some move is possible. If of the moves that lead on from a state at most
one has a predicate, `left(e) < right(f)` (or its kin), then the entries (see `ledger`) that wait in that state are kept
in the order of `left`: an event f takes all with `left < right(f)`, the least first; an event to which a move without
predicate leads takes all entries. Taken entries become the entry of f, so each is handled once.

The order is a stack with the least on top, and a heap for entries that arrive greater than that. Where both sides read
the same column, nothing ever does: whatever was less than the new event has just been taken. Entries of equal
`left` are merged, so no more wait than there are values.

Cost: O(1) amortised per event and move by the stack, O(log waiting) by the heap; no table of successors. Memory: what
waits.   See Poppe, "Event Stream Analytics", ch. 16, and docs/semantics.md on skip-till-next-match.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.measures import Addends, Spans, SpanTotals
from trendloom.kernels.aggregate.pattern_grained.ledger import (
    AT,
    CLOSED,
    END,
    FIRST,
    RESERVE,
    UNUSED,
    KeySpans,
    Lanes,
    RunLedger,
    RunRules,
    close_lanes,
    give_back,
    join_entry,
    ledger_of,
    most_lanes,
    move_entry,
    open_pass,
    rules_of,
    stand,
    take_entry,
    with_more,
)
from trendloom.kernels.columns.numbers import LEAN, Limbs
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.matching.successors import NONE
from trendloom.kernels.matching.tables import OPERATORS, Checks, fits_at, fitting_bits

LOWEST = -(2**63)
ORDERED = ("<", "<=", ">", ">=")
MOST_NUMBERS = 1 << 27
"""Numbers that may wait at a time; more windows than that allows are not added up side by side."""


class WaitingCourse(NamedTuple):
    """How runs move. `pair[s]` is the predicate that state s waits for, or NONE; `others[s]`: it has moves without one.

    A predicate is `left < right` after both are flipped by ^ `flip` (−1 turns the order around), or `left <= right`.
    """

    fits: Array
    others: Array
    pair: Array
    flip: Array
    or_equal: Array


class WaitingRuns(NamedTuple):
    """An entry that waits, or NONE; its `left`, and whether that is known."""

    entry: int
    left: int
    known: bool


class Queues(NamedTuple):
    """Entries that wait, by state: `rest` in one for moves without predicate only, the others in order of `left`.

    `arrived[i, s]`: the entry of runs that have come to the i-th event of this time in state s, or NONE.
    """

    rest: Array
    stack_left: Array
    stack: Array
    height: Array
    heap_left: Array
    heap: Array
    size: Array
    arrived: Array


def is_simple(addends: Addends) -> bool:
    """Whether every state waits for one inequality at most, and no NOT lies between two events."""
    pairs = addends.spec.pairs
    for state, steps in enumerate(addends.automaton.moves[0]):
        asked = [pair.operator for step in steps for pair in pairs if (state, step.number) in pair.steps]
        if len(asked) > 1 or any(operator not in ORDERED for operator in asked) or any(any(s.ways) for s in steps):
            return False
    return True


def add_up_waiting(addends: Addends, spans: Spans, found: SpanTotals) -> None:
    """Fill the totals of every span: the pass, interrupted whenever it needs more entries."""
    block, rules = addends.block, rules_of(addends, found.numbers)
    course, states = _course(fitting_bits(block), rules), len(rules.position_of)
    group = int((block.tie_end - block.tie_start).max(initial=1))
    most = MOST_NUMBERS // ((addends.linear + 1) * int((spans.high - spans.low).max(initial=1)))
    lanes = max(1, min(most_lanes(spans), most))
    reserve = 2 * states * (group + 1)  # entries that events of one time can take
    ledger = ledger_of(addends, found, 4 * reserve, lanes, reserve)
    queues, stretches = _queues(states, 4 * reserve, group), KeySpans(spans.key, spans.low, spans.high)
    pass_ = _with_scratch if isinstance(found.numbers, Limbs) else _lean
    while not pass_(stretches, lanes, course, rules, queues, ledger, found):
        ledger = with_more(ledger)
        queues = _longer(queues)


def _course(fits: Array, rules: RunRules) -> WaitingCourse:
    states, moves, checks = len(rules.position_of), rules.moves, rules.checks
    pair = np.full(states, NONE, np.int64)
    others, or_equal, flip = np.zeros(states, np.bool_), np.zeros(states, np.bool_), np.zeros(states, np.int64)
    for state in range(states):
        for move in range(moves.begin[state], moves.begin[state + 1]):
            if moves.free[move]:
                others[state] = True
                continue
            pair[state] = checks.pairs[checks.pairs_begin[move]]
            operator = OPERATORS[checks.operators[pair[state]]]
            or_equal[state], flip[state] = operator in ("<=", ">="), -1 if operator in (">", ">=") else 0
    return WaitingCourse(fits, others, pair, flip, or_equal)


def _queues(states: int, capacity: int, group: int) -> Queues:
    """Empty queues, for events of which at most `group` have one time."""
    left, entry = np.empty((states, capacity), np.int64), np.empty((states, capacity), np.int64)
    none, arrived = np.zeros(states, np.int64), np.full((group, states), NONE, np.int64)
    return Queues(none + NONE, left, entry, none.copy(), left.copy(), entry.copy(), none.copy(), arrived)


def _longer(queues: Queues) -> Queues:
    left, entry, heap_left, heap = (
        np.concatenate([a, np.empty_like(a)], axis=1)
        for a in (queues.stack_left, queues.stack, queues.heap_left, queues.heap)
    )
    return queues._replace(stack_left=left, stack=entry, heap_left=heap_left, heap=heap)


# ---------------------------------------------------------------------------------------------- the pass


def _pass(
    spans: KeySpans, most: int, course: WaitingCourse, rules: RunRules, queues: Queues, ledger: RunLedger,
    found: SpanTotals,
) -> bool:  # fmt: skip
    """All spans, at most so many at once, from where they were left; False: there are too few free entries."""
    place, position_of, arrived, states = ledger.place, rules.position_of, queues.arrived, len(rules.position_of)
    while open_pass(most, spans, ledger):
        lanes, at, closed = Lanes(place[FIRST], place[END], spans), place[AT], place[CLOSED]
        stop = spans.high[lanes.end - 1]
        while at < stop:
            if place[UNUSED] < place[RESERVE]:
                place[AT], place[CLOSED] = at, closed
                return False
            closed = close_lanes(at, closed, lanes, ledger, found)
            after = rules.checks.tie_end[at]
            for state in range(states):
                _take(state, at, course, rules, queues, ledger)
            for e in range(at, after):
                for state in range(states):
                    if fits_at(course.fits[e], position_of[state]):
                        entry = stand(arrived[e - at, state], e, state, lanes, rules, ledger)
                        arrived[e - at, state] = NONE
                        if entry != NONE:
                            _wait(entry, e, state, course, rules.checks, queues, ledger)
            at = after
        close_lanes(stop, closed, lanes, ledger, found)
        for state in range(states):
            _empty(state, queues, ledger)
        place[AT] = -1
    return True


@njit(nogil=True, forceinline=True)
def _empty(state: int, queues: Queues, ledger: RunLedger) -> None:
    """No entry waits any more."""
    if queues.rest[state] != NONE:
        give_back(queues.rest[state], ledger)
        queues.rest[state] = NONE
    for at in range(queues.height[state]):
        give_back(queues.stack[state, at], ledger)
    for at in range(queues.size[state]):
        give_back(queues.heap[state, at], ledger)
    queues.height[state], queues.size[state] = 0, 0


@njit(nogil=True, forceinline=True)
def _wait(
    entry: int, e: int, state: int, course: WaitingCourse, checks: Checks, queues: Queues, ledger: RunLedger
) -> None:
    """The runs of an entry wait for what can extend them."""
    pair = course.pair[state]
    if pair != NONE and checks.known[0, pair, e]:
        left, top = checks.left[pair, e] ^ course.flip[state], queues.height[state]
        if top > 0 and queues.stack_left[state, top - 1] == left:
            join_entry(queues.stack[state, top - 1], entry, ledger)
            give_back(entry, ledger)
        elif top == 0 or left < queues.stack_left[state, top - 1]:
            queues.stack_left[state, top], queues.stack[state, top] = left, entry
            queues.height[state] = top + 1
        else:
            _push(queues.heap_left[state], queues.heap[state], queues.size[state], left, entry)
            queues.size[state] += 1
    elif course.others[state] and queues.rest[state] == NONE:
        queues.rest[state] = entry
    else:
        if course.others[state]:
            join_entry(queues.rest[state], entry, ledger)
        give_back(entry, ledger)


@njit(**INSIDE)
def _push(lefts: Array, entries: Array, size: int, left: int, entry: int) -> None:
    """Into a heap with the least first."""
    at = size
    while at > 0 and lefts[(at - 1) // 2] > left:
        lefts[at], entries[at] = lefts[(at - 1) // 2], entries[(at - 1) // 2]
        at = (at - 1) // 2
    lefts[at], entries[at] = left, entry


@njit(nogil=True)
def _drop(lefts: Array, entries: Array, size: int) -> None:
    """The least leaves a heap of that size."""
    left, entry, at = lefts[size - 1], entries[size - 1], 0
    while 2 * at + 1 < size - 1:
        child = 2 * at + 1
        if child + 1 < size - 1 and lefts[child + 1] < lefts[child]:
            child += 1
        if left <= lefts[child]:
            break
        lefts[at], entries[at] = lefts[child], entries[child]
        at = child
    lefts[at], entries[at] = left, entry


@njit(**INSIDE, forceinline=True)
def _take(state: int, at: int, course: WaitingCourse, rules: RunRules, queues: Queues, ledger: RunLedger) -> None:
    """The events of one time, from `at` on, take the runs that wait in a state and that one of them can extend."""
    if queues.rest[state] == NONE and queues.height[state] == 0 and queues.size[state] == 0:
        return
    all_, limit, takers, f, target = _takers(state, at, course, rules)
    if takers == 0:
        return
    waiting, mine = _pop(state, all_, limit, queues), queues.arrived[f - at, target]
    while waiting.entry != NONE:
        if takers > 1:
            _share(waiting, state, at, course, rules, queues.arrived, ledger)
            give_back(waiting.entry, ledger)
        elif mine == NONE:
            mine = waiting.entry
        else:
            join_entry(mine, waiting.entry, ledger)
            give_back(waiting.entry, ledger)
        waiting = _pop(state, all_, limit, queues)
    if takers == 1:
        queues.arrived[f - at, target] = mine


@njit(**INSIDE, forceinline=True)
def _limit(state: int, f: int, course: WaitingCourse, checks: Checks) -> tuple[bool, int]:
    """Whether event f can extend runs by the move with the predicate, and the greatest `left` that lets it."""
    pair = course.pair[state]
    right = checks.right[pair, f] ^ course.flip[state]
    lowest = right == LOWEST and not course.or_equal[state]
    return checks.known[1, pair, f] and not lowest, right if course.or_equal[state] or lowest else right - 1


@njit(**INSIDE, forceinline=True)
def _takers(state: int, at: int, course: WaitingCourse, rules: RunRules) -> tuple[bool, int, int, int, int]:
    """Whether events of one time take all that wait in a state, else up to which `left`; how many do, and the last."""
    moves, checks = rules.moves, rules.checks
    all_, limit, takers, last, target = False, LOWEST, 0, at, 0
    for f in range(at, checks.tie_end[at]):
        for move in range(moves.begin[state], moves.begin[state + 1]):
            if fits_at(course.fits[f], moves.position[move]):
                able, mine = (True, LOWEST) if moves.free[move] else _limit(state, f, course, checks)
                if able:
                    all_ |= moves.free[move]
                    takers, limit, last, target = takers + 1, max(limit, mine), f, moves.target[move]
    return all_, limit, takers, last, target


@njit(**INSIDE, forceinline=True)
def _pop(state: int, all_: bool, limit: int, queues: Queues) -> WaitingRuns:
    """Remove an entry from those that wait: the least, if its `left` is at most `limit`, or any."""
    entry, left, known, top = NONE, LOWEST, True, queues.height[state] - 1
    if top >= 0 and (all_ or queues.stack_left[state, top] <= limit):
        entry, left = queues.stack[state, top], queues.stack_left[state, top]
        queues.height[state] = top
    elif queues.size[state] > 0 and (all_ or queues.heap_left[state, 0] <= limit):
        entry, left = queues.heap[state, 0], queues.heap_left[state, 0]
        _drop(queues.heap_left[state], queues.heap[state], queues.size[state])
        queues.size[state] -= 1
    elif all_:
        entry, known = queues.rest[state], False
        queues.rest[state] = NONE
    return WaitingRuns(entry, left, known)


@njit(**INSIDE)
def _share(
    waiting: WaitingRuns, state: int, at: int, course: WaitingCourse, rules: RunRules, arrived: Array, ledger: RunLedger
) -> None:
    """The runs of an entry go on to every event of one time that can extend them; each takes a copy."""
    moves, checks = rules.moves, rules.checks
    entry, left, known = waiting
    for f in range(at, checks.tie_end[at]):
        for move in range(moves.begin[state], moves.begin[state + 1]):
            if not fits_at(course.fits[f], moves.position[move]):
                continue
            able, limit = (True, left) if moves.free[move] else _limit(state, f, course, checks)
            if able and left <= limit and (known or moves.free[move]):
                mine = arrived[f - at, moves.target[move]]
                if mine != NONE:
                    join_entry(mine, entry, ledger)
                else:
                    mine = take_entry(ledger)
                    arrived[f - at, moves.target[move]] = mine
                    move_entry(mine, entry, ledger)


_lean = njit(**LEAN)(_pass)
_with_scratch = njit(nogil=True)(_pass)
