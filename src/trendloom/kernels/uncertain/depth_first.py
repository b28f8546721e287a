"""Find signatures depth first, one partial signature at a time, compiled.

The fast search, for skip-till-any-match without conditions between events: there is nothing to evaluate on whole
columns, so a candidate costs some nanoseconds in a loop, 2 to 4 times less than in chunks (decision 45). The search
stops when its buffer is full, and goes on from there.

With a threshold, the probability that the partial signature is in order is carried along (`confidence.in_order`).

Cost: O(1) per candidate, O(log events) per partial signature; with a threshold O(points) per partial signature.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.numbers import BORROWED, LEAN
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.uncertain.chunked import Extensions
from trendloom.kernels.uncertain.confidence.in_order import BEGIN, END, PointMasses, masses_of, prefix_error
from trendloom.kernels.uncertain.signatures import FAR, PartialSignatures, ordered_paths

UNBOUNDED = 1 << 61
"""The span of matches that may take any time: added to any point it fits a word."""
MOST_MASSES = 1 << 24
"""Most probabilities of points that a search holds, where a threshold is given."""


class SearchTables(NamedTuple):
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


class SearchPosition(NamedTuple):
    """Where a search stands: row d is the partial signature of d events, and the candidate to be tried next for it.

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


class SignatureBuffer(NamedTuple):
    """Complete signatures: their events and steps one after another."""

    offsets: Array
    events: Array
    steps: Array
    least: Array
    latest: Array


def suits_depth_first(spec: PatternSpec) -> bool:
    """Whether every event that fits counts and no condition links two events."""
    return not spec.earliest and not spec.scopes[0].rules


def can_search_depth_first(tests: Extensions) -> bool:
    """Whether the pattern suits a depth-first search, and what a threshold needs fits in memory."""
    if not suits_depth_first(tests.automaton.spec):
        return False
    return tests.threshold is None or _deepest(tests) * tests.block.most_points <= MOST_MASSES


class DepthFirstSearch:
    """Complete signatures, NOTs left out, in chunks of equal length."""

    def __init__(self, tests: Extensions, chunk: int) -> None:
        self.tests, self.chunk = tests, chunk

    def complete(self) -> Iterator[PartialSignatures]:
        tests, deepest = self.tests, _deepest(self.tests)
        tables, points = _tables(tests), masses_of(tests.block)
        state = _beginning(tables, deepest, tests.block.most_points)
        size = max(self.chunk, deepest)
        while state.depth[0] >= 0:
            rows = max(1, size // tests.automaton.spec.scopes[0].template.minimal_length)
            buffer = SignatureBuffer(
                np.zeros(rows + 1, np.int64), np.empty(size, np.int64), np.empty(size, np.int32),
                np.empty(rows, np.int64), np.empty(rows, np.int64),
            )  # fmt: skip
            found = search_from(tables, state, buffer, points)
            yield from self._by_length(buffer, found)

    def _by_length(self, buffer: SignatureBuffer, found: int) -> Iterator[PartialSignatures]:
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
            paths = ordered_paths(self.tests.automaton, self.tests.block, events, steps)
            yield PartialSignatures(paths, buffer.least[rows], buffer.latest[rows])


def _deepest(tests: Extensions) -> int:
    """The most events that a signature can have."""
    template = tests.automaton.spec.scopes[0].template
    states = len(template.edges)
    if not any(state in template.reached[state] for state in range(states)):
        return states
    of_a_key = int(np.diff(tests.block.key_starts).max(initial=0))
    return max(1, of_a_key if tests.span is None else min(of_a_key, tests.span))


def _tables(tests: Extensions) -> SearchTables:
    automaton = tests.automaton
    moves = [*automaton.moves[0], automaton.starts[0]]
    flat = [step for steps in moves for step in steps]
    offsets = np.cumsum([0, *(len(one.events) for one in tests.fitting)])
    starts = [one.starts + offset for one, offset in zip(tests.fitting, offsets[:-1], strict=True)]
    bar = 0.0
    if tests.threshold is not None:
        bar = float(tests.threshold) * (1 - 2.0**-50) / (1 + 2 * prefix_error(tests.block, _deepest(tests)))
    number, position, target = np.array([(step.number, step.position, step.target) for step in flat], np.int64).T.copy()
    members, low, highest = (
        np.concatenate([getattr(one, name) for one in tests.fitting]).astype(np.int64)
        for name in ("events", "low", "highest")
    )
    return SearchTables(
        np.cumsum([0, *map(len, moves)]),
        number,
        position,
        target,
        np.array([tests.repeats[step.number] for step in flat], np.bool_),
        tests.accepts,
        members,
        np.stack(starts).astype(np.int64),
        low,
        highest,
        tests.low.astype(np.int64),
        tests.high.astype(np.int64),
        tests.block.key,
        tests.ends,
        UNBOUNDED if tests.span is None else tests.span,
        bar,
    )


def _beginning(tables: SearchTables, deepest: int, points: int) -> SearchPosition:
    size = deepest + 1
    event, step, state_of, least, latest, move, at = np.zeros((7, size), np.int64)
    masses = np.zeros((size, points) if tables.bar > 0 else (1, 1))
    state = SearchPosition(np.zeros(1, np.int64), event, step, state_of, least, latest, move, at, masses)
    state.state[0] = len(tables.accepts)
    state.least[0], state.latest[0] = -FAR, FAR
    state.move[0], state.at[0] = tables.begin[-2], -1
    return state


# ------------------------------------------------------------------------------------------------ compiled


@njit(**LEAN)
def search_from(tables: SearchTables, reached: SearchPosition, buffer: SignatureBuffer, points: PointMasses) -> int:
    """Go on until the buffer is full or all is done; returns how many signatures it holds. O(1) per candidate."""
    events, leasts, latests, moves, places = reached.event, reached.least, reached.latest, reached.move, reached.at
    span, key = tables.span, tables.key
    depth, rows, used = reached.depth[0], 0, 0
    while depth >= 0:
        move = moves[depth]
        if move == tables.begin[reached.state[depth] + 1]:
            depth -= 1
            continue
        target, at = tables.target[move], places[depth]
        starts = tables.starts[tables.position[move]]
        if depth == 0:
            end = starts[-1]
            at = max(at, starts[0])
        else:
            end = starts[key[events[depth]] + 1]
            if at < 0:
                at = _first_above(tables.highest, leasts[depth], starts[key[events[depth]]], end)
        accepted, inner = tables.accepts[target], tables.begin[target] < tables.begin[target + 1]
        after, latest, length = leasts[depth] + 1, latests[depth], depth + 1
        deeper = False
        while at < end and tables.low[at] - latest < span and depth < span and not deeper:
            event = tables.members[at]
            least = max(after, tables.first_point[event])
            start = min(latest, tables.last_point[event] - depth)
            ended = max(least, tables.ends[target, event])
            if least > tables.last_point[event] or ended >= FAR or ended - start >= span:
                at += 1
                continue
            if tables.repeats[move] and _is_bound(events, depth, event):
                at += 1
                continue
            if accepted and (rows == len(buffer.least) or used + length > len(buffer.events)):
                places[depth], reached.depth[0] = at, depth
                return rows
            at += 1
            events[length], reached.step[length], reached.state[length] = event, tables.step[move], target
            leasts[length], latests[length] = least, start
            if tables.bar > 0 and not _is_likely(tables, reached, length, points):
                continue
            if accepted:
                for place in range(length):
                    buffer.events[used + place] = events[place + 1]
                    buffer.steps[used + place] = reached.step[place + 1]
                used += length
                buffer.least[rows], buffer.latest[rows] = least, start
                rows += 1
                buffer.offsets[rows] = used
            deeper = inner
        if deeper:
            places[depth] = at
            depth += 1
            moves[depth], places[depth] = tables.begin[target], -1
        else:
            moves[depth], places[depth] = move + 1, -1
    reached.depth[0] = depth
    return rows


@njit(**BORROWED)
def _first_above(rising: Array, least: int, low: int, high: int) -> int:
    """The first index in [low, high) whose value is above a number. O(log)."""
    while low < high:
        middle = (low + high) // 2
        if rising[middle] > least:
            high = middle
        else:
            low = middle + 1
    return low


@njit(**BORROWED)
def _is_bound(events: Array, depth: int, event: int) -> bool:
    bound = False
    for place in range(1, depth + 1):
        bound |= events[place] == event
    return bound


@njit(**BORROWED)
def _is_likely(tables: SearchTables, reached: SearchPosition, length: int, points: PointMasses) -> bool:
    """Whether the partial signature of this length is in order often enough: as `in_order.go_on`. O(points)."""
    event, masses, values = reached.event[length], reached.masses, points.values
    first, last, share = tables.first_point[event], tables.last_point[event], points.share[event]
    given, given_end = points.bounds[event, BEGIN], points.bounds[event, END]
    before = reached.event[length - 1]
    base, bound = tables.first_point[before], tables.last_point[before] + 1
    earlier, total, done = 1.0 if length == 1 else 0.0, 0.0, bound if length == 1 else base
    for point in range(first, last + 1):
        while done < min(point, bound):
            earlier += masses[length - 1, done - base]
            done += 1
        mass = earlier * share
        if given < given_end:
            mass *= values[given + point - first]
        masses[length, point - first] = mass
        total += mass
    return total + 1e-300 >= tables.bar
