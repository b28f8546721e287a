"""The graph of (event, state) that can be part of a match, and how a node walks over its successors.

Only viable nodes are kept (see `viability`), numbered state by state in order of time, so that the successors of a node
by a move are found among consecutive numbers, from the first one later than it on:

- no predicate: all of them, one after the other;
- `left = right`: every node knows the next one of the same value;
- `left < right` and its kin: a tree of maxima over stretches of 16, 16², ... nodes leaps over stretches without any;
- `!=`: all of them, each one tested.

Cost: O(nodes · moves) to build, memory the same; a walk is O(1) per successor, O(log nodes) with an order predicate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.matching.reachability import NEVER
from trendloom.kernels.matching.tables import OPERATORS, Checks, Moves

ONE_BY_ONE, BY_VALUE, BY_ORDER = range(3)
FAN = 16
"""Nodes, or stretches, that a stretch of the tree covers."""
LEVELS = 9


class Nodes(NamedTuple):
    """Viable pairs of event and state: those of state s are `begin[s]` to `begin[s + 1]`, in order of time."""

    begin: Array
    event: Array
    state: Array
    ends: Array  # the earliest end of a match from here on; only ever raised
    least: Array  # the least of `ends` among this and the later nodes of its state


class Walks(NamedTuple):
    """For every move how it goes from successor to successor. Flat arrays hold the moves one after the other.

    `first[first_at[m] + node]` is the first candidate; `next[next_at[m] + node]` the one after it, by value. The tree
    of move m has its level l at `tree_at[m, l]`; it holds `right`, or ~right where `flip[m]`.
    """

    way: Array
    pair: Array  # the pair that leads the way, or −1
    tested: Array  # whether candidates must still be tested
    first_at: Array
    first: Array
    next_at: Array
    next: Array
    tree_at: Array
    tree: Array
    levels: Array
    flip: Array
    or_equal: Array


def nodes_of(ends: Array) -> Nodes:
    """The viable nodes of all states."""
    found = [np.flatnonzero(row < NEVER) for row in ends]
    begin = np.cumsum([0, *map(len, found)]).astype(np.int64)
    event = np.concatenate(found).astype(np.int32)
    state = np.repeat(np.arange(len(found), dtype=np.int32), np.diff(begin))
    kept = [row[events] for row, events in zip(ends, found, strict=True)]
    least = [np.minimum.accumulate(row[::-1])[::-1] for row in kept]
    return Nodes(begin, event, state, np.concatenate(kept), np.concatenate(least))


def walks_of(nodes: Nodes, moves: Moves, checks: Checks) -> Walks:
    """The walks of all moves."""
    size = len(moves.step)
    source = np.repeat(np.arange(len(moves.begin) - 1), np.diff(moves.begin))
    way, pair, flip, or_equal = (np.zeros(size, np.int64) for _ in range(4))
    firsts: list[Array] = []
    nexts: list[Array] = []
    trees = _Trees(size)
    first_at, next_at = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for move in range(size):
        way[move], pair[move] = _leader(move, checks)
        mine, theirs = (slice(nodes.begin[s], nodes.begin[s + 1]) for s in (source[move], moves.target[move]))
        first_at[move] = sum(map(len, firsts)) - mine.start
        if way[move] == BY_VALUE:
            next_at[move] = sum(map(len, nexts)) - theirs.start
            first, following = _by_value(nodes.event[mine], nodes.event[theirs], int(pair[move]), checks)
            nexts.append(np.where(following < NEVER, following + theirs.start, NEVER).astype(np.int32))
        else:
            first = _first_later(nodes.event[mine], nodes.event[theirs], checks.tie_end)
        if pair[move] >= 0:
            first[~checks.known[0, pair[move], nodes.event[mine]]] = NEVER
        firsts.append(np.where(first < NEVER, first + theirs.start, NEVER).astype(np.int32))
        if way[move] == BY_ORDER:
            operator = OPERATORS[checks.operators[pair[move]]]
            flip[move], or_equal[move] = operator in (">", ">="), operator in ("<=", ">=")
            right = checks.right[pair[move], nodes.event[theirs]]
            trees.add(move, ~right if flip[move] else right, checks.known[1, pair[move], nodes.event[theirs]])
    none = np.zeros(0, np.int32)
    tested = np.diff(checks.pairs_begin) > 0
    return Walks(
        way, pair, tested, first_at, np.concatenate([none, *firsts]), next_at, np.concatenate([none, *nexts]),
        trees.at, trees.flat(), trees.levels, flip, or_equal,
    )  # fmt: skip


def _leader(move: int, checks: Checks) -> tuple[int, int]:
    """How a move walks, and the pair by which it does: an equality where there is one, else an order."""
    pairs = checks.pairs[checks.pairs_begin[move] : checks.pairs_begin[move + 1]]
    operators = [OPERATORS[checks.operators[pair]] for pair in pairs]
    if "=" in operators:
        return BY_VALUE, int(pairs[operators.index("=")])
    for pair, operator in zip(pairs, operators, strict=True):
        if operator != "!=":
            return BY_ORDER, int(pair)
    return ONE_BY_ONE, -1


def _by_value(mine: Array, theirs: Array, pair: int, checks: Checks) -> tuple[Array, Array]:
    left, right = checks.left[pair, mine], checks.right[pair, theirs]
    ranks = np.unique(np.concatenate([left, right]), return_inverse=True)[1].reshape(-1)
    latest = np.full(int(ranks.max(initial=-1)) + 1, NEVER, np.int64)
    return _linked(
        mine, theirs, ranks[: len(mine)], ranks[len(mine) :], checks.known[1, pair, theirs], latest, checks.tie_end
    )


class _Trees:
    """Trees of maxima, one after the other in one array."""

    def __init__(self, moves: int) -> None:
        self.at = np.zeros((moves, LEVELS), np.int64)
        self.levels = np.zeros(moves, np.int64)
        self._parts: list[Array] = []
        self._size = 0

    def add(self, move: int, values: Array, known: Array) -> None:
        level = np.where(known, values, np.iinfo(np.int64).min)
        for number in range(LEVELS):
            self.at[move, number] = self._size
            self.levels[move] = number + 1
            self._parts.append(level)
            self._size += len(level)
            if len(level) <= FAN:
                return
            level = np.maximum.reduceat(level, np.arange(0, len(level), FAN))

    def flat(self) -> Array:
        return np.concatenate([np.zeros(0, np.int64), *self._parts])


# ------------------------------------------------------------------------------------------------ compiled


@njit(nogil=True)
def _first_later(mine: Array, theirs: Array, tie_end: Array) -> Array:
    """For each of my events the first of theirs that is later (in their numbers); NEVER: none."""
    found = np.empty(len(mine), np.int64)
    at = len(theirs)
    for number in range(len(mine) - 1, -1, -1):
        while at > 0 and theirs[at - 1] >= tie_end[mine[number]]:
            at -= 1
        found[number] = at if at < len(theirs) else NEVER
    return found


@njit(nogil=True)
def _linked(
    mine: Array, theirs: Array, left: Array, right: Array, known: Array, latest: Array, tie_end: Array
) -> tuple[Array, Array]:
    """For each of my events the first of theirs that is later and has its value; for each of theirs the next one."""
    first, following = np.empty(len(mine), np.int64), np.empty(len(theirs), np.int64)
    at = len(theirs)
    for number in range(len(mine) - 1, -1, -1):
        while at > 0 and theirs[at - 1] >= tie_end[mine[number]]:
            at -= 1
            following[at] = latest[right[at]]
            if known[at]:
                latest[right[at]] = at
        first[number] = latest[left[number]]
    while at > 0:
        at -= 1
        following[at] = NEVER  # no candidate leads here
    return first, following


@njit(**INSIDE)
def next_in_order(walks: Walks, move: int, at: int, end: int, bound: int) -> int:
    """The first node from `at` on whose value passes the bound; `end` if there is none before it.

    Nodes are numbered within their state. Up where a stretch ends, down where one holds a value that passes.
    """
    level, or_equal = 0, walks.or_equal[move] == 1
    while (at << (4 * level)) < end:
        value = walks.tree[walks.tree_at[move, level] + at]
        if value > bound or (or_equal and value == bound):
            if level == 0:
                return at
            level -= 1
            at <<= 4
        else:
            at += 1
            while at & 15 == 0 and level + 1 < walks.levels[move]:
                at >>= 4
                level += 1
    return end
