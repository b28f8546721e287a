"""The best combinations of sequences that are ranked each on its own, under the contract every kernel keeps.

Every operand of AND or SEQ is a component that gives its best sequences when it is asked (`strata`); a rank join reads
them no further than the best combinations need. Where there are few combinations, listing them is faster.
Cost: for each window and key the accesses of the join; see `rank_join`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from time import perf_counter
from typing import Any, Self

import numpy as np

from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Attribute, Expr, Fold
from trendloom.expr.vectors import Vector, at_scale, is_true, to_doubles
from trendloom.kernels.columns.block import Block
from trendloom.kernels.ground.matches import Matches, join
from trendloom.kernels.ground.spec import Rule
from trendloom.kernels.ground.windows import check_range
from trendloom.kernels.ranking.cells.boards import Ranges
from trendloom.kernels.ranking.cells.weights import strata_of, weighing_of
from trendloom.kernels.ranking.cells.windows import ranges_of
from trendloom.kernels.ranking.joins.components import ProducedComponent
from trendloom.kernels.ranking.joins.merging import MergeName
from trendloom.kernels.ranking.joins.rank_join import JoinConditions, RankJoin
from trendloom.kernels.ranking.kernel import ListingKernel, RankingKernel
from trendloom.kernels.ranking.select import best_of, together
from trendloom.kernels.ranking.strata import SUM, Strata, best_paths

Array = np.ndarray[Any, Any]

FEW = 1 << 18
"""Combinations of events in a window up to which all of them are listed."""
MOST_WEIGHT = 2**50
"""Integers that are folded stay below this: their sums and means are exact."""
FIRST = 64
"""Sequences that a component makes at first; then twice as many each time."""


@dataclass(frozen=True)
class JoinOperand:
    """A sequence of single events: its positions in order, and its preference, which grows with the fold or falls.

    `within`: its events lie in the last so many ticks of a window; None: in all of it.
    """

    positions: tuple[int, ...]
    variables: tuple[str, ...]
    preference: Expr
    fold: Fold
    falling: bool
    within: int | None = None


@dataclass(frozen=True)
class RankJoinKernel(RankingKernel):
    """`in_order`: operands follow each other, else they are of any order and have no event in common.

    `rules`: conditions on events of several operands. `listing`: what ranks few matches, and numbers without a score.
    """

    operands: tuple[JoinOperand, ...]
    in_order: bool
    rules: tuple[Rule, ...]
    listing: ListingKernel

    def within(self, memory: int) -> Self:
        return replace(self, listing=self.listing.within(memory))

    def best(self, block: Block) -> Matches:
        if not len(block):
            return join([])
        check_range(block.time, self.detection.window)
        ranges, start = ranges_of(block, self.detection.window)
        if self._combinations(block, ranges).sum() <= FEW:
            return self.listing.best(block)
        weighed = [self._weighed(operand, block) for operand in self.operands]
        known = [one for one in weighed if one is not None]
        if len(known) < len(weighed):
            return self.listing.best(block)
        found = list(self._boards(block, ranges, start, known))
        if any(one is None for one in found):
            return self.listing.best(block)
        scored = [self.scored(block, one) for one in found if one is not None and len(one)]
        return best_of(together(scored), block, self.scoring).matches if scored else join([])

    def _combinations(self, block: Block, ranges: Ranges) -> Array:
        """By window at most how many combinations of events there are."""
        found = np.ones(len(ranges.low))
        with np.errstate(over="ignore"):
            for operand in self.operands:
                for position in operand.positions:
                    members = block.members[position]
                    found *= np.searchsorted(members, ranges.high) - np.searchsorted(members, ranges.low)
        return found

    def _weighed(self, operand: JoinOperand, block: Block) -> _Weighed | None:
        """The events of an operand and what they add, less being better; None: that is NULL, or too large."""
        descending = self.scoring.descending != operand.falling
        found = weighing_of(
            operand.fold, self.detection, block, len(operand.positions), descending=descending, most=MOST_WEIGHT
        )
        if found is None or found.blanks:
            return None
        return _Weighed(strata_of(found, block, operand.positions), found.sign, found.scale)

    def _boards(
        self, block: Block, ranges: Ranges, start: Array | None, weighed: Sequence[_Weighed]
    ) -> Iterator[Matches | None]:
        """The best of each window; None: more tie than are looked at, or a score is NULL."""
        for board in range(len(ranges.low)):
            low, high = int(ranges.low[board]), int(ranges.high[board])
            components = []
            for operand, events in zip(self.operands, weighed, strict=True):
                begin = low
                if operand.within is not None and start is not None:
                    assert self.detection.window.within is not None
                    end = start[board] + self.detection.window.within
                    key = block.key[low : low + 1] if low < len(block) else np.zeros(1, np.int64)
                    begin = max(low, int(block.not_before(key, np.array([end - operand.within]))[0]))
                components.append(_RankedSequences(operand, events, begin, high, self._score))
            joined = RankJoin(
                [ProducedComponent(one.more, len(one.operand.positions), perf_counter) for one in components],
                self._merge(),
                self._conditions(block),
                type_=np.float64 if self._in_doubles else np.int64,
            )
            rows = joined.best(self.scoring.limit, ties=True)
            if rows.more or any(one.blank for one in components):
                yield None
                return
            yield self._matches(block, rows.events, None if start is None else start[board])

    def _merge(self) -> MergeName:
        """The function of scores that are turned around where the greatest are best."""
        turned: dict[str, MergeName] = {"min": "max", "max": "min"}
        merge = self.scoring.merge
        assert merge is not None
        if merge in ("sum", "avg"):
            return "sum" if merge == "sum" else "avg"
        return turned[merge] if self.scoring.descending else ("min" if merge == "min" else "max")

    def _score(self, operand: JoinOperand, folds: Vector) -> Vector:
        """Scores of an operand in the kind of the merged ones, turned so that less is better."""
        vector = evaluate(operand.preference, lambda _: folds).broadcast(len(folds))
        vector = to_doubles(vector) if self._in_doubles else at_scale(vector, self.scoring.scale)
        return replace(vector, values=-vector.values) if self.scoring.descending else vector

    @property
    def _in_doubles(self) -> bool:
        return self.scoring.merge == "avg" or any(not operand.preference.kind.exact for operand in self.operands)

    def _conditions(self, block: Block) -> JoinConditions:
        pairs = tuple(combinations(range(len(self.operands)), 2))
        residual = self._residual(block) if self.rules else None
        if self.in_order:
            before = tuple(pairwise(range(len(self.operands))))
            return JoinConditions(before=before, tie_end=block.tie_end, residual=residual)
        return JoinConditions(apart=pairs, residual=residual)

    def _residual(self, block: Block) -> Callable[[Sequence[Array]], Array]:
        """Which combinations pass the conditions on events of several operands."""
        place = {
            variable: (number, column)
            for number, operand in enumerate(self.operands)
            for column, variable in enumerate(operand.variables)
        }

        def passes(events: Sequence[Array]) -> Array:
            def leaf(expr: Expr) -> Vector:
                assert isinstance(expr, Attribute)
                number, column = place[expr.variable]
                return block.columns[expr.column].take(events[number][:, column])

            good = np.ones(len(events[0]), np.bool_)
            for rule in self.rules:
                good &= is_true(evaluate(rule.expr, leaf))
            return good

        return passes

    def _matches(self, block: Block, events: Array, start: int | None) -> Matches:
        """Combinations as matches: events in the order of time, of equal times in that of operands."""
        positions = np.array([position for operand in self.operands for position in operand.positions], np.int32)
        order = np.argsort(block.instant[events], axis=1, kind="stable")
        rows, length = events.shape
        offsets = np.arange(rows + 1, dtype=np.int64) * length
        flat = np.take_along_axis(events, order, axis=1).reshape(-1)
        starts = None if start is None else np.full(rows, start)
        return Matches(offsets, flat, positions[order].reshape(-1), starts)


@dataclass(frozen=True, eq=False)
class _Weighed:
    """Events of an operand with what they add to its fold, times `sign`; `scale`: digits after the point."""

    strata: Strata
    sign: int
    scale: int


class _RankedSequences:
    """The sequences of an operand in a window, best first: made anew, twice as many, when more are asked for."""

    def __init__(
        self, operand: JoinOperand, weighed: _Weighed, low: int, high: int,
        score: Callable[[JoinOperand, Vector], Vector],
    ) -> None:  # fmt: skip
        self.operand, self.weighed, self.score = operand, weighed, score
        self.low, self.high = np.array([low]), np.array([high])
        self.made, self.given, self.blank, self.all_made = 0, 0, False, False
        self.scores, self.events = np.zeros(0), np.zeros((0, len(operand.positions)), np.int64)

    def more(self, count: int) -> tuple[Array, Array]:
        """The next best sequences, with their scores."""
        wanted = self.given + count
        while self.made < wanted and not self.all_made:
            self._make(max(FIRST, 2 * self.made, wanted))
        some = slice(self.given, min(wanted, self.made))
        self.given = some.stop
        return self.scores[some], self.events[some]

    def _make(self, count: int) -> None:
        found = best_paths(self.weighed.strata, self.low, self.high, count, SUM)
        folds = Vector(self.operand.fold.kind, found.scores * self.weighed.sign, scale=self.weighed.scale)
        scores = self.score(self.operand, folds)
        self.blank |= scores.valid is not None and not scores.valid.all()
        self.scores, self.events = scores.values, found.events
        self.made, self.all_made = len(self.scores), len(self.scores) < count
