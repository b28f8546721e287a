"""Add up the matches of skip-till-next-match and contiguous runs without following a single run.

Idea: a run that stands at event e in state s goes on at the earliest time at which some move is possible, whatever it
bound before. So all runs that stand there share one entry (see `ledger`), and entries are pushed forward in time:

    runs(e, s) = [a run may start] + Σ runs(f, r) over all (f, r) whose successors include (e, s)

and the number of matches is Σ runs(e, s) over the accepting states. The successors of every event come from one table
(`detection.successors`). An entry lives only from its first predecessor to its own event: a pool with a list of free
entries holds those that are under way, and where a successor has one predecessor, the entry moves on without a copy.

Cost: that of the table, O(events · moves), times log for an order predicate; then O(events · states · lanes).
The proof is the definition of runs: docs/semantics.md on skip-till-next-match; Poppe, "Event Stream Analytics", ch. 16
(whose Algorithm 9 keeps one last event only, and so loses runs where adjacent events have predicates).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from trendloom.kernels.aggregation.consecutive import add_up_consecutive
from trendloom.kernels.aggregation.job import ABSENT, Found, Job, Spans
from trendloom.kernels.aggregation.ledger import (
    Bounds,
    Gains,
    Lanes,
    batch_end,
    bounds_of,
    close_lane,
    count,
    gain,
    gains_of,
    grown,
    join_entry,
    most_lanes,
    move_entry,
    start_entry,
    wipe,
)
from trendloom.kernels.columns.numbers import Limbs, Numbers, clear, forgive, like, spilled, zeros
from trendloom.kernels.detection.successors import NONE, Successors, successors_of
from trendloom.kernels.detection.tables import Checks, Moves, checks_of, fits_at, fitting_bits, moves_of, possible

Array = np.ndarray[Any, Any]


def sweep(job: Job, spans: Spans, like: Numbers) -> Found:
    """The totals of every span. `like` says in which number system."""
    width, extremes = job.linear + 1, job.extremes
    words = like.words.shape[2] if isinstance(like, Limbs) else 2
    found = Found(
        zeros(type(like), len(spans), width, words),
        np.zeros(len(spans), np.bool_),
        np.full((len(spans), extremes), ABSENT, np.int64),
    )
    if len(spans) == 0:
        return found
    machine, block, pairs = job.machine, job.block, job.spec.pairs
    moves, checks, fits = moves_of(machine, pairs), checks_of(machine, pairs, block), fitting_bits(block)
    gains, bounds, lanes = gains_of(job), bounds_of(job), most_lanes(spans)
    results = (found.numbers, found.least, found.spilled)
    if machine.spec.adjacent:
        add_up_consecutive(spans, lanes, fits, moves, checks, gains, bounds, *results)
        return found
    key_end = np.repeat(block.key_starts[1:], np.diff(block.key_starts))
    successors = successors_of(machine, block, fits, key_end, moves, checks)
    states = np.array(machine.spec.scopes[0].template.position_of, np.int64)
    start_of = np.full(len(states), NONE, np.int64)
    start_of[bounds.start_state] = np.arange(len(bounds.start_state))
    table = Table(states, start_of, fits, successors.event, successors.move)
    group = int((block.tie_end - block.tie_start).max(initial=1))
    _all_spans(spans.key, spans.low, spans.high, lanes, group, table, moves, checks, gains, bounds, *results)
    return found


class Table(NamedTuple):
    """What the pass reads of every event: the states it fits, and where runs that stand there go on."""

    position: Array  # by state
    start_of: Array  # by state: the start that leads there, or NONE
    fits: Array
    next_event: Array  # by state and event
    next_move: Array


@njit(cache=True, nogil=True)
def _all_spans(
    key: Array, low: Array, high: Array, lanes: int, group: int, table: Table, moves: Moves, checks: Checks,
    gains: Gains, bounds: Bounds, found: Numbers, found_least: Array, failed: Array,
) -> None:  # fmt: skip
    width, states = len(gains.weight_of) + 1, len(table.position)
    reserve = states * (group + 2)  # entries that one event can take
    numbers, least = like(found, 2 * reserve * width, lanes), np.empty((2 * reserve, len(gains.valued), lanes), np.int64)
    free = np.arange(2 * reserve + 1)  # its last element is how many are free; the others are taken from the end
    free[2 * reserve] = 2 * reserve
    total, total_least = like(found, width, lanes), np.empty((len(gains.valued), lanes), np.int64)
    longest, first = 0, 0
    while first < len(key):
        end = batch_end(first, lanes, key, low, high)
        longest = max(longest, high[end - 1] - low[first])
        first = end
    pending = np.full((longest, states), NONE, np.int32)
    first = 0
    while first < len(key):
        end = batch_end(first, lanes, key, low, high)
        forgive(numbers)
        forgive(total)
        for k in range(width):
            clear(total, k)
        total_least[:] = ABSENT
        batch = Lanes(low[first:end], high[first:end])
        closed, base, stop = 0, low[first], high[end - 1]
        for e in range(base, stop):
            while high[first + closed] <= e:
                close_lane(first + closed, closed, width, total, total_least, found, found_least)
                failed[first + closed] = spilled(numbers, closed) or spilled(total, closed)
                closed += 1
            if free[len(free) - 1] < reserve:
                numbers, least, free = _with_more(numbers, least, free, width)
            if table.fits[e] != 0:
                _event(
                    e, base, stop, batch, table, moves, checks, gains, bounds, width, numbers, least, free, pending,
                    total, total_least,
                )  # fmt: skip
        while closed < end - first:
            close_lane(first + closed, closed, width, total, total_least, found, found_least)
            failed[first + closed] = spilled(numbers, closed) or spilled(total, closed)
            closed += 1
        first = end


@njit(cache=True, nogil=True)
def _with_more(numbers: Numbers, least: Array, free: Array, width: int) -> tuple[Numbers, Array, Array]:
    """Twice as many entries."""
    entries, lanes = len(least), least.shape[2]
    more = np.empty((2 * entries, least.shape[1], lanes), np.int64)
    more[:entries] = least
    unused = free[entries]
    list_ = np.empty(2 * entries + 1, np.int64)
    list_[:unused] = free[:unused]
    list_[unused : unused + entries] = np.arange(entries, 2 * entries)
    list_[2 * entries] = unused + entries
    return grown(numbers, entries * width, lanes), more, list_


@njit(cache=True, nogil=True)
def _take(free: Array) -> int:
    last = len(free) - 1
    free[last] -= 1
    return free[free[last]]  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def _give_back(entry: int, free: Array) -> None:
    last = len(free) - 1
    free[free[last]] = entry
    free[last] += 1


@njit(cache=True, nogil=True)
def _event(
    e: int, base: int, stop: int, lanes: Lanes, table: Table, moves: Moves, checks: Checks, gains: Gains,
    bounds: Bounds, width: int, numbers: Numbers, least: Array, free: Array, pending: Array, total: Numbers,
    total_least: Array,
) -> None:  # fmt: skip
    """All runs that reach or start at event e: count their matches and push them on."""
    for state in range(len(table.position)):
        if not fits_at(table.fits[e], table.position[state]):
            continue
        entry, start = pending[e - base, state], table.start_of[state]
        pending[e - base, state] = NONE
        if start != NONE:
            fresh = entry == NONE
            if fresh:
                entry = _take(free)
                wipe(entry, width, numbers, least)
            if not start_entry(entry, start, e, lanes, bounds, width, numbers, least) and fresh:
                _give_back(entry, free)
                continue
        if entry == NONE:
            continue
        gain(entry, e, state, gains, width, numbers, least)
        if bounds.end_begin[state] < bounds.end_begin[state + 1]:
            count(entry, e, state, lanes, bounds, width, numbers, least, total, total_least)
        f = table.next_event[state, e] if moves.begin[state] < moves.begin[state + 1] else NONE
        if f == NONE or f >= stop:
            _give_back(entry, free)
            continue
        move = table.next_move[state, e]
        if move == NONE:
            _branch(entry, e, state, f, base, table.fits, moves, checks, width, numbers, least, free, pending)
            _give_back(entry, free)
        elif pending[f - base, moves.target[move]] == NONE:
            pending[f - base, moves.target[move]] = entry
        else:
            join_entry(pending[f - base, moves.target[move]], entry, width, numbers, least)
            _give_back(entry, free)


@njit(cache=True, nogil=True)
def _branch(
    entry: int, e: int, state: int, first: int, base: int, fits: Array, moves: Moves, checks: Checks, width: int,
    numbers: Numbers, least: Array, free: Array, pending: Array,
) -> None:  # fmt: skip
    """Several events or moves of one time extend the runs of an entry: each takes a copy."""
    for f in range(first, checks.tie_end[first]):
        for move in range(moves.begin[state], moves.begin[state + 1]):
            if fits_at(fits[f], moves.position[move]) and (moves.free[move] or possible(e, f, move, checks)):
                other = pending[f - base, moves.target[move]]
                if other == NONE:
                    other = _take(free)
                    pending[f - base, moves.target[move]] = other
                    move_entry(other, entry, width, numbers, least)
                else:
                    join_entry(other, entry, width, numbers, least)
