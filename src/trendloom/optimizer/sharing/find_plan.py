"""The best plan: the heaviest set of segments without a conflict, by branch and bound in each component of the graph.

A branch takes a segment, which excludes its neighbours, or leaves it out. A segment with one neighbour that is not
heavier is taken at once. What is left weighs at most the sum over a cover by cliques of the heaviest of each: segments
that overlap at one place of a query exclude each other, so there are large cliques.

Cost: exponential in the worst case; at the deadline the best plan so far is given, with a bound on what it may lack.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trendloom.optimizer.sharing.conflict_graph import ConflictGraph, bits_of, members, numbers_of
from trendloom.optimizer.sharing.deadline import NEVER, Deadline
from trendloom.optimizer.sharing.greedy import greedy


@dataclass(frozen=True)
class FoundPlan:
    """Some segments as bits, what they weigh, and what any plan weighs at most."""

    plan: int
    weight: float
    bound: float

    @property
    def is_best(self) -> bool:
        return self.weight >= self.bound


def find_plan(graph: ConflictGraph, among: int | None = None, deadline: Deadline = NEVER) -> FoundPlan:
    """The best plan of some of the segments; each component may take its share of the time that is left."""
    plan, weight, bound = 0, 0.0, 0.0
    parts = sorted(components(graph, graph.all if among is None else among), key=int.bit_count)
    for number, part in enumerate(parts):
        alone, vertices = _only(graph, part)
        search = PlanSearch(alone, deadline.share(1 / (len(parts) - number)))
        search.run()
        plan |= sum(1 << vertices[at] for at in members(search.best))
        weight += search.weight
        bound += search.weight if not search.stopped else max(search.weight, search.cover(alone.all))
    return FoundPlan(plan, weight, bound)


def _only(graph: ConflictGraph, part: int) -> tuple[ConflictGraph, list[int]]:
    """The graph of some segments, whose sets are shorter, and the number that each has in the whole."""
    vertices = numbers_of(part)
    numbers = vertices.tolist()
    near = []
    for vertex in numbers:
        flags = np.zeros(len(numbers), np.uint8)
        flags[np.searchsorted(vertices, numbers_of(graph.near[vertex] & part))] = 1
        near.append(bits_of(flags))
    segments, weights = (tuple(some[vertex] for vertex in numbers) for some in (graph.segments, graph.weights))
    return ConflictGraph(segments, weights, tuple(near)), numbers


def components(graph: ConflictGraph, among: int) -> list[int]:
    """Segments that are joined by conflicts, however far."""
    found = []
    while among:
        part, border = 0, among & -among
        while border:
            part |= border
            reached = 0
            for vertex in members(border):
                reached |= graph.near[vertex]
            border = reached & among & ~part
        found.append(part)
        among &= ~part
    return found


class PlanSearch:
    """The search for the best plan of a graph without components, from the greedy one on."""

    def __init__(self, graph: ConflictGraph, deadline: Deadline = NEVER) -> None:
        self.graph = graph
        self.best = greedy(graph, deadline=deadline)
        self.weight = graph.weight(self.best)
        self.stopped = False
        self._deadline = deadline
        self._order = sorted(range(len(graph.weights)), key=lambda vertex: -graph.weights[vertex])

    def run(self) -> None:
        """Try all branches that can lead to something better, depth first."""
        stack = [(self.graph.all, 0, 0.0)]
        while stack and not self._time_is_up():
            left, taken, weight = stack.pop()
            left, taken, weight = self._take_what_is_clear(left, taken, weight)
            if not left:
                if weight > self.weight:
                    self.best, self.weight = taken, weight
                continue
            if weight + self.cover(left) <= self.weight:
                continue
            vertex = max(members(left), key=lambda one: self.graph.degree(one, left))
            stack.append((left & ~(1 << vertex), taken, weight))
            without = left & ~(self.graph.near[vertex] | 1 << vertex)
            stack.append((without, taken | 1 << vertex, weight + self.graph.weights[vertex]))

    def _time_is_up(self) -> bool:
        self.stopped = self._deadline.is_over
        return self.stopped

    def _take_what_is_clear(self, left: int, taken: int, weight: float) -> tuple[int, int, float]:
        """Segments with at most one conflict, with one that is not heavier, are in a best plan of what is left."""
        graph, changed = self.graph, True
        while changed:
            changed = False
            for vertex in members(left):
                near = graph.near[vertex] & left
                if not left >> vertex & 1 or near & (near - 1):
                    continue
                if near and graph.weights[near.bit_length() - 1] > graph.weights[vertex]:
                    continue
                taken |= 1 << vertex
                weight += graph.weights[vertex]
                left &= ~(near | 1 << vertex)
                changed = True
        return left, taken, weight

    def cover(self, left: int) -> float:
        """What a plan of some segments weighs at most: the heaviest of every clique of a cover."""
        found, graph = 0.0, self.graph
        for vertex in self._order:
            if not left >> vertex & 1:
                continue
            found += graph.weights[vertex]
            left &= ~(1 << vertex)
            common = graph.near[vertex] & left
            while common:
                other = common & -common
                left &= ~other
                common &= graph.near[other.bit_length() - 1]
        return found
