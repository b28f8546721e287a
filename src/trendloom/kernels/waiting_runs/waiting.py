"""Add up the matches of skip-till-next-match runs in one pass, where each state waits for one inequality at most.

Idea: runs that stand at an event wait until some move is possible. If of the moves that lead on from a state at most
one has a predicate, `left(e) < right(f)` (or its kin), then the entries (see `ledger`) that wait in that state are kept
in the order of `left`: an event f takes all with `left < right(f)`, the least first; an event to which a move without
predicate leads takes all there are. Taken entries become the entry of f, so each is handled once.

The order is a stack with the least on top, and a heap for entries that arrive greater than that. Where both sides read
the same column, nothing ever does: whatever was less than the new event has just been taken. Entries of equal
`left` are merged, so no more wait than there are values.

Cost: O(1) amortised per event and move by the stack, O(log waiting) by the heap; no table of successors. Memory: what
waits.   See Poppe, "Event Stream Analytics", ch. 16, and docs/semantics.md on skip-till-next-match.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.kernels.columns.numbers import LEAN, Limbs, Numbers, zeros
from trendloom.kernels.compiled import INSIDE, njit
from trendloom.kernels.ground.tables import OPERATORS, Checks, Moves, checks_of, fits_at, fitting_bits, moves_of
from trendloom.kernels.totals.summing import Addends, Spans
from trendloom.kernels.waiting_runs.ledger import (
    Bounds,
    Gains,
    Results,
    Stretches,
    batch_end,
    bounds_of,
    close_lanes,
    count,
    gain,
    gains_of,
    join_entry,
    most_lanes,
    move_entry,
    open_lanes,
    start_entry,
    wipe,
    with_more,
)

Array = np.ndarray[Any, Any]

NONE = -1
LOWEST = -(2**63)
ORDERED = ("<", "<=", ">", ">=")
MOST_NUMBERS = 1 << 27
"""Numbers that may wait at a time; more windows than that allows are not added up side by side."""


class WaitingCourse(NamedTuple):
    """How runs move. `pair[s]` is the predicate that state s waits for, or NONE; `others[s]`: it has moves without one.

    A predicate is `left < right` after both are flipped by ^ `flip` (−1 turns the order around), or `left <= right`.
    """

    fits: Array
    position: Array  # by state
    start_of: Array  # by state: the start that leads there, or NONE
    others: Array
    pair: Array
    flip: Array
    or_equal: Array


class Queues(NamedTuple):
    """Entries that wait, by state: `rest` in one for moves without predicate only, the others in order of `left`."""

    rest: Array
    stack_left: Array
    stack: Array
    height: Array
    heap_left: Array
    heap: Array
    size: Array


def is_simple(addends: Addends) -> bool:
    """Whether every state waits for one inequality at most, and no NOT lies between two events."""
    pairs = addends.spec.pairs
    for state, steps in enumerate(addends.machine.moves[0]):
        asked = [pair.operator for step in steps for pair in pairs if (state, step.number) in pair.steps]
        if len(asked) > 1 or any(operator not in ORDERED for operator in asked) or any(any(s.ways) for s in steps):
            return False
    return True


def add_up_waiting(addends: Addends, spans: Spans, results: Results) -> None:
    """Fill the results of every span."""
    machine, block, pairs = addends.machine, addends.block, addends.spec.pairs
    moves, checks, gains, bounds = (
        moves_of(machine, pairs),
        checks_of(machine, pairs, block),
        gains_of(addends),
        bounds_of(addends),
    )
    course = _course(fitting_bits(block), np.array(machine.spec.scopes[0].template.position_of), moves, checks, bounds)
    group, states, width = (
        int((block.tie_end - block.tie_start).max(initial=1)),
        len(course.position),
        addends.linear + 1,
    )
    most = MOST_NUMBERS // (width * int((spans.high - spans.low).max(initial=1)))
    lanes = max(1, min(most_lanes(spans), most))
    reserve = 2 * states * (group + 1)  # entries that events of one time can take
    entries = 4 * reserve
    words = results.numbers.words.shape[2] if isinstance(results.numbers, Limbs) else 2
    numbers = zeros(type(results.numbers), entries * width, lanes, words)
    total = zeros(type(results.numbers), width, lanes, words)
    least, total_least = (np.empty((size, addends.extremes, lanes), np.int64) for size in (entries, 1))
    free, place = np.arange(entries), np.array([0, 0, -1, 0, entries, reserve], np.int64)
    queues, arrived = _queues(states, entries), np.full((group, states), NONE, np.int64)
    pass_ = _with_scratch if isinstance(numbers, Limbs) else _lean
    while not pass_(
        place, Stretches(spans.key, spans.low, spans.high), lanes, course, queues, arrived, moves, checks, gains,
        bounds, numbers, least, free, total, total_least[0], results,
    ):  # fmt: skip
        numbers, least, queues = with_more(numbers), np.concatenate([least, least]), _longer(queues)
        free = np.concatenate([free[: place[UNUSED]], np.arange(len(free), len(least)), free[place[UNUSED] :]])
        place[UNUSED] += len(least) // 2


def _course(fits: Array, position: Array, moves: Moves, checks: Checks, bounds: Bounds) -> WaitingCourse:
    states = len(position)
    start_of, pair = np.full(states, NONE, np.int64), np.full(states, NONE, np.int64)
    others, or_equal, flip = np.zeros(states, np.bool_), np.zeros(states, np.bool_), np.zeros(states, np.int64)
    start_of[bounds.start_state] = np.arange(len(bounds.start_state))
    for state in range(states):
        for move in range(moves.begin[state], moves.begin[state + 1]):
            if moves.free[move]:
                others[state] = True
                continue
            pair[state] = checks.pairs[checks.pairs_begin[move]]
            operator = OPERATORS[checks.operators[pair[state]]]
            or_equal[state], flip[state] = operator in ("<=", ">="), -1 if operator in (">", ">=") else 0
    return WaitingCourse(fits, position.astype(np.int64), start_of, others, pair, flip, or_equal)


def _queues(states: int, capacity: int) -> Queues:
    left, entry = np.empty((states, capacity), np.int64), np.empty((states, capacity), np.int64)
    none = np.zeros(states, np.int64)
    return Queues(none + NONE, left, entry, none.copy(), left.copy(), entry.copy(), none.copy())


def _longer(queues: Queues) -> Queues:
    return Queues(*(np.concatenate([a, np.empty_like(a)], axis=1) if a.ndim > 1 else a for a in queues))


# ---------------------------------------------------------------------------------------------- the pass

FIRST, END, AT, CLOSED, UNUSED, RESERVE = range(6)
"""What `place` holds: the spans of the pass under way, its next event, its closed lanes; how many entries are free, and
how many must be."""


def _pass(
    place: Array, spans: Stretches, lanes: int, course: WaitingCourse, queues: Queues, arrived: Array, moves: Moves,
    checks: Checks, gains: Gains, bounds: Bounds, numbers: Numbers, least: Array, free: Array, total: Numbers,
    total_least: Array, results: Results,
) -> bool:  # fmt: skip
    """All spans, as many at once as there are lanes, from `place` on; False: there are too few free entries."""
    width, states = len(gains.weight_of) + 1, len(course.position)
    while True:
        if place[AT] < 0:
            place[FIRST] = place[END]
            if place[FIRST] >= len(spans.key):
                return True
            place[END] = batch_end(place[FIRST], lanes, spans.key, spans.low, spans.high)
            place[AT], place[CLOSED] = spans.low[place[FIRST]], 0
            open_lanes(width, numbers, total, total_least)
        first, end, at, closed = place[FIRST], place[END], place[AT], place[CLOSED]
        stop = spans.high[end - 1]
        while at < stop:
            if place[UNUSED] < place[RESERVE]:
                place[AT], place[CLOSED] = at, closed
                return False
            closed = close_lanes(at, closed, first, end, spans, width, numbers, total, total_least, results)
            after = checks.tie_end[at]
            for state in range(states):
                _take(state, at, after, place, course, queues, arrived, moves, checks, width, numbers, least, free)
            for e in range(at, after):
                for state in range(states):
                    if fits_at(course.fits[e], course.position[state]):
                        entry = _stand(
                            e, state, arrived[e - at, state], first, end, place, spans, course, gains, bounds, width,
                            numbers, least, free, total, total_least,
                        )  # fmt: skip
                        arrived[e - at, state] = NONE
                        if entry != NONE:
                            _wait(entry, e, state, place, course, queues, checks, width, numbers, least, free)
            at = after
        close_lanes(stop, closed, first, end, spans, width, numbers, total, total_least, results)
        for state in range(states):
            _empty(state, place, queues, free)
        place[AT] = -1


@njit(**INSIDE, forceinline=True)
def _new(place: Array, free: Array) -> int:
    place[UNUSED] -= 1
    return free[place[UNUSED]]


@njit(**INSIDE, forceinline=True)
def _give_back(entry: int, place: Array, free: Array) -> None:
    free[place[UNUSED]] = entry
    place[UNUSED] += 1


@njit(nogil=True, forceinline=True)
def _empty(state: int, place: Array, queues: Queues, free: Array) -> None:
    """Nobody waits any more."""
    if queues.rest[state] != NONE:
        _give_back(queues.rest[state], place, free)
        queues.rest[state] = NONE
    for at in range(queues.height[state]):
        _give_back(queues.stack[state, at], place, free)
    for at in range(queues.size[state]):
        _give_back(queues.heap[state, at], place, free)
    queues.height[state], queues.size[state] = 0, 0


@njit(**INSIDE, forceinline=True)
def _stand(
    e: int, state: int, entry: int, first: int, end: int, place: Array, spans: Stretches, course: WaitingCourse,
    gains: Gains, bounds: Bounds, width: int, numbers: Numbers, least: Array, free: Array, total: Numbers,
    total_least: Array,
) -> int:  # fmt: skip
    """Runs that have arrived at event e, and those that start: bind it, count matches. Their entry, or NONE."""
    stands, start = entry != NONE, course.start_of[state]
    if start != NONE:
        if not stands:
            entry = _new(place, free)
            wipe(entry, width, numbers, least)
        stands |= start_entry(entry, start, e, first, end, spans, bounds, width, numbers, least)
        if not stands:
            _give_back(entry, place, free)
            entry = NONE
    if stands:
        gain(entry, e, state, gains, width, numbers, least)
        if bounds.end_begin[state] < bounds.end_begin[state + 1]:
            count(entry, e, state, first, end, spans, bounds, width, numbers, least, total, total_least)
    return entry


@njit(nogil=True, forceinline=True)
def _wait(
    entry: int, e: int, state: int, place: Array, course: WaitingCourse, queues: Queues, checks: Checks, width: int,
    numbers: Numbers, least: Array, free: Array,
) -> None:  # fmt: skip
    """The runs of an entry wait for what can extend them."""
    pair = course.pair[state]
    if pair != NONE and checks.known[0, pair, e]:
        left, top = checks.left[pair, e] ^ course.flip[state], queues.height[state]
        if top > 0 and queues.stack_left[state, top - 1] == left:
            join_entry(queues.stack[state, top - 1], entry, width, numbers, least)
            _give_back(entry, place, free)
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
            join_entry(queues.rest[state], entry, width, numbers, least)
        _give_back(entry, place, free)


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
def _take(
    state: int, at: int, after: int, place: Array, course: WaitingCourse, queues: Queues, arrived: Array, moves: Moves,
    checks: Checks, width: int, numbers: Numbers, least: Array, free: Array,
) -> None:  # fmt: skip
    """Events at..after, of one time, take the runs that wait in a state and that one of them can extend."""
    if queues.rest[state] == NONE and queues.height[state] == 0 and queues.size[state] == 0:
        return
    all_, limit, takers, f, target = _takers(state, at, after, course, moves, checks)
    if takers == 1:
        mine = arrived[f - at, target]
        entry, _, _ = _pop(state, all_, limit, queues)
        while entry != NONE:
            if mine == NONE:
                mine = entry
            else:
                join_entry(mine, entry, width, numbers, least)
                _give_back(entry, place, free)
            entry, _, _ = _pop(state, all_, limit, queues)
        arrived[f - at, target] = mine
    elif takers > 1:
        entry, left, known = _pop(state, all_, limit, queues)
        while entry != NONE:
            _share(
                entry, state, left, known, at, after, place, course, arrived, moves, checks, width, numbers, least, free
            )  # fmt: skip
            _give_back(entry, place, free)
            entry, left, known = _pop(state, all_, limit, queues)


@njit(**INSIDE, forceinline=True)
def _limit(state: int, f: int, course: WaitingCourse, checks: Checks) -> tuple[bool, int]:
    """Whether event f can extend runs by the move with the predicate, and the greatest `left` that lets it."""
    pair = course.pair[state]
    right = checks.right[pair, f] ^ course.flip[state]
    lowest = right == LOWEST and not course.or_equal[state]
    return checks.known[1, pair, f] and not lowest, right if course.or_equal[state] or lowest else right - 1


@njit(**INSIDE, forceinline=True)
def _takers(
    state: int, at: int, after: int, course: WaitingCourse, moves: Moves, checks: Checks
) -> tuple[bool, int, int, int, int]:
    """Whether events of one time take all that wait in a state, else up to which `left`; how many do, and the last."""
    all_, limit, takers, last, target = False, LOWEST, 0, at, 0
    for f in range(at, after):
        for move in range(moves.begin[state], moves.begin[state + 1]):
            if fits_at(course.fits[f], moves.position[move]):
                able, mine = (True, LOWEST) if moves.free[move] else _limit(state, f, course, checks)
                if able:
                    all_ |= moves.free[move]
                    takers, limit, last, target = takers + 1, max(limit, mine), f, moves.target[move]
    return all_, limit, takers, last, target


@njit(**INSIDE, forceinline=True)
def _pop(state: int, all_: bool, limit: int, queues: Queues) -> tuple[int, int, bool]:
    """An entry that is taken, or NONE; its `left`, and whether that is known."""
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
    return entry, left, known


@njit(**INSIDE)
def _share(
    entry: int, state: int, left: int, known: bool, at: int, after: int, place: Array, course: WaitingCourse,
    arrived: Array, moves: Moves, checks: Checks, width: int, numbers: Numbers, least: Array, free: Array,
) -> None:  # fmt: skip
    """The runs of an entry go on to every event of one time that can extend them; each takes a copy."""
    for f in range(at, after):
        for move in range(moves.begin[state], moves.begin[state + 1]):
            if not fits_at(course.fits[f], moves.position[move]):
                continue
            able, limit = (True, left) if moves.free[move] else _limit(state, f, course, checks)
            if able and left <= limit and (known or moves.free[move]):
                mine = arrived[f - at, moves.target[move]]
                if mine != NONE:
                    join_entry(mine, entry, width, numbers, least)
                else:
                    mine = _new(place, free)
                    arrived[f - at, moves.target[move]] = mine
                    move_entry(mine, entry, width, numbers, least)


_lean = njit(**LEAN)(_pass)
_with_scratch = njit(nogil=True)(_pass)
