"""Complete trends of one variable with +, from their graph, under the contract every kernel keeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract import Built, Expected, Hear
from trendloom.kernels.match.search import SearchKernel, SearchState
from trendloom.kernels.matching.matches import Matches
from trendloom.kernels.trends.complete.described import describe_trends
from trendloom.kernels.trends.complete.spec import Complete
from trendloom.kernels.trends.complete.trends import TrendsOfGraph, trends_of

MOST_STEPS = 5e8
"""Steps that counting complete trends may take."""


@dataclass(frozen=True, eq=False)
class Graphed(SearchState):
    """All events of a batch, and their graph once somebody asks for it."""

    spec: Complete | None = None
    memory: int | None = None

    @cached_property
    def trends(self) -> TrendsOfGraph:
        assert self.spec is not None
        assert self.block is not None
        return trends_of(self.spec, self.block, self.memory)


@dataclass(frozen=True)
class TrendGraphKernel(SearchKernel):
    """What the graph is made of, and how many bytes trends of graphlets may take."""

    graph: Complete
    memory: int | None = None

    @property
    def together(self) -> bool:
        return True

    def within(self, memory: int) -> Self:
        return replace(self, memory=memory)

    def all(self, block: Block) -> Iterator[Matches]:
        return trends_of(self.graph, block, self.memory).matches()

    def step(self, state: SearchState, block: Block, watermark: int | None) -> tuple[Iterator[Matches], SearchState]:
        """Take events; give out the trends that have become certain."""
        if watermark is None and state.before is None:
            return iter(()), Graphed(block, spec=self.graph, memory=self.memory)
        return super().step(state, block, watermark)

    def expected(self, state: SearchState, *, beforehand: bool) -> Expected | None:
        """Counted on the graph, before conditions on the whole, where that takes no time."""
        if not beforehand or not isinstance(state, Graphed) or state.trends.counting > MOST_STEPS:
            return None
        tried = "there are {} complete trends without the conditions on the whole of them, too many to try"
        return Expected(state.trends.count(), not self.graph.whole, tried if self.graph.whole else None)

    def finish(self, state: SearchState, hear: Hear | None = None) -> Iterator[Matches]:
        return state.trends.matches() if isinstance(state, Graphed) else super().finish(state, hear)

    def describe(self, state: SearchState) -> Built | None:
        """The graph, how it will be walked, and what that should take."""
        if not isinstance(state, Graphed):
            return None
        trends = state.trends
        counted = trends.counting <= MOST_STEPS
        return describe_trends(trends, Expected(trends.count(), not self.graph.whole) if counted else None)
