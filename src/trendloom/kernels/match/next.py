"""Follow runs: all matches under skip-till-next-match and contiguous, by a table of successors.

Idea: where a step depends on the two events it joins alone, the earliest event that can extend a run is a function of
the run's last event and state. `successors` computes it once per (event, state), so following a run costs its length.

Cost: that of the successors (one sweep), then O(1) per event of the output. Output leaves in chunks; the search can be
resumed at any point. See docs/semantics.md on skip-till-next-match; Poppe, "Event Stream Analytics", ch. 16.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block, check_range, horizons
from trendloom.kernels.contract.emission import Certain
from trendloom.kernels.contract.matches import Matches
from trendloom.kernels.contract.pattern_spec import Compared, PatternSpec
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.match.search import MatchBuffer, SearchKernel, SearchState, written
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.expansion import first_chunk
from trendloom.kernels.matching.reachability import accepting
from trendloom.kernels.matching.successors import NONE, Successors, successors_of
from trendloom.kernels.matching.tables import Checks, Moves, checks_of, fits_at, fitting_bits, moves_of, possible
from trendloom.kernels.matching.windows import windowed

CHUNK = 1 << 22
"""Entries (events of matches) emitted at a time."""
NEXT_START, DEPTH, OPEN, FRESH = range(4)
"""What `place` holds: the next start; of the run under way its depth, open places, and whether its top is new."""
EVENT, STATE, CURSOR, MOVE = range(4)
"""Rows of the stack: the run under way, and for every event on it the next candidate event and its move."""


class RunTables(NamedTuple):
    """What runs are followed by.

    `start_event`, `start_state`: where runs can start, in order of the events. `limit[e]`: the first event that no run
    from e can hold. `key_end[e]`: the end of its key. By state: `position_of`, and whether a match `accepts` to end
    there.
    """

    start_event: Array
    start_state: Array
    limit: Array
    key_end: Array
    fits: Array
    position_of: Array
    accepts: Array
    successors: Successors
    moves: Moves
    checks: Checks


class RunPath(NamedTuple):
    """The run under way as a stack, and `place`: how far the search has come."""

    stack: Array
    place: Array


@dataclass(frozen=True, eq=False)
class Runs:
    """All that following runs over a block needs."""

    automaton: Automaton
    block: Block
    tables: RunTables


@dataclass(frozen=True)
class RunsKernel(SearchKernel):
    """Skip-till-next-match and contiguous; `pairs` are the conditions on the two events of a step.

    On a live stream only events of runs that may go on are needed again (see `unfinished`).
    """

    pairs: tuple[Compared, ...]

    def all(self, block: Block) -> Iterator[Matches]:
        return follow_runs(self.pattern_spec, self.pairs, block)

    @property
    def prunes(self) -> bool:
        """Whether a run that has gone on is done with all other events: not where a NOT may look at them."""
        return self.emission.certain is Certain.LAST and len(self.pattern_spec.scopes) == 1

    @property
    def keeps(self) -> str:
        return "the events of runs that may go on" if self.prunes else super().keeps

    def step(self, state: SearchState, block: Block, watermark: int | None) -> tuple[Iterator[Matches], SearchState]:
        """Take events; emit the matches that have become certain."""
        if watermark is None or not self.prunes or not len(block):
            return super().step(state, block, watermark)
        runs = prepare_runs(self.pattern_spec, self.pairs, block)
        kept = unfinished(runs, self.emission.forgotten(block.time) > watermark)
        return self.fresh(block, matches_of(runs), state.before, watermark), SearchState(block, watermark, kept)


def follow_runs(spec: PatternSpec, pairs: tuple[Compared, ...], block: Block, chunk: int = CHUNK) -> Iterator[Matches]:
    """Chunks of matches; each match once per window that holds it."""
    if len(block):
        yield from matches_of(prepare_runs(spec, pairs, block), chunk)


def prepare_runs(spec: PatternSpec, pairs: tuple[Compared, ...], block: Block) -> Runs:
    """Find all successors, in one sweep. The block has at least one event."""
    check_range(block.time, spec.window)
    automaton = Automaton(spec)
    key_end = np.repeat(block.key_starts[1:], np.diff(block.key_starts))
    horizon = horizons(block, spec.window)
    moves, checks, fits = moves_of(automaton, pairs), checks_of(automaton, pairs, block), fitting_bits(block)
    successors = successors_of(automaton, block, fits, key_end, moves, checks)
    position_of = np.array(spec.scopes[0].template.position_of, np.int64)
    limit = key_end if horizon is None else horizon
    tables = RunTables(
        *_starts(automaton, block), limit, key_end, fits, position_of, accepting(automaton), successors, moves, checks
    )
    return Runs(automaton, block, tables)


def _starts(automaton: Automaton, block: Block) -> tuple[Array, Array]:
    steps = automaton.starts[0]
    members = [block.members[step.position] for step in steps]
    event = np.concatenate(members)
    state = np.repeat(np.array([step.target for step in steps], np.int64), [len(some) for some in members])
    order = np.argsort(event, kind="stable")
    return event[order], state[order]


def matches_of(runs: Runs, chunk: int = CHUNK) -> Iterator[Matches]:
    """The matches of all runs, a chunk at a time."""
    return windowed(_chunks(runs, chunk), runs.block, runs.automaton.spec.window, chunk)


def _chunks(runs: Runs, chunk: int) -> Iterator[Matches]:
    longest = int(np.diff(runs.block.key_starts).max()) + 1
    path = RunPath(np.zeros((4, longest), np.int64), np.zeros(4, np.int64))
    size = max(first_chunk(len(runs.block), chunk), longest)
    while path.place[NEXT_START] < len(runs.tables.start_event) or path.place[DEPTH] > 0:
        buffer = MatchBuffer(np.zeros(size + 1, np.int64), np.empty(size, np.int64), np.empty(size, np.int32))
        yield written(buffer, _follow(runs.tables, path, buffer))
        size = min(2 * size, max(chunk, longest))


def unfinished(runs: Runs, open_: Array) -> Array:
    """For every event whether a run that may go on needs it. `open_`: whether runs that start there may go on.

    Under skip-till-next-match and contiguous a run that has found its next event is done with all others, so of the
    events of a long window only few matter for what comes. A run is *waiting* where it may go on and has found no
    successor yet (contiguous: and nothing came after it).

    What is kept must be closed: an event that is kept could start a run of its own, and must then find the successors
    that it had, or it would find wrong ones. So the successors of all that is kept are kept. Cost: O(events · moves),
    one sweep backwards for what waits, one forwards for what is kept. The pattern has no NOT.
    """
    entries = np.array([step.target for step in runs.automaton.starts[0]], np.int64)
    waiting = _waiting(runs.tables, runs.automaton.spec.adjacent)
    return _kept(runs.tables, waiting, entries, open_)


# ------------------------------------------------------------------------------------------------ compiled


@njit(nogil=True)
def _follow(tables: RunTables, path: RunPath, buffer: MatchBuffer) -> int:
    """Follow runs from where the search was left until the buffer is full; returns the number of matches written.

    A run with one way on goes on; where several events or moves fit at one time, it comes back for the others (`open_`
    counts such places). O(1) per entry written.
    """
    # `possible` is called right here: a compiled function between them would count references at every call
    limit, position_of, accepts = tables.limit, tables.position_of, tables.accepts
    successors, fits, moves, checks = tables.successors, tables.fits, tables.moves, tables.checks
    offsets, events, positions = buffer.offsets, buffer.events, buffer.positions
    path_event, path_state, cursor, cursor_move = (
        path.stack[EVENT],
        path.stack[STATE],
        path.stack[CURSOR],
        path.stack[MOVE],
    )
    place = path.place
    next_start, depth, open_, fresh = place[NEXT_START], place[DEPTH], place[OPEN], place[FRESH]
    count, used = 0, 0
    while True:
        if depth == 0:
            if next_start >= len(tables.start_event):
                break
            path_event[0], path_state[0] = tables.start_event[next_start], tables.start_state[next_start]
            next_start += 1
            if limit[path_event[0]] <= path_event[0]:
                continue
            depth, fresh = 1, 1
        top = depth - 1
        e, state = path_event[top], path_state[top]
        last_move = moves.begin[state + 1]
        if fresh == 1:
            if accepts[state]:
                if used + depth > len(events):
                    break
                for d in range(depth):
                    events[used + d] = path_event[d]
                    positions[used + d] = position_of[path_state[d]]
                used += depth
                count += 1
                offsets[count] = used
            fresh = 0
            cursor[top] = NONE
            if moves.begin[state] < last_move:
                j = successors.event[state, e]
                if j != NONE and j < limit[path_event[0]]:
                    move = successors.move[state, e]
                    if move != NONE:
                        path_event[depth], path_state[depth] = j, moves.target[move]
                        depth, fresh = depth + 1, 1
                        continue
                    cursor[top], cursor_move[top] = j, moves.begin[state]
                    open_ += 1
        if cursor[top] == NONE:
            depth = depth - 1 if open_ > 0 else 0
            continue
        j, move = cursor[top], cursor_move[top]
        stop = checks.tie_end[j]
        while j < stop and fresh == 0:
            while move < last_move and fresh == 0:
                if fits_at(fits[j], moves.position[move]) and (moves.free[move] or possible(e, j, move, checks)):
                    path_event[depth], path_state[depth] = j, moves.target[move]
                    fresh = 1
                move += 1
            if move >= last_move:
                j, move = j + 1, moves.begin[state]
        cursor[top], cursor_move[top] = j, move
        if j >= stop:  # the next event belongs to another time
            cursor[top] = NONE
            open_ -= 1
        depth += fresh
    place[NEXT_START], place[DEPTH], place[OPEN], place[FRESH] = next_start, depth, open_, fresh
    return count


@njit(nogil=True)
def _waiting(tables: RunTables, adjacent: bool) -> Array:
    """By state and event, whether a run that stands there waits for an event, or some run that it becomes does."""
    position_of, fits, moves, checks = tables.position_of, tables.fits, tables.moves, tables.checks
    waiting = np.zeros((len(position_of), len(fits)), np.bool_)
    for e in range(len(fits) - 1, -1, -1):
        for state in range(len(position_of)):
            if not fits_at(fits[e], position_of[state]) or moves.begin[state] == moves.begin[state + 1]:
                continue
            first = tables.successors.event[state, e]
            if first == NONE:
                waiting[state, e] = not adjacent or checks.tie_end[e] == tables.key_end[e]
                continue
            for f in range(first, checks.tie_end[first]):
                for move in range(moves.begin[state], moves.begin[state + 1]):
                    if (
                        waiting[moves.target[move], f]
                        and fits_at(fits[f], moves.position[move])
                        and (moves.free[move] or possible(e, f, move, checks))
                    ):
                        waiting[state, e] = True
    return waiting


@njit(nogil=True)
def _kept(tables: RunTables, waiting: Array, entries: Array, open_: Array) -> Array:
    """Events of waiting runs, and the successors of all that is kept. `entries`: states in which runs start."""
    position_of, fits, moves, checks = tables.position_of, tables.fits, tables.moves, tables.checks
    kept, reached = np.zeros(len(fits), np.bool_), np.zeros(waiting.shape, np.bool_)
    for e in range(len(kept)):
        for state in range(len(reached)):
            kept[e] |= reached[state, e]
        for state in entries:
            if open_[e] and waiting[state, e]:
                kept[e] = True
        if not kept[e]:
            continue
        for state in entries:
            if fits_at(fits[e], position_of[state]):
                reached[state, e] = True
        for state in range(len(reached)):
            if not reached[state, e] or moves.begin[state] == moves.begin[state + 1]:
                continue
            first = tables.successors.event[state, e]
            if first == NONE:
                continue
            for f in range(first, checks.tie_end[first]):
                for move in range(moves.begin[state], moves.begin[state + 1]):
                    if fits_at(fits[f], moves.position[move]) and (moves.free[move] or possible(e, f, move, checks)):
                        reached[moves.target[move], f] = True
    return kept
