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
from typing import Any, NamedTuple

import numpy as np

from trendloom.kernels.columns.numbers import LEAN, Limbs, Numbers, add_lane, add_unit, clear, zeros
from trendloom.kernels.compiled import INSIDE, njit
from trendloom.kernels.ground.tables import (
    Checks,
    Moves,
    checks_of,
    compare,
    fits_at,
    fitting_bits,
    moves_of,
    possible,
)
from trendloom.kernels.totals.summing import EMPTY, Addends, Spans
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
    gain_number,
    gains_of,
    join_entry,
    most_lanes,
    move_entry,
    open_lanes,
    start_entry,
    wipe,
)

Array = np.ndarray[Any, Any]

NOBODY, MANY = -1, -2
"""The state of a run where there is none; where events of one time, or states of one event, are several."""
GOES_ON, STARTS, ENDS = 1, 2, 4
"""What can happen at an event: runs that stand at the event before it go on to it, runs start, matches end."""
MOST_PAIRS = 64
"""Predicates whose truth fits into a word; with more of them every event is treated as one of a group."""


class ConsecutiveCourse(NamedTuple):
    """How runs move: what each event fits, and the moves between states."""

    fits: Array
    lone: Array  # the one state of an event that is alone at its time; NOBODY, MANY
    fate: Array  # of such an event: GOES_ON, STARTS, ENDS, added
    source: Array  # of each move
    start_of: Array  # by state: the start that leads there, or NOBODY
    group: int  # events of equal time, at most


def add_up_consecutive(addends: Addends, spans: Spans, results: Results) -> None:
    """Fill the results of every span."""
    machine, block, pairs = addends.machine, addends.block, addends.spec.pairs
    moves, checks, gains, bounds = (
        moves_of(machine, pairs),
        checks_of(machine, pairs, block),
        gains_of(addends),
        bounds_of(addends),
    )
    course = _course(fitting_bits(block), np.array(machine.spec.scopes[0].template.position_of), moves, checks, bounds)
    lanes, width, states = most_lanes(spans), addends.linear + 1, len(course.start_of)
    entries = 1 + (2 * course.group + 1) * states  # the lone one, two groups, and the sum of the last by state
    words = results.numbers.words.shape[2] if isinstance(results.numbers, Limbs) else 2
    numbers = zeros(type(results.numbers), entries * width, lanes, words)
    total = zeros(type(results.numbers), width, lanes, words)
    least, total_least = (np.empty((size, addends.extremes, lanes), np.int64) for size in (entries, 1))
    stands = np.zeros(entries, np.bool_)
    pass_ = _with_scratch if isinstance(numbers, Limbs) else _lean
    pass_(
        Stretches(spans.key, spans.low, spans.high), lanes, course, moves, checks, gains, bounds, numbers, least,
        stands, total, total_least[0], results,
    )  # fmt: skip


def _course(fits: Array, position: Array, moves: Moves, checks: Checks, bounds: Bounds) -> ConsecutiveCourse:
    source = np.repeat(np.arange(len(position)), np.diff(moves.begin))
    move_of = np.full((len(position), len(position)), NOBODY, np.int64)
    move_of[source, moves.target] = np.arange(len(source))
    start_of = np.full(len(position), NOBODY, np.int64)
    start_of[bounds.start_state] = np.arange(len(bounds.start_state))
    needs = np.array([_bits(checks.pairs[a:b]) for a, b in pairwise(checks.pairs_begin.tolist())], np.uint64)
    always = np.where(start_of == NOBODY, 0, STARTS) + np.where(np.diff(bounds.end_begin) == 0, 0, ENDS)
    lone, fate = np.empty(len(fits), np.int8), np.empty(len(fits), np.int8)
    group = _find_fates(lone, fate, fits, position, always, move_of, needs, _truths(checks), checks.tie_end)
    if len(checks.operators) > MOST_PAIRS:
        lone[:] = MANY
    return ConsecutiveCourse(fits, lone, fate, source, start_of, group)


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
    lone: Array, fate: Array, fits: Array, position: Array, always: Array, move_of: Array, needs: Array, truths: Array,
    tie_end: Array,
) -> int:  # fmt: skip
    """Fill the columns of `ConsecutiveCourse`; returns the size of the greatest group of events of equal time.

    `always`: what happens at every event of a state; `needs`: the truths that each move asks for. That the event before
    is one of another key does no harm, for no run stands there when a pass begins.
    """
    group, begin, before = 1, 0, NOBODY
    for e in range(len(fits)):
        if e >= tie_end[begin]:
            begin = e
        group = max(group, e + 1 - begin)
        state = NOBODY
        for each in range(len(position)):
            if fits_at(fits[e], position[each]):
                state = each if state == NOBODY else MANY
        state = MANY if tie_end[e] - begin > 1 else state
        found = always[state] if state >= 0 else 0
        if state >= 0 and before >= 0 and move_of[before, state] != NOBODY:
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
    spans: Stretches, lanes: int, course: ConsecutiveCourse, moves: Moves, checks: Checks, gains: Gains, bounds: Bounds,
    numbers: Numbers, least: Array, stands: Array, total: Numbers, total_least: Array, results: Results,
) -> None:  # fmt: skip
    """All spans, as many at once as there are lanes."""
    zero = _zero()
    width, end, simple = len(gains.weight_of) + 1, zero, len(bounds.thresholds) == 0
    while end < len(spans.key):
        first, end = end, batch_end(end, lanes, spans.key, spans.low, spans.high)
        open_lanes(width, numbers, total, total_least)
        at, stop, closed, size, side = spans.low[first], spans.high[end - 1], zero, zero, zero
        while at < stop:
            if course.lone[at] != MANY and (size == 0 or course.lone[at - 1] != MANY):
                standing = _leave_group(size, side, course, width, numbers, least, stands)
                if lanes == 1 and simple:
                    at, standing = _one_by_one_alone(
                        at, stop, standing, course, gains, width, numbers, least, total, total_least
                    )
                else:
                    at, closed, standing = _one_by_one(
                        at, stop, standing, closed, first, end, spans, course, gains, bounds, width, numbers, least,
                        total, total_least, results,
                    )  # fmt: skip
                size = _enter_group(standing, side, course, width, numbers, least, stands)
                continue
            closed = close_lanes(at, closed, first, end, spans, width, numbers, total, total_least, results)
            after = checks.tie_end[at]
            _group(
                at, after, size, side, first, end, spans, course, moves, checks, gains, bounds, width, numbers, least,
                stands, total, total_least,
            )  # fmt: skip
            size, side, at = after - at, 1 - side, after
        close_lanes(stop, closed, first, end, spans, width, numbers, total, total_least, results)


@njit(**INSIDE)
def _one_by_one(
    at: int, stop: int, standing: int, closed: int, first: int, end: int, spans: Stretches, course: ConsecutiveCourse,
    gains: Gains, bounds: Bounds, width: int, numbers: Numbers, least: Array, total: Numbers, total_least: Array,
    results: Results,
) -> tuple[int, int, int]:  # fmt: skip
    """Follow events that are alone at their time, as long as there are some. All runs stand in entry 0."""
    mine = _zero()
    while at < stop and course.lone[at] != MANY:
        closed = close_lanes(at, closed, first, end, spans, width, numbers, total, total_least, results)
        state, fate = int(course.lone[at]), course.fate[at]
        stands = standing != NOBODY and fate & GOES_ON != 0
        if not stands:
            wipe(mine, width, numbers, least)
        if fate & STARTS:
            stands |= start_entry(mine, course.start_of[state], at, first, end, spans, bounds, width, numbers, least)
        if stands:
            gain(mine, at, state, gains, width, numbers, least)
            if fate & ENDS:
                count(mine, at, state, first, end, spans, bounds, width, numbers, least, total, total_least)
        standing = state if stands else NOBODY
        at += 1
    return at, closed, standing


@njit(**INSIDE)
def _one_by_one_alone(
    at: int, stop: int, standing: int, course: ConsecutiveCourse, gains: Gains, width: int, numbers: Numbers,
    least: Array, total: Numbers, total_least: Array,
) -> tuple[int, int]:  # fmt: skip
    """The same for a pass of one window, if no NOT leads or trails: nothing depends on the window but its ends."""
    lone, fates, values, extremes = course.lone, course.fate, gains.values, least.shape[1]
    stands, mine = standing != NOBODY, _zero()
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
                gain_number(mine, m, at, state, gains, width, numbers)
            for x in range(extremes):
                if gains.valued[x, state]:
                    least[0, x, 0] = min(least[0, x, 0], values[x, at])
            if fate & ENDS:
                for k in range(width):
                    add_lane(total, k, 0, numbers, k, 0)
                for x in range(extremes):
                    total_least[x, 0] = min(total_least[x, 0], least[0, x, 0])
        at += 1
    return at, lone[at - 1] if stands else NOBODY


@njit(**INSIDE, forceinline=True)
def _leave_group(
    size: int, side: int, course: ConsecutiveCourse, width: int, numbers: Numbers, least: Array, stands: Array
) -> int:
    """The state in which runs stand at the lone event of the last group, or NOBODY; their entry becomes entry 0."""
    states = len(course.start_of)
    for state in range(states if size == 1 else 0):
        if stands[1 + side * course.group * states + state]:
            move_entry(_zero(), 1 + side * course.group * states + state, width, numbers, least)
            return state
    return NOBODY


@njit(**INSIDE, forceinline=True)
def _enter_group(
    standing: int, side: int, course: ConsecutiveCourse, width: int, numbers: Numbers, least: Array, stands: Array
) -> int:
    """Make a group of entry 0, where runs stand in that state; returns its size."""
    states = len(course.start_of)
    mine = 1 + side * course.group * states
    for state in range(states):
        stands[mine + state] = state == standing
    if standing != NOBODY:
        move_entry(mine + standing, _zero(), width, numbers, least)
    return 1


@njit(**INSIDE)
def _group(
    at: int, after: int, size: int, side: int, first: int, end: int, spans: Stretches, course: ConsecutiveCourse,
    moves: Moves, checks: Checks, gains: Gains, bounds: Bounds, width: int, numbers: Numbers, least: Array,
    stands: Array, total: Numbers, total_least: Array,
) -> None:  # fmt: skip
    """Events of one time, after a group of `size` events."""
    states = len(course.start_of)
    old, sums = 1 + side * course.group * states, 1 + 2 * course.group * states
    new = 1 + (1 - side) * course.group * states
    _sum_group(old, size, sums, states, width, numbers, least, stands)
    for e in range(at, after):
        mine = new + (e - at) * states
        for state in range(states):
            stands[mine + state] = False
        _go_on(e, mine, at - size, size, old, sums, course, moves, checks, width, numbers, least, stands)
        for state in range(states):
            start = course.start_of[state]
            if start != NOBODY and fits_at(course.fits[e], bounds.start_position[start]):
                if not stands[mine + state]:
                    wipe(mine + state, width, numbers, least)
                stands[mine + state] |= start_entry(
                    mine + state, start, e, first, end, spans, bounds, width, numbers, least
                )
            if stands[mine + state]:
                gain(mine + state, e, state, gains, width, numbers, least)
                if bounds.end_begin[state] < bounds.end_begin[state + 1]:
                    count(mine + state, e, state, first, end, spans, bounds, width, numbers, least, total, total_least)


@njit(**INSIDE)
def _sum_group(
    old: int, size: int, sums: int, states: int, width: int, numbers: Numbers, least: Array, stands: Array
) -> None:
    """The sum of the last group, by state."""
    for state in range(states):
        stands[sums + state] = False
        for p in range(size):
            _arrive(sums + state, old + p * states + state, width, numbers, least, stands)


@njit(**INSIDE, forceinline=True)
def _arrive(entry: int, other: int, width: int, numbers: Numbers, least: Array, stands: Array) -> None:
    """The runs of another entry, if there are any, go on to this one."""
    if stands[other]:
        if stands[entry]:
            join_entry(entry, other, width, numbers, least)
        else:
            move_entry(entry, other, width, numbers, least)
            stands[entry] = True


@njit(**INSIDE)
def _go_on(
    e: int, mine: int, before: int, size: int, old: int, sums: int, course: ConsecutiveCourse, moves: Moves,
    checks: Checks, width: int, numbers: Numbers, least: Array, stands: Array,
) -> None:  # fmt: skip
    """All runs that stand at the last group and can go on to event e."""
    states = len(course.start_of)
    for move in range(len(course.source)):
        if not fits_at(course.fits[e], moves.position[move]):
            continue
        entry, source = mine + moves.target[move], course.source[move]
        if moves.free[move]:
            _arrive(entry, sums + source, width, numbers, least, stands)
            continue
        for p in range(size):
            if stands[old + p * states + source] and possible(before + p, e, move, checks):
                _arrive(entry, old + p * states + source, width, numbers, least, stands)


_lean = njit(**LEAN)(_pass)
_with_scratch = njit(nogil=True)(_pass)
