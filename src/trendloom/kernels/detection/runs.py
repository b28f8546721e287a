"""Follow runs: all matches under skip-till-next-match and contiguous, by a table of successors.

Idea: where a step depends on the two events it joins alone, the earliest event that can extend a run is a function of
the run's last event and state. It is computed once per (event, state), so following a run costs its length. Without
predicates and NOTs on steps one sweep backwards finds all successors; otherwise candidates are tried in order of time.

Cost: O(events · steps) for the successors, O(1) per event of the output; a predicate on consecutive events adds the
candidates it refuses, each once per (event, state). Output leaves in chunks; the search can be resumed at any point.
See semantics.md on skip-till-next-match; Poppe, "Event Trend Analytics" (seed 000), ch. 16, for the definition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

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
NONE = -1


class Moves(NamedTuple):
    """The steps that lead on from every state: those of state s are `begin[s]` to `begin[s + 1]`."""

    begin: Array
    step: Array
    position: Array
    target: Array


class Checks(NamedTuple):
    """What a move must satisfy: the pairs and NOTs of move m are slices of `pairs` and `nots`.

    A pair compares `left[pair, e]` with `right[pair, f]` where both are known; a NOT is a threshold (see `gaps`).
    """

    pairs_begin: Array
    pairs: Array
    nots_begin: Array
    nots: Array
    operators: Array
    left: Array
    right: Array
    known: Array
    thresholds: Array
    tie_start: Array
    tie_end: Array


class Starts(NamedTuple):
    """Where runs can start, in order of the events."""

    event: Array
    step: Array
    state: Array


class Successors(NamedTuple):
    """By state and event: the next event of a run, and the one move to it (NONE: several events or moves fit)."""

    event: Array
    move: Array


def follow_runs(spec: Detection, pairs: tuple[Pair, ...], block: Block, chunk: int = CHUNK) -> Iterator[Matches]:
    """Chunks of matches; each match once per window that holds it."""
    check_range(block.time, spec.window)
    if len(block) == 0:
        return
    machine = Machine(spec)
    for offsets, events, steps in _chunks(machine, pairs, block, chunk):
        found = Matches(offsets, events, machine.position_of.astype(np.int32)[steps])
        if spec.window.sliding:
            which, start = windows_of(block.time[found.first], block.time[found.last], spec.window)
            taken = found.take(which)
            found = Matches(taken.offsets, taken.events, taken.positions, start)
        if len(found):
            yield found


def _moves(machine: Machine) -> Moves:
    moves = [(state, step) for state, steps in enumerate(machine.moves[0]) for step in steps]
    begin = np.searchsorted([state for state, _ in moves], np.arange(len(machine.moves[0]) + 1))
    rows = np.array([(step.number, step.position, step.target) for _, step in moves], np.int64).reshape(-1, 3)
    return Moves(begin.astype(np.int64), *(np.ascontiguousarray(column) for column in rows.T))


def _checks(machine: Machine, pairs: tuple[Pair, ...], block: Block) -> Checks:
    moves = [(state, step) for state, steps in enumerate(machine.moves[0]) for step in steps]
    gaps = Gaps(machine, block, lambda gaps, scope: Expansion(machine, block, gaps, scope))
    crossed = sorted({c.scope for _, step in moves for way in step.ways for c in way})
    compared = [[i for i, pair in enumerate(pairs) if (state, step.number) in pair.steps] for state, step in moves]
    forbidden = [[crossed.index(c.scope) for way in step.ways for c in way] for _, step in moves]
    thresholds = [gaps.threshold(scope) for scope in crossed]
    return Checks(
        *_flat_lists(compared),
        *_flat_lists(forbidden),
        np.array([OPERATORS.index(pair.operator) for pair in pairs], np.int64),
        *comparable(pairs, block),
        np.stack(thresholds) if thresholds else np.zeros((0, len(block) + 1), np.int64),
        block.tie_start,
        block.tie_end,
    )


def _flat_lists(lists: list[list[int]]) -> tuple[Array, Array]:
    return np.cumsum([0, *map(len, lists)]).astype(np.int64), np.array([x for xs in lists for x in xs], np.int64)


def _chunks(
    machine: Machine, pairs: tuple[Pair, ...], block: Block, chunk: int
) -> Iterator[tuple[Array, Array, Array]]:
    """Offsets, events and steps of matches, a chunk at a time."""
    key_end = np.repeat(block.key_starts[1:], np.diff(block.key_starts))
    horizon = horizons(block, machine.spec.window)
    limit = key_end if horizon is None else horizon
    moves, checks, starts = _moves(machine), _checks(machine, pairs, block), _starts(machine, block)
    fits = _bits(block.members, len(block))
    accepts = np.array([bool(ways) for ways in machine.spec.scopes[0].template.accepts], np.bool_)
    successors = _successors(machine, pairs, block, fits, key_end, moves, checks)
    longest = int(np.diff(block.key_starts).max())
    stack = np.zeros((5, longest + 1), np.int64)
    place = np.zeros(4, np.int64)  # next start; of the run under way: its depth, open places, whether its top is new
    size = max(chunk, longest + 1)
    while place[0] < len(starts.event) or place[1] > 0:
        offsets, events, steps = np.zeros(size + 1, np.int64), np.empty(size, np.int64), np.empty(size, np.int32)
        count = _follow(starts, limit, fits, successors, accepts, moves, checks, stack, place, offsets, events, steps)
        used = int(offsets[count])
        yield offsets[: count + 1], events[:used], steps[:used]


def _successors(
    machine: Machine, pairs: tuple[Pair, ...], block: Block, fits: Array, key_end: Array, moves: Moves, checks: Checks
) -> Successors:
    states = np.array(machine.spec.scopes[0].template.position_of, np.int64)
    shape = (len(states), len(block))
    found = Successors(np.empty(shape, np.int32), np.empty(shape, np.int16))
    if pairs or len(machine.spec.scopes) > 1 or machine.spec.adjacent:
        following = _following(block.members, len(block))
        _search(found, states, fits, key_end, machine.spec.adjacent, following, moves, checks)
    else:
        _sweep(found, states, fits, block.key_starts, moves, checks)
    return found


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


def _bits(members: tuple[Array, ...], events: int) -> Array:
    """Per event a word with a bit for each position it fits."""
    words = np.zeros(events, np.uint64)
    for position, fitting in enumerate(members):
        _mark(words, fitting, position)
    return words


def _following(members: tuple[Array, ...], events: int) -> Array:
    """For every position and index the first event from there on that fits the position; `events` if none."""
    table = np.empty((len(members), events + 1), np.int32)
    for position, fitting in enumerate(members):
        _fill_following(table[position], fitting)
    return table


# ------------------------------------------------------------------------------------------------ compiled


@numba.njit(cache=True, nogil=True)
def _mark(words: Array, fitting: Array, bit: int) -> None:
    for event in fitting:
        words[event] |= np.uint64(1) << np.uint64(bit)


@numba.njit(cache=True, nogil=True)
def _fill_following(row: Array, fitting: Array) -> None:
    at = 0
    for member in fitting:
        row[at : member + 1] = member
        at = member + 1
    row[at:] = len(row) - 1


@numba.njit(cache=True, nogil=True)
def _fits(word: int, position: int) -> bool:
    return (word >> np.uint64(position)) & np.uint64(1) != np.uint64(0)


@numba.njit(cache=True, nogil=True)
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


@numba.njit(cache=True, nogil=True)
def _possible(e: int, f: int, move: int, checks: Checks) -> bool:
    """Whether event f may follow event e by this move: every pair true, no NOT violated."""
    for at in range(checks.pairs_begin[move], checks.pairs_begin[move + 1]):
        pair = checks.pairs[at]
        if not (checks.known[0, pair, e] and checks.known[1, pair, f]):
            return False
        if not _compare(checks.operators[pair], checks.left[pair, e], checks.right[pair, f]):
            return False
    low, high = checks.tie_end[e], checks.tie_start[f]
    for at in range(checks.nots_begin[move], checks.nots_begin[move + 1]):
        if high > low and checks.thresholds[checks.nots[at], high] >= low:
            return False
    return True


@numba.njit(cache=True, nogil=True)
def _only_move(e: int, state: int, first: int, fits: Array, moves: Moves, checks: Checks) -> int:
    """The one move that leads on at the time of event `first`, or NONE where several events or moves fit."""
    only = NONE
    for f in range(first, checks.tie_end[first]):
        for move in range(moves.begin[state], moves.begin[state + 1]):
            if _fits(fits[f], moves.position[move]) and _possible(e, f, move, checks):
                if only != NONE:
                    return NONE
                only = move
    return only


@numba.njit(cache=True, nogil=True)
def _sweep(successors: Successors, states: Array, fits: Array, key_starts: Array, moves: Moves, checks: Checks) -> None:
    """Successors where any fitting event will do: backwards, the next of each position at hand. O(events · steps)."""
    nowhere = np.iinfo(np.int64).max
    positions = 0
    for position in moves.position:
        positions = max(positions, position + 1)
    later = np.empty(positions, np.int64)  # the next event of each position, at a later time
    for key in range(len(key_starts) - 1):
        later[:] = nowhere
        at = key_starts[key + 1] - 1
        while at >= key_starts[key]:
            first = checks.tie_start[at]
            for e in range(first, at + 1):
                for state in range(len(states)):
                    if _fits(fits[e], states[state]):
                        best = nowhere
                        for move in range(moves.begin[state], moves.begin[state + 1]):
                            best = min(best, later[moves.position[move]])
                        successors.event[state, e] = NONE
                        if best != nowhere:
                            successors.event[state, e] = best
                            successors.move[state, e] = _only_move(e, state, best, fits, moves, checks)
            for e in range(at, first - 1, -1):
                for position in range(positions):
                    if _fits(fits[e], position):
                        later[position] = e
            at = first - 1


@numba.njit(cache=True, nogil=True)
def _search(
    successors: Successors, states: Array, fits: Array, key_end: Array, adjacent: bool, following: Array, moves: Moves,
    checks: Checks,
) -> None:  # fmt: skip
    """Successors by trying candidates in order of time, jumping over events that fit no position that may come next."""
    for e in range(len(fits)):
        for state in range(len(states)):
            if not _fits(fits[e], states[state]):
                continue
            first = _first_possible(e, state, key_end[e], adjacent, following, moves, checks)
            successors.event[state, e] = first
            if first != NONE:
                successors.move[state, e] = _only_move(e, state, first, fits, moves, checks)


@numba.njit(cache=True, nogil=True)
def _first_possible(
    e: int, state: int, stop: int, adjacent: bool, following: Array, moves: Moves, checks: Checks
) -> int:
    j = checks.tie_end[e]
    if adjacent and j < stop:
        stop = checks.tie_end[j]
    while j < stop:
        candidate = stop
        for move in range(moves.begin[state], moves.begin[state + 1]):
            candidate = min(candidate, following[moves.position[move], j])
        if candidate >= stop:
            return NONE
        for move in range(moves.begin[state], moves.begin[state + 1]):
            if following[moves.position[move], candidate] == candidate and _possible(e, candidate, move, checks):
                return candidate
        j = candidate + 1
    return NONE


@numba.njit(cache=True, nogil=True)
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
                if _fits(fits[j], moves.position[move]) and _possible(e, j, move, checks):
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
