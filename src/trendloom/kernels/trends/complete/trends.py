"""Complete trends of a block: build the graph, choose how to walk it, give trends out in chunks.

The graph is walked in *stretches*: a partition, or with windows a part of its time about as long as a window, with the
events that trends from there can reach. Stretches with few trends are walked one trend at a time, all together.
Of others the costs decide, each for itself: one at a time, or by graphlets that are cut to fit the memory. Graphlets
serve all windows that overlap, because a trend is found once for all windows in which it is complete.

Cost: that of the graph, then O(events of trends).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Aggregate, Expr, Extent
from trendloom.expr.vectors import Vector, is_true
from trendloom.kernels.columns import segments
from trendloom.kernels.columns.block import Block, check_range
from trendloom.kernels.columns.segments import gather_segments
from trendloom.kernels.contract.matches import Matches
from trendloom.kernels.matching.windows import in_each_window
from trendloom.kernels.trends.complete.frames import Frames, frames_of
from trendloom.kernels.trends.complete.graph import TrendGraph, build_graph
from trendloom.kernels.trends.complete.graphlets import pieces_of, stitched
from trendloom.kernels.trends.complete.partition import (
    Costs,
    TooManyPlans,
    branch_and_bound,
    graphlet_costs,
    greedy,
    rough_costs,
    weigh,
)
from trendloom.kernels.trends.complete.spec import Complete, WalkPlan
from trendloom.kernels.trends.complete.walk import Chunks, one_by_one
from trendloom.model.schema import Kind

# Which complete trends pass conditions on the trend as a whole: `count(p[]) > 10`, `max(p[].x) - min(p[].x) > 3`.
#
# Cost: one pass over the events of the trends per aggregate, then one vectorised expression.


def passing(conditions: tuple[Expr, ...], block: Block, offsets: Array, events: Array) -> Array:
    """Per trend, `events[offsets[t]:offsets[t + 1]]`, whether all conditions are true."""
    good = np.ones(len(offsets) - 1, np.bool_)

    def leaf(expr: Expr) -> Vector:
        if isinstance(expr, Extent):
            return Vector(expr.kind, block.time[events[offsets[1:] - 1]] - block.time[events[offsets[:-1]]])
        assert isinstance(expr, Aggregate)
        return _aggregate(expr, None if expr.column is None else block.columns[expr.column], offsets, events)

    for condition in conditions:
        good &= is_true(evaluate(condition, leaf))
    return good


def _aggregate(expr: Aggregate, column: Vector | None, offsets: Array, events: Array) -> Vector:
    if column is None:
        return Vector(Kind.INT, np.diff(offsets))
    known = np.ones(len(events), np.bool_) if column.valid is None else column.valid[events]
    count, greatest = segments.count_where(offsets, known), expr.function == "max"
    if expr.function == "count":
        return Vector(Kind.INT, count)
    if column.values.dtype == object:  # beyond 64 bits: compared by rank
        values, ranks = np.unique(column.values, return_inverse=True)
        best = segments.extreme_where(offsets, ranks.reshape(-1)[events], known, greatest)
        return replace(column, values=values[best], valid=count > 0)
    best = segments.extreme_where(offsets, column.values[events], known, greatest)
    return replace(column, values=best, valid=count > 0)


WORTH_PLANNING = 1e6
"""Nanoseconds of walking one by one from which it pays to look for a better plan."""
PLANNING = 400.0
"""Nanoseconds per edge that looking for a plan takes, and a bit more."""
MEMORY = 1 << 28
"""Bytes, where nobody gives a limit."""


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
    trends: float
    events: float


@dataclass(frozen=True, eq=False)
class TrendsOfGraph:
    """The complete trends of a block, ready to be counted, explained or walked."""

    spec: Complete
    graph: TrendGraph
    frames: Frames
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
                found = one_by_one(self.graph, self.frames, starts, chunks)
            else:
                found = self._by_graphlets(group, chunks)
            for offsets, events in found:
                yield from self._given_out(*self._passing(offsets, events), chunks.most)

    def _passing(self, offsets: Array, events: Array) -> tuple[Array, Array]:
        """The trends that pass the conditions on them as a whole."""
        if not self.spec.whole:
            return offsets, events
        rows = np.flatnonzero(passing(self.spec.whole, self.graph.block, offsets, events))
        into = np.r_[0, np.cumsum(np.diff(offsets)[rows])].astype(np.int64)
        return into, gather_segments(offsets, events, rows, into)

    def _by_graphlets(self, chosen: ChosenWalk, chunks: Chunks) -> Iterator[tuple[Array, Array]]:
        assert chosen.bounds is not None
        pieces = pieces_of(self.graph, self.frames, chosen.bounds)
        self.measured.append((chosen, pieces.bytes))
        starts = self.starts[chosen.stretch.first : chosen.stretch.last]
        yield from stitched(self.graph, self.frames, pieces, starts, chunks)

    def _given_out(self, offsets: Array, events: Array, most: int) -> Iterator[Matches]:
        bound = events if self.kept is None else self.kept[events]
        found = Matches(offsets, bound, np.broadcast_to(np.int32(0), len(events)))
        if self.spec.window.slide is None:
            yield found
            return
        low, count = self.frames.windows(events[offsets[:-1]], events[offsets[1:] - 1])
        yield from in_each_window(found, low, count, self.spec.window.slide, most)

    def count(self) -> float:
        """How many trends there are, in every window that has them. O(edges), with windows for every beginning.

        Conditions on trends as a whole are left out. A double: exact below 2^53, then as exact as doubles are.
        """
        if len(self.starts) == 0:
            return 0.0
        return weigh(self.graph, self.frames, self.starts, len(self.graph), sample=None).trends

    @property
    def counting(self) -> float:
        """About how many steps counting takes."""
        if self.spec.window.within is None or len(self.starts) == 0:
            return float(self.graph.edges)
        begin = self.graph.begin
        return float((begin[self.frames.limit[self.starts]] - begin[self.starts]).sum())

    # ----------------------------------------------------------------------------------------------- plans

    def plans(self) -> Iterator[ChosenWalk]:
        """How each stretch is walked; neighbours that are walked one trend at a time are one."""
        waiting: ChosenWalk | None = None
        for stretch in self._stretches():
            chosen = self.choose(stretch)
            if chosen.bounds is None:
                waiting = chosen if waiting is None else _together(waiting, chosen)
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
        small = rough_costs(self.graph, self.frames, self.starts, begins, ends) < WORTH_PLANNING
        small &= self.spec.plan is WalkPlan.AUTO
        changes = np.flatnonzero(np.r_[True, ~small[1:] | ~small[:-1]])
        for at, to in pairwise([*changes.tolist(), len(begins)]):
            yield Stretch(int(begins[at]), int(ends[to - 1]), few=bool(small[at]))

    def _edges(self, starts: Array, high: int) -> int:
        return int(self.graph.begin[high] - self.graph.begin[starts[0]])

    def choose(self, stretch: Stretch) -> ChosenWalk:
        """The cheapest way that fits the memory, or the one that the specification asks for."""
        plan = self.spec.plan
        starts = self.starts[stretch.first : stretch.last]
        if stretch.few or plan is WalkPlan.ONE_BY_ONE:
            return ChosenWalk(stretch, WalkPlan.ONE_BY_ONE, None, 0.0, 0.0, 0.0, 0.0)
        high = int(self.frames.limit[starts].max())
        weights = weigh(self.graph, self.frames, starts, high)
        direct = ChosenWalk(stretch, WalkPlan.ONE_BY_ONE, None, weights.one_by_one, 0.0, weights.trends, weights.events)
        if plan is WalkPlan.AUTO and weights.one_by_one < max(WORTH_PLANNING, PLANNING * self._edges(starts, high)):
            return direct
        costs = graphlet_costs(self.graph, self.frames, weights)
        limit = max(self.memory // 2 - self.graph.bytes, 0)
        cuts = _cuts(costs, plan, limit)
        if cuts is None:
            return direct
        bounds = [0, *cuts, len(costs.bounds) - 1]
        cpu, memory = (_total(cost, bounds) for cost in (costs.cpu, costs.mem))
        if plan is WalkPlan.AUTO and cpu >= weights.one_by_one:
            return direct
        name = WalkPlan.BEST_CUTS if plan is WalkPlan.AUTO else plan
        return ChosenWalk(stretch, name, costs.bounds[bounds], cpu, memory, weights.trends, weights.events)


def _cuts(costs: Costs, plan: WalkPlan, limit: float) -> list[int] | None:
    if plan is WalkPlan.ALL_STORED:
        return [] if costs.mem[0, -1] <= limit else None
    if plan is WalkPlan.GREEDY_CUTS:
        return greedy(costs.cpu, costs.mem, limit)
    try:
        return branch_and_bound(costs.cpu, costs.mem, limit)
    except TooManyPlans:
        return greedy(costs.cpu, costs.mem, limit)


def _total(costs: Array, bounds: list[int]) -> float:
    return float(sum(costs[a, b] for a, b in pairwise(bounds)))


def _together(one: ChosenWalk, other: ChosenWalk) -> ChosenWalk:
    stretch = Stretch(one.stretch.first, other.stretch.last, few=one.stretch.few and other.stretch.few)
    return ChosenWalk(
        stretch,
        WalkPlan.ONE_BY_ONE,
        None,
        one.cpu + other.cpu,
        0.0,
        one.trends + other.trends,
        one.events + other.events,
    )


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
    frames = frames_of(graph, spec.window)
    return TrendsOfGraph(spec, graph, frames, np.flatnonzero(frames.begins), kept, memory)
