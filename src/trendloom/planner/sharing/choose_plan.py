"""From the words of a workload to what its queries share: mine, weigh, expand, reduce, find.

The time limit holds for all steps together: segments with many letters are mined and weighed first, heavy ones are
expanded first, and if the best plan is not found in time, the greedy one or what is better by then is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trendloom.planner.sharing.conflict_graph import (
    ConflictGraph,
    Reduction,
    conflict_graph,
    expand_candidates,
    members,
    reduce_graph,
)
from trendloom.planner.sharing.deadline import NEVER, Deadline
from trendloom.planner.sharing.find_plan import FoundPlan, bound_plans, find_plan, greedy, guaranteed_weight
from trendloom.planner.sharing.segments import Benefit, SharedSegment, Word, mine_segments

SECONDS = 5.0
"""How long the choice may take before queries start."""
LISTING, EXPANDING, BOUNDING = 0.4, 0.4, 0.2
"""The share of the time for mining and weighing; those of what is left then for expansion and for the bound."""

PATIENCE = 8.0
"""How many times the time until the greedy plan everything may take."""


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
    deadline = Deadline.after(seconds)
    listing = deadline.share(LISTING)
    mined = mine_segments(words, listing)
    plain = conflict_graph(mined, benefit, listing)
    if listing.is_over:  # perhaps not all segments were mined
        plain = replace(plain, lacking=float("inf"))
    graph = expand_candidates(plain, benefit, deadline=deadline.share(EXPANDING))
    return chosen(len(mined), graph, deadline)


def chosen(mined: int, graph: ConflictGraph, deadline: Deadline = NEVER) -> SharingChoice:
    """The best plan of a graph: what is certain, and the best of what is still in question."""
    first = greedy(graph, deadline=deadline)
    least, soon = graph.weight(first), deadline.in_proportion(PATIENCE)
    reduction = reduce_graph(graph, max(least, guaranteed_weight(graph)), deadline)
    bound = bound_plans(graph, least, soon.share(BOUNDING))
    rest = find_plan(graph, reduction.left & ~bound.out, soon)
    certain = graph.weight(reduction.certain)
    plan, weight = rest.plan | reduction.certain, rest.weight + certain
    if weight < least:
        plan, weight = first, least
    most = max(min(rest.bound + certain, bound.weight), weight) + graph.lacking
    return SharingChoice(mined, graph, guaranteed_weight(graph), first, reduction, FoundPlan(plan, weight, most))
