"""Skip-till-any-match, where a step depends on the two events it joins alone: matches are built last.

See Zhang, Diao and Immerman, "On Complexity and Optimization of Expensive Queries in Complex Event Processing".
"""

from __future__ import annotations

from trendloom.kernels.match.any import PostponedKernel
from trendloom.model.selection import Semantics
from trendloom.planner.adjacency import pairs_of
from trendloom.planner.choice import ADDED_UP, searched
from trendloom.planner.request import Candidate, Choice, PlanningRequest


def consider(request: PlanningRequest) -> Choice | str:
    return ADDED_UP if request.aggregates else search(request)


def search(request: PlanningRequest) -> Choice | str:
    """The same, whatever becomes of the matches."""
    if request.plan.semantics is not Semantics.ANY:
        return "it builds matches under skip-till-any-match"
    pairs, obstacle = pairs_of(request.pattern_spec)
    if obstacle is None and any(place.branch for place in request.pattern_spec.places):
        obstacle = "AND lets events of one time follow each other"
    if obstacle is not None:
        return obstacle
    unordered = all(pair.operator in ("=", "!=") for pair in pairs)
    return searched(
        request,
        PostponedKernel(request.pattern_spec, pairs),
        pairs,
        "postponed: find what can be part of a match for all matches at once, then build them one by one",
        "skip-till-any-match: a step depends on the two events it joins alone, so matches share all but output",
        "O(events + output)" if unordered else "O(events · log events + output)",
    )


CANDIDATE = Candidate("postponed", consider)
