"""Aggregates for every event that a variable binds once in every match: its conditions are then about one event."""

from __future__ import annotations

from trendloom.planner.aggregation import added_up, by_pivot
from trendloom.planner.request import Candidate, Choice, Wanted


def consider(wanted: Wanted) -> Choice | str:
    return added_up(wanted, by_pivot)


CANDIDATE = Candidate("pivots", consider)
