"""Matches found one by one, for whoever does something else with them: by the first search that takes the pattern."""

from __future__ import annotations

from dataclasses import replace

from trendloom.planner.algorithms import expansion, join_order, next_match, postponed
from trendloom.planner.request import Choice, PlanningRequest


def one_by_one(request: PlanningRequest) -> Choice:
    """The search for the matches of a plan."""
    for search in (next_match.search, postponed.search, join_order.search):
        found = search(request)
        if isinstance(found, Choice):
            return replace(found, builds=False)
    return expansion.search(request)
