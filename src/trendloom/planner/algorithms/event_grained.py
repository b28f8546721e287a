"""Aggregates per event under skip-till-any-match, in sums, hash tables and ordered trees (COGRA, GRETA)."""

from __future__ import annotations

from dataclasses import replace

from trendloom.kernels.aggregate.event_grained.structures import structures
from trendloom.kernels.contract.aggregates import AggregationSpec, Grain
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.planner.aggregation import NO_RELATION, Grained, added_up, rules_per_event
from trendloom.planner.request import Choice, PlanningRequest, Refusal, RefusalCode


def consider(request: PlanningRequest) -> Choice | Refusal:
    return added_up(request, event_grained)


def event_grained(pattern_spec: PatternSpec) -> Grained | Refusal:
    """One running aggregate per event."""
    rules = rules_per_event(pattern_spec)
    if isinstance(rules, Refusal):
        return rules
    if pattern_spec.earliest or pattern_spec.adjacent:
        return Refusal(RefusalCode.SEMANTICS, "it is for skip-till-any-match")
    aggregation = AggregationSpec(rules.bare, Grain.MIXED, (), rules.pairs, rules.tests)
    if rules.none:
        reason = f"{rules.no_program or NO_RELATION}: sums by position, cut off by time"
        return Grained(aggregation, reason, "O(events · log events)")
    used = sorted({name for _, _, name in structures(aggregation, rules.automaton)} - {"sum"})
    if "scan" in used:
        reason = "a predicate on adjacent events fits no ordered structure: each event is compared with those before it"
        return Grained(replace(aggregation, grain=Grain.EVENT), reason, "O(events²) per window, vectorised")
    cost = "O(events)" if used == ["hash"] else "O(events · log events)"
    cost = "O(events · log² events)" if "two-level fenwick" in used else cost
    reason = f"{rules.what('predicates relate adjacent events')}: sums by {' and '.join(used)}"
    return Grained(aggregation, reason, cost)
