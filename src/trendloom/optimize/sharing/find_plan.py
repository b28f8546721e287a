"""The best plan: the heaviest set of segments without a conflict, by branch and bound in each component of the graph.

A branch takes a segment, which excludes its neighbours, or leaves it out. A segment with one neighbour that is not
heavier is taken at once. What is left weighs at most the sum over a cover by cliques of the heaviest of each: segments
that overlap at one place of a query exclude each other, so there are large cliques.

Cost: exponential in the worst case; after `seconds` the best plan so far is given, with a bound on what it may lack.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from trendloom.optimize.sharing.conflict_graph import ConflictGraph, members
from trendloom.optimize.sharing.greedy import greedy

LOOK = 64
"""Branches between two looks at the clock."""


@dataclass(frozen=True)
class FoundPlan:
    """Some segments as bits, what they weigh, and what any plan weighs at most."""

    plan: int
    weight: float
    bound: float

    @property
    def is_best(self) -> bool:
        return self.weight >= self.bound


def find_plan(graph: ConflictGraph, among: int | None = None, seconds: float | None = None) -> FoundPlan:
    """The best plan of some of the segments; each component may take its share of the time that is left."""
    until = None if seconds is None else time.monotonic() + seconds
    plan, weight, bound = 0, 0.0, 0.0
    parts = sorted(components(graph, graph.all if among is None else among), key=int.bit_count)
    for number, part in enumerate(parts):
        left = None if until is None else (until - time.monotonic()) / (len(parts) - number)
        search = PlanSearch(graph, part, left)
        search.run()
        plan |= search.best
        weight += search.weight
        bound += search.weight if not search.stopped else max(search.weight, search.cover(part))
    return FoundPlan(plan, weight, bound)


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
    """The search for the best plan of one component, from the greedy one on."""

    def __init__(self, graph: ConflictGraph, part: int, seconds: float | None = None) -> None:
        self.graph, self.part = graph, part
        self.best = greedy(graph, part)
        self.weight = graph.weight(self.best)
        self.stopped = False
        self._until = None if seconds is None else time.monotonic() + seconds
        self._branches = 0
        self._order = sorted(members(part), key=lambda vertex: -graph.weights[vertex])

    def run(self) -> None:
        """Try all branches that can lead to something better, depth first."""
        stack = [(self.part, 0, 0.0)]
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
        self._branches += 1
        if self._until is not None and self._branches % LOOK == 0 and time.monotonic() > self._until:
            self.stopped = True
        return self.stopped

    def _take_what_is_clear(self, left: int, taken: int, weight: float) -> tuple[int, int, float]:
        """Segments with at most one conflict, with one that is not heavier, are in a best plan of what is left."""
        graph, changed = self.graph, True
        while changed:
            changed = False
            for vertex in members(left):
                near = graph.near[vertex] & left
                if near & (near - 1) or (near and graph.weights[near.bit_length() - 1] > graph.weights[vertex]):
                    continue
                taken |= 1 << vertex
                weight += graph.weights[vertex]
                left &= ~(near | 1 << vertex)
                changed = True
                break
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
