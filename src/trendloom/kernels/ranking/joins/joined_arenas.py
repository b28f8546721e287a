"""Rank joins of arenas, one after the other.

The sequences of many arenas are made in one call, a *turn*, as many for each as the joins of the turn before have read:
windows that overlap share most of that work. Then each arena is joined anew, in steps that the join before suggests.
A join that goes on from one window to the next (`sliding`) makes fewer combinations, but it has to pass over all that
it has read before; with shared sequences it is slower at any overlap (see `benchmarks/ranking/rank_joins.py`).

Cost: of each arena that of a `rank_join`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.matches import Matches
from trendloom.kernels.ranking.joins.arenas import Arenas
from trendloom.kernels.ranking.joins.rank_join import JoinConditions, RankedRows, RankJoin
from trendloom.kernels.ranking.joins.sequences import FIRST, HELD, ListedSequences, RankedOperand, SequenceLists

if TYPE_CHECKING:
    from trendloom.kernels.ranking.joins.kernel import RankJoinKernel


FIRST_TURN, GROWTH, LONGEST_TURN = 2, 4, 1 << 12
"""Arenas of the first turn, how many times as many the next one has, and those of the longest."""
PATIENCE = 1 << 22
"""Combinations that a join tries before it is given up, if listing makes fewer."""
READ = "sequences read"
"""What EXPLAIN says of joins."""


class ArenaJoins:
    """The joins of a block's arenas."""

    def __init__(
        self, kernel: RankJoinKernel, block: Block, arenas: Arenas, operands: Sequence[RankedOperand],
        conditions: JoinConditions, expected: Array,
    ) -> None:  # fmt: skip
        """`expected`: by arena how many matches there may be."""
        self._kernel, self._block, self._arenas, self._expected = kernel, block, arenas, expected
        self._operands, self._conditions = operands, conditions
        self._depths = [FIRST] * len(operands)
        self._read, self._last_read = 0, [0] * len(operands)

    @property
    def tally(self) -> dict[str, int]:
        return {READ: self._read}

    def ranked(self, arenas: Array) -> Iterator[tuple[int, Matches | None]]:
        """The best combinations of arenas, which come in order; None: some have no score, or a join gave up."""
        begin, size = 0, FIRST_TURN
        while begin < len(arenas):
            turn = arenas[begin : begin + size]
            made = self._made(turn)
            read = np.zeros((len(turn), len(self._operands)), np.int64)
            for number, arena in enumerate(turn.tolist()):
                components = [ListedSequences(*lists, number) for lists in made]
                rows = self._best(arena, components)
                read[number] = self._last_read = [component.read for component in components]
                blank = rows.more or any(component.blank for component in components)
                yield arena, None if blank else self._matches(rows, arena)
            self._read += int(read.sum())
            self._depths = [_enough(some) for some in read.T]
            begin += size
            size = min(GROWTH * size, LONGEST_TURN, max(FIRST_TURN, HELD // sum(self._depths)))

    def _made(self, turn: Array) -> list[tuple[RankedOperand, SequenceLists, Array, Array]]:
        """By operand its sequences in the arenas of a turn."""
        high = self._arenas.high[turn]
        return [
            (operand, operand.make(begin[turn], high, depth), begin[turn], high)
            for operand, begin, depth in zip(self._operands, self._arenas.begin, self._depths, strict=True)
        ]

    def _best(self, arena: int, components: Sequence[ListedSequences]) -> RankedRows:
        kernel = self._kernel
        found = RankJoin(
            components,
            kernel.merge,
            self._conditions_in(arena),
            type_=kernel.score_type,
            patience=max(PATIENCE, self._expected[arena]),
        )
        found.expect(self._last_read)
        return found.best(kernel.scoring.limit, ties=True)

    def _conditions_in(self, arena: int) -> JoinConditions:
        """The conditions on combinations; where spans are bounded, matches begin in the arena's own part."""
        if self._arenas.first_end is None:
            return self._conditions
        first_end, within = int(self._arenas.first_end[arena]), self._kernel.pattern_spec.window.within
        time, others = self._block.time, self._conditions.residual

        def passes(events: Sequence[Array]) -> Array:
            every = np.concatenate(events, axis=1)
            first, last = np.where(every < 0, len(time), every).min(axis=1), every.max(axis=1)
            good = (first < first_end) & (time[last] - time[first] < within)
            return good if others is None else good & others(events)

        return replace(self._conditions, residual=passes)

    def _matches(self, rows: RankedRows, arena: int) -> Matches:
        start = None if self._arenas.start is None else np.full(len(rows.scores), self._arenas.start[arena])
        return self._kernel.matches_of(self._block, rows.events, start)


def _enough(read: Array) -> int:
    """How many sequences are made of each arena, after so many were read of others."""
    return max(FIRST, 1 << int(np.ceil(np.log2(read.max() + 1))))
