"""Aggregates under skip-till-next-match and contiguous: runs that wait at an event share one number (COGRA)."""

from __future__ import annotations

from trendloom.kernels.contract.aggregates import AggregationSpec, Grain
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.planner.aggregation import NO_RELATION, RELATED, Grained, added_up, rules_per_event
from trendloom.planner.request import Choice, PlanningRequest, Refusal, RefusalCode


def consider(request: PlanningRequest) -> Choice | Refusal:
    return added_up(request, pattern_grained)


def pattern_grained(pattern_spec: PatternSpec) -> Grained | Refusal:
    """One running aggregate per event at which runs wait."""
    rules = rules_per_event(pattern_spec)
    if isinstance(rules, Refusal):
        return rules
    if not (pattern_spec.earliest or pattern_spec.adjacent):
        return Refusal(RefusalCode.SEMANTICS, "skip-till-any-match: partial matches wait at no single event")
    aggregation = AggregationSpec(rules.bare, Grain.PATTERN, (), rules.pairs)
    cost = "O(events)" if pattern_spec.adjacent or not rules.pairs else "O(events · log events)"
    what = rules.no_program or NO_RELATION if rules.none else rules.what(RELATED)
    return Grained(aggregation, f"{what}: runs that wait at an event go to its successor", cost)
