"""Matches found one by one, as input of another algorithm: by the first search that takes the pattern."""

from __future__ import annotations

from dataclasses import replace

from trendloom.planner.algorithms import expansion, join_order, next_match, postponed
from trendloom.planner.request import Choice, PlanningRequest


def one_by_one(request: PlanningRequest) -> Choice:
    """The search for the matches of a plan."""
    for consider in (next_match.consider, postponed.consider, join_order.consider):
        found = consider(request)
        if isinstance(found, Choice):
            return replace(found, builds=False)
    return expansion.consider(request)
