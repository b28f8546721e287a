"""Find signatures by walking through the events, one partial signature at a time, compiled.

The same search as `growth`, for patterns without conditions between events: there is nothing to evaluate on whole
columns, so a candidate costs some nanoseconds in a loop. A walk stops when its buffer is full, and goes on from there.

With a threshold, the probability that the partial signature is in order is carried along (`confidence.in_order`).

Cost: O(1) per candidate, O(log events) per partial signature; with a threshold O(points) per partial signature.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from trendloom.kernels.compiled import INSIDE, njit
from trendloom.kernels.imprecise.confidence.in_order import begin_order, go_on, prefix_error
from trendloom.kernels.imprecise.confidence.points import PointMasses, masses_of
from trendloom.kernels.imprecise.extension import Extensions
from trendloom.kernels.imprecise.position_events import FAR
from trendloom.kernels.imprecise.prefixes import Prefixes, ordered_paths

Array = np.ndarray[Any, Any]

MOST_MASSES = 1 << 24
"""Most probabilities of points that a walk holds, where a threshold is given."""


class WalkTables(NamedTuple):
    """The pattern and the events of its positions.

    The moves from state s are `begin[s]` to `begin[s + 1]`; those of the start are behind all states. Move m binds one
    of the `members`, of key k from `starts[position[m], k]` on, in order of their earliest points (`low`), with the
    greatest latest point so far (`highest`). `bar`: less likely partial signatures are dropped; not above 0: none.
    """

    begin: Array
    step: Array
    position: Array
    target: Array
    repeats: Array
    accepts: Array
    members: Array
    starts: Array
    low: Array
    highest: Array
    first_point: Array
    last_point: Array
    key: Array
    ends: Array
    span: int
    bar: float


class WalkState(NamedTuple):
    """Where a walk stands: row d is the partial signature of d events, and the candidate to be tried next for it.

    `depth`: one number, the length of the partial signature; below zero when all is done.
    """

    depth: Array
    event: Array
    step: Array
    state: Array
    least: Array
    latest: Array
    move: Array
    at: Array
    masses: Array


class WalkBuffer(NamedTuple):
    """Complete signatures: their events and steps one after another."""

    offsets: Array
    events: Array
    steps: Array
    least: Array
    latest: Array


def can_walk(tests: Extensions) -> bool:
    """Whether the pattern is one for a walk: every event that fits counts, and nothing is asked of two of them."""
    if tests.machine.spec.earliest or tests.growing or tests.final:
        return False
    return tests.threshold is None or _deepest(tests) * tests.block.most_points <= MOST_MASSES


class SignatureWalk:
    """Complete signatures, NOTs left out, in chunks of equal length."""

    def __init__(self, tests: Extensions, chunk: int) -> None:
        self.tests, self.chunk = tests, chunk

    def complete(self) -> Iterator[Prefixes]:
        tests, deepest = self.tests, _deepest(self.tests)
        tables, points = _tables(tests), masses_of(tests.block)
        state = _beginning(tables, deepest, tests.block.most_points)
        size = max(self.chunk, deepest)
        while state.depth[0] >= 0:
            rows = max(1, size // tests.machine.spec.scopes[0].template.minimal_length)
            buffer = WalkBuffer(
                np.zeros(rows + 1, np.int64), np.empty(size, np.int64), np.empty(size, np.int32),
                np.empty(rows, np.int64), np.empty(rows, np.int64),
            )  # fmt: skip
            found = walk(tables, state, buffer, points)
            yield from self._by_length(buffer, found)

    def _by_length(self, buffer: WalkBuffer, found: int) -> Iterator[Prefixes]:
        begin = buffer.offsets[:found]
        lengths = np.diff(buffer.offsets[: found + 1])
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            if len(rows) == found:
                whole = slice(0, found * length)
                events, steps = (some[whole].reshape(found, length) for some in (buffer.events, buffer.steps))
            else:
                places = begin[rows, None] + np.arange(length)
                events, steps = buffer.events[places], buffer.steps[places]
            paths = ordered_paths(self.tests.machine, self.tests.block, events, steps)
            yield Prefixes(paths, buffer.least[rows], buffer.latest[rows])


def _deepest(tests: Extensions) -> int:
    """The most events that a signature can have."""
    template = tests.machine.spec.scopes[0].template
    states = len(template.edges)
    if not any(state in template.reached[state] for state in range(states)):
        return states
    of_a_key = int(np.diff(tests.block.key_starts).max(initial=0))
    return max(1, of_a_key if tests.span is None else min(of_a_key, tests.span))


def _tables(tests: Extensions) -> WalkTables:
    machine = tests.machine
    moves = [*machine.moves[0], machine.starts[0]]
    flat = [step for steps in moves for step in steps]
    offsets = np.cumsum([0, *(len(one.events) for one in tests.fitting)])
    starts = [one.starts + offset for one, offset in zip(tests.fitting, offsets[:-1], strict=True)]
    bar = 0.0
    if tests.threshold is not None:
        bar = float(tests.threshold) * (1 - 2.0**-50) / (1 + 2 * prefix_error(tests.block, _deepest(tests)))
    return WalkTables(
        np.cumsum([0, *map(len, moves)]),
        np.array([step.number for step in flat], np.int64),
        np.array([step.position for step in flat], np.int64),
        np.array([step.target for step in flat], np.int64),
        np.array([tests.steps.repeats[step.number] for step in flat], np.bool_),
        tests.steps.accepts,
        np.concatenate([one.events for one in tests.fitting]).astype(np.int64),
        np.stack(starts).astype(np.int64),
        np.concatenate([one.low for one in tests.fitting]).astype(np.int64),
        np.concatenate([one.highest for one in tests.fitting]).astype(np.int64),
        tests.low.astype(np.int64),
        tests.high.astype(np.int64),
        tests.block.key,
        tests.ends,
        int(FAR) if tests.span is None else tests.span,
        bar,
    )


def _beginning(tables: WalkTables, deepest: int, points: int) -> WalkState:
    size = deepest + 1
    numbers = [np.zeros(size, np.int64) for _ in range(7)]
    masses = np.zeros((size, points) if tables.bar > 0 else (1, 1))
    state = WalkState(np.zeros(1, np.int64), *numbers, masses)
    state.state[0] = len(tables.accepts)
    state.least[0], state.latest[0] = -FAR, FAR
    state.move[0], state.at[0] = tables.begin[-2], -1
    return state


# ------------------------------------------------------------------------------------------------ compiled


@njit(nogil=True)
def walk(tables: WalkTables, walked: WalkState, buffer: WalkBuffer, points: PointMasses) -> int:
    """Go on until the buffer is full or all is done; returns how many signatures it holds. O(1) per candidate."""
    depth, rows, used = walked.depth[0], 0, 0
    while depth >= 0:
        move = walked.move[depth]
        if move == tables.begin[walked.state[depth] + 1]:
            depth -= 1
            continue
        at, end = walked.at[depth], _slice_end(tables, walked, depth, move)
        if at < 0:
            at = _slice_begin(tables, walked, depth, move)
        target = tables.target[move]
        latest_low = walked.latest[depth] + tables.span - 1
        deeper = False
        while at < end and tables.low[at] <= latest_low and not deeper:
            if _is_extension(tables, walked, depth, tables.members[at], move):
                if tables.accepts[target] and (rows == len(buffer.least) or used + depth + 1 > len(buffer.events)):
                    walked.at[depth], walked.depth[0] = at, depth
                    return rows
                if _enter(tables, walked, depth, tables.members[at], move, points):
                    if tables.accepts[target]:
                        _emit(walked, depth + 1, buffer, rows, used)
                        rows, used = rows + 1, used + depth + 1
                    deeper = tables.begin[target] < tables.begin[target + 1]
            at += 1
        if deeper:
            walked.at[depth] = at
            depth += 1
            walked.move[depth], walked.at[depth] = tables.begin[target], -1
        else:
            walked.move[depth], walked.at[depth] = move + 1, -1
    walked.depth[0] = depth
    return rows


@njit(**INSIDE)
def _slice_end(tables: WalkTables, walked: WalkState, depth: int, move: int) -> int:
    """Where the members end that a move may bind: those of the key, at the start those of all keys."""
    if depth == 0:
        return tables.starts[tables.position[move], -1]
    return tables.starts[tables.position[move], tables.key[walked.event[depth]] + 1]


@njit(**INSIDE)
def _slice_begin(tables: WalkTables, walked: WalkState, depth: int, move: int) -> int:
    """The first member that may come after the last event. O(log events)."""
    position = tables.position[move]
    if depth == 0:
        return tables.starts[position, 0]
    key = tables.key[walked.event[depth]]
    low, high = tables.starts[position, key], tables.starts[position, key + 1]
    while low < high:
        middle = (low + high) // 2
        if tables.highest[middle] > walked.least[depth]:
            high = middle
        else:
            low = middle + 1
    return low


@njit(**INSIDE)
def _is_extension(tables: WalkTables, walked: WalkState, depth: int, event: int, move: int) -> bool:
    """Whether times allow an event to come next, and a match to end in time after it."""
    high = tables.last_point[event]
    least = max(walked.least[depth] + 1, tables.first_point[event])
    latest = min(walked.latest[depth], high - depth)
    end = max(least, tables.ends[tables.target[move], event])
    if least > high or end >= FAR or end - latest >= tables.span or depth >= tables.span:
        return False
    if tables.repeats[move]:
        for place in range(1, depth + 1):
            if walked.event[place] == event:
                return False
    return True


@njit(**INSIDE)
def _enter(tables: WalkTables, walked: WalkState, depth: int, event: int, move: int, points: PointMasses) -> bool:
    """Note the partial signature with one more event; whether it is likely enough."""
    high, after = tables.last_point[event], depth + 1
    walked.event[after], walked.step[after], walked.state[after] = event, tables.step[move], tables.target[move]
    walked.least[after] = max(walked.least[depth] + 1, tables.first_point[event])
    walked.latest[after] = min(walked.latest[depth], high - depth)
    if tables.bar <= 0:
        return True
    now = tables.first_point[event], high
    if depth == 0:
        begin_order(points, event, now[0], now[1], walked.masses[after])
    else:
        before = tables.first_point[walked.event[depth]], tables.last_point[walked.event[depth]]
        go_on(points, event, before, now, walked.masses[depth], walked.masses[after])
    total = 0.0
    for place in range(now[1] - now[0] + 1):
        total += walked.masses[after, place]
    return total + 1e-300 >= tables.bar


@njit(**INSIDE)
def _emit(walked: WalkState, length: int, buffer: WalkBuffer, row: int, used: int) -> None:
    for place in range(length):
        buffer.events[used + place] = walked.event[place + 1]
        buffer.steps[used + place] = walked.step[place + 1]
    buffer.offsets[row + 1] = used + length
    buffer.least[row], buffer.latest[row] = walked.least[length], walked.latest[length]
