"""Matches found one by one, for whoever does something else with them: by the first search that takes the pattern."""

from __future__ import annotations

from dataclasses import replace

from trendloom.planner.algorithms import expansion, join_order, next_match, postponed
from trendloom.planner.request import Choice, PlanningRequest


def one_by_one(request: PlanningRequest) -> Choice:
    """The search for the matches of a plan."""
    refused: dict[str, str] = dict(request.refused)
    for name, search in (
        ("runs", next_match.search),
        ("postponed", postponed.search),
        ("outside in", join_order.search),
    ):
        found = search(replace(request, refused=refused))
        if not isinstance(found, str):
            return replace(found, builds=False)
        refused[name] = found
    return expansion.search(replace(request, refused=refused))
