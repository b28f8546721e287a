"""Aggregates per event, in sums, hash tables and ordered trees: mixed- and event-grained (COGRA, GRETA)."""

from __future__ import annotations

from trendloom.planner.aggregation import added_up, by_event
from trendloom.planner.request import Candidate, Choice, PlanningRequest


def consider(request: PlanningRequest) -> Choice | str:
    return added_up(request, by_event)


CANDIDATE = Candidate("by event", consider)
