"""One running aggregate per position: stretches of events are matrices. Type- and pattern-grained (COGRA)."""

from __future__ import annotations

from trendloom.planner.aggregation import added_up, matrices
from trendloom.planner.request import Candidate, Choice, PlanningRequest


def consider(request: PlanningRequest) -> Choice | str:
    return added_up(request, matrices)


CANDIDATE = Candidate("matrices", consider)
