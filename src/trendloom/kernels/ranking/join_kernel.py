"""The best combinations of sequences that are ranked each on its own, under the contract every kernel keeps.

Every operand of AND or SEQ gives its best sequences one after the other (`join_operands`); a rank join reads them no
further than the best combinations need (`rank_join`). What is joined on its own is a stretch (`join_stretches`): a
window, a key, or a stretch of time where a bound on spans cuts a key. Stretches with few combinations are listed, all
of them together, which is faster; so a Python loop goes over large ones alone.
Cost: for each large stretch the accesses of the join; see `rank_join`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any, Self

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Attribute, Expr
from trendloom.expr.vectors import Vector, at_scale, is_true, to_doubles
from trendloom.kernels.columns.block import Block, check_range
from trendloom.kernels.contract.matches import Matches, join
from trendloom.kernels.contract.pattern_spec import Rule
from trendloom.kernels.ranking.graph import strata_of, weighing_of
from trendloom.kernels.ranking.join_entries import MergeName
from trendloom.kernels.ranking.join_keys import EqualSides, equalities_of, key_columns
from trendloom.kernels.ranking.join_operands import JoinBranch, JoinOperand, RankedOperand, WeighedBranch
from trendloom.kernels.ranking.join_stretches import StretchSearch, combinations_in, stretches_of
from trendloom.kernels.ranking.kernel import ListingKernel, RankingKernel
from trendloom.kernels.ranking.rank_join import JoinConditions

LITTLE = 1 << 18
"""Combinations in a block up to which all of them are listed: that needs no further kernels."""
MOST_WEIGHT = 2**50
"""Integers that are folded or merged stay below this: their sums and means are exact."""


@dataclass(frozen=True)
class RankJoinKernel(RankingKernel):
    """`in_order`: operands follow each other, else they are of any order and have no event in common.

    `rules`: conditions on events of several operands. `listing`: what ranks few matches, and those without a score.
    """

    operands: tuple[JoinOperand, ...]
    in_order: bool
    rules: tuple[Rule, ...]
    listing: ListingKernel

    def within(self, memory: int) -> Self:
        return replace(self, listing=self.listing.within(memory))

    def best(self, block: Block) -> Matches:
        search = self._search(block)
        return self.listing.best(block) if search is None else search.best()

    def effort(self, block: Block) -> Mapping[str, float]:
        search = self._search(block)
        return self.listing.effort(block) if search is None else search.effort()

    def _search(self, block: Block) -> StretchSearch | None:
        """The search of a block; None: it has few combinations, or numbers that only listing can deal with."""
        if not len(block):
            return None
        window = self.pattern_spec.window
        check_range(block.time, window)
        stretches = stretches_of(block, window, self.operands, overall=self.scoring.overall)
        number = combinations_in(stretches, self.operands, block)
        if number.sum() <= LITTLE:
            return None
        ranked, blanks = [], False
        for operand in self.operands:
            weighed = [self._weighed(branch, block) for branch in operand.branches]
            known = [one[0] for one in weighed if one is not None]
            if len(known) < len(weighed):
                return None
            blanks |= any(one is not None and one[1] for one in weighed)
            ranked.append(RankedOperand(operand, known, self._reach(operand, block), self.score_type))
        return StretchSearch(self, block, stretches, number, ranked, self._conditions(block), blanks=blanks)

    def _weighed(self, branch: JoinBranch, block: Block) -> tuple[WeighedBranch, bool] | None:
        """The events of a branch and what they add, less being better, and whether some have no value.

        None: numbers are too large.
        """
        descending = self.scoring.descending != branch.falling
        found = weighing_of(
            branch.fold, self.pattern_spec, block, len(branch.positions), descending=descending, most=MOST_WEIGHT
        )
        if found is None:
            return None
        strata = strata_of(found, block, branch.positions)
        return WeighedBranch(branch, strata, found.sign, found.scale, self._score), found.blanks

    def _reach(self, operand: JoinOperand, block: Block) -> Array | None:
        """By event where sequences end that begin with it, where spans are bounded; windows that slide bound none."""
        window = self.pattern_spec.window
        bounds = [bound for bound in (window.within, operand.within) if bound is not None]
        if window.sliding or not bounds:
            return None
        return block.not_before(block.key, block.time + min(bounds))

    @cached_property
    def orders(self) -> int:
        """In how many orders the events of a match could come, of which the pattern takes one."""
        lengths = [min(len(branch.positions) for branch in operand.branches) for operand in self.operands]
        return math.factorial(sum(lengths)) if self.in_order else math.prod(map(math.factorial, lengths))

    @property
    def merge(self) -> MergeName:
        """The function of scores that are turned around where the greatest are best."""
        turned: dict[str, MergeName] = {"min": "max", "max": "min"}
        merge = self.scoring.merge
        assert merge is not None
        if merge in ("sum", "avg"):
            return "sum" if merge == "sum" else "avg"
        return turned[merge] if self.scoring.descending else ("min" if merge == "min" else "max")

    def _score(self, branch: JoinBranch, folds: Vector) -> Vector:
        """Scores of a branch in the kind of the merged ones, turned so that less is better; NULL: it is too large."""
        vector = evaluate(branch.preference, lambda _: folds).broadcast(len(folds))
        exact = vector.values.dtype == np.int64
        vector = to_doubles(vector) if self._in_doubles else at_scale(vector, self.scoring.scale)
        if exact and vector.values.dtype != object:
            fits = np.abs(vector.values) < MOST_WEIGHT
            vector = replace(vector, valid=fits if vector.valid is None else fits & vector.valid)
        return replace(vector, values=-vector.values) if self.scoring.descending else vector

    @cached_property
    def _in_doubles(self) -> bool:
        return self.scoring.merge == "avg" or any(not one.kind.exact for one in self.scoring.preferences)

    @property
    def score_type(self) -> Any:
        return np.float64 if self._in_doubles else np.int64

    # ------------------------------------------------------------------------------------------- conditions

    @cached_property
    def equalities(self) -> tuple[EqualSides, ...]:
        """What is equal in all operands of a match."""
        return equalities_of(self.rules, self.operands)

    def _conditions(self, block: Block) -> JoinConditions:
        keys: Sequence[Callable[[Array], Array]] = ()
        said: frozenset[Rule] = frozenset()
        if self.equalities:
            columns, said = key_columns(self.equalities, self.operands, block)
            keys = columns.functions()
        rules = [rule for rule in self.rules if rule not in said]
        residual = self._residual(block, rules) if rules else None
        numbers = range(len(self.operands))
        if self.in_order:
            return JoinConditions(keys, tuple(pairwise(numbers)), (), block.tie_end, residual)
        return JoinConditions(keys, apart=tuple(combinations(numbers, 2)), residual=residual)

    def _residual(self, block: Block, rules: Sequence[Rule]) -> Callable[[Sequence[Array]], Array]:
        """Which combinations pass conditions on events of several operands: of events that are not bound, any do."""
        place = {
            variable: (number, column)
            for number, operand in enumerate(self.operands)
            for column, variable in enumerate(operand.variables)
        }

        def passes(events: Sequence[Array]) -> Array:
            def bound(variable: str) -> Array:
                number, column = place[variable]
                return events[number][:, column]

            def leaf(expr: Expr) -> Vector:
                assert isinstance(expr, Attribute)
                return block.columns[expr.column].take(bound(expr.variable))

            good = np.ones(len(events[0]), np.bool_)
            for rule in rules:
                lacking = np.logical_or.reduce([bound(name) < 0 for name in rule.shape.variables])
                good &= is_true(evaluate(rule.expr, leaf)) | lacking
            return good

        return passes

    def matches_of(self, block: Block, events: Array, start: Array | None) -> Matches:
        """Combinations as matches: events in the order of time, of equal times in that of operands."""
        positions = np.array([position for operand in self.operands for position in operand.positions], np.int32)
        if not len(events):
            return join([])
        missing = events < 0
        instant = np.where(missing, np.iinfo(np.int64).max, block.instant[events])
        order = np.argsort(instant, axis=1, kind="stable")
        kept = ~np.take_along_axis(missing, order, axis=1)
        offsets = np.r_[0, np.cumsum(kept.sum(axis=1))].astype(np.int64)
        return Matches(offsets, np.take_along_axis(events, order, axis=1)[kept], positions[order][kept], start)
