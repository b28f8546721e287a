"""Aggregates of what can only be found: matches one by one, then their sums."""

from __future__ import annotations

from dataclasses import replace

from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.planner.aggregation import needs_pivot
from trendloom.planner.algorithms import list_matches
from trendloom.planner.algorithms.event_grained import event_grained
from trendloom.planner.algorithms.pattern_grained import pattern_grained
from trendloom.planner.algorithms.pivots import per_pivot
from trendloom.planner.algorithms.type_grained import type_grained
from trendloom.planner.choice import because
from trendloom.planner.request import Choice, PlanningRequest, Refusal, RefusalCode


def consider(request: PlanningRequest) -> Choice:
    refusal = _refuse_grains(replace(request.pattern_spec, sieves=()))
    if refusal is not None and request.plan.hidden and refusal.code is not RefusalCode.HIDING:
        refusal = replace(refusal, text=f"EXISTS hides events, and {refusal.text}")
    return replace(list_matches(request), why=because("two steps, because", refusal))


def _refuse_grains(pattern_spec: PatternSpec) -> Refusal | None:
    """Why no grain is right, so that matches have to be found, for EXPLAIN; None: one is.

    Only the coarsest grain supports EXISTS, so its refusal is the decisive one there.
    """
    if needs_pivot(pattern_spec):
        found = per_pivot(pattern_spec)
    elif pattern_spec.hidden:
        found = type_grained(pattern_spec)
    else:
        runs = pattern_spec.earliest or pattern_spec.adjacent
        found = (pattern_grained if runs else event_grained)(pattern_spec)
    return found if isinstance(found, Refusal) else None
