"""Complete trends of one variable with +, from their graph, under the contract of all kernels.

The graph of a block is walked in *stretches*: a partition, or with windows a part of its time about as long as a
window, with the events that trends from there can reach. Stretches with few trends are walked one trend at a time, all
together. For each of the others costs decide: one at a time, or by graphlets that are cut to fit the memory.
Graphlets serve all windows that overlap, because a trend is found once for all windows in which it is complete.

Cost: that of the graph, then O(events of trends).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.evaluate import evaluate
from trendloom.expr.quantifiers import shape_of
from trendloom.expr.vectors import is_true
from trendloom.kernels.columns.block import Block, check_range
from trendloom.kernels.contract import BYTES, RESULTS, SECONDS, Built, Expected, Figure, OnProgress
from trendloom.kernels.contract.matches import Matches, MatchValues
from trendloom.kernels.match.search import SearchKernel, SearchState
from trendloom.kernels.matching.windows import in_each_window
from trendloom.kernels.trends.graph import Complete, TrendGraph, WalkPlan, build_graph
from trendloom.kernels.trends.partition import (
    Costs,
    branch_and_bound,
    graphlet_costs,
    greedy,
    plan_cost,
    rough_costs,
    weigh,
)
from trendloom.kernels.trends.walk import Chunks, one_by_one, pieces_of, stitched
from trendloom.model.amounts import show_bytes

WORTH_PLANNING = 1e6
"""Nanoseconds of walking one by one from which it pays to look for a better plan."""
PLANNING = 400.0
"""Nanoseconds per edge that looking for a plan takes, and a bit more."""
MEMORY = 1 << 28
"""Bytes, where no limit is given."""
MOST_STEPS = 5e8
"""Steps that counting complete trends may take."""
EDGES = "edges"
MOST_SHOWN = 3
"""Stretches that EXPLAIN lists one by one."""
MOST_SIZES = 16
"""Graphlets whose sizes EXPLAIN lists."""


@dataclass(frozen=True, eq=False)
class Graphed(SearchState):
    """All events of a batch; their graph is built when it is first used."""

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
    def depends_on_all(self) -> bool:
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
        return _described(trends, Expected(trends.count(), not self.graph.whole) if counted else None)


# ------------------------------------------------------------------------------------------- trends of a block


@dataclass(frozen=True, eq=False)
class Stretch:
    """Beginnings of trends, numbers `first` up to `last` of all; `few`: not worth a plan."""

    first: int
    last: int
    few: bool


@dataclass(frozen=True, eq=False)
class ChosenWalk:
    """How a stretch is walked: the bounds of its graphlets, None for one trend at a time; estimates in ns and bytes."""

    stretch: Stretch
    plan: WalkPlan
    bounds: Array | None
    cpu: float
    memory: float


@dataclass(frozen=True, eq=False)
class TrendsOfGraph:
    """The complete trends of a block, ready to be counted, explained or walked."""

    spec: Complete
    graph: TrendGraph
    starts: Array
    kept: Array | None  # index in the block of each event of the graph; None: the same
    memory: int
    measured: list[tuple[ChosenWalk, int]] = field(default_factory=list)  # bytes of pieces of stretches walked

    def matches(self) -> Iterator[Matches]:
        """Chunks of trends, each trend once per window in which it is complete."""
        chunks = Chunks(most=int(min(max(self.memory // 128, 1 << 15), 1 << 18)))
        for group in self.plans():
            if group.bounds is None:
                starts = self.starts[group.stretch.first : group.stretch.last]
                found = one_by_one(self.graph, starts, chunks)
            else:
                found = self._by_graphlets(group, chunks)
            for offsets, events in found:
                trends = Matches(offsets, events, np.broadcast_to(np.int32(0), len(events)))
                yield from self._in_windows(self._passing(trends), chunks.most)

    def _passing(self, trends: Matches) -> Matches:
        """The trends that pass the conditions on them as a whole. O(their events) per aggregate in a condition."""
        if not self.spec.whole:
            return trends
        block = self.graph.block
        binds = {name: np.ones(1, np.bool_) for expr in self.spec.whole for name in shape_of(expr).variables}
        values = MatchValues(block, trends, binds, lambda column, events: block.columns[column].take(events))
        passed = [is_true(evaluate(condition, values.leaf)) for condition in self.spec.whole]
        return trends.take(np.flatnonzero(np.logical_and.reduce(passed)))

    def _by_graphlets(self, chosen: ChosenWalk, chunks: Chunks) -> Iterator[tuple[Array, Array]]:
        assert chosen.bounds is not None
        pieces = pieces_of(self.graph, chosen.bounds)
        self.measured.append((chosen, pieces.bytes))
        starts = self.starts[chosen.stretch.first : chosen.stretch.last]
        yield from stitched(self.graph, pieces, starts, chunks)

    def _in_windows(self, trends: Matches, most: int) -> Iterator[Matches]:
        """Each trend once per window in which it is complete, with the events of the whole block."""
        found = trends if self.kept is None else replace(trends, events=self.kept[trends.events])
        if self.spec.window.slide is None:
            yield found
            return
        low, count = self.graph.windows(trends.first, trends.last)
        yield from in_each_window(found, low, count, self.spec.window.slide, most)

    def count(self) -> float:
        """How many trends there are, in every window that has them. O(edges), with windows for every beginning.

        Conditions on trends as a whole are left out. A double: exact below 2^53, then as exact as doubles are.
        """
        if len(self.starts) == 0:
            return 0.0
        return weigh(self.graph, self.starts, len(self.graph), sample=None).trends

    @property
    def counting(self) -> float:
        """About how many steps counting takes."""
        if self.spec.window.within is None or len(self.starts) == 0:
            return float(self.graph.edges)
        begin = self.graph.lists.begin
        return float((begin[self.graph.frames.limit[self.starts]] - begin[self.starts]).sum())

    # ----------------------------------------------------------------------------------------------- plans

    def plans(self) -> Iterator[ChosenWalk]:
        """How each stretch is walked; neighbours that are walked one trend at a time are one."""
        waiting: ChosenWalk | None = None
        for stretch in self._stretches():
            chosen = self.choose(stretch)
            if chosen.bounds is None:
                waiting = chosen if waiting is None else _joined_walks(waiting, chosen)
                continue
            if waiting is not None:
                yield waiting
                waiting = None
            yield chosen
        if waiting is not None:
            yield waiting

    def _stretches(self) -> Iterator[Stretch]:
        """Partitions, with windows cut into parts that begin within one window's length of each other.

        Neighbours with few trends are taken together, so that the work of planning goes with the trends.
        """
        if len(self.starts) == 0:
            return
        block, within = self.graph.block, self.spec.window.within
        group = block.key[self.starts]
        if within is not None:
            part = np.floor_divide(block.time[self.starts] - int(block.time.min()), within)
            group = group * (int(part.max()) + 1) + part
        begins = np.flatnonzero(np.r_[True, np.diff(group) != 0])
        ends = np.r_[begins[1:], len(self.starts)]
        small = rough_costs(self.graph, self.starts, begins, ends) < WORTH_PLANNING
        small &= self.spec.plan is WalkPlan.AUTO
        changes = np.flatnonzero(np.r_[True, ~small[1:] | ~small[:-1]])
        for at, to in pairwise([*changes.tolist(), len(begins)]):
            yield Stretch(int(begins[at]), int(ends[to - 1]), few=bool(small[at]))

    def choose(self, stretch: Stretch) -> ChosenWalk:
        """The cheapest way that fits the memory, or the one in the specification."""
        plan = self.spec.plan
        starts = self.starts[stretch.first : stretch.last]
        if stretch.few or plan is WalkPlan.ONE_BY_ONE:
            return ChosenWalk(stretch, WalkPlan.ONE_BY_ONE, None, 0.0, 0.0)
        high, begin = int(self.graph.frames.limit[starts].max()), self.graph.lists.begin
        weights = weigh(self.graph, starts, high)
        direct = ChosenWalk(stretch, WalkPlan.ONE_BY_ONE, None, weights.one_by_one, 0.0)
        planning = PLANNING * int(begin[high] - begin[starts[0]])
        if plan is WalkPlan.AUTO and weights.one_by_one < max(WORTH_PLANNING, planning):
            return direct
        costs = graphlet_costs(self.graph, weights)
        cuts = _cuts(costs, plan, max(self.memory // 2 - self.graph.bytes, 0))
        if cuts is None:
            return direct
        cpu, memory = plan_cost(costs.cpu, cuts), plan_cost(costs.mem, cuts)
        if plan is WalkPlan.AUTO and cpu >= weights.one_by_one:
            return direct
        name = WalkPlan.BEST_CUTS if plan is WalkPlan.AUTO else plan
        return ChosenWalk(stretch, name, costs.bounds[[0, *cuts, -1]], cpu, memory)


def _cuts(costs: Costs, plan: WalkPlan, limit: float) -> list[int] | None:
    if plan is WalkPlan.ALL_STORED:
        return [] if costs.mem[0, -1] <= limit else None
    search = greedy if plan is WalkPlan.GREEDY_CUTS else branch_and_bound
    return search(costs.cpu, costs.mem, limit)


def _joined_walks(one: ChosenWalk, other: ChosenWalk) -> ChosenWalk:
    stretch = Stretch(one.stretch.first, other.stretch.last, few=one.stretch.few and other.stretch.few)
    return ChosenWalk(stretch, WalkPlan.ONE_BY_ONE, None, one.cpu + other.cpu, 0.0)


def trends_of(spec: Complete, block: Block, memory: int | None = None) -> TrendsOfGraph:
    """Build the graph over the events that fit the pattern."""
    check_range(block.time, spec.window)
    kept = None
    fitting = block.members[0]
    if len(fitting) < len(block):
        chosen = np.zeros(len(block), np.bool_)
        chosen[fitting] = True
        block, kept = block.only(chosen), fitting
    memory = MEMORY if memory is None else memory
    graph = build_graph(spec, block, memory)
    return TrendsOfGraph(spec, graph, np.flatnonzero(graph.frames.begins), kept, memory)


# ------------------------------------------------------------------------------------------- EXPLAIN


def _described(trends: TrendsOfGraph, expected: Expected | None) -> Built:
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
