"""Add up the matches of contiguous runs: only the entries of the time before are ever needed.

A contiguous run goes on at the very next time of its key or not at all. So one pass forward holds two groups of entries
(see `ledger`): the events of the last time and those of this one. A move without predicates takes the sum of
the last group, a move with predicates compares every event of one group with every event of the other. No NOT can be
violated between them, for nothing lies between.

Cost: O(events · moves · lanes) without ties; a predicate on events of equal time costs the product of the two groups.
Memory: two groups.   See Poppe, "Event Stream Analytics", ch. 16.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from trendloom.kernels.aggregation.job import ABSENT, Spans
from trendloom.kernels.aggregation.ledger import (
    Bounds,
    Gains,
    Lanes,
    batch_end,
    close_lane,
    count,
    gain,
    join_entry,
    move_entry,
    start_entry,
    wipe,
)
from trendloom.kernels.columns.numbers import Numbers, clear, forgive, like, spilled
from trendloom.kernels.detection.tables import Checks, Moves, fits_at, possible

Array = np.ndarray[Any, Any]


def add_up_consecutive(
    spans: Spans, lanes: int, fits: Array, moves: Moves, checks: Checks, gains: Gains, bounds: Bounds,
    found: Numbers, least: Array, failed: Array,
) -> None:  # fmt: skip
    """Fill `found`, `least` and `failed` (spilled) of every span."""
    group = int((checks.tie_end - checks.tie_start).max(initial=1))
    source = np.repeat(np.arange(len(moves.begin) - 1), np.diff(moves.begin))
    _all_spans(spans.key, spans.low, spans.high, lanes, group, fits, source, moves, checks, gains, bounds, found, least, failed)


@njit(cache=True, nogil=True)
def _all_spans(
    key: Array, low: Array, high: Array, lanes: int, group: int, fits: Array, source: Array, moves: Moves,
    checks: Checks, gains: Gains, bounds: Bounds, found: Numbers, found_least: Array, failed: Array,
) -> None:  # fmt: skip
    width, states = len(gains.weight_of) + 1, len(moves.begin) - 1
    entries = (2 * group + 1) * states  # two groups, and the sum of the last one by state
    numbers = like(found, entries * width, lanes)
    least = np.empty((entries, len(gains.valued), lanes), np.int64)
    total, total_least = like(found, width, lanes), np.empty((len(gains.valued), lanes), np.int64)
    stands = np.zeros(entries, np.bool_)
    first = 0
    while first < len(key):
        end = batch_end(first, lanes, key, low, high)
        forgive(numbers)
        forgive(total)
        for k in range(width):
            clear(total, k)
        total_least[:] = ABSENT
        _one_pass(
            Lanes(low[first:end], high[first:end]), first, group, fits, source, moves, checks, gains, bounds, width,
            numbers, least, stands, total, total_least, found, found_least, failed,
        )  # fmt: skip
        first = end


@njit(cache=True, nogil=True)
def _one_pass(
    lanes: Lanes, span: int, group: int, fits: Array, source: Array, moves: Moves, checks: Checks, gains: Gains,
    bounds: Bounds, width: int, numbers: Numbers, least: Array, stands: Array, total: Numbers, total_least: Array,
    found: Numbers, found_least: Array, failed: Array,
) -> None:  # fmt: skip
    """The windows of one pass, group by group of events of equal time."""
    states = len(moves.begin) - 1
    before, size, side, closed = 0, 0, 0, 0
    at, stop = lanes.low[0], lanes.high[len(lanes.high) - 1]
    while True:
        while closed < len(lanes.high) and (lanes.high[closed] <= at or at >= stop):
            close_lane(span + closed, closed, width, total, total_least, found, found_least)
            failed[span + closed] = spilled(numbers, closed) or spilled(total, closed)
            closed += 1
        if at >= stop:
            return
        after = checks.tie_end[at]
        old, new = side * group * states, (1 - side) * group * states
        if size > 1:
            _sum_group(old, size, 2 * group * states, states, width, numbers, least, stands)
        for e in range(at, after):
            mine = new + (e - at) * states
            for state in range(states):
                stands[mine + state] = False
            if fits[e] == 0:
                continue
            _go_on(e, mine, before, size, old, 2 * group * states, fits[e], source, moves, checks, width, numbers, least,
                   stands)  # fmt: skip
            for start in range(len(bounds.start_state)):
                if fits_at(fits[e], bounds.start_position[start]):
                    entry = mine + bounds.start_state[start]
                    if not stands[entry]:
                        wipe(entry, width, numbers, least)
                    stands[entry] |= start_entry(entry, start, e, lanes, bounds, width, numbers, least)
            for state in range(states):
                if stands[mine + state]:
                    gain(mine + state, e, state, gains, width, numbers, least)
                    if bounds.end_begin[state] < bounds.end_begin[state + 1]:
                        count(mine + state, e, state, lanes, bounds, width, numbers, least, total, total_least)
        before, size, side, at = at, after - at, 1 - side, after


@njit(cache=True, nogil=True)
def _sum_group(
    old: int, size: int, sums: int, states: int, width: int, numbers: Numbers, least: Array, stands: Array
) -> None:
    """The sum of the last group, by state."""
    for state in range(states):
        stands[sums + state] = False
        for p in range(size):
            _arrive(sums + state, old + p * states + state, width, numbers, least, stands)


@njit(cache=True, nogil=True)
def _arrive(entry: int, other: int, width: int, numbers: Numbers, least: Array, stands: Array) -> None:
    """The runs of another entry, if there are any, go on to this one."""
    if stands[other]:
        if stands[entry]:
            join_entry(entry, other, width, numbers, least)
        else:
            move_entry(entry, other, width, numbers, least)
            stands[entry] = True


@njit(cache=True, nogil=True)
def _go_on(
    e: int, mine: int, before: int, size: int, old: int, sums: int, fitting: int, source: Array, moves: Moves,
    checks: Checks, width: int, numbers: Numbers, least: Array, stands: Array,
) -> None:  # fmt: skip
    """All runs that stand at the last group and can go on to event e."""
    states = len(moves.begin) - 1
    for move in range(len(source)):
        if not fits_at(fitting, moves.position[move]):
            continue
        entry = mine + moves.target[move]
        if size > 1 and moves.free[move]:
            _arrive(entry, sums + source[move], width, numbers, least, stands)
            continue
        for p in range(size):
            other = old + p * states + source[move]
            if stands[other] and (moves.free[move] or possible(before + p, e, move, checks)):
                _arrive(entry, other, width, numbers, least, stands)
