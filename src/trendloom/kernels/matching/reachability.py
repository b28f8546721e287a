"""From every event and state, the earliest end of a match that goes on from there.

Under skip-till-any-match a match is a path through (event, state). One sweep backwards finds, for all paths at once,
whether and when they can be complete: `ends[s, e]` is the least index of an event at which a match that has bound e in
state s can end (NEVER: not at all). It is e where s accepts, else the minimum over the moves from s of `ends` over the
later events that the move may lead to. Every kind of move has a structure for this minimum:

- no predicate: one running minimum per state;
- a NOT: the events it lets through are those before a *cut*, so a stack of minima that fall with distance, bisected;
- `left < right` and its kin: a Fenwick tree of minima over the ranks of `right`;
- `left = right`: a minimum per value; `left != right`: the minimum, and the minimum of another value.

A move with several of these takes the greatest of their minima, which is only a lower bound: then `exact` is False and
the construction of matches may run into dead ends. Indices grow from key to key and the sweep runs backwards, so what a
later key left in a structure is greater than anything of the key at hand, and nothing needs to be cleared.

Cost: O(events · moves), times log(events) where a NOT or an order predicate leads on from a state that does not accept.
See Zhang, "High-Performance Complex Event Processing for Decision Analytics", ch. 4, on postponing (SASE++).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.tables import (
    OPERATORS,
    Checks,
    Moves,
    by_rank,
    fits_at,
    fitting_bits,
    flat_lists,
    moves_of,
)

NEVER = 2**31 - 1
MOST_POSITIONS = 64
EQUAL, OTHER, ORDER = range(3)
"""Kinds of structures: for `=`, for `!=`, and for the four order predicates."""


class Minima(NamedTuple):
    """Structures of earliest ends, each for one target state and one predicate of moves from states that do not accept.

    Structure q is read for event e at `read_at[q, e]` (a value, or how many cells), and event f is stored at
    `store_at[q, f]`; −1: NULL.
    """

    begin: Array  # move m reads the structures which[begin[m]:begin[m + 1]]
    which: Array
    of_begin: Array  # events in state s are stored in the structures of[of_begin[s]:of_begin[s + 1]]
    of: Array
    kind: Array
    read_at: Array
    store_at: Array
    base: Array  # where the cells of structure q begin
    size: Array


class Tables(NamedTuple):
    """An automaton over a block, as the sweep reads it."""

    positions: Array  # of states
    accepts: Array
    may_tie: Array  # of moves
    fits: Array
    key_starts: Array
    cuts: Array


class Reachability(NamedTuple):
    """`ends[s, e]`, whether it is more than a lower bound, and how many cells were read or written to find it."""

    ends: Array
    exact: bool
    work: int


def earliest_ends(automaton: Automaton, block: Block, moves: Moves, checks: Checks, cuts: Array) -> Reachability:
    """The earliest ends of matches whose steps depend on the two events they join alone."""
    accepts = accepting(automaton)
    minima, exact = _minima(moves, checks, accepts, len(block))
    positions = np.array(automaton.spec.scopes[0].template.position_of, np.int64)
    may_tie = np.array([step.may_tie for _, step in automaton.transitions], np.bool_)
    tables = Tables(positions, accepts, may_tie, fitting_bits(block), block.key_starts, cuts)
    ends = np.full((len(positions), len(block)), NEVER, np.int32)
    work = _sweep(ends, tables, moves, checks, minima)
    return Reachability(ends, exact, int(work))


def end_bounds(automaton: Automaton, block: Block) -> Array | None:
    """Lower bounds of the earliest ends for any automaton: rules and NOTs are left out. None: too many positions."""
    if len(automaton.spec.places) > MOST_POSITIONS or not len(block):
        return None
    moves = moves_of(automaton, ())
    checks = _no_checks(len(moves.step), block)
    return earliest_ends(automaton, block, moves, checks, cuts_of(checks)).ends


def _no_checks(moves: int, block: Block) -> Checks:
    none, size = np.zeros(0, np.int64), len(block)
    begin = np.zeros(moves + 1, np.int64)
    columns = np.zeros((0, size), np.int64)
    known = np.ones((2, 0, size), np.bool_)
    thresholds = np.zeros((0, size + 1), np.int64)
    return Checks(
        begin, none, begin, none, none, columns, columns, known, thresholds, block.tie_start, block.tie_end
    )  # fmt: skip


def accepting(automaton: Automaton) -> Array:
    return np.array([bool(ways) for ways in automaton.spec.scopes[0].template.accepts], np.bool_)


def cuts_of(checks: Checks) -> Array:
    """For every NOT and event e the first later event that may not follow e: `cuts[not, e]`.

    A NOT is violated between e and f iff a match of it that started after e has ended before f; once that is so, it is
    so for all later f.
    """
    size = len(checks.tie_end)
    cuts = np.empty((len(checks.thresholds), size), np.int32)
    for number, threshold in enumerate(checks.thresholds):
        ended = np.searchsorted(threshold, checks.tie_end)
        cuts[number] = np.where(ended <= size, checks.tie_end[np.minimum(ended, size) - 1], size)
    return cuts


# -------------------------------------------------------------------------------------------------- minima


def _minima(moves: Moves, checks: Checks, accepts: Array, events: int) -> tuple[Minima, bool]:
    """The structures that moves from states that do not accept read; and whether no move depends on two at once."""
    found: dict[tuple[int, int], int] = {}
    read: list[list[int]] = []
    exact = True
    source = np.repeat(np.arange(len(accepts)), np.diff(moves.begin))
    for move, target in enumerate(moves.target):
        if accepts[source[move]]:
            read.append([])
            continue
        pairs = checks.pairs[checks.pairs_begin[move] : checks.pairs_begin[move + 1]]
        read.append([found.setdefault((int(target), int(pair)), len(found)) for pair in pairs])
        exact &= len(pairs) + bool(checks.nots_begin[move + 1] > checks.nots_begin[move]) <= 1
    of: list[list[int]] = [[] for _ in accepts]
    for (target, _), q in found.items():
        of[target].append(q)
    places = [places_of_pair(checks, pair) for _, pair in found]
    read_at, store_at = np.full((2, len(found), events), -1, np.int32)
    for q, (_, reads, stores, _) in enumerate(places):
        read_at[q], store_at[q] = reads, stores
    size = np.array([cells for *_, cells in places], np.int64)
    kinds = np.array([kind for kind, *_ in places], np.int64)
    return Minima(*flat_lists(read), *flat_lists(of), kinds, read_at, store_at, np.cumsum(size) - size, size), exact


def places_of_pair(checks: Checks, pair: int) -> tuple[int, Array, Array, int]:
    """The kind of structure for a pair, where it is read for and stored by every event, and the number of its cells."""
    operator = OPERATORS[checks.operators[pair]]
    left, right = checks.left[pair], checks.right[pair]
    if operator in ("=", "!="):
        reads, stores, distinct = by_rank(left, right)
        kind, cells = (EQUAL, distinct) if operator == "=" else (OTHER, 3)
    else:
        # x → ~x turns the order around: what may follow is always what lies below
        left, right = (~left, ~right) if operator in ("<", "<=") else (left, right)
        values, stores = np.unique(right, return_inverse=True)
        reads = np.searchsorted(values, left, side="left" if operator in ("<", ">") else "right")
        kind, cells = ORDER, len(values)
    known = checks.known[:, pair]
    return kind, np.where(known[0], reads, -1), np.where(known[1], stores.reshape(-1), -1), cells


# ------------------------------------------------------------------------------------------------ compiled


@njit(nogil=True)
def _sweep(ends: Array, tables: Tables, moves: Moves, checks: Checks, minima: Minima) -> int:
    """Backwards through every key: find the ends of all events of a time, then store them for earlier ones."""
    states = len(tables.positions)
    best = np.full(states, NEVER, np.int32)
    cells = np.full(minima.size.sum(), NEVER, np.int32)
    crossed = _crossed(states, moves, checks)
    stack = np.empty((states, len(tables.fits) if crossed.any() else 0), np.int32)
    height = np.zeros(states, np.int64)
    ties = tables.may_tie.any()
    work = 0
    for key in range(len(tables.key_starts) - 2, -1, -1):
        at = tables.key_starts[key + 1] - 1
        while at >= tables.key_starts[key]:
            begin = checks.tie_start[at]
            for e in range(begin, at + 1):
                for state in range(states):
                    if fits_at(tables.fits[e], tables.positions[state]):
                        if tables.accepts[state]:
                            ends[state, e] = e
                            continue
                        found = NEVER
                        for move in range(moves.begin[state], moves.begin[state + 1]):
                            target = moves.target[move]
                            bound = best[target]
                            if bound < found:
                                for at_q in range(minima.begin[move], minima.begin[move + 1]):
                                    q = minima.which[at_q]
                                    least, steps = _least(minima.read_at[q, e], q, cells, minima)
                                    bound, work = max(bound, least), work + steps
                                if checks.nots_begin[move] < checks.nots_begin[move + 1]:
                                    cut = first_cut(e, move, tables.cuts, checks)
                                    least, steps = _before(cut, stack[target], height[target], ends[target])
                                    bound, work = max(bound, least), work + steps
                                found = min(found, bound)
                            work += 1
                        if found < tables.key_starts[key + 1]:  # beyond: an end that a later key left behind
                            ends[state, e] = found
            if ties:
                work += _tie(ends, begin, at + 1, tables, moves)
            for e in range(at, begin - 1, -1):
                for state in range(states):
                    if ends[state, e] < NEVER:
                        best[state] = min(best[state], ends[state, e])
                        for at_q in range(minima.of_begin[state], minima.of_begin[state + 1]):
                            q = minima.of[at_q]
                            work += _store(minima.store_at[q, e], ends[state, e], q, cells, minima)
                        if crossed[state]:
                            top = height[state]
                            while top > 0 and ends[state, stack[state, top - 1]] >= ends[state, e]:
                                top -= 1
                            stack[state, top] = e
                            height[state] = top + 1
                        work += 1
            at = begin - 1
    return work


@njit(nogil=True)
def _crossed(states: int, moves: Moves, checks: Checks) -> Array:
    """States that a move with a NOT leads to."""
    found = np.zeros(states, np.bool_)
    for move in range(len(moves.target)):
        if checks.nots_begin[move] < checks.nots_begin[move + 1]:
            found[moves.target[move]] = True
    return found


@njit(**INSIDE)
def first_cut(e: int, move: int, cuts: Array, checks: Checks) -> int:
    """The first event that a NOT on the move keeps from following event e."""
    cut = NEVER
    for at in range(checks.nots_begin[move], checks.nots_begin[move + 1]):
        cut = min(cut, cuts[checks.nots[at], e])
    return cut


@njit(**INSIDE)
def _before(cut: int, stack: Array, height: int, ends: Array) -> tuple[int, int]:
    """The earliest end from events before the cut; the nearest event is on top, ends fall towards the bottom."""
    low, high, steps = 0, height, 0
    while low < high:
        middle = (low + high) // 2
        if stack[middle] < cut:
            high = middle
        else:
            low = middle + 1
        steps += 1
    return (ends[stack[low]] if low < height else NEVER), steps


@njit(**INSIDE)
def _least(at: int, q: int, cells: Array, minima: Minima) -> tuple[int, int]:
    """The earliest end among the events that the predicate lets follow, and the number of cells looked at."""
    base = minima.base[q]
    if at < 0:
        return NEVER, 0
    if minima.kind[q] == EQUAL:
        return cells[base + at], 1
    if minima.kind[q] == OTHER:
        return (cells[base + 2] if cells[base] == at else cells[base + 1]), 1
    found, steps = NEVER, 0
    while at > 0:
        found = min(found, cells[base + at - 1])
        at &= at - 1
        steps += 1
    return found, steps


@njit(**INSIDE)
def _store(at: int, end: int, q: int, cells: Array, minima: Minima) -> int:
    """Store an end; returns the number of cells looked at."""
    base = minima.base[q]
    if at < 0:
        return 0
    if minima.kind[q] == EQUAL:
        cells[base + at] = min(cells[base + at], end)
        return 1
    if minima.kind[q] == OTHER:  # a value, its earliest end, the earliest end of any other value
        if end < cells[base + 1]:
            if cells[base] != at:
                cells[base], cells[base + 2] = at, cells[base + 1]
            cells[base + 1] = end
        elif cells[base] != at:
            cells[base + 2] = min(cells[base + 2], end)
        return 1
    steps = 0
    while at < minima.size[q]:
        cells[base + at] = min(cells[base + at], end)
        at |= at + 1
        steps += 1
    return steps


@njit(**INSIDE)
def _tie(ends: Array, begin: int, end: int, tables: Tables, moves: Moves) -> int:
    """Ends by way of events of the same time, where AND lets them follow; repeated until none comes earlier."""
    work, changed = 0, True
    while changed:
        changed = False
        for state in range(len(tables.positions)):
            for move in range(moves.begin[state], moves.begin[state + 1]):
                if not tables.may_tie[move]:
                    continue
                found = ends[moves.target[move], begin:end].min()
                for e in range(begin, end):
                    work += 1
                    if found < ends[state, e] and fits_at(tables.fits[e], tables.positions[state]):
                        ends[state, e] = found
                        changed = True
    return work
