"""From the patterns of a workload to what its queries share: mine, weigh, expand, reduce, find.

The best plan is the heaviest set of segments without a conflict, found by branch and bound in each component of the
graph. A branch takes a segment, which excludes its neighbours, or leaves it out. What is left weighs at most the sum
over a cover by cliques of the heaviest of each: segments that overlap at one position of a query exclude each other, so
there are large cliques.

Cost: exponential in the worst case. A budget of steps holds for the whole choice; when it is spent, the best plan so
far is taken, with a bound on what it may lack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from trendloom.planner.sharing.conflict_graph import (
    ROUNDING,
    Benefit,
    ConflictGraph,
    PatternSteps,
    Reduction,
    SearchBudget,
    SharedSegment,
    bits,
    bits_of,
    conflict_graph,
    expand_candidates,
    members,
    mine_segments,
    numbers_of,
    reduce_graph,
)

LISTING, EXPANDING, BOUNDING = 0.4, 0.4, 0.2
"""The share of the steps for mining and weighing; those of what is left then for expansion and for the bound."""
PATIENCE = 12.0
"""How many times the steps until the greedy plan the whole choice may take."""
LEAST_TAKEN = 8
"""Segments that the greedy plan takes in any case, if there are so many."""
BRANCHING = 10
"""Steps of a branch of the search, beside a step for each segment in question."""
ROUNDS = 100
LONGEST_STEP = 0.7
"""Of the step that would close the gap, if the sum fell as fast all the way."""
_Place = tuple[int, int, int]
"""Where a segment ends in a query, where it begins, and the number of the place."""


@dataclass(frozen=True)
class FoundPlan:
    """Some segments as bits, what they weigh, and what any plan weighs at most."""

    plan: int
    weight: float
    bound: float

    @property
    def is_best(self) -> bool:
        return self.weight >= self.bound


@dataclass(frozen=True)
class SharingChoice:
    """What was chosen and out of what. `mined`: segments before those that save nothing were left out.

    `graph`: the segments and their options. `greedy`: the greedy plan.
    """

    mined: int
    graph: ConflictGraph
    greedy: int
    reduction: Reduction
    found: FoundPlan

    @property
    def guaranteed(self) -> float:
        """What the greedy plan weighs at least."""
        return guaranteed_weight(self.graph)

    @property
    def segments(self) -> tuple[SharedSegment, ...]:
        """What is shared."""
        return tuple(self.graph.segments[vertex] for vertex in members(self.found.plan))


def choose_plan(patterns: Sequence[PatternSteps], benefit: Benefit, steps: float | None = None) -> SharingChoice:
    """The segments that queries with these patterns share; None: the best ones, however long the search takes."""
    budget = SearchBudget(steps)
    listing = budget.part(LISTING)
    mined = mine_segments(patterns, listing)
    plain = conflict_graph(mined, benefit, listing)
    if listing.is_over:  # perhaps not all segments were mined
        plain = replace(plain, lacking=float("inf"))
    graph = expand_candidates(plain, benefit, budget.part(EXPANDING))
    return chosen(len(mined), graph, budget)


def chosen(mined: int, graph: ConflictGraph, budget: SearchBudget | None = None) -> SharingChoice:
    """The best plan of a graph: what is certain, and the best of what is still in question."""
    budget = budget or SearchBudget()
    first = greedy(graph, budget=budget)
    least = graph.weight(first)
    soon = budget.at_most(budget.left if budget.endless else (PATIENCE - 1) * budget.spent)
    reduction = reduce_graph(graph, max(least, guaranteed_weight(graph)), budget)
    bound = bound_plans(graph, least, soon.part(BOUNDING))
    rest = find_plan(graph, reduction.left & ~bound.out, soon)
    certain = graph.weight(reduction.certain)
    plan, weight = rest.plan | reduction.certain, rest.weight + certain
    if weight < least:
        plan, weight = first, least
    most = max(min(rest.bound + certain, bound.weight), weight) + graph.lacking
    return SharingChoice(mined, graph, first, reduction, FoundPlan(plan, weight, most))


def guaranteed_weight(graph: ConflictGraph) -> float:
    """What the greedy plan weighs at least."""
    return sum(weight / (near.bit_count() + 1) for weight, near in zip(graph.weights, graph.near, strict=True))


def greedy(graph: ConflictGraph, budget: SearchBudget | None = None) -> int:
    """A good plan (GWMIN): the segment that weighs most for what it excludes, then the next of what is left.

    Sakai, Togasaki and Yamazaki, "A note on greedy algorithms for the maximum weighted independent set problem": the
    result weighs at least the sum of weight / (degree + 1). Cost: O(conflicts), and a look at all segments for each
    that is taken, both as operations on arrays.
    """
    budget = budget or SearchBudget()
    weights = np.array(graph.weights)
    degrees = np.array([near.bit_count() for near in graph.near], np.int64)
    value, left, found = weights / (degrees + 1), graph.all, 0
    while left and (not budget.is_over or found.bit_count() < LEAST_TAKEN):
        best = int(value.argmax())
        found |= 1 << best
        gone = (graph.near[best] | 1 << best) & left
        left &= ~gone
        value[numbers_of(gone)] = -np.inf
        for vertex in members(gone):
            others = numbers_of(graph.near[vertex] & left)
            degrees[others] -= 1
            value[others] = weights[others] / (degrees[others] + 1)
            budget.spend(len(others) + 1)
    return found


def find_plan(graph: ConflictGraph, among: int | None = None, budget: SearchBudget | None = None) -> FoundPlan:
    """The best plan of some of the segments; each component may take its share of the steps that are left."""
    budget = budget or SearchBudget()
    plan, weight, bound = 0, 0.0, 0.0
    parts = sorted(components(graph, graph.all if among is None else among), key=int.bit_count)
    for number, part in enumerate(parts):
        alone, vertices = _only(graph, part)
        search = PlanSearch(alone, budget.part(1 / (len(parts) - number)))
        search.run()
        plan |= bits(vertices[at] for at in members(search.best))
        weight += search.weight
        bound += search.weight if not search.stopped else max(search.weight, search.cover(alone.all))
    return FoundPlan(plan, weight, bound)


def _only(graph: ConflictGraph, part: int) -> tuple[ConflictGraph, list[int]]:
    """The graph of some segments, whose sets are shorter, and the number that each has in the whole."""
    vertices = members(part)
    near = []
    for vertex in vertices:
        flags = np.zeros(len(vertices), np.uint8)
        flags[np.searchsorted(vertices, numbers_of(graph.near[vertex] & part))] = 1
        near.append(bits_of(flags))
    segments = tuple(graph.segments[vertex] for vertex in vertices)
    return ConflictGraph(segments, tuple(graph.weights[vertex] for vertex in vertices), tuple(near)), vertices


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

    def __init__(self, graph: ConflictGraph, budget: SearchBudget) -> None:
        self.graph = graph
        self.best = greedy(graph, budget=budget)
        self.weight = graph.weight(self.best)
        self.stopped = False
        self._budget = budget
        self._order = sorted(range(len(graph.weights)), key=lambda vertex: -graph.weights[vertex])

    def run(self) -> None:
        """Try all branches that can lead to something better, depth first."""
        stack = [(self.graph.all, 0, 0.0)]
        while stack:
            if self._budget.is_over:
                self.stopped = True
                return
            left, taken, weight = self._take_what_is_clear(*stack.pop())
            self._budget.spend(BRANCHING + left.bit_count())
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


@dataclass(frozen=True)
class PlanBound:
    """What any plan weighs at most, and the segments of which every plan weighs less than one that is known."""

    weight: float
    out: int


def bound_plans(
    graph: ConflictGraph, least: float, budget: SearchBudget | None = None, rounds: int = ROUNDS
) -> PlanBound:
    """What any plan weighs at most, and the segments that no best plan can have; `least`: what one plan weighs.

    The weight of a segment is divided among its places in queries. In each query places of a plan do not overlap, so
    they have at most the weight of the best places that do not, which is found from left to right; a plan weighs at
    most the sum of these over all queries, however weights were divided. Round by round, weight is moved from places
    that were taken to places of the same segment that were not, by which the sum becomes less (Lagrangian relaxation,
    subgradient steps).

    A plan with a certain segment weighs at most that sum, less what each of its queries loses by taking it: where this
    is less than a known plan weighs, the segment is out. Cost: O(places) for each round.
    """
    budget = budget or SearchBudget()
    divided = _DividedWeights(graph)
    weight, out = float("inf"), 0
    for _ in range(rounds):
        budget.spend(len(divided.owner))
        divided.take_the_best()
        if divided.sum < weight:
            weight, out = divided.sum, divided.excluded(least * (1 - ROUNDING))
        if weight <= least or budget.is_over or not divided.move_weight(least):
            break
    return PlanBound(max(weight, least), out)


class _DividedWeights:
    """The places of all segments, and the weight that each has for the moment."""

    def __init__(self, graph: ConflictGraph) -> None:
        self.graph = graph
        self.owner: list[int] = []
        self.share: list[float] = []
        by_query: dict[int, list[_Place]] = {}
        for vertex, segment in enumerate(graph.segments):
            for query, first in segment.places:
                by_query.setdefault(query, []).append((first + len(segment.steps), first, len(self.owner)))
                self.owner.append(vertex)
                self.share.append(graph.weights[vertex] / len(segment.places))
        self.queries = [sorted(some) for some in by_query.values()]
        self.sum = 0.0
        self.taken: set[int] = set()

    def take_the_best(self) -> None:
        """In each query take the heaviest places that do not overlap, and add up what they weigh."""
        self.sum, self.taken = 0.0, set()
        for some in self.queries:
            values, choices = self._values(some)
            self.sum += values[-1]
            end = len(values) - 1
            while end > 0:
                place = choices[end]
                if place is None:
                    end -= 1
                else:
                    self.taken.add(place[1])
                    end = place[0]

    def _values(self, some: Sequence[_Place]) -> tuple[list[float], list[tuple[int, int] | None]]:
        """The best weight up to each position, and the place in it that ends there: its first position, its number."""
        values, choices, at = [0.0], list[tuple[int, int] | None]([None]), 0
        for end in range(1, some[-1][0] + 1):
            value, choice = values[-1], None
            while at < len(some) and some[at][0] == end:
                _, first, number = some[at]
                if values[first] + self.share[number] > value:
                    value, choice = values[first] + self.share[number], (first, number)
                at += 1
            values.append(value)
            choices.append(choice)
        return values, choices

    def move_weight(self, least: float) -> bool:
        """Move weight among places of segments that were taken at some of them; whether there are any."""
        taken = Counter(self.owner[number] for number in self.taken)
        shares = {vertex: count / len(self.graph.segments[vertex].places) for vertex, count in taken.items()}
        length = sum(taken[vertex] * (1 - share) for vertex, share in shares.items())
        if length < ROUNDING:
            return False
        step = LONGEST_STEP * (self.sum - least) / length
        for number, vertex in enumerate(self.owner):
            if 0 < shares.get(vertex, 0) < 1:
                self.share[number] -= step * ((number in self.taken) - shares[vertex])
        return True

    def excluded(self, least: float) -> int:
        """Segments of which every plan weighs less, as bits."""
        lost = [0.0] * len(self.graph.segments)
        for some in self.queries:
            before, _ = self._values(some)
            last = some[-1][0]
            after, _ = self._values(sorted((last - first, last - end, number) for end, first, number in some))
            here: dict[int, float] = {}  # of several places of a segment, the one by which most is lost
            for end, first, number in some:
                less = before[-1] - before[first] - self.share[number] - after[last - end]
                here[self.owner[number]] = max(here.get(self.owner[number], 0.0), less)
            for vertex, less in here.items():
                lost[vertex] += less
        return bits(vertex for vertex, less in enumerate(lost) if self.sum - less < least)
