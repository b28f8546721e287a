"""Skip-till-any-match, where a step depends on the two events it joins alone: matches are built last.

See Zhang, Diao and Immerman, "On Complexity and Optimization of Expensive Queries in Complex Event Processing".
"""

from __future__ import annotations

from trendloom.kernels.match.any import PostponedKernel
from trendloom.model.selection import Semantics
from trendloom.planner.adjacency import pairs_in_order
from trendloom.planner.choice import searched
from trendloom.planner.request import Choice, PlanningRequest, Refusal, RefusalCode


def consider(request: PlanningRequest) -> Choice | Refusal:
    if request.plan.semantics is not Semantics.ANY:
        return Refusal(RefusalCode.SEMANTICS, "it builds matches under skip-till-any-match")
    pairs = pairs_in_order(request.pattern_spec)
    if isinstance(pairs, Refusal):
        return pairs
    unordered = all(pair.operator in ("=", "!=") for pair in pairs)
    return searched(
        request,
        PostponedKernel(request.pattern_spec, pairs),
        pairs,
        "postponed: find what can be part of a match for all matches at once, then build them one by one",
        "skip-till-any-match: a step depends on the two events it joins alone, so matches share all but output",
        "O(events + output)" if unordered else "O(events · log events + output)",
    )
