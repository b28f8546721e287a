"""Which events of a block are on a match at all, and at which positions, without building a match.

Idea: an event is on a match at a position iff a partial match reaches it there and from there a match can be completed;
the two are independent, so one sweep forwards and one backwards over each key decide it. What a step requires of the
events before (after) it is one word where it compares nothing, and one extreme value where it compares by an order;
only for other comparisons are the events themselves tried, the nearest first. Conditions on two events that are not a
comparison are evaluated by columns (see `Tested`), and only for what no other step decides.
Cost: O(events · moves); with `=`, `!=` or two comparisons on a step O(events) more for an event that finds no partner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.comparisons import tests_hold
from trendloom.kernels.contract.aggregates import AggregationSpec
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.tables import OPERATORS, Checks, Moves, checks_of, compare, moves_of, pairs_hold

Sweep = Callable[[Array], None]

SLICE = 1 << 18
"""Pairs that are evaluated at once."""
COMPARE = dict(
    zip(OPERATORS, (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal), strict=True)
)


class Tested:
    """Moves with conditions on two events that are not a comparison of columns: `abs(b[i].x - b[i-1].x) < 2`.

    A sweep decides most events by other moves (the first event of `b` is compared with none). Of what is left, pairs of
    an event that is reached and one that is not are evaluated as columns; what that adds is swept again, until nothing
    new is reached. No pair is evaluated twice. Cost: O(events reached · events left) evaluations in NumPy, in bounded
    memory.
    """

    def __init__(self, spec: AggregationSpec, block: Block, source: Array, moves: Moves, checks: Checks) -> None:
        self.block, self.source, self.target, self.checks = block, source, moves.target, checks
        self.tests = [
            [test.expr for test in spec.tests if (int(state), int(step)) in test.steps]
            for state, step in zip(source, moves.step, strict=True)
        ]
        self.moves = [move for move, tests in enumerate(self.tests) if tests]

    def closed(self, sweep: Sweep, allowed: Array, *, later: bool) -> Array:
        """What a sweep and the tested moves reach; `later`: moves are taken to the later event."""
        reached = np.zeros(len(self.block), np.uint64)
        known = reached.copy()
        sweep(reached)
        while self.moves:
            fresh = self._reached_by_tests(reached, reached & ~known, allowed, later=later)
            if not (fresh & ~reached).any():
                break
            known = reached.copy()
            reached |= fresh
            sweep(reached)
        return reached

    def _reached_by_tests(self, reached: Array, new: Array, allowed: Array, *, later: bool) -> Array:
        """Positions that a tested move reaches from events and positions that are new."""
        found = np.zeros(len(reached), np.uint64)
        for move in self.moves:
            here, there = (self.source[move], self.target[move]) if later else (self.target[move], self.source[move])
            bit = np.uint64(1 << int(there))
            known = np.flatnonzero(new & np.uint64(1 << int(here)))
            left = np.flatnonzero(allowed.astype(np.uint64) & ~reached & bit)
            for at, partner in self._pairs(left, known, later=later):
                earlier, second = (partner, at) if later else (at, partner)
                found[at[self._holds(move, earlier, second)]] |= bit
        return found

    def _pairs(self, left: Array, known: Array, *, later: bool) -> Iterator[tuple[Array, Array]]:
        """All pairs of an event that is left and a known one before it (after it) in its key."""
        block, key = self.block, self.block.key[left]
        low = block.key_starts[key] if later else block.tie_end[left]
        high = block.tie_start[left] if later else block.key_starts[key + 1]
        begin, end = np.searchsorted(known, low), np.searchsorted(known, high)
        count = np.maximum(end - begin, 0)
        ends = np.cumsum(count)
        for start in range(0, int(ends[-1]) if len(ends) else 0, SLICE):
            pair = np.arange(start, min(start + SLICE, int(ends[-1])))
            which = np.searchsorted(ends, pair, side="right")
            yield left[which], known[begin[which] + pair - (ends[which] - count[which])]

    def _holds(self, move: int, earlier: Array, later: Array) -> Array:
        """Whether all conditions of a move are true of every pair."""
        hold, checks = tests_hold(self.tests[move], self.block, earlier, later), self.checks
        for pair in checks.pairs[checks.pairs_begin[move] : checks.pairs_begin[move + 1]]:
            compare = COMPARE[OPERATORS[checks.operators[pair]]]
            hold &= compare(checks.left[pair, earlier], checks.right[pair, later])
            hold &= checks.known[0, pair, earlier] & checks.known[1, pair, later]
        return hold


SCAN = -1
FIRST_ORDER, FIRST_DESCENDING = OPERATORS.index("<"), OPERATORS.index(">")
EARLIER, LATER = 0, 1


class ComparingMoves(NamedTuple):
    """Moves that compare, seen from one end: those at position p are entries `begin[p]` to `begin[p + 1]`.

    `partner`: which end is at the other position: the `EARLIER` event of a move, or the `LATER` one. `other` is
    that position; `pair` the one comparison of a move if it is by an order, else `SCAN`. `free`: for each position a
    word with the other positions of moves that compare nothing. `best`: of partners so far, the value that most events
    can be compared with, where one was `seen`.
    """

    partner: int
    begin: Array
    move: Array
    other: Array
    pair: Array
    free: Array
    best: Array
    seen: Array


class Instants(NamedTuple):
    """Where keys begin, and by event the first and the end of those of its key and time."""

    key_starts: Array
    tie_start: Array
    tie_end: Array


def on_a_match(spec: AggregationSpec, block: Block) -> Array:
    """Per event a word: the positions at which some match binds it. The pattern has no NOT and no AND."""
    automaton = Automaton(spec.pattern_spec)
    moves, checks = moves_of(automaton, spec.pairs), checks_of(automaton, spec.pairs, block)
    source = np.repeat(np.arange(len(moves.begin) - 1), np.diff(moves.begin))
    template = spec.pattern_spec.scopes[0].template
    starts = _word(edge.target for edge in template.starts)
    ends = _word(state for state, ways in enumerate(template.accepts) if ways)
    tests = Tested(spec, block, source, moves, checks)
    instants = Instants(block.key_starts, block.tie_start, block.tie_end)
    into = _graph(EARLIER, moves.target, source, moves, checks, tests.moves)
    out_of = _graph(LATER, source, moves.target, moves, checks, tests.moves)
    fits = block.fits[0]
    reached = tests.closed(lambda found: _sweep(found, fits, instants, starts, into, checks), fits, later=True)
    return tests.closed(lambda found: _sweep(found, reached, instants, ends, out_of, checks), reached, later=False)


def _word(bits: Iterable[int]) -> int:
    return sum(1 << bit for bit in set(bits))


def _graph(partner: int, here: Array, other: Array, moves: Moves, checks: Checks, tested: list[int]) -> ComparingMoves:
    positions = len(moves.begin) - 1
    swept = np.ones(len(moves.free), np.bool_)
    swept[tested] = False
    words = [_word(other[(here == position) & moves.free & swept].tolist()) for position in range(positions)]
    compared = np.flatnonzero(~moves.free & swept)
    compared = compared[np.argsort(here[compared], kind="stable")]
    pairs = [checks.pairs[checks.pairs_begin[move] : checks.pairs_begin[move + 1]] for move in compared]
    ordered = [len(some) == 1 and checks.operators[some[0]] >= FIRST_ORDER for some in pairs]
    return ComparingMoves(
        partner,
        np.searchsorted(here[compared], np.arange(positions + 1)).astype(np.int64),
        compared.astype(np.int64),
        other[compared].astype(np.int64),
        np.array([some[0] if alone else SCAN for some, alone in zip(pairs, ordered, strict=True)], np.int64),
        np.array(words, np.uint64),
        np.zeros(len(compared), np.int64),
        np.zeros(len(compared), np.bool_),
    )


# ------------------------------------------------------------------------------------------------ compiled


def _has_plainly(word: int, position: int) -> bool:
    return int(word) >> position & 1 == 1


@njit(**INSIDE, forceinline=True, interpreted=_has_plainly)
def _has(word: int, position: int) -> bool:
    return (np.uint64(word) >> np.uint64(position)) & np.uint64(1) != np.uint64(0)


@njit(nogil=True)
def _sweep(
    reached: Array, allowed: Array, instants: Instants, first: int, graph: ComparingMoves, checks: Checks
) -> None:
    """Add to `reached` the allowed positions that are in `first`, or have a move from one that is reached.

    If partners are earlier events, those positions are reached by partial matches; if later, a match can be completed
    from there.
    """
    forwards, free = graph.partner == EARLIER, graph.free
    key_starts, tie_start, tie_end = instants.key_starts, instants.tie_start, instants.tie_end
    for key in range(len(key_starts) - 1):
        low, high = key_starts[key], key_starts[key + 1]
        passed = np.uint64(0)
        graph.seen[:] = False
        while low < high:
            begin = low if forwards else tie_start[high - 1]
            end = tie_end[low] if forwards else high
            partners = (key_starts[key], begin) if forwards else (end, key_starts[key + 1])
            for event in range(begin, end):
                for position in range(len(free)):
                    if _has(allowed[event], position) and (
                        _has(first, position)
                        or free[position] & passed
                        or (
                            graph.begin[position] < graph.begin[position + 1]
                            and _has_partner(event, position, partners, reached, graph, checks)
                        )
                    ):
                        reached[event] |= np.uint64(1) << np.uint64(position)
            for event in range(begin, end):
                passed |= reached[event]
                if len(graph.move) > 0:
                    _offer(event, reached[event], graph, checks)
            if forwards:
                low = end
            else:
                high = begin


@njit(**INSIDE)
def _has_partner(
    event: int, position: int, partners: tuple[int, int], reached: Array, graph: ComparingMoves, checks: Checks
) -> bool:
    """Whether a move that compares connects this event with one of the partners that are reached."""
    low, high = partners
    forwards = graph.partner == EARLIER
    own = checks.right if forwards else checks.left
    for at in range(graph.begin[position], graph.begin[position + 1]):
        pair = graph.pair[at]
        if pair != SCAN:
            if graph.seen[at] and checks.known[1 - graph.partner, pair, event]:
                left, right = graph.best[at], own[pair, event]
                if not forwards:
                    left, right = right, left
                if compare(checks.operators[pair], left, right):
                    return True
            continue
        for number in range(high - low):
            other = high - 1 - number if forwards else low + number
            if _has(reached[other], graph.other[at]):
                earlier, later = (other, event) if forwards else (event, other)
                if pairs_hold(earlier, later, graph.move[at], checks):
                    return True
    return False


@njit(**INSIDE)
def _offer(event: int, word: int, graph: ComparingMoves, checks: Checks) -> None:
    """Keep the value that most events can be compared with: the least on the side that must be less."""
    best, seen = graph.best, graph.seen
    values = checks.left if graph.partner == EARLIER else checks.right
    for at in range(len(graph.move)):
        pair = graph.pair[at]
        if pair == SCAN or not _has(word, graph.other[at]) or not checks.known[graph.partner, pair, event]:
            continue
        value = values[pair, event]
        least = (checks.operators[pair] < FIRST_DESCENDING) == (graph.partner == EARLIER)
        if not seen[at] or (value < best[at] if least else value > best[at]):
            best[at] = value
            seen[at] = True
