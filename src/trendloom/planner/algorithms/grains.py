"""Aggregates without finding matches, one algorithm for each grain of `planner.aggregation` (COGRA, GRETA)."""

from __future__ import annotations

from trendloom.planner.aggregation import added_up, by_event, by_pivot, matrices, waiting_runs
from trendloom.planner.request import Choice, PlanningRequest, Refusal


def consider_type_grained(request: PlanningRequest) -> Choice | Refusal:
    """One running aggregate per position: stretches of events are matrices. Type- and pattern-grained (COGRA)."""
    return added_up(request, matrices)


def consider_pattern_grained(request: PlanningRequest) -> Choice | Refusal:
    """Runs under skip-till-next-match and contiguous: those that wait at an event share one number (COGRA)."""
    return added_up(request, waiting_runs)


def consider_event_grained(request: PlanningRequest) -> Choice | Refusal:
    """Aggregates per event, in sums, hash tables and ordered trees: mixed- and event-grained (COGRA, GRETA)."""
    return added_up(request, by_event)


def consider_pivots(request: PlanningRequest) -> Choice | Refusal:
    """Aggregates for every event that a variable binds once in every match: its conditions are about one event."""
    return added_up(request, by_pivot)
