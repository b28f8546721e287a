"""Matches one by one, for whoever adds up their confidences, and beside them the probability that there is any.

Both are parts of the same results: totals with nothing but the probability are added to what the matches come to.
Cost: that of the search, and of `at_least_one`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from trendloom.kernels.aggregate.results import Totals
from trendloom.kernels.aggregate.widening import doubles_as_amounts
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract import Hear
from trendloom.kernels.match.search import SearchState
from trendloom.kernels.measures import Measure
from trendloom.kernels.uncertain.expected.kernel import ExpectedKernel
from trendloom.kernels.uncertain.kernel import ImpreciseKernel


@dataclass(frozen=True)
class LikelyMatchesKernel(ImpreciseKernel):
    """`chance` gives the probability of each group and window; `summed` are added up over the matches."""

    _: KW_ONLY
    chance: ExpectedKernel
    summed: tuple[Measure, ...]

    def step(self, state: SearchState, block: Block, watermark: int | None) -> tuple[Iterator[Any], SearchState]:
        """Take events; give out the matches of windows that have ended, and their probabilities."""
        found, after = super().step(state, block, watermark)
        if watermark is None:
            return found, after
        return chain(found, self._probabilities(block, state.before, watermark)), after

    def finish(self, state: SearchState, hear: Hear | None = None) -> Iterator[Any]:
        """Those of all windows that are still open."""
        if state.block is None:
            return iter(())
        return chain(super().finish(state, hear), self._probabilities(state.block, state.before, None))

    def _probabilities(self, block: Block, before: int | None, watermark: int | None) -> Iterator[Totals]:
        """As totals in which all sums are zero."""
        for totals in self.chance.ended(block, before, watermark):
            nothing = doubles_as_amounts(np.zeros(len(totals)))
            values = dict(totals.values)
            values.update((measure.name, nothing) for measure in self.summed)
            yield replace(totals, values=values, whole=False)
