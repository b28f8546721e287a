"""Shared pattern matching: from every event and state, the earliest end of a match that goes on from there.

Under skip-till-any-match a match is a path through (event, state). One sweep backwards finds, for all paths at once,
whether and when they can be complete: `ends[s, e]` is the least index of an event at which a match that has bound e in
state s can end (NEVER: not at all). It is e where s accepts, else the minimum over the moves from s of `ends` over the
later events that the move may lead to. Every kind of move has a structure that answers this minimum:

- no predicate: one running minimum per state;
- a NOT: the events it lets through are those before a *cut*, so a stack of minima that fall with distance, bisected;
- `left < right` and its kin: a Fenwick tree of minima over the ranks of `right`;
- `left = right`: a minimum per value; `left != right`: the minimum, and the minimum of another value.

A move with several of these takes the greatest of their answers, which is only a lower bound: then `exact` is False and
whoever builds matches may run into dead ends. Indices grow from key to key and the sweep runs backwards, so what a
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
from trendloom.kernels.matching.tables import OPERATORS, Checks, Moves, fits_at, fitting_bits, moves_of

NEVER = 2**31 - 1
MOST_POSITIONS = 64
EQUAL, OTHER, ORDER = range(3)
"""How a question is answered: `=`, `!=`, and the four order predicates."""


class Questions(NamedTuple):
    """What moves from states that do not accept ask; each question is about one target state and one predicate.

    Event e asks at `ask[q, e]` (a value, or how many places), event f is found at `offer[q, f]`; −1: NULL.
    """

    begin: Array  # the questions of move m are which[begin[m]:begin[m + 1]]
    which: Array
    of_begin: Array  # the questions about state s are of[of_begin[s]:of_begin[s + 1]]
    of: Array
    kind: Array
    ask: Array
    offer: Array
    base: Array  # where the cells of question q begin
    size: Array


class Tables(NamedTuple):
    """A machine over a block, as the sweep reads it."""

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
    questions, exact = _questions(moves, checks, accepts, len(block))
    positions = np.array(automaton.spec.scopes[0].template.position_of, np.int64)
    may_tie = np.array([step.may_tie for steps in automaton.moves[0] for step in steps], np.bool_)
    tables = Tables(positions, accepts, may_tie, fitting_bits(block), block.key_starts, cuts)
    ends = np.full((len(positions), len(block)), NEVER, np.int32)
    work = _sweep(ends, tables, moves, checks, questions)
    return Reachability(ends, exact, int(work))


def end_bounds(automaton: Automaton, block: Block) -> Array | None:
    """Lower bounds of the earliest ends for any machine: rules and NOTs are left out. None: too many positions."""
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


# ----------------------------------------------------------------------------------------------- questions


def _questions(moves: Moves, checks: Checks, accepts: Array, events: int) -> tuple[Questions, bool]:
    """The questions of moves from states that do not accept; and whether no move asks two things at once."""
    found: dict[tuple[int, int], int] = {}
    asked: list[list[int]] = []
    exact = True
    source = np.repeat(np.arange(len(accepts)), np.diff(moves.begin))
    for move, target in enumerate(moves.target):
        pairs = checks.pairs[checks.pairs_begin[move] : checks.pairs_begin[move + 1]]
        pairs = pairs[:0] if accepts[source[move]] else pairs
        asked.append([found.setdefault((int(target), int(pair)), len(found)) for pair in pairs])
        nots = 0 if accepts[source[move]] else checks.nots_begin[move + 1] - checks.nots_begin[move]
        exact &= len(pairs) + bool(nots) <= 1
    of: list[list[int]] = [[] for _ in accepts]
    for (target, _), question in found.items():
        of[target].append(question)
    places = [places_of_pair(checks, pair) for _, pair in found]
    ask, offer = np.full((2, len(found), events), -1, np.int32)
    for question, (_, asks, offers, _) in enumerate(places):
        ask[question], offer[question] = asks, offers
    size = np.array([cells for *_, cells in places], np.int64)
    kinds = np.array([kind for kind, *_ in places], np.int64)
    base = np.cumsum(size) - size
    return Questions(*_flat(asked), *_flat(of), kinds, ask, offer, base, size), exact


def _flat(lists: list[list[int]]) -> tuple[Array, Array]:
    return np.cumsum([0, *map(len, lists)]).astype(np.int64), np.array([x for xs in lists for x in xs], np.int64)


def places_of_pair(checks: Checks, pair: int) -> tuple[int, Array, Array, int]:
    """How a pair is answered, where every event asks, where every event is found, and the number of cells."""
    operator = OPERATORS[checks.operators[pair]]
    left, right = checks.left[pair], checks.right[pair]
    if operator in ("=", "!="):
        ranks = np.unique(np.concatenate([left, right]), return_inverse=True)[1].reshape(-1)
        asks, offers = ranks[: len(left)], ranks[len(left) :]
        kind, cells = (EQUAL, int(ranks.max(initial=0)) + 1) if operator == "=" else (OTHER, 3)
    else:
        # x → ~x turns the order around: what may follow is always what lies below
        left, right = (~left, ~right) if operator in ("<", "<=") else (left, right)
        values, offers = np.unique(right, return_inverse=True)
        asks = np.searchsorted(values, left, side="left" if operator in ("<", ">") else "right")
        kind, cells = ORDER, len(values)
    known = checks.known[:, pair]
    return kind, np.where(known[0], asks, -1), np.where(known[1], offers.reshape(-1), -1), cells


# ------------------------------------------------------------------------------------------------ compiled


@njit(nogil=True)
def _sweep(ends: Array, tables: Tables, moves: Moves, checks: Checks, questions: Questions) -> int:
    """Backwards through every key: ask for all events of a time, then let earlier ones find them."""
    states = len(tables.positions)
    best = np.full(states, NEVER, np.int32)
    cells = np.full(questions.size.sum(), NEVER, np.int32)
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
                                for at_q in range(questions.begin[move], questions.begin[move + 1]):
                                    q = questions.which[at_q]
                                    answer, steps = _answer(questions.ask[q, e], q, cells, questions)
                                    bound, work = max(bound, answer), work + steps
                                if checks.nots_begin[move] < checks.nots_begin[move + 1]:
                                    cut = first_cut(e, move, tables.cuts, checks)
                                    answer, steps = _before(cut, stack[target], height[target], ends[target])
                                    bound, work = max(bound, answer), work + steps
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
                        for at_q in range(questions.of_begin[state], questions.of_begin[state + 1]):
                            q = questions.of[at_q]
                            work += _offer(questions.offer[q, e], ends[state, e], q, cells, questions)
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
def _answer(ask: int, q: int, cells: Array, questions: Questions) -> tuple[int, int]:
    """The earliest end among the events that the predicate lets follow, and the cells looked at."""
    base = questions.base[q]
    if ask < 0:
        return NEVER, 0
    if questions.kind[q] == EQUAL:
        return cells[base + ask], 1
    if questions.kind[q] == OTHER:
        return (cells[base + 2] if cells[base] == ask else cells[base + 1]), 1
    found, steps = NEVER, 0
    while ask > 0:
        found = min(found, cells[base + ask - 1])
        ask &= ask - 1
        steps += 1
    return found, steps


@njit(**INSIDE)
def _offer(place: int, end: int, q: int, cells: Array, questions: Questions) -> int:
    """Let an end be found at a place; returns the cells looked at."""
    base = questions.base[q]
    if place < 0:
        return 0
    if questions.kind[q] == EQUAL:
        cells[base + place] = min(cells[base + place], end)
        return 1
    if questions.kind[q] == OTHER:  # a value, its earliest end, the earliest end of any other value
        if end < cells[base + 1]:
            if cells[base] != place:
                cells[base], cells[base + 2] = place, cells[base + 1]
            cells[base + 1] = end
        elif cells[base] != place:
            cells[base + 2] = min(cells[base + 2], end)
        return 1
    steps = 0
    while place < questions.size[q]:
        cells[base + place] = min(cells[base + place], end)
        place |= place + 1
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
