"""What the paper of SHARON has and no query uses: all plans, and what a segment saves in updates per unit of time.

Plans of s + 1 segments are made of two plans of s that differ in the last one only; they are valid if these two
segments are not in conflict, so no invalid plan is ever made.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from trendloom.planner.sharing.conflict_graph import ConflictGraph, PatternSteps, SharedSegment, members

Decisions = tuple[int, ...]


def valid_plans(graph: ConflictGraph, among: int | None = None) -> Iterator[int]:
    """Every valid plan of at least one segment, level by level; as many as there are independent sets."""
    level: list[Decisions] = [(vertex,) for vertex in members(graph.all if among is None else among)]
    while level:
        for plan in level:
            yield sum(1 << vertex for vertex in plan)
        level = list(_next_level(graph, level))


def _next_level(graph: ConflictGraph, parents: list[Decisions]) -> Iterator[Decisions]:
    """Plans with one segment more; parents are in order, so those with the same beginning are neighbours."""
    for at, one in enumerate(parents):
        for other in parents[at + 1 :]:
            if other[:-1] != one[:-1]:
                break
            if not graph.near[one[-1]] >> other[-1] & 1:
                yield (*one, other[-1])


def heaviest(graph: ConflictGraph, among: int | None = None) -> int:
    """The best of all valid plans."""
    return max(valid_plans(graph, among), key=graph.weight, default=0)


def heaviest_of_all_sets(graph: ConflictGraph) -> int:
    """The best plan, by looking at every set of segments, valid or not."""
    return max(filter(graph.is_valid, range(graph.all + 1)), key=graph.weight)


# What sharing a segment saves: equations 1 to 8 of "Sharon: Shared Online Event Sequence Aggregation".
#
# A type that stands k times in a pattern has its events update k counts, which the sum of rates over positions says by
# itself. An empty prefix or suffix has no terms.


@dataclass(frozen=True)
class PerStartBenefit:
    """The benefit of segments of some patterns, whose steps are fulfilled by events at these rates."""

    patterns: Sequence[PatternSteps]
    rate: Callable[[Hashable], float]

    def __call__(self, segment: SharedSegment) -> float:
        """Equation 8."""
        return self.not_shared(segment) - self.shared(segment)

    def not_shared(self, segment: SharedSegment) -> float:
        """Equations 2 and 3."""
        return sum(self.alone(self.patterns[query]) for query in segment.queries)

    def shared(self, segment: SharedSegment) -> float:
        """Equations 4 to 7: the segment once, and for each query its prefix, its suffix and the combination."""
        once = self.alone(segment.steps)
        return once + sum(self._for_query(segment, query, first) for query, first in segment.places)

    def alone(self, word: PatternSteps) -> float:
        """Every event updates a count for each START event (equations 1 and 2)."""
        return self.rate(word[0]) * sum(map(self.rate, word)) if word else 0.0

    def _for_query(self, segment: SharedSegment, query: int, first: int) -> float:
        word = self.patterns[query]
        prefix, suffix = word[:first], word[first + len(segment.steps) :]
        if not prefix and not suffix:
            return 0.0
        combined = self.rate(segment.steps[0])
        for part in (prefix, suffix):
            combined *= self.rate(part[0]) if part else 1.0
        return self.alone(prefix) + self.alone(suffix) + combined
