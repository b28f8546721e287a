"""Aggregates with one running number per position: stretches of events are matrices. Type-, pattern-grained (COGRA)."""

from __future__ import annotations

from trendloom.kernels.aggregate.program import Existence
from trendloom.kernels.contract.aggregates import AggregationSpec, Grain
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.planner.aggregation import NO_RELATION, RELATED, Grained, added_up, adjacent_rules, needs_pivot
from trendloom.planner.request import Choice, PlanningRequest, Refusal, RefusalCode


def consider(request: PlanningRequest) -> Choice | Refusal:
    return added_up(request, type_grained)


def type_grained(pattern_spec: PatternSpec) -> Grained | Refusal:
    """One running aggregate per position."""
    rules = adjacent_rules(pattern_spec)
    if isinstance(rules, Refusal) or needs_pivot(pattern_spec):
        return Refusal(RefusalCode.PREDICATE, "a predicate relates events that are not adjacent")
    if not rules.none:
        return Refusal(RefusalCode.PREDICATE, rules.what(RELATED))
    if rules.no_program is not None:
        hides = Existence(rules.automaton).obstacle is not None
        return Refusal(RefusalCode.HIDING if hides else RefusalCode.PATTERN, rules.no_program)
    if pattern_spec.earliest or pattern_spec.adjacent:
        grain, what = Grain.PATTERN, "one running aggregate per position for the runs that wait there"
    else:
        grain, what = Grain.TYPE, "one running aggregate per position for all partial matches that end there"
    if pattern_spec.hidden:
        what += "; what EXISTS hides is a plain test at its place"
    return Grained(
        AggregationSpec(rules.bare, grain, (), algebra=True),
        f"{NO_RELATION}: {what}",
        "O(events), however many windows overlap: panes are matrices, windows their products",
    )
