"""Rewrite a logical plan into one that needs less: RULES in order, one rule per file, none may change an answer."""

from __future__ import annotations

from trendloom.optimize.push_predicates_to_positions import push_predicates_to_positions
from trendloom.optimize.rewrite_running_extremes import rewrite_running_extremes
from trendloom.optimize.scan_needed_columns import scan_needed_columns
from trendloom.optimize.scan_pattern_types import scan_pattern_types
from trendloom.plan.logical import Plan

RULES = (
    rewrite_running_extremes,
    push_predicates_to_positions,
    scan_pattern_types,
    scan_needed_columns,
)


def optimize(plan: Plan) -> Plan:
    """The plan after every rule."""
    for rule in RULES:
        plan = rule(plan)
    return plan


__all__ = ["RULES", "optimize"]
