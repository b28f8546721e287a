"""Expected aggregates over matches of imprecise times, under the contract every kernel keeps.

A window is given out when the watermark, which bounds the earliest times of what is still to come, has passed its end.
Events of open windows are asked for again, so there is nothing to dump. Cost of a step: that of `results` over these
events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.interval_block import IntervalBlock
from trendloom.kernels.contract import ADDED_UP, Asked, Built, Divisible, Expected, Hear
from trendloom.kernels.contract.emission import Certain, EmissionPolicy
from trendloom.kernels.contract.measures import Measure
from trendloom.kernels.contract.totals import Totals, doubles_as_amounts
from trendloom.kernels.match.search import SearchState
from trendloom.kernels.uncertain.expected.results import ExpectedOfSequence, expected_totals
from trendloom.kernels.uncertain.kernel import ImpreciseKernel

FAR = 2**62


@dataclass(frozen=True, eq=False)
class ExpectedState:
    """The last block; windows that ended at `before` are out."""

    block: IntervalBlock | None = None
    before: int | None = None


@dataclass(frozen=True)
class ExpectedKernel:
    """What to expect. `slack`: the most ticks from the earliest time of an event to its latest."""

    expectation: ExpectedOfSequence
    slack: int

    version: ClassVar[int] = 1
    family: ClassVar[str] = ADDED_UP
    adds_up: ClassVar[bool] = True
    aggregation: ClassVar[None] = None
    light: ClassVar[bool] = False
    summarising: ClassVar[None] = None
    columns: ClassVar[tuple[str, ...]] = ()
    divisible: ClassVar[Divisible] = Divisible.EITHER_WAY

    def within(self, memory: int) -> Self:
        """The same: results are few."""
        return self

    def in_numbers(self, numeric: str) -> Self:
        """The same: expected values are doubles."""
        return self

    @property
    def reads(self) -> frozenset[str]:
        """The columns that are added up."""
        return frozenset(measure.column for measure in self.expectation.measures if measure.column)

    @property
    def keeps(self) -> str:
        return "the events of open windows"

    @property
    def emission(self) -> EmissionPolicy:
        return EmissionPolicy(self.expectation.window, Certain.WINDOW, slack=self.slack)

    def start(self) -> ExpectedState:
        return ExpectedState()

    def step(self, state: ExpectedState, block: Block, watermark: int | None) -> tuple[Iterator[Totals], ExpectedState]:
        """Take events; give out the windows that have ended."""
        assert isinstance(block, IntervalBlock)
        state = replace(state, block=block)
        if watermark is None:
            return iter(()), state
        found = list(self.ended(block, state.before, watermark))
        return iter(found), replace(state, before=watermark)

    def expected(self, state: ExpectedState, *, beforehand: bool) -> Expected | None:
        """There is one result for a group and window: nobody has to be told."""
        return None

    def finish(self, state: ExpectedState, hear: Hear | None = None) -> Iterator[Totals]:
        """All windows that are still open."""
        return iter(()) if state.block is None else self.ended(state.block, state.before, None)

    def kept(self, state: ExpectedState) -> Array | None:
        """The events that may lie in a window that has not ended."""
        if state.block is None or state.before is None or self.expectation.window.within is None:
            return None
        kept: Array = state.block.high >= self.emission.first_open(state.before)
        return kept

    def dump(self, state: ExpectedState, *, whole: bool = False) -> pa.Table | None:
        """Nothing: all is made of the events."""
        return None

    def load(self, summaries: pa.Table | None, before: int | None) -> ExpectedState:
        return ExpectedState(before=before)

    def describe(self, state: ExpectedState) -> Built | None:
        """Nothing: a batch is added up when it is asked for."""
        return None

    def unfold(self, block: Block, variables: frozenset[str], asked: Asked) -> Iterator[Totals] | None:
        """Totals do not know their matches."""
        return None

    def ended(self, block: Block, before: int | None, watermark: int | None) -> Iterator[Totals]:
        """Results of windows that have ended and were not out `before`; `watermark` None: of all that are left."""
        assert isinstance(block, IntervalBlock)
        if self.expectation.window.within is None:
            if watermark is None:
                yield expected_totals(self.expectation, block)
            return
        first = -FAR if before is None else self.emission.first_open(before)
        end = FAR if watermark is None else self.emission.first_open(watermark)
        yield expected_totals(self.expectation, block, (first, end))


# Matches one by one, for whoever adds up their confidences, and beside them the probability that there is any.
#
# Both are parts of the same results: totals with nothing but the probability are added to what the matches come to.
# Cost: that of the search, and of `at_least_one`.


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
