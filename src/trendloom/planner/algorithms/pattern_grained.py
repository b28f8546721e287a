"""Aggregates of runs under skip-till-next-match and contiguous: those that wait at an event are one number (COGRA)."""

from __future__ import annotations

from trendloom.planner.aggregation import added_up, waiting_runs
from trendloom.planner.request import Candidate, Choice, PlanningRequest


def consider(request: PlanningRequest) -> Choice | str:
    return added_up(request, waiting_runs)


CANDIDATE = Candidate("waiting runs", consider)
