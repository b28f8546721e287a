"""Aggregates of what can only be found: matches one by one, then their sums."""

from __future__ import annotations

from dataclasses import replace

from trendloom.model.selection import Semantics
from trendloom.planner.aggregation import NO_PIVOT
from trendloom.planner.algorithms.enumeration import one_by_one
from trendloom.planner.request import Candidate, Choice, PlanningRequest


def consider(request: PlanningRequest) -> Choice | str:
    if not request.aggregates:
        return "it adds up matches"
    reason = request.refused["pivots"]
    if reason == NO_PIVOT:
        reason = request.refused[_coarsest(request)]
    if request.plan.hidden and "EXISTS" not in reason:
        reason = f"EXISTS hides events, and {reason}"
    return replace(one_by_one(request), why=f"two steps, because {reason}")


def _coarsest(request: PlanningRequest) -> str:
    """Whose obstacle says best why matches have to be found: no finer grain takes what EXISTS hides."""
    if request.plan.hidden:
        return "matrices"
    return "by event" if request.plan.semantics is Semantics.ANY else "waiting runs"


CANDIDATE = Candidate("two steps", consider)
