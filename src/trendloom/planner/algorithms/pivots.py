"""Aggregates for every event that a variable binds once in every match: its conditions are then about one event."""

from __future__ import annotations

from trendloom.planner.aggregation import added_up, by_pivot
from trendloom.planner.request import Candidate, Choice, PlanningRequest


def consider(request: PlanningRequest) -> Choice | str:
    return added_up(request, by_pivot)


CANDIDATE = Candidate("pivots", consider)
