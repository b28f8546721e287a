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
        """Whether all that a move asks is true of every pair."""
        hold, checks = tests_hold(self.tests[move], self.block, earlier, later), self.checks
        for pair in checks.pairs[checks.pairs_begin[move] : checks.pairs_begin[move + 1]]:
            compare = COMPARE[OPERATORS[checks.operators[pair]]]
            hold &= compare(checks.left[pair, earlier], checks.right[pair, later])
            hold &= checks.known[0, pair, earlier] & checks.known[1, pair, later]
        return hold


SCAN = -1
FIRST_ORDER, FIRST_DESCENDING = OPERATORS.index("<"), OPERATORS.index(">")


class ComparingMoves(NamedTuple):
    """Moves that compare, seen from one end: those at position p are entries `begin[p]` to `begin[p + 1]`.

    `other` is the position at the other end; `pair` the one comparison of a move if it is by an order, else `SCAN`.
    `free`: for each position a word with the positions at the other end of moves that compare nothing.
    """

    begin: Array
    move: Array
    other: Array
    pair: Array
    free: Array


class ExtremeValues(NamedTuple):
    """By entry of `ComparingMoves` the value that most partners can be compared with, where one was `seen`."""

    best: Array
    seen: Array


def on_a_match(spec: AggregationSpec, block: Block) -> Array:
    """Per event a word: the positions at which some match binds it. The pattern has no NOT and no AND."""
    automaton = Automaton(spec.pattern_spec)
    moves, checks = moves_of(automaton, spec.pairs), checks_of(automaton, spec.pairs, block)
    source = np.repeat(np.arange(len(moves.begin) - 1), np.diff(moves.begin))
    template = spec.pattern_spec.scopes[0].template
    starts = _word(edge.target for edge in template.starts)
    ends = _word(state for state, ways in enumerate(template.accepts) if ways)
    tests = Tested(spec, block, source, moves, checks)
    into = _graph(moves.target, source, moves, checks, tests.moves)
    out_of = _graph(source, moves.target, moves, checks, tests.moves)

    def forwards(reached: Array) -> None:
        _forwards(reached, block.fits[0], block.key_starts, block.tie_end, starts, into, checks)

    reached = tests.closed(forwards, block.fits[0], later=True)

    def backwards(found: Array) -> None:
        _backwards(found, reached, block.key_starts, block.tie_start, ends, out_of, checks)

    return tests.closed(backwards, reached, later=False)


def _word(bits: Iterable[int]) -> int:
    return sum(1 << bit for bit in set(bits))


def _graph(here: Array, other: Array, moves: Moves, checks: Checks, tested: list[int]) -> ComparingMoves:
    positions = len(moves.begin) - 1
    swept = np.ones(len(moves.free), np.bool_)
    swept[tested] = False
    words = [_word(other[(here == position) & moves.free & swept].tolist()) for position in range(positions)]
    compared = np.flatnonzero(~moves.free & swept)
    compared = compared[np.argsort(here[compared], kind="stable")]
    pairs = [checks.pairs[checks.pairs_begin[move] : checks.pairs_begin[move + 1]] for move in compared]
    ordered = [len(some) == 1 and checks.operators[some[0]] >= FIRST_ORDER for some in pairs]
    return ComparingMoves(
        np.searchsorted(here[compared], np.arange(positions + 1)).astype(np.int64),
        compared.astype(np.int64),
        other[compared].astype(np.int64),
        np.array([some[0] if alone else SCAN for some, alone in zip(pairs, ordered, strict=True)], np.int64),
        np.array(words, np.uint64),
    )


# ------------------------------------------------------------------------------------------------ compiled


def _has_plainly(word: int, position: int) -> bool:
    return int(word) >> position & 1 == 1


@njit(**INSIDE, forceinline=True, interpreted=_has_plainly)
def _has(word: int, position: int) -> bool:
    return (np.uint64(word) >> np.uint64(position)) & np.uint64(1) != np.uint64(0)


@njit(nogil=True)
def _forwards(
    reached: Array, fits: Array, key_starts: Array, tie_end: Array, starts: int, into: ComparingMoves, checks: Checks
) -> None:
    """`reached[e]`: the positions at which a partial match can bind event e, besides those that are there already."""
    extremes = ExtremeValues(np.zeros(len(into.move), np.int64), np.zeros(len(into.move), np.bool_))
    for key in range(len(key_starts) - 1):
        earlier = np.uint64(0)
        extremes.seen[:] = False
        at = key_starts[key]
        while at < key_starts[key + 1]:
            end = tie_end[at]
            for event in range(at, end):
                for position in range(len(into.free)):
                    if _has(fits[event], position) and (
                        _has(starts, position)
                        or into.free[position] & earlier
                        or _follows(event, position, key_starts[key], at, reached, extremes, into, checks)
                    ):
                        reached[event] |= np.uint64(1) << np.uint64(position)
            for event in range(at, end):
                earlier |= reached[event]
                _offer(event, reached[event], 0, extremes, into, checks)
            at = end


@njit(**INSIDE)
def _follows(
    event: int, position: int, low: int, high: int, reached: Array, extremes: ExtremeValues, into: ComparingMoves,
    checks: Checks,
) -> bool:  # fmt: skip
    """Whether an event from low to high stands where a move that compares leads on to this one."""
    for at in range(into.begin[position], into.begin[position + 1]):
        pair = into.pair[at]
        if pair != SCAN:
            known = extremes.seen[at] and checks.known[1, pair, event]
            if known and compare(checks.operators[pair], extremes.best[at], checks.right[pair, event]):
                return True
            continue
        for before in range(high - 1, low - 1, -1):
            if _has(reached[before], into.other[at]) and pairs_hold(before, event, into.move[at], checks):
                return True
    return False


@njit(nogil=True)
def _backwards(
    found: Array, reached: Array, key_starts: Array, tie_start: Array, ends: int, out_of: ComparingMoves, checks: Checks
) -> None:
    """Of the positions that are reached, those from which a match can be completed."""
    extremes = ExtremeValues(np.zeros(len(out_of.move), np.int64), np.zeros(len(out_of.move), np.bool_))
    for key in range(len(key_starts) - 1):
        later = np.uint64(0)
        extremes.seen[:] = False
        at = key_starts[key + 1]
        while at > key_starts[key]:
            first = tie_start[at - 1]
            for event in range(first, at):
                for position in range(len(out_of.free)):
                    if _has(reached[event], position) and (
                        _has(ends, position)
                        or out_of.free[position] & later
                        or _leads(event, position, at, key_starts[key + 1], found, extremes, out_of, checks)
                    ):
                        found[event] |= np.uint64(1) << np.uint64(position)
            for event in range(first, at):
                later |= found[event]
                _offer(event, found[event], 1, extremes, out_of, checks)
            at = first


@njit(nogil=True)
def _leads(
    event: int, position: int, low: int, high: int, found: Array, extremes: ExtremeValues, out_of: ComparingMoves,
    checks: Checks,
) -> bool:  # fmt: skip
    """Whether a move that compares leads from this event to one from low to high that is on a match."""
    for at in range(out_of.begin[position], out_of.begin[position + 1]):
        pair = out_of.pair[at]
        if pair != SCAN:
            known = extremes.seen[at] and checks.known[0, pair, event]
            if known and compare(checks.operators[pair], checks.left[pair, event], extremes.best[at]):
                return True
            continue
        for after in range(low, high):
            if _has(found[after], out_of.other[at]) and pairs_hold(event, after, out_of.move[at], checks):
                return True
    return False


@njit(**INSIDE)
def _offer(event: int, word: int, side: int, extremes: ExtremeValues, graph: ComparingMoves, checks: Checks) -> None:
    """Keep the value that most partners can be compared with: the least on the side that must be less."""
    best, seen = extremes.best, extremes.seen
    for at in range(len(graph.move)):
        pair = graph.pair[at]
        if pair == SCAN or not _has(word, graph.other[at]) or not checks.known[side, pair, event]:
            continue
        value = checks.left[pair, event] if side == 0 else checks.right[pair, event]
        wants_less = (checks.operators[pair] < FIRST_DESCENDING) == (side == 0)
        if not seen[at] or (value < best[at] if wants_less else value > best[at]):
            best[at] = value
            seen[at] = True
