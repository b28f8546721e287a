"""The best matches of an OR whose branches are ranked each on its own, under the contract every kernel keeps.

A match takes one branch, and its score is the preference of that one. So the k best of all are among the k best of
each, and every branch is ranked in the way that suits it.
Cost: that of the branches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.matches import Matches, join
from trendloom.kernels.ranking.kernel import RankingKernel
from trendloom.kernels.ranking.select import best_of, together


@dataclass(frozen=True)
class BranchesKernel(RankingKernel):
    """`branches`: each ranks the matches of one branch as all of them are ranked."""

    branches: tuple[RankingKernel, ...]

    def within(self, memory: int) -> Self:
        return replace(self, branches=tuple(branch.within(memory) for branch in self.branches))

    def effort(self, block: Block) -> Mapping[str, float]:
        found: dict[str, float] = {}
        for branch in self.branches:
            for name, number in branch.effort(block).items():
                found[name] = found.get(name, 0.0) + number
        return found

    def best(self, block: Block) -> Matches:
        found = [branch.best(block) for branch in self.branches]
        scored = [self.scored(block, matches) for matches in found if len(matches)]
        return best_of(together(scored), block, self.scoring).matches if scored else join([])
