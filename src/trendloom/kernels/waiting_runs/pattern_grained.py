"""Add up the matches of skip-till-next-match and contiguous runs without following a single run.

Idea: a run that stands at event e in state s goes on at the earliest time at which some move is possible, whatever it
bound before. So all runs that stand there share one entry (see `ledger`), and entries are pushed forward in time:

    runs(e, s) = [a run may start] + Σ runs(f, r) over all (f, r) whose successors include (e, s)

and the number of matches is Σ runs(e, s) over the accepting states. Three ways to know the successors:

- contiguous: they can only be at the next time (`consecutive`);
- every state has at most one move with a predicate, an inequality: entries wait for it in order (`waiting`);
- else a table of all successors (`ground.successors`), here. An entry lives only from its first predecessor to its
  own event: a pool holds those that are under way, and where a successor has one predecessor, the entry moves on
  without a copy.

Cost: that of the table, O(events · moves), times log for an order predicate; then O(events · states · lanes). The proof
is the definition of runs: docs/semantics.md on skip-till-next-match; Poppe, "Event Stream Analytics", ch. 16 (whose
Algorithm 9 keeps one last event only, and so loses runs where adjacent events have predicates).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from trendloom.kernels.columns.numbers import LEAN, Limbs, Numbers, zeros
from trendloom.kernels.compiled import INSIDE, njit
from trendloom.kernels.ground.successors import NONE, successors_of
from trendloom.kernels.ground.tables import Checks, Moves, checks_of, fits_at, fitting_bits, moves_of, possible
from trendloom.kernels.totals.summing import ABSENT, Addends, Spans, SpanTotals
from trendloom.kernels.waiting_runs.consecutive import add_up_consecutive
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
from trendloom.kernels.waiting_runs.waiting import add_up_waiting, is_simple

Array = np.ndarray[Any, Any]


def sweep(addends: Addends, spans: Spans, like: Numbers) -> SpanTotals:
    """The totals of every span. `like` says in which number system."""
    words = like.words.shape[2] if isinstance(like, Limbs) else 2
    found = SpanTotals(
        zeros(type(like), len(spans), addends.linear + 1, words),
        np.zeros(len(spans), np.bool_),
        np.full((len(spans), addends.extremes), ABSENT, np.int64),
    )
    if len(spans):
        _way_to_add_up(addends)(addends, spans, Results(found.numbers, found.least, found.spilled))
    return found


def _way_to_add_up(addends: Addends) -> Callable[[Addends, Spans, Results], None]:
    if addends.machine.spec.adjacent:
        return add_up_consecutive
    return add_up_waiting if is_simple(addends) else add_up_by_table


class Table(NamedTuple):
    """What the pass reads of every event: the states it fits, and where runs that stand there go on."""

    position: Array  # by state
    start_of: Array  # by state: the start that leads there, or NONE
    fits: Array
    next_event: Array  # by state and event
    next_move: Array
    reserve: int  # entries that one event can take


def add_up_by_table(addends: Addends, spans: Spans, results: Results) -> None:
    machine, block, pairs = addends.machine, addends.block, addends.spec.pairs
    moves, checks, fits = moves_of(machine, pairs), checks_of(machine, pairs, block), fitting_bits(block)
    gains, bounds, lanes = gains_of(addends), bounds_of(addends), most_lanes(spans)
    key_end = np.repeat(block.key_starts[1:], np.diff(block.key_starts))
    successors = successors_of(machine, block, fits, key_end, moves, checks)
    states = np.array(machine.spec.scopes[0].template.position_of, np.int64)
    start_of = np.full(len(states), NONE, np.int64)
    start_of[bounds.start_state] = np.arange(len(bounds.start_state))
    group = int((block.tie_end - block.tie_start).max(initial=1))
    reserve = len(states) * (1 + len(states) * group)
    table = Table(states, start_of, fits, successors.event, successors.move, reserve)
    stretches = Stretches(spans.key, spans.low, spans.high)
    _run(stretches, lanes, table, moves, checks, gains, bounds, results)


def _run(
    spans: Stretches, lanes: int, table: Table, moves: Moves, checks: Checks, gains: Gains, bounds: Bounds,
    results: Results,
) -> None:  # fmt: skip
    """The pass, interrupted whenever it needs more entries."""
    width, extremes, entries = len(gains.weight_of) + 1, len(gains.valued), 4 * table.reserve
    words = results.numbers.words.shape[2] if isinstance(results.numbers, Limbs) else 2
    numbers = zeros(type(results.numbers), entries * width, lanes, words)
    total = zeros(type(results.numbers), width, lanes, words)
    least, total_least = (np.empty((size, extremes, lanes), np.int64) for size in (entries, 1))
    free = np.arange(entries, dtype=np.int64)
    pending = np.full((_longest(lanes, *spans), len(table.position)), NONE, np.int32)
    place = np.array([0, 0, -1, 0, entries], np.int64)
    pass_ = _with_scratch if isinstance(numbers, Limbs) else _lean
    while not pass_(
        place, spans, lanes, table, moves, checks, gains, bounds, numbers, least, free, pending, total, total_least[0],
        results,
    ):  # fmt: skip
        numbers, least = with_more(numbers), np.concatenate([least, least])
        free = np.concatenate([free[: place[UNUSED]], np.arange(len(free), len(least)), free[place[UNUSED] :]])
        place[UNUSED] += len(least) // 2


@njit(nogil=True)
def _longest(lanes: int, key: Array, low: Array, high: Array) -> int:
    """The most events of a pass."""
    longest, end = 0, 0
    while end < len(key):
        first, end = end, batch_end(end, lanes, key, low, high)
        longest = max(longest, high[end - 1] - low[first])
    return longest


FIRST, END, AT, CLOSED, UNUSED = range(5)
"""What `place` holds: the spans of the pass under way, its next event, its closed lanes; how many entries are free."""


def _pass(
    place: Array, spans: Stretches, lanes: int, table: Table, moves: Moves, checks: Checks, gains: Gains,
    bounds: Bounds, numbers: Numbers, least: Array, free: Array, pending: Array, total: Numbers, total_least: Array,
    results: Results,
) -> bool:  # fmt: skip
    """All spans, as many at once as there are lanes, from `place` on; False: there are too few free entries."""
    width = len(gains.weight_of) + 1
    while True:
        if place[AT] < 0:
            place[FIRST] = place[END]
            if place[FIRST] >= len(spans.key):
                return True
            place[END] = batch_end(place[FIRST], lanes, spans.key, spans.low, spans.high)
            place[AT], place[CLOSED] = spans.low[place[FIRST]], 0
            open_lanes(width, numbers, total, total_least)
        first, end, closed = place[FIRST], place[END], place[CLOSED]
        base, stop = spans.low[first], spans.high[end - 1]
        for e in range(place[AT], stop):
            if place[UNUSED] < table.reserve:
                place[AT], place[CLOSED] = e, closed
                return False
            closed = close_lanes(e, closed, first, end, spans, width, numbers, total, total_least, results)
            _event(
                e, base, stop, first, end, place, spans, table, moves, checks, gains, bounds, width, numbers, least,
                free, pending, total, total_least,
            )  # fmt: skip
        close_lanes(stop, closed, first, end, spans, width, numbers, total, total_least, results)
        place[AT] = -1


@njit(**INSIDE, forceinline=True)
def _take(place: Array, free: Array) -> int:
    place[UNUSED] -= 1
    return free[place[UNUSED]]


@njit(**INSIDE, forceinline=True)
def _give_back(entry: int, place: Array, free: Array) -> None:
    free[place[UNUSED]] = entry
    place[UNUSED] += 1


@njit(nogil=True, forceinline=True)
def _event(
    e: int, base: int, stop: int, first: int, end: int, place: Array, spans: Stretches, table: Table, moves: Moves,
    checks: Checks, gains: Gains, bounds: Bounds, width: int, numbers: Numbers, least: Array, free: Array,
    pending: Array, total: Numbers, total_least: Array,
) -> None:  # fmt: skip
    """All runs that reach or start at event e: count their matches and push them on."""
    for state in range(len(table.position)):
        if not fits_at(table.fits[e], table.position[state]):
            continue
        entry, start = int(pending[e - base, state]), table.start_of[state]
        stands = entry != NONE
        pending[e - base, state] = NONE
        if start != NONE:
            if not stands:
                entry = _take(place, free)
                wipe(entry, width, numbers, least)
            stands |= start_entry(entry, start, e, first, end, spans, bounds, width, numbers, least)
            if not stands:
                _give_back(entry, place, free)
        if stands:
            gain(entry, e, state, gains, width, numbers, least)
            if bounds.end_begin[state] < bounds.end_begin[state + 1]:
                count(entry, e, state, first, end, spans, bounds, width, numbers, least, total, total_least)
            _push(entry, e, state, base, stop, place, table, moves, checks, width, numbers, least, free, pending)


@njit(**INSIDE, forceinline=True)
def _push(
    entry: int, e: int, state: int, base: int, stop: int, place: Array, table: Table, moves: Moves, checks: Checks,
    width: int, numbers: Numbers, least: Array, free: Array, pending: Array,
) -> None:  # fmt: skip
    """The runs of an entry go on to their successors inside the pass."""
    f = table.next_event[state, e] if moves.begin[state] < moves.begin[state + 1] else NONE
    move = table.next_move[state, e] if f != NONE and f < stop else NONE
    if move != NONE and pending[f - base, moves.target[move]] == NONE:
        pending[f - base, moves.target[move]] = entry
        return
    if move != NONE:
        join_entry(pending[f - base, moves.target[move]], entry, width, numbers, least)
    elif f != NONE and f < stop:
        _branch(entry, e, state, f, base, place, table.fits, moves, checks, width, numbers, least, free, pending)
    _give_back(entry, place, free)


@njit(**INSIDE)
def _branch(
    entry: int, e: int, state: int, first: int, base: int, place: Array, fits: Array, moves: Moves, checks: Checks,
    width: int, numbers: Numbers, least: Array, free: Array, pending: Array,
) -> None:  # fmt: skip
    """Several events or moves of one time extend the runs of an entry: each takes a copy."""
    for f in range(first, checks.tie_end[first]):
        for move in range(moves.begin[state], moves.begin[state + 1]):
            if fits_at(fits[f], moves.position[move]) and (moves.free[move] or possible(e, f, move, checks)):
                other = int(pending[f - base, moves.target[move]])
                if other == NONE:
                    other = _take(place, free)
                    pending[f - base, moves.target[move]] = other
                    move_entry(other, entry, width, numbers, least)
                else:
                    join_entry(other, entry, width, numbers, least)


_lean = njit(**LEAN)(_pass)
_with_scratch = njit(nogil=True)(_pass)
