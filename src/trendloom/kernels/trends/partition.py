"""Where to cut the graph: the plan of least time among those that fit the memory.

Costs of a plan are sums over its graphlets, so `cpu[i, j]` and `mem[i, j]` of the graphlet from cut i up to cut j are
enough. *Branch and bound* goes through the cuts from left to right and keeps, for each, the plans up to there
that can still lead to the best one. Three principles prune, as in Poppe, "Event Stream Analytics", 7.1:

- infeasible: even the leanest way on would not fit the memory;
- inefficient: even the fastest way on would be slower than a plan that is known;
- dominated: another plan up to the same cut is no slower and takes no more memory (there the paper keeps balanced
  plans only, which is right for graphs that look alike everywhere; this is right for all).

The result is the optimum. Cost: O(cuts² · plans kept); if more than `MOST_PLANS` would be kept at a cut, the result is
that of *greedy*: of the balanced plans, one for each number of graphlets, the fastest that fits. It is usually close:
where pieces cost time to store, a few graphlets are best, not one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.trends.graph import EdgeLists, Frames, TrendGraph

Cuts = list[int]

MOST_PLANS = 4096


def branch_and_bound(cpu: Array, mem: Array, limit: float) -> Cuts | None:
    """The inner cuts of the plan of least time within the memory limit; None if no plan fits.

    Those of `greedy` if more than `MOST_PLANS` would be kept at a cut.
    """
    fastest, leanest = _ways_on(cpu), _ways_on(mem)
    if not leanest[0] <= limit:
        return None
    known = greedy(cpu, mem, limit)
    best = plan_cost(cpu, known) if known is not None else np.inf
    found = _search(cpu, mem, float(limit), fastest, leanest, best, MOST_PLANS)
    return known if found is None else [int(cut) for cut in found]


def greedy(cpu: Array, mem: Array, limit: float) -> Cuts | None:
    """The inner cuts of the fastest balanced plan that fits; None if none does. O(cuts²)."""
    cuts = len(cpu) - 1
    plans = [_balanced(cuts, level) for level in range(1, cuts + 1)]
    fitting = [plan for plan in plans if plan_cost(mem, plan) <= limit]
    return min(fitting, key=lambda plan: plan_cost(cpu, plan), default=None)


def _balanced(cuts: int, graphlets: int) -> Cuts:
    return [round(cuts * number / graphlets) for number in range(1, graphlets)]


def plan_cost(costs: Array, plan: Cuts) -> float:
    """The sum over the graphlets of a plan."""
    bounds = [0, *plan, len(costs) - 1]
    return float(sum(costs[a, b] for a, b in pairwise(bounds)))


@njit(nogil=True)
def _ways_on(costs: Array) -> Array:
    """The least cost from each cut to the end."""
    cuts = len(costs) - 1
    least = np.full(cuts + 1, np.inf)
    least[cuts] = 0.0
    for i in range(cuts - 1, -1, -1):
        for j in range(i + 1, cuts + 1):
            least[i] = min(least[i], costs[i, j] + least[j])
    return least


@njit(nogil=True)
def _search(
    cpu: Array, mem: Array, limit: float, fastest: Array, leanest: Array, best: float, most: int
) -> Array | None:
    """The inner cuts of the optimum; None if nothing is better than `best`, or too many plans are open."""
    cuts = len(cpu) - 1
    time, space = np.empty((cuts + 1, most)), np.empty((cuts + 1, most))
    from_cut, from_plan = np.empty((cuts + 1, most), np.int64), np.empty((cuts + 1, most), np.int64)
    kept = np.zeros(cuts + 1, np.int64)
    time[0, 0], space[0, 0], kept[0] = 0.0, 0.0, 1
    for j in range(1, cuts + 1):
        size = 0
        for i in range(j):
            size += kept[i]
        new_time, new_space = np.empty(size), np.empty(size)
        origin = np.empty((size, 2), np.int64)
        count = 0
        for i in range(j):
            for plan in range(kept[i]):
                t, s = time[i, plan] + cpu[i, j], space[i, plan] + mem[i, j]
                if s + leanest[j] <= limit and t + fastest[j] < best:
                    new_time[count], new_space[count] = t, s
                    origin[count, 0], origin[count, 1] = i, plan
                    count += 1
        order = np.argsort(new_time[:count])
        least = np.inf
        for at in order:
            if new_space[at] < least:
                if kept[j] == most:
                    return None
                least = new_space[at]
                time[j, kept[j]], space[j, kept[j]] = new_time[at], least
                from_cut[j, kept[j]], from_plan[j, kept[j]] = origin[at, 0], origin[at, 1]
                kept[j] += 1
    if kept[cuts] == 0:
        return None
    found = np.empty(cuts, np.int64)
    size, cut, plan = 0, cuts, 0
    while from_cut[cut, plan] > 0:
        cut, plan = from_cut[cut, plan], from_plan[cut, plan]
        found[size] = cut
        size += 1
    return found[:size][::-1].copy()


# What a plan costs: partial trends counted, not built, by one pass over the graph.
#
# The cost model of Poppe, "Event Stream Analytics", table 5.1, with the numbers of this graph instead of worst cases,
# and weights that were measured (`benchmarks.trends.trends` shows estimates beside measurements):
#
# - time of M-CET: a step for each partial trend from a beginning to any event;
# - time of a graphlet: a step for each partial trend inside it, a copy of the events of its pieces; and for each
#   partial trend of the whole graph that ends where trends leave the graphlet, one piece appended;
# - memory of a graphlet: its pieces.
#
# Copying trends out costs the same in all plans and is left out.


STEP, PIECE, COPY = 5.5, 7.0, 0.5
"""Nanoseconds of a step along an edge, of a piece appended, of an event of a piece stored."""
PIECE_BYTES, EVENT_BYTES = 8.0, 4.0
MOST_CUTS = 40
SAMPLE = 48
"""Beginnings that are counted where each has a window of its own."""


@dataclass(frozen=True, eq=False)
class Weights:
    """Of the events from `low` on: how many partial trends lead to each; in all trends, and events of trends."""

    low: int
    partial: Array
    trends: float
    events: float

    @property
    def one_by_one(self) -> float:
        """Nanoseconds of M-CET."""
        return STEP * float(self.partial.sum())


def weigh(graph: TrendGraph, starts: Array, high: int, sample: int | None = SAMPLE) -> Weights:
    """Count the partial trends from `starts` that end before event `high`.

    Without a window all beginnings at once, exactly (in doubles); with windows of `sample` beginnings, scaled up, or of
    all (None). Cost: O(edges), times the beginnings counted one by one.
    """
    some, scale = starts, 1.0
    if graph.window.within is not None and sample is not None and len(starts) > sample:
        some = starts[np.linspace(0, len(starts) - 1, sample).astype(np.int64)]
        scale = len(starts) / sample
    windowless, sliding = graph.window.within is None, graph.window.sliding
    partial, totals = _weigh(graph.lists, graph.frames, some, high, windowless, sliding)
    return Weights(int(starts[0]), partial * scale, totals[0] * scale, totals[1] * scale)


def rough_costs(graph: TrendGraph, starts: Array, begins: Array, ends: Array) -> Array:
    """About the nanoseconds of M-CET for each group of `starts`, from number begins[g] up to ends[g]. O(edges)."""
    return STEP * _rough(graph.lists, graph.frames.limit, starts, begins, ends, graph.window.within is None)


@dataclass(frozen=True, eq=False)
class Costs:
    """`cpu[i, j]` (nanoseconds) and `mem[i, j]` (bytes) of the graphlet from bound i up to bound j."""

    bounds: Array
    cpu: Array
    mem: Array


def graphlet_costs(graph: TrendGraph, weights: Weights, most_cuts: int = MOST_CUTS) -> Costs:
    """Costs of all graphlets between some places to cut. Cost: O(cuts · edges)."""
    bounds = _places_to_cut(graph, weights, most_cuts)
    return Costs(bounds, *_graphlet_costs(graph.lists, graph.frames, bounds, weights.partial))


def _places_to_cut(graph: TrendGraph, weights: Weights, most: int) -> Array:
    """Evenly spread, each moved to where the fewest partial trends cross within its stretch."""
    low, high = weights.low, weights.low + len(weights.partial)
    if high - low <= most:
        return np.arange(low, high + 1)
    crossing = _crossing(graph.lists, weights.partial, low)
    even = np.linspace(low, high, most + 1).astype(np.int64)
    half = np.diff(even).min() // 2
    inner = [int(at - half + np.argmin(crossing[at - half - low : at + half - low + 1])) for at in even[1:-1]]
    return np.unique(np.array([low, *inner, high], np.int64))


@njit(nogil=True)
def _crossing(edges: EdgeLists, partial: Array, low: int) -> Array:
    """At each place the partial trends that a cut before that event would interrupt."""
    begin, target, high = edges.begin, edges.target, low + len(partial)
    change = np.zeros(len(partial) + 2)
    for at in range(len(partial)):
        v = low + at
        if begin[v + 1] > begin[v]:
            last = min(int(target[begin[v + 1] - 1]), high)
            change[at + 1] += partial[at]
            change[last + 1 - low] -= partial[at]
    return np.cumsum(change)[:-1]


@njit(nogil=True)
def _rough(edges: EdgeLists, limit: Array, starts: Array, begins: Array, ends: Array, together: bool) -> Array:
    """Partial trends of every group: of all its beginnings at once, or of a few, scaled up."""
    begin, target = edges.begin, edges.target
    found, paths = np.zeros(len(begins)), np.zeros(len(limit))
    for group in range(len(begins)):
        size = ends[group] - begins[group]
        step = 1 if together else max(1, size // 3)
        counted = 0
        for number in range(begins[group], ends[group], step):
            e = starts[number]
            paths[e] += 1.0
            counted += 1
            if together and number < ends[group] - 1:
                continue
            for v in range(starts[begins[group]] if together else e, limit[e]):
                p = paths[v]
                if p == 0.0:
                    continue
                paths[v] = 0.0
                found[group] += p
                for edge in range(begin[v], begin[v + 1]):
                    if target[edge] >= limit[e]:
                        break
                    paths[target[edge]] += p
        found[group] *= size / counted
    return found


@njit(nogil=True)
def _weigh(
    edges: EdgeLists, frames: Frames, starts: Array, high: int, together: bool, sliding: bool
) -> tuple[Array, Array]:
    """Partial trends per event; trends and their events (in every window that has them)."""
    begin, target, low = edges.begin, edges.target, starts[0]
    from_, to, least, most, limit = frames.from_, frames.to, frames.least, frames.most, frames.limit
    partial, totals = np.zeros(high - low), np.zeros(2)
    paths, steps = np.zeros(high - low), np.zeros(high - low)
    for number in range(len(starts)):
        e = starts[number]
        paths[e - low] += 1.0
        if together and number < len(starts) - 1:
            continue
        first = starts[0] if together else e
        stop = high if together else min(int(limit[e]), high)
        for v in range(first, stop):
            p = paths[v - low]
            if p == 0.0:
                continue
            s = steps[v - low] + p
            paths[v - low], steps[v - low] = 0.0, 0.0
            partial[v - low] += p
            if least[v] <= to[e] and from_[e] <= most[v]:
                windows = 1.0
                if sliding:
                    windows = float(min(to[e], most[v]) - max(from_[e], least[v]) + 1)
                totals[0] += p * windows
                totals[1] += s * windows
            for edge in range(begin[v], begin[v + 1]):
                f = target[edge]
                if f >= stop:
                    break
                paths[f - low] += p
                steps[f - low] += s
    return partial, totals


@njit(nogil=True)
def _graphlet_costs(edges: EdgeLists, frames: Frames, bounds: Array, partial: Array) -> tuple[Array, Array]:
    begin, target, into, source = edges
    begins, ends, cuts = frames.begins, frames.ends, len(bounds) - 1
    low, high = bounds[0], bounds[cuts]
    cpu, mem = np.full((cuts + 1, cuts + 1), np.inf), np.full((cuts + 1, cuts + 1), np.inf)
    leaves_until = np.zeros(high - low, np.int64)  # the last bound that an edge from the event crosses
    for v in range(low, high):
        if begin[v + 1] > begin[v]:
            last = min(int(target[begin[v + 1] - 1]), high)
            leaves_until[v - low] = np.searchsorted(bounds, last, side="right") - 1
    count, length = np.zeros(high - low), np.zeros(high - low)
    for i in range(cuts):
        done = np.zeros((cuts + 2, 3))
        nodes, pieces, events, passing = 0.0, 0.0, 0.0, 0.0
        for j in range(i + 1, cuts + 1):
            for v in range(bounds[j - 1], bounds[j]):
                enters = begins[v]
                paths, steps = 0.0, 0.0
                for edge in range(into[v], into[v + 1]):
                    e = source[edge]
                    if e < bounds[i]:
                        enters = enters or e >= low
                    else:
                        paths += count[e - low]
                        steps += length[e - low]
                if enters:
                    paths += 1.0
                steps += paths
                count[v - low], length[v - low] = paths, steps
                nodes += paths
                until = leaves_until[v - low]
                if ends[v] or until >= j:
                    pieces += paths
                    events += steps
                    passing += partial[v - low]
                    if not ends[v]:
                        done[until + 1, 0] += paths
                        done[until + 1, 1] += steps
                        done[until + 1, 2] += partial[v - low]
            pieces -= done[j, 0]
            events -= done[j, 1]
            passing -= done[j, 2]
            cpu[i, j] = STEP * nodes + COPY * max(events, 0.0) + PIECE * max(passing, 0.0)
            mem[i, j] = PIECE_BYTES * max(pieces, 0.0) + EVENT_BYTES * max(events, 0.0)
    return cpu, mem
