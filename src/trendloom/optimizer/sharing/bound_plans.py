"""What any plan weighs at most, query by query, and which segments are therefore in none of the best.

The weight of a segment is divided among its places in queries. In each query places of a plan do not overlap, so they
have at most the weight of the best places that do not, which is found from left to right; a plan weighs at most the sum
of these over all queries, however weights were divided. Round by round, weight is moved from places that were taken to
places of the same segment that were not, by which the sum becomes less (Lagrangian relaxation, subgradient steps).

A plan with a certain segment weighs at most that sum, less what each of its queries loses by taking it: where this is
less than a known plan weighs, the segment is out. Cost: O(places) for each round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trendloom.optimizer.sharing.conflict_graph import ConflictGraph, bits
from trendloom.optimizer.sharing.deadline import NEVER, Deadline

ROUNDS = 100
LONGEST_STEP = 0.7
"""Of the step that would close the gap, if the sum fell as fast all the way."""
ROUNDING = 1e-9
"""Sums of weights are that far from right, at most."""


@dataclass(frozen=True)
class PlanBound:
    """What any plan weighs at most, and the segments of which every plan weighs less than one that is known."""

    weight: float
    out: int


def bound_plans(graph: ConflictGraph, least: float, deadline: Deadline = NEVER, rounds: int = ROUNDS) -> PlanBound:
    """The bound of all plans of a graph; `least`: what one of them weighs."""
    places = _DividedWeights(graph)
    weight, out = float("inf"), 0
    for _ in range(rounds):
        places.take_the_best()
        if places.sum < weight:
            weight, out = places.sum, places.excluded(least * (1 - ROUNDING))
        if weight <= least or deadline.is_over or not places.move_weight(least):
            break
    return PlanBound(max(weight, least), out)


class _DividedWeights:
    """The places of all segments, and the weight that each has for the moment."""

    def __init__(self, graph: ConflictGraph) -> None:
        self.graph = graph
        self.owner: list[int] = []
        self.share: list[float] = []
        by_query: dict[int, list[tuple[int, int, int]]] = {}
        for vertex, segment in enumerate(graph.segments):
            for query, first in segment.places:
                by_query.setdefault(query, []).append((first + len(segment.letters), first, len(self.owner)))
                self.owner.append(vertex)
                self.share.append(graph.weights[vertex] / len(segment.places))
        self.queries = [sorted(some) for some in by_query.values()]
        self.sum = 0.0
        self.taken: set[int] = set()

    def take_the_best(self) -> None:
        """In each query the heaviest places that do not overlap, and what they weigh together."""
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

    def _values(self, some: Sequence[tuple[int, int, int]]) -> tuple[list[float], list[tuple[int, int] | None]]:
        """What is the best up to each letter, and the place that ends there in it: its first letter, its number."""
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
        taken: dict[int, int] = {}
        for number in self.taken:
            taken[self.owner[number]] = taken.get(self.owner[number], 0) + 1
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
