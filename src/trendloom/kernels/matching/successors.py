"""The successor of every event: the earliest later event by which a run that stands there can go on.

One sweep backwards through each key finds all of them. For every move the events that it could lead to are kept in a
form from which the nearest one that passes its predicate can be read:

- no predicate: the nearest event;
- `left < right` (and its kin): a stack on which `right` falls towards the nearest, searched by bisection; an event that
  is further away and no greater than another can never be the answer and is dropped;
- `left = right`: the nearest event of each value; `left != right`: the nearest event, and the nearest of another value.

A NOT needs no structure: its threshold only grows, so if the nearest event that passes lies behind it, all do. Beside
another predicate the same is true of `left > right` where `right` only grows (a NOT that depends on the event before).
Cost: O(events · moves), times log(events of the key) for an order predicate. Moves with two predicates, and contiguous
runs (which look at one time only), try candidates in order of time instead, as far as a window reaches.
"""

from __future__ import annotations

from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block, horizons
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.tables import OPERATORS, Checks, Moves, by_rank, fits_at, possible

NONE = -1
NOWHERE = 2**62
ANY, EQUAL, OTHER, BELOW, NOT_ABOVE = range(5)
"""What a move needs of the nearest event: no predicate, =, !=, <, <=."""


class Successors(NamedTuple):
    """By state and event: the next event of a run, and the one move to it (NONE: several events or moves fit)."""

    event: Array
    move: Array


class Nearest(NamedTuple):
    """By move the kind of its predicate, and the two columns that it compares (see `comparable`)."""

    kind: Array
    left: Array
    right: Array
    left_known: Array
    right_known: Array
    values: int  # how many different values `=` distinguishes


def successors_of(
    automaton: Automaton, block: Block, fits: Array, key_end: Array, moves: Moves, checks: Checks
) -> Successors:
    """All successors, by the sweep where every move has at most one predicate."""
    states = np.array(automaton.spec.scopes[0].template.position_of, np.int64)
    shape = (len(states), len(block))
    found = Successors(np.empty(shape, np.int32), np.empty(shape, np.int16))
    nearest = None if automaton.spec.adjacent else _nearest(moves, checks, len(block))
    if nearest is None:
        following = _following(block.members, len(block))
        horizon = None if automaton.spec.adjacent else horizons(block, automaton.spec.window)
        limit = key_end if horizon is None else horizon
        _search(found, states, fits, limit, automaton.spec.adjacent, following, moves, checks)
    else:
        _sweep(found, states, fits, block.key_starts, moves, checks, nearest)
    return found


def _nearest(moves: Moves, checks: Checks, events: int) -> Nearest | None:
    """The predicate of every move; None where one has several."""
    pairs = _nearest_pairs(checks)
    if any(len(some) > 1 for some in pairs):
        return None
    size = (len(pairs), events if any(pairs) else 0)
    kind = np.zeros(len(pairs), np.int64)
    left, right = np.zeros(size, np.int64), np.zeros(size, np.int64)
    known = np.ones((2, *size), np.bool_)
    values = 0
    for move, pair in ((move, pair) for move, some in enumerate(pairs) for pair in some):
        operator = OPERATORS[checks.operators[pair]]
        # x → ~x turns the order around, so that > and >= become < and <=
        sides = (checks.left[pair], checks.right[pair])
        sides = (~sides[0], ~sides[1]) if operator in (">", ">=") else sides
        if operator == "=":
            left[move], right[move], distinct = by_rank(*sides)
            values = max(values, distinct)
        else:
            left[move], right[move] = sides
        known[:, move] = checks.known[:, pair]
        kind[move] = {"=": EQUAL, "!=": OTHER, "<": BELOW, ">": BELOW, "<=": NOT_ABOVE, ">=": NOT_ABOVE}[operator]
    return Nearest(kind, left, right, known[0], known[1], values)


def _nearest_pairs(checks: Checks) -> list[list[int]]:
    """The pairs of every move on which its nearest event depends."""
    pairs = [checks.pairs[a:b].tolist() for a, b in pairwise(checks.pairs_begin.tolist())]
    if all(len(some) <= 1 for some in pairs):
        return pairs
    closing = {pair for pair in set(chain.from_iterable(pairs)) if _closes(pair, checks)}
    return [[pair for pair in some if pair not in closing] for some in pairs]


def _closes(pair: int, checks: Checks) -> bool:
    """Whether no later event may follow once one may not."""
    if OPERATORS[checks.operators[pair]] not in (">", ">=") or not checks.known[1, pair].all():
        return False
    right = checks.right[pair]
    return not (right[1:] < right[:-1]).any()


def _following(members: tuple[Array, ...], events: int) -> Array:
    """For every position and index the first event from there on that fits the position; `events` if none."""
    table = np.empty((len(members), events + 1), np.int32)
    for position, fitting in enumerate(members):
        _fill_following(table[position], fitting)
    return table


# ------------------------------------------------------------------------------------------------ compiled


@njit(nogil=True)
def _fill_following(row: Array, fitting: Array) -> None:
    at = 0
    for member in fitting:
        row[at : member + 1] = member
        at = member + 1
    row[at:] = len(row) - 1


@njit(**INSIDE)
def _only_move(e: int, state: int, first: int, fits: Array, moves: Moves, checks: Checks) -> int:
    """The one move that leads on at the time of event `first`, or NONE where several events or moves fit."""
    only = NONE
    for f in range(first, checks.tie_end[first]):
        for move in range(moves.begin[state], moves.begin[state + 1]):
            if fits_at(fits[f], moves.position[move]) and (moves.free[move] or possible(e, f, move, checks)):
                if only != NONE:
                    return NONE
                only = move
    return only


@njit(nogil=True)
def _sweep(
    successors: Successors,
    states: Array,
    fits: Array,
    key_starts: Array,
    moves: Moves,
    checks: Checks,
    nearest: Nearest,
) -> None:
    """Backwards through every key: find the successors of all events of a time, then store them for earlier ones."""
    count = len(moves.position)
    longest = 1
    for key in range(len(key_starts) - 1):
        longest = max(longest, key_starts[key + 1] - key_starts[key])
    first = np.empty(count, np.int64)  # the nearest event that each move can lead to
    other = np.empty(count, np.int64)  # the nearest whose value differs from the first's
    height = np.empty(count, np.int64)
    ordered = nearest.kind.max() >= BELOW if count > 0 else False
    stack = np.empty((count, longest if ordered else 0), np.int64)
    by_value = np.full((count, nearest.values), NOWHERE)
    # from the last key on: what a later key left in `by_value` lies beyond the end of this one
    for key in range(len(key_starts) - 2, -1, -1):
        first[:], other[:], height[:] = NOWHERE, NOWHERE, 0
        end = key_starts[key + 1]
        at = end - 1
        while at >= key_starts[key]:
            begin = checks.tie_start[at]
            for e in range(begin, at + 1):
                for state in range(len(states)):
                    if fits_at(fits[e], states[state]):
                        best = NOWHERE
                        for move in range(moves.begin[state], moves.begin[state + 1]):
                            if nearest.kind[move] == ANY:
                                f = first[move]
                            else:
                                f = _nearest_of(e, move, nearest, first, other, height, stack, by_value)
                            if f < end and f < best and (moves.free[move] or possible(e, f, move, checks)):
                                best = f
                        successors.event[state, e] = best if best != NOWHERE else NONE
                        if best != NOWHERE:
                            successors.move[state, e] = _only_move(e, state, best, fits, moves, checks)
            for e in range(at, begin - 1, -1):
                for move in range(count):
                    if fits_at(fits[e], moves.position[move]):
                        if nearest.kind[move] == ANY:
                            first[move] = e
                        else:
                            _store(e, move, nearest, first, other, height, stack, by_value)
            at = begin - 1


@njit(**INSIDE)
def _nearest_of(
    e: int, move: int, nearest: Nearest, first: Array, other: Array, height: Array, stack: Array, by_value: Array
) -> int:
    """The nearest event that the predicate of the move lets follow event e, or NOWHERE."""
    if not nearest.left_known[move, e]:
        return NOWHERE
    left = nearest.left[move, e]
    if nearest.kind[move] == EQUAL:
        return by_value[move, left]
    if nearest.kind[move] == OTHER:
        if first[move] != NOWHERE and nearest.right[move, first[move]] == left:
            return other[move]
        return first[move]
    low, high = -1, height[move]  # right passes up to `low`, from `high` on it does not
    while high - low > 1:
        middle = (low + high) // 2
        right = nearest.right[move, stack[move, middle]]
        if left < right or (nearest.kind[move] == NOT_ABOVE and left == right):
            low = middle
        else:
            high = middle
    return stack[move, low] if low >= 0 else NOWHERE


@njit(**INSIDE)
def _store(
    f: int, move: int, nearest: Nearest, first: Array, other: Array, height: Array, stack: Array, by_value: Array
) -> None:
    """Store event f for this move."""
    if not nearest.right_known[move, f]:
        return
    right = nearest.right[move, f]
    if nearest.kind[move] == EQUAL:
        by_value[move, right] = f
    elif nearest.kind[move] == OTHER:
        if first[move] != NOWHERE and nearest.right[move, first[move]] != right:
            other[move] = first[move]
        first[move] = f
    else:
        top = height[move]
        while top > 0 and nearest.right[move, stack[move, top - 1]] <= right:
            top -= 1
        stack[move, top] = f
        height[move] = top + 1


@njit(nogil=True)
def _search(
    successors: Successors, states: Array, fits: Array, key_end: Array, adjacent: bool, following: Array, moves: Moves,
    checks: Checks,
) -> None:  # fmt: skip
    """Successors by trying candidates in order of time, jumping over events that fit no position that may come next."""
    for e in range(len(fits)):
        for state in range(len(states)):
            if not fits_at(fits[e], states[state]):
                continue
            first = _first_possible(e, state, key_end[e], adjacent, following, moves, checks)
            successors.event[state, e] = first
            if first != NONE:
                successors.move[state, e] = _only_move(e, state, first, fits, moves, checks)


@njit(**INSIDE)
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
            if following[moves.position[move], candidate] == candidate and possible(e, candidate, move, checks):
                return candidate
        j = candidate + 1
    return NONE
