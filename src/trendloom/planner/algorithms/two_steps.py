"""Aggregates of what can only be found: matches one by one, then their sums."""

from __future__ import annotations

from dataclasses import replace

from trendloom.planner.aggregation import refuse_grains
from trendloom.planner.algorithms.enumeration import one_by_one
from trendloom.planner.choice import because
from trendloom.planner.request import Choice, PlanningRequest, Refusal, RefusalCode


def consider(request: PlanningRequest) -> Choice | Refusal:
    refusal = refuse_grains(replace(request.pattern_spec, sieves=()))
    if refusal is not None and request.plan.hidden and refusal.code is not RefusalCode.HIDING:
        refusal = replace(refusal, text=f"EXISTS hides events, and {refusal.text}")
    return replace(one_by_one(request), why=because("two steps, because", refusal))
