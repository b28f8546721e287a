"""Follow runs: all matches under skip-till-next-match and contiguous, by a table of successors.

Idea: where a step depends on the two events it joins alone, the earliest event that can extend a run is a function of
the run's last event and state. `successors` computes it once per (event, state), so following a run costs its length.

Cost: that of the successors (one sweep), then O(1) per event of the output. Output leaves in chunks; the search can be
resumed at any point. See docs/semantics.md on skip-till-next-match; Poppe, "Event Stream Analytics", ch. 16.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from trendloom.kernels.columns.block import Block
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.matching.automaton import Machine
from trendloom.kernels.matching.first_chunk import first_chunk
from trendloom.kernels.matching.matches import Matches
from trendloom.kernels.matching.spec import Compared, Detection
from trendloom.kernels.matching.successors import NONE, Successors, successors_of
from trendloom.kernels.matching.tables import Checks, Moves, checks_of, fits_at, fitting_bits, moves_of, possible
from trendloom.kernels.matching.windows import check_range, horizons, in_each_window, numbers_of_windows

Array = np.ndarray[Any, Any]

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

    machine: Machine
    block: Block
    moves: Moves
    checks: Checks
    starts: Starts
    fits: Array
    key_end: Array
    limit: Array
    successors: Successors


def follow_runs(spec: Detection, pairs: tuple[Compared, ...], block: Block, chunk: int = CHUNK) -> Iterator[Matches]:
    """Chunks of matches; each match once per window that holds it."""
    if len(block):
        yield from matches_of(prepare_runs(spec, pairs, block), chunk)


def prepare_runs(spec: Detection, pairs: tuple[Compared, ...], block: Block) -> Runs:
    """Find all successors, in one sweep. The block has at least one event."""
    check_range(block.time, spec.window)
    machine = Machine(spec)
    key_end = np.repeat(block.key_starts[1:], np.diff(block.key_starts))
    horizon = horizons(block, spec.window)
    moves, checks, fits = moves_of(machine, pairs), checks_of(machine, pairs, block), fitting_bits(block)
    successors = successors_of(machine, block, fits, key_end, moves, checks)
    limit = key_end if horizon is None else horizon
    return Runs(machine, block, moves, checks, _starts(machine, block), fits, key_end, limit, successors)


def matches_of(runs: Runs, chunk: int = CHUNK) -> Iterator[Matches]:
    """The matches of all runs, a chunk at a time."""
    block, window = runs.block, runs.machine.spec.window
    for offsets, events, steps in _chunks(runs, chunk):
        found = Matches(offsets, events, runs.machine.position_of.astype(np.int32)[steps])
        if window.slide is not None:
            low, count = numbers_of_windows(block.time[found.first], block.time[found.last], window)
            yield from in_each_window(found, low, count, window.slide, chunk)
        elif len(found):
            yield found


def _chunks(runs: Runs, chunk: int) -> Iterator[tuple[Array, Array, Array]]:
    """Offsets, events and steps of matches, a chunk at a time."""
    accepts = np.array([bool(ways) for ways in runs.machine.spec.scopes[0].template.accepts], np.bool_)
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


def _starts(machine: Machine, block: Block) -> Starts:
    steps = machine.starts[0]
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
