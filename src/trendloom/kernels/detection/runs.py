"""Follow runs: all matches under skip-till-next-match and contiguous, by a table of successors.

Idea: where a step depends on the two events it joins alone, the earliest event that can extend a run is a function of
the run's last event and state. It is computed once per (event, state) and remembered, so following a run costs its length.
`following[q][i]`, the first event from i on that fits position q, lets the search jump over everything else.

Cost: O(events · positions) for the tables, O(1) per event of the output; a predicate on consecutive events adds the candidates
it refuses, each once per (event, state). Output leaves in chunks; the search can be resumed at any point.
See semantics.md on skip-till-next-match; Poppe, "Event Trend Analytics" (seed 000), ch. 16, for the definition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numba
import numpy as np

from trendloom.kernels.columns.block import Block
from trendloom.kernels.detection.comparable import comparable
from trendloom.kernels.detection.expansion import Expansion
from trendloom.kernels.detection.gaps import Gaps
from trendloom.kernels.detection.machine import Machine
from trendloom.kernels.detection.matches import Matches
from trendloom.kernels.detection.spec import Detection, Pair
from trendloom.kernels.detection.windows import check_range, horizons, windows_of

Array = np.ndarray[Any, Any]

CHUNK = 1 << 22
"""Entries (events of matches) given out at a time."""
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
UNKNOWN, NONE = -2, -1


def follow_runs(spec: Detection, pairs: tuple[Pair, ...], block: Block, chunk: int = CHUNK) -> Iterator[Matches]:
    """Chunks of matches; each match once per window that holds it."""
    check_range(block.time, spec.window)
    if len(block) == 0:
        return
    machine = Machine(spec)
    tables = _tables(machine, pairs, block)
    for offsets, events, steps in _chunks(machine, block, tables, horizons(block, spec.window), chunk):
        found = Matches(offsets, events, machine.position_of[steps].astype(np.int32))
        if spec.window.sliding:
            which, start = windows_of(block.time[found.first], block.time[found.last], spec.window)
            taken = found.take(which)
            found = Matches(taken.offsets, taken.events, taken.positions, start)
        if len(found):
            yield found


def _tables(machine: Machine, pairs: tuple[Pair, ...], block: Block) -> tuple[Array, ...]:
    """Steps of every state, and for each step the pairs and thresholds that it must satisfy, as flat tables."""
    moves = [(state, step) for state, steps in enumerate(machine.moves[0]) for step in steps]
    states = len(machine.moves[0])
    move_starts = np.searchsorted([state for state, _ in moves], np.arange(states + 1)) if moves else np.zeros(states + 1)
    gaps = Gaps(machine, block, lambda gaps, scope: Expansion(machine, block, gaps, scope))
    crossed = sorted({c.scope for _, step in moves for way in step.ways for c in way})
    checks = [[i for i, pair in enumerate(pairs) if (state, step.number) in pair.steps] for state, step in moves]
    nots = [[crossed.index(c.scope) for way in step.ways for c in way] for _, step in moves]
    left, right, known = comparable(pairs, block)
    return (
        move_starts.astype(np.int64),
        np.array([step.number for _, step in moves], np.int64),
        np.array([step.position for _, step in moves], np.int64),
        np.array([step.target for _, step in moves], np.int64),
        *_flat_lists(checks),
        *_flat_lists(nots),
        np.array([OPERATORS.index(pair.operator) for pair in pairs], np.int64),
        left,
        right,
        known,
        _stacked([gaps.threshold(scope) for scope in crossed], len(block) + 1),
        np.array([bool(ways) for ways in machine.spec.scopes[0].template.accepts], np.bool_),
        np.array([machine.spec.adjacent]),
    )


def _flat_lists(lists: list[list[int]]) -> tuple[Array, Array]:
    return np.cumsum([0, *map(len, lists)]).astype(np.int64), np.array([x for xs in lists for x in xs], np.int64)


def _stacked(rows: list[Array], width: int) -> Array:
    return np.stack(rows) if rows else np.zeros((0, width), np.int64)


def _chunks(
    machine: Machine, block: Block, tables: tuple[Array, ...], horizon: Array | None, chunk: int
) -> Iterator[tuple[Array, Array, Array]]:
    key_end = np.repeat(block.key_starts[1:], np.diff(block.key_starts))
    starts = [(block.members[step.position], step.number, step.target) for step in machine.starts[0]]
    start_event = np.concatenate([events for events, _, _ in starts])
    start_step = np.concatenate([np.full(len(events), number) for events, number, _ in starts])
    start_state = np.concatenate([np.full(len(events), target) for events, _, target in starts])
    order = np.argsort(start_event, kind="stable")
    limit = key_end if horizon is None else horizon
    longest = int(np.diff(block.key_starts).max())
    stack = np.zeros((6, longest + 1), np.int64)
    place = np.zeros(2, np.int64)  # next start, depth of the run under way
    size = max(chunk, longest + 1)
    successor = np.full((len(machine.moves[0]), len(block)), UNKNOWN, np.int32)
    following = _following(block.members, len(block))
    order_of = (start_event[order], start_step[order], start_state[order])
    while place[0] < len(order) or place[1] > 0:
        offsets, events, steps = np.zeros(size + 1, np.int64), np.empty(size, np.int64), np.empty(size, np.int32)
        count = _follow(
            *order_of, limit, key_end, block.tie_start, block.tie_end, following, successor, *tables,
            stack, place, offsets, events, steps,
        )  # fmt: skip
        used = int(offsets[count])
        yield offsets[: count + 1].copy(), events[:used], steps[:used]


def _following(members: tuple[Array, ...], events: int) -> Array:
    """For every position and index the first event from there on that fits the position; `events` if none."""
    table = np.empty((len(members), events + 1), np.int32)
    for position, fitting in enumerate(members):
        _fill_following(table[position], fitting)
    return table


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _fill_following(row: Array, fitting: Array) -> None:
    at = 0
    for member in fitting:
        row[at : member + 1] = member
        at = member + 1
    row[at:] = len(row) - 1


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _compare(operator: int, left: int, right: int) -> bool:
    if operator == 0:
        return left == right
    if operator == 1:
        return left != right
    if operator == 2:
        return left < right
    if operator == 3:
        return left <= right
    if operator == 4:
        return left > right
    return left >= right


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _possible(
    e: int, f: int, move: int, tie_start: Array, tie_end: Array, check_starts: Array, checks: Array, not_starts: Array,
    nots: Array, operators: Array, left: Array, right: Array, known: Array, thresholds: Array,
) -> bool:  # fmt: skip
    """Whether event f may follow event e by this move: every pair true, no NOT violated."""
    for at in range(check_starts[move], check_starts[move + 1]):
        pair = checks[at]
        if not (known[0, pair, e] and known[1, pair, f]):
            return False
        if not _compare(operators[pair], left[pair, e], right[pair, f]):
            return False
    for at in range(not_starts[move], not_starts[move + 1]):
        if tie_start[f] > tie_end[e] and thresholds[nots[at], tie_start[f]] >= tie_end[e]:
            return False
    return True


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _follow(
    start_event: Array, start_step: Array, start_state: Array, limit: Array, key_end: Array, tie_start: Array,
    tie_end: Array, following: Array, successor: Array, move_starts: Array, move_step: Array, move_position: Array,
    move_target: Array, check_starts: Array, checks: Array, not_starts: Array, nots: Array, operators: Array, left: Array,
    right: Array, known: Array, thresholds: Array, accepts: Array, adjacent: Array, stack: Array, place: Array,
    offsets: Array, events: Array, steps: Array,
) -> int:  # fmt: skip
    """Follow runs from `place` on until the chunk is full; returns the number of matches written.

    The run under way is a stack: event, step, state, next candidate (event, move), and whether it was given out. Depth
    first, in order of the start. O(1) per entry written besides the searches, which `successor` remembers.
    """
    count, used = 0, 0
    next_start, depth = place[0], place[1]
    path_event, path_step, path_state = stack[0], stack[1], stack[2]
    cursor_event, cursor_move, given = stack[3], stack[4], stack[5]
    while True:
        if depth == 0:
            if next_start >= len(start_event):
                break
            e = start_event[next_start]
            if limit[e] <= e:
                next_start += 1
                continue
            path_event[0], path_step[0], path_state[0] = e, start_step[next_start], start_state[next_start]
            cursor_event[0], given[0] = UNKNOWN, 0
            next_start += 1
            depth = 1
        top = depth - 1
        e, state = path_event[top], path_state[top]
        if given[top] == 0:
            if accepts[state]:
                if used + depth > len(events):
                    break
                for d in range(depth):
                    events[used + d] = path_event[d]
                    steps[used + d] = path_step[d]
                used += depth
                count += 1
                offsets[count] = used
            given[top] = 1
        first_move, last_move = move_starts[state], move_starts[state + 1]
        if cursor_event[top] == UNKNOWN:
            found = successor[state, e]
            if found == UNKNOWN:
                found = NONE
                j = tie_end[e]
                stop = key_end[e]
                if adjacent[0] and j < stop:
                    stop = tie_end[j]
                while j < stop and found == NONE:
                    candidate = stop
                    for move in range(first_move, last_move):
                        here = following[move_position[move], j]
                        if here < candidate:
                            candidate = here
                    if candidate >= stop:
                        break
                    for move in range(first_move, last_move):
                        if following[move_position[move], candidate] == candidate and _possible(
                            e, candidate, move, tie_start, tie_end, check_starts, checks, not_starts, nots, operators,
                            left, right, known, thresholds,
                        ):  # fmt: skip
                            found = candidate
                            break
                    j = candidate + 1
                successor[state, e] = found
            cursor_event[top], cursor_move[top] = found, first_move
        pushed = False
        j = cursor_event[top]
        if j != NONE and j < limit[path_event[0]]:
            stop = tie_end[successor[state, e]]
            move = cursor_move[top]
            while j < stop and not pushed:
                while move < last_move and not pushed:
                    if following[move_position[move], j] == j and _possible(
                        e, j, move, tie_start, tie_end, check_starts, checks, not_starts, nots, operators, left, right,
                        known, thresholds,
                    ):  # fmt: skip
                        path_event[depth], path_step[depth], path_state[depth] = j, move_step[move], move_target[move]
                        cursor_event[depth], given[depth] = UNKNOWN, 0
                        pushed = True
                    move += 1
                if not pushed:
                    j += 1
                    move = first_move
            cursor_event[top], cursor_move[top] = j, move
        if pushed:
            depth += 1
        else:
            depth -= 1
    place[0], place[1] = next_start, depth
    return count
