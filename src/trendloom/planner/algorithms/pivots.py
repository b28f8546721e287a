"""Aggregates per pivot, an event of a variable that binds once in each match: given it, conditions are on one event."""

from __future__ import annotations

from dataclasses import replace

from trendloom.kernels.contract.aggregates import Pivot
from trendloom.kernels.contract.pattern_spec import PatternSpec, Rule
from trendloom.kernels.matching.automaton import Automaton
from trendloom.planner.adjacency import FAR_APART, adjacent
from trendloom.planner.aggregation import FindGrain, Grained, added_up, needs_pivot
from trendloom.planner.algorithms.event_grained import event_grained
from trendloom.planner.algorithms.pattern_grained import pattern_grained
from trendloom.planner.algorithms.type_grained import type_grained
from trendloom.planner.request import Choice, PlanningRequest, Refusal, RefusalCode

GRAINS: tuple[FindGrain, ...] = (type_grained, pattern_grained, event_grained)
"""The grains of patterns whose rules are about adjacent events, the coarsest first."""


def consider(request: PlanningRequest) -> Choice | Refusal:
    return added_up(request, per_pivot)


def per_pivot(pattern_spec: PatternSpec) -> Grained | Refusal:
    """One aggregate per event of a variable that binds once in every match."""
    if not needs_pivot(pattern_spec):
        return Refusal(RefusalCode.UNNEEDED, "predicates are about adjacent events alone")
    if pattern_spec.earliest or pattern_spec.adjacent:
        return Refusal(
            RefusalCode.PREDICATE, "a predicate relates events that are not adjacent, and decides how a run goes on"
        )
    for name in sorted({place.variable for place in pattern_spec.places if place.scope == 0} - pattern_spec.plural):
        rest = _after_pivot(pattern_spec, name)
        in_all = not pattern_spec.scopes[0].template.ends_without(pattern_spec.positions(0, name))
        if rest is None or not in_all or pattern_spec.hides(name):
            continue
        inner = coarsest_grain(rest)
        if inner is not None:
            each = f"one aggregate per event of {name}; there {inner.reason}"
            return Grained(
                replace(inner.aggregation, pivot=_pivot(pattern_spec, rest, name)),
                f"predicates relate {name} with other events: {each}",
                f"for each event of {name}, over the windows it is in, {inner.cost}",
            )
    automaton = Automaton(pattern_spec.without_rules())
    rules = [adjacent(rule, pattern_spec, automaton) for rule in pattern_spec.scopes[0].rules]
    obstacles = [one.text for one in rules if isinstance(one, Refusal) and one != FAR_APART]
    apart = f"{FAR_APART.text}, and no single event of a match decides them"
    return Refusal(RefusalCode.PREDICATE, min(obstacles, default=apart))


def coarsest_grain(pattern_spec: PatternSpec) -> Grained | None:
    """The coarsest grain that is right for rules about adjacent events; None: none is."""
    return next((found for grain in GRAINS if isinstance(found := grain(pattern_spec), Grained)), None)


def _after_pivot(pattern_spec: PatternSpec, name: str) -> PatternSpec | None:
    """The pattern once the event of `name` is known: without the rules that are then about one event alone."""
    automaton = Automaton(pattern_spec.without_rules())
    scopes = []
    for scope in pattern_spec.scopes:
        kept = []
        uses = pattern_spec.binds(scope.number, name) == 0
        for rule in scope.rules:
            if scope.number == 0 and not isinstance(adjacent(rule, pattern_spec, automaton), Refusal):
                kept.append(rule)
            elif uses and name in rule.shape.variables:
                if not _settled(rule, name):
                    return None
            elif scope.number == 0:
                return None
            else:
                kept.append(rule)
        negation_guard = scope.negation_guard if len(kept) == len(scope.rules) else None
        # events of an equal NOT may fail a condition with the pivot that this one does not have
        negation_guard = None if negation_guard is None else replace(negation_guard, template=scope.template)
        scopes.append(
            replace(scope, rules=tuple(kept), outer=scope.outer - {name}, negation_guard=negation_guard, like=None)
        )
    return replace(pattern_spec, scopes=tuple(scopes))


def _pivot(pattern_spec: PatternSpec, rest: PatternSpec, name: str) -> Pivot:
    rules = []
    for before, after in zip(pattern_spec.scopes, rest.scopes, strict=True):
        for rule in before.rules:
            if rule not in after.rules:
                (other,) = rule.shape.each - {name}
                owner = pattern_spec.binds(before.number, other)
                rules.append((pattern_spec.positions(owner, other), rule.expr))
    return Pivot(name, pattern_spec.positions(0, name), tuple(rules))


def _settled(rule: Rule, name: str) -> bool:
    """Whether a rule is about one event alone once that of `name` is known."""
    shape = rule.shape
    return not (shape.whole or shape.pair or shape.index) and name in shape.each and len(shape.each) == 2
