"""Steps with conditions on two events that are not a comparison of columns: `abs(b[i].x - b[i-1].x) < 2`.

A sweep decides most events by other steps (the first event of `b` is compared with none). Of what is left, pairs of an
event that is reached and one that is not are evaluated as columns; what that adds is swept again, until nothing new is
reached. No pair is evaluated twice. Cost: O(events reached · events left) evaluations in NumPy, in bounded memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from trendloom.kernels.columns.block import Block
from trendloom.kernels.matching.adjacent_tests import tests_hold
from trendloom.kernels.matching.tables import OPERATORS, Checks, Moves
from trendloom.kernels.measures import AggregationSpec

Array = np.ndarray[Any, Any]
Sweep = Callable[[Array], None]

SLICE = 1 << 18
"""Pairs that are evaluated at once."""
COMPARE = dict(
    zip(OPERATORS, (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal), strict=True)
)


class Tested:
    """The moves of a pattern that have tests, over one block."""

    def __init__(self, spec: AggregationSpec, block: Block, source: Array, moves: Moves, checks: Checks) -> None:
        self.block, self.source, self.target, self.checks = block, source, moves.target, checks
        self.tests = [
            [test.expr for test in spec.tests if (int(state), int(step)) in test.steps]
            for state, step in zip(source, moves.step, strict=True)
        ]
        self.moves = [move for move, tests in enumerate(self.tests) if tests]

    def closed(self, sweep: Sweep, allowed: Array, *, later: bool) -> Array:
        """What a sweep and the tested moves reach together; `later`: moves are taken to the later event."""
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
