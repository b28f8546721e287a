"""Complete trends of one variable with +, from their graph, under the contract every kernel keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract import BYTES, RESULTS, SECONDS, Built, Expected, Figure, OnProgress
from trendloom.kernels.contract.matches import Matches
from trendloom.kernels.match.search import SearchKernel, SearchState
from trendloom.kernels.trends.complete.spec import Complete
from trendloom.kernels.trends.complete.trends import ChosenWalk, TrendsOfGraph, trends_of
from trendloom.model.amounts import show_bytes

# A trend graph in words and figures: its size, its trends counted and not built, how it is cut and what that costs.


EDGES = "edges"
MOST_SHOWN = 3
MOST_SIZES = 16


def describe_trends(trends: TrendsOfGraph, expected: Expected | None) -> Built:
    """The graph of some events and the plan for walking it; `expected`: how many trends there are, if counted."""
    plans = sorted(trends.plans(), key=lambda chosen: -chosen.cpu)
    foreseen = {BYTES: trends.graph.bytes + max((chosen.memory for chosen in plans), default=0.0)}
    seconds = sum(chosen.cpu for chosen in plans) / 1e9
    if seconds:
        foreseen[SECONDS] = seconds
    if expected is not None and expected.exact:
        foreseen[RESULTS] = expected.number
    figures = (*_graph(trends, expected), *_plans(trends, plans))
    return Built("Trend graph", figures, {EDGES: float(trends.graph.edges)}, foreseen)


def _graph(trends: TrendsOfGraph, expected: Expected | None) -> Iterator[Figure]:
    graph = trends.graph
    yield Figure("events", f"{len(graph):,}, of which {len(trends.starts):,} can begin a complete trend")
    yield Figure(EDGES, f"{graph.edges:,} that no longer path replaces, {show_bytes(graph.bytes)}")
    yield Figure("trends", f"{expected if expected is not None else 'not counted: that would take long'}")
    yield Figure("memory", f"{show_bytes(trends.memory)} at most")


def _plans(trends: TrendsOfGraph, plans: Sequence[ChosenWalk]) -> Iterator[Figure]:
    for chosen in plans[:MOST_SHOWN]:
        yield _plan(trends, chosen)
    if len(plans) > MOST_SHOWN:
        cut = sum(chosen.bounds is not None for chosen in plans)
        yield Figure("in all", f"{len(plans):,} stretches of the stream, {cut:,} of them cut into graphlets")


def _plan(trends: TrendsOfGraph, chosen: ChosenWalk) -> Figure:
    first = trends.starts[chosen.stretch.first]
    where = f"beginning at event {first:,}" if chosen.stretch.first else "from the first event on"
    if chosen.bounds is None:
        why = "few trends" if chosen.stretch.few else f"about {chosen.cpu / 1e6:,.1f} ms; storing parts would not pay"
        return Figure(chosen.plan.value, f"{where}: one trend at a time ({why})")
    sizes = np.diff(chosen.bounds).tolist()
    shown = ", ".join(f"{size:,}" for size in sizes[:MOST_SIZES]) + (", ..." if len(sizes) > MOST_SIZES else "")
    return Figure(
        chosen.plan.value,
        where,
        (
            Figure("graphlets", f"{len(sizes)}, of {shown} events"),
            Figure("estimated", f"{chosen.cpu / 1e6:,.1f} ms besides copying, {show_bytes(chosen.memory)} stored"),
        ),
    )


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

    def finish(self, state: SearchState, on_progress: OnProgress | None = None) -> Iterator[Matches]:
        return state.trends.matches() if isinstance(state, Graphed) else super().finish(state, on_progress)

    def describe(self, state: SearchState) -> Built | None:
        """The graph, how it will be walked, and what that should take."""
        if not isinstance(state, Graphed):
            return None
        trends = state.trends
        counted = trends.counting <= MOST_STEPS
        return describe_trends(trends, Expected(trends.count(), not self.graph.whole) if counted else None)
