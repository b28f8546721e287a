"""From the words of a workload to what its queries share: mine, weigh, expand, reduce, find.

If the best plan is not found in time, the greedy one or what is better by then is taken, and `find_plan` can go on from
there while queries run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trendloom.optimize.sharing.benefit import Benefit
from trendloom.optimize.sharing.conflict_graph import ConflictGraph, conflict_graph, members
from trendloom.optimize.sharing.expand_candidates import expand_candidates
from trendloom.optimize.sharing.find_plan import FoundPlan, find_plan
from trendloom.optimize.sharing.greedy import greedy, guaranteed_weight
from trendloom.optimize.sharing.mine_segments import mine_segments
from trendloom.optimize.sharing.reduce_graph import Reduction, reduce_graph
from trendloom.optimize.sharing.segments import SharedSegment, Word

SECONDS = 5.0
"""How long the search for the best plan may take before queries start."""


@dataclass(frozen=True)
class SharingChoice:
    """What was chosen and out of what. `mined`: segments before those that save nothing were left out.

    `graph`: the segments and their options. `guaranteed`: what the greedy plan weighs at least; `greedy`: that plan.
    """

    mined: int
    graph: ConflictGraph
    guaranteed: float
    greedy: int
    reduction: Reduction
    found: FoundPlan

    @property
    def segments(self) -> tuple[SharedSegment, ...]:
        """What is shared."""
        return tuple(self.graph.segments[vertex] for vertex in members(self.found.plan))


def choose_plan(words: Sequence[Word], benefit: Benefit, seconds: float | None = SECONDS) -> SharingChoice:
    """The segments that queries with these words share."""
    mined = mine_segments(words)
    graph = expand_candidates(conflict_graph(mined, benefit), benefit)
    return chosen(len(mined), graph, seconds)


def chosen(mined: int, graph: ConflictGraph, seconds: float | None = None) -> SharingChoice:
    """The best plan of a graph: what is certain, and the best of what is still in question."""
    first = greedy(graph)
    reduction = reduce_graph(graph, max(graph.weight(first), guaranteed_weight(graph)))
    rest = find_plan(graph, reduction.left, seconds)
    certain = graph.weight(reduction.certain)
    found = FoundPlan(rest.plan | reduction.certain, rest.weight + certain, rest.bound + certain)
    if found.weight < graph.weight(first):
        found = FoundPlan(first, graph.weight(first), max(found.bound, graph.weight(first)))
    return SharingChoice(mined, graph, guaranteed_weight(graph), first, reduction, found)
