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
from trendloom.kernels.columns.block import Block, check_range, horizons, numbers_of_windows
from trendloom.kernels.contract.emission import Certain
from trendloom.kernels.contract.matches import Matches
from trendloom.kernels.contract.pattern_spec import Compared, PatternSpec
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.match.search import SearchKernel, SearchState
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.expansion import first_chunk
from trendloom.kernels.matching.successors import NONE, Successors, successors_of
from trendloom.kernels.matching.tables import Checks, Moves, checks_of, fits_at, fitting_bits, moves_of, possible
from trendloom.kernels.matching.windows import in_each_window

CHUNK = 1 << 22
"""Entries (events of matches) given out at a time."""


class Starts(NamedTuple):
    """Where runs can start, in order of the events."""

    event: Array
    step: Array
    state: Array


@dataclass(frozen=True, eq=False)
class Runs:
    """All that following runs over a block needs: `limit[e]` is the first event that no run from e can hold."""

    automaton: Automaton
    block: Block
    moves: Moves
    checks: Checks
    starts: Starts
    fits: Array
    key_end: Array
    limit: Array
    successors: Successors


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
    limit = key_end if horizon is None else horizon
    return Runs(automaton, block, moves, checks, _starts(automaton, block), fits, key_end, limit, successors)


def matches_of(runs: Runs, chunk: int = CHUNK) -> Iterator[Matches]:
    """The matches of all runs, a chunk at a time."""
    block, window = runs.block, runs.automaton.spec.window
    for offsets, events, steps in _chunks(runs, chunk):
        found = Matches(offsets, events, runs.automaton.position_of.astype(np.int32)[steps])
        if window.slide is not None:
            low, count = numbers_of_windows(block.time[found.first], block.time[found.last], window)
            yield from in_each_window(found, low, count, window.slide, chunk)
        elif len(found):
            yield found


def _chunks(runs: Runs, chunk: int) -> Iterator[tuple[Array, Array, Array]]:
    """Offsets, events and steps of matches, a chunk at a time."""
    accepts = np.array([bool(ways) for ways in runs.automaton.spec.scopes[0].template.accepts], np.bool_)
    longest = int(np.diff(runs.block.key_starts).max())
    stack = np.zeros((5, longest + 1), np.int64)
    place = np.zeros(4, np.int64)  # next start; of the run under way: its depth, open places, whether its top is new
    size = max(first_chunk(len(runs.block), chunk), longest + 1)
    while place[0] < len(runs.starts.event) or place[1] > 0:
        offsets, events, steps = np.zeros(size + 1, np.int64), np.empty(size, np.int64), np.empty(size, np.int32)
        count = _follow(
            runs.starts, runs.limit, runs.fits, runs.successors, accepts, runs.moves, runs.checks, stack, place,
            offsets, events, steps,
        )  # fmt: skip
        used = int(offsets[count])
        yield offsets[: count + 1], events[:used], steps[:used]
        size = min(2 * size, max(chunk, longest + 1))


def _starts(automaton: Automaton, block: Block) -> Starts:
    steps = automaton.starts[0]
    events = np.concatenate([block.members[step.position] for step in steps])
    sizes = [len(block.members[step.position]) for step in steps]
    number = np.repeat(np.array([step.number for step in steps], np.int64), sizes)
    target = np.repeat(np.array([step.target for step in steps], np.int64), sizes)
    if len(steps) == 1:
        return Starts(events, number, target)
    order = np.argsort(events, kind="stable")
    return Starts(events[order], number[order], target[order])


@njit(nogil=True)
def _follow(
    starts: Starts, limit: Array, fits: Array, successors: Successors, accepts: Array, moves: Moves, checks: Checks,
    stack: Array, place: Array, offsets: Array, events: Array, steps: Array,
) -> int:  # fmt: skip
    """Follow runs from `place` on until the chunk is full; returns the number of matches written.

    The run under way is a stack of (event, step, state, next candidate event, its move). A run with one way on goes on;
    where several events or moves fit at one time, it comes back for the others (`open_` counts such places). O(1) per
    entry written.
    """
    count, used = 0, 0
    next_start, depth, open_, fresh = place[0], place[1], place[2], place[3]
    path_event, path_step, path_state = stack[0], stack[1], stack[2]
    cursor_event, cursor_move = stack[3], stack[4]
    while True:
        if depth == 0:
            if next_start >= len(starts.event):
                break
            path_event[0], path_step[0] = starts.event[next_start], starts.step[next_start]
            path_state[0] = starts.state[next_start]
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
                    steps[used + d] = path_step[d]
                used += depth
                count += 1
                offsets[count] = used
            fresh = 0
            cursor_event[top] = NONE
            if moves.begin[state] < last_move:
                j = successors.event[state, e]
                if j != NONE and j < limit[path_event[0]]:
                    move = successors.move[state, e]
                    if move != NONE:
                        path_event[depth], path_step[depth], path_state[depth] = j, moves.step[move], moves.target[move]
                        depth, fresh = depth + 1, 1
                        continue
                    cursor_event[top], cursor_move[top] = j, moves.begin[state]
                    open_ += 1
        if cursor_event[top] == NONE:
            depth = depth - 1 if open_ > 0 else 0
            continue
        j, move = cursor_event[top], cursor_move[top]
        stop = checks.tie_end[j]
        while j < stop and fresh == 0:
            while move < last_move and fresh == 0:
                if fits_at(fits[j], moves.position[move]) and (moves.free[move] or possible(e, j, move, checks)):
                    path_event[depth], path_step[depth], path_state[depth] = j, moves.step[move], moves.target[move]
                    fresh = 1
                move += 1
            if move >= last_move:
                j, move = j + 1, moves.begin[state]
        cursor_event[top], cursor_move[top] = j, move
        if j >= stop:  # the next event belongs to another time
            cursor_event[top] = NONE
            open_ -= 1
        depth += fresh
    place[0], place[1], place[2], place[3] = next_start, depth, open_, fresh
    return count


# Which events runs still need: those of runs that an event yet to come could extend.
#
# Under skip-till-next-match and contiguous a run that has found its next event is done with all others, so of the
# events of a long window only few matter for what comes. A run is *waiting* where it may go on and has found no
# successor yet (contiguous: and nothing came after it).
#
# What is kept must be closed: an event that is kept could start a run of its own, and must then find the successors
# that it had, or it would find wrong ones. So the successors of all that is kept are kept. Cost: O(events · moves),
# one sweep backwards for what waits, one forwards for what is kept. The pattern has no NOT.


def unfinished(runs: Runs, open_: Array) -> Array:
    """For every event whether a run that may go on needs it. `open_`: whether runs that start there may go on."""
    template = runs.automaton.spec.scopes[0].template
    states = np.array(template.position_of, np.int64)
    starts = runs.automaton.starts[0]
    position = np.array([step.position for step in starts], np.int64)
    target = np.array([step.target for step in starts], np.int64)
    waiting = np.zeros((len(states), len(runs.fits)), np.bool_)
    adjacent = runs.automaton.spec.adjacent
    _wait(waiting, runs.successors, states, runs.fits, runs.key_end, adjacent, runs.moves, runs.checks)
    kept = np.zeros(len(runs.fits), np.bool_)
    _keep(kept, waiting, open_, position, target, runs.successors, runs.fits, runs.moves, runs.checks)
    return kept


@njit(nogil=True)
def _wait(
    waiting: Array, successors: Successors, states: Array, fits: Array, key_end: Array, adjacent: bool, moves: Moves,
    checks: Checks,
) -> None:  # fmt: skip
    """`waiting[s, e]`: a run that stands at e in state s waits for an event, or some run that it becomes does."""
    for e in range(len(fits) - 1, -1, -1):
        for state in range(len(states)):
            if not fits_at(fits[e], states[state]) or moves.begin[state] == moves.begin[state + 1]:
                continue
            first = successors.event[state, e]
            if first == NONE:
                waiting[state, e] = not adjacent or checks.tie_end[e] == key_end[e]
                continue
            for f in range(first, checks.tie_end[first]):
                for move in range(moves.begin[state], moves.begin[state + 1]):
                    if (
                        waiting[moves.target[move], f]
                        and fits_at(fits[f], moves.position[move])
                        and (moves.free[move] or possible(e, f, move, checks))
                    ):
                        waiting[state, e] = True


@njit(nogil=True)
def _keep(
    kept: Array, waiting: Array, open_: Array, position: Array, target: Array, successors: Successors, fits: Array,
    moves: Moves, checks: Checks,
) -> None:  # fmt: skip
    """Events of waiting runs, and the successors of all that is kept."""
    reached = np.zeros(waiting.shape, np.bool_)
    for e in range(len(fits)):
        for state in range(len(reached)):
            kept[e] |= reached[state, e]
        for start in range(len(position)):
            if open_[e] and fits_at(fits[e], position[start]) and waiting[target[start], e]:
                kept[e] = True
        if not kept[e]:
            continue
        for start in range(len(position)):
            if fits_at(fits[e], position[start]):
                reached[target[start], e] = True
        for state in range(len(reached)):
            if not reached[state, e] or moves.begin[state] == moves.begin[state + 1]:
                continue
            first = successors.event[state, e]
            if first == NONE:
                continue
            for f in range(first, checks.tie_end[first]):
                for move in range(moves.begin[state], moves.begin[state + 1]):
                    if fits_at(fits[f], moves.position[move]) and (moves.free[move] or possible(e, f, move, checks)):
                        reached[moves.target[move], f] = True


# Matches whose next event depends on the last one alone: runs are followed by a table of successors.
#
# On a live stream only events of runs that may go on are asked for again (see `unfinished`).


@dataclass(frozen=True)
class RunsKernel(SearchKernel):
    """Skip-till-next-match and contiguous; `pairs` are the conditions on the two events of a step."""

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
        """Take events; give out the matches that have become certain."""
        if watermark is None or not self.prunes or not len(block):
            return super().step(state, block, watermark)
        runs = prepare_runs(self.pattern_spec, self.pairs, block)
        kept = unfinished(runs, self.emission.forgotten(block.time) > watermark)
        return self.fresh(block, matches_of(runs), state.before, watermark), SearchState(block, watermark, kept)
