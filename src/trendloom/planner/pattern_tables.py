"""An optimized plan as tables that kernels read: positions, scopes and rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from trendloom.kernels.contract.pattern_spec import NegationGuard, PatternPosition, PatternSpec, Rule, Scope
from trendloom.logical.plan import Condition, Plan
from trendloom.model.selection import Semantics
from trendloom.pattern import algebra
from trendloom.pattern.template import build_template

Parts = tuple[int, ...]
Branch = tuple[tuple[int, int], ...]


def describe(plan: Plan) -> PatternSpec:
    """Tables of positions, scopes and rules."""
    survey = _Survey()
    survey.enter(plan.pattern, 0, (), ())
    survey.scopes[0] = _FoundScope(0, plan.pattern, (), ())
    places = tuple(survey.places[position] for position in sorted(survey.places))
    alike = dict(plan.alike)
    scopes = tuple(
        Scope(
            number,
            found.parent,
            build_template(found.body),
            tuple(_rule(condition) for condition in plan.conditions if condition.scope == number),
            frozenset(),
            found.parts,
            found.branch,
            like=alike.get(number),
        )
        for number, found in sorted(survey.scopes.items())
    )
    bare = PatternSpec(
        places,
        scopes,
        plan.window,
        earliest=plan.semantics is Semantics.NEXT,
        adjacent=plan.semantics is Semantics.CONTIGUOUS,
        plural=plan.kleene,
        hidden=frozenset(p for p, place in enumerate(places) if place.scope == 0 and place.variable in plan.hidden),
    )
    first, *nots = scopes
    guarded = (replace(one, outer=_outer(one, bare), negation_guard=_guard(one, plan, bare)) for one in nots)
    return replace(bare, scopes=(first, *guarded))


def _rule(condition: Condition) -> Rule:
    early = condition.decided_at is not None
    return Rule(condition.expr, condition.part, early, condition.looked_up, condition.short_cut)


@dataclass(frozen=True)
class _FoundScope:
    """A scope as it stands in the pattern."""

    parent: int
    body: algebra.Pattern
    parts: Parts
    branch: Branch


@dataclass
class _Survey:
    """Walks a pattern once and notes where every position and NOT stands."""

    places: dict[int, PatternPosition] = field(default_factory=dict)
    scopes: dict[int, _FoundScope] = field(default_factory=dict)

    def enter(self, pattern: algebra.Pattern, scope: int, parts: Parts, branch: Branch) -> None:
        match pattern:
            case algebra.Atom():
                self.places[pattern.position] = PatternPosition(pattern.type, pattern.variable, scope, parts, branch)
            case algebra.Negation():
                self.scopes[pattern.scope] = _FoundScope(scope, pattern.body, parts, branch)
                self.enter(pattern.body, pattern.scope, parts, branch)
            case algebra.Kleene() | algebra.Round():
                self.enter(pattern.body, scope, (*parts, pattern.part), branch)
            case algebra.Both():
                for number, part in enumerate(pattern.parts):
                    self.enter(part, scope, (*parts, pattern.part), (*branch, (pattern.part, number)))
            case _:
                for part in algebra.parts(pattern):
                    self.enter(part, scope, parts, branch)


def _outer(scope: Scope, spec: PatternSpec) -> frozenset[str]:
    """Variables from outside that a NOT, or one inside it, uses."""
    inside = {scope.number}
    for one in spec.scopes[scope.number + 1 :]:  # NOTs inside have greater numbers than those around them
        if one.parent in inside:
            inside.add(one.number)
    used = ((number, name) for number in inside for rule in spec.scopes[number].rules for name in rule.shape.variables)
    return frozenset(name for number, name in used if spec.binds(number, name) not in inside)


def _guard(scope: Scope, plan: Plan, spec: PatternSpec) -> NegationGuard | None:
    """The guard of a NOT that depends on one event next to it, as the optimizer noted; the same for equal NOTs."""
    noted = {one.scope: one for one in plan.decorrelated}
    if scope.number not in noted:
        return None
    first = spec.scopes[scope.first_alike]
    together = [spec.scopes[one] for one in noted if spec.scopes[one].first_alike == first.number]
    positions = {position for one in together for position in _neighbours(one, noted[one.number].follows, spec)}
    links = noted[first.number]
    return NegationGuard(first.template, links.follows, tuple(sorted(positions)), links.links)


def _neighbours(scope: Scope, follows: bool, spec: PatternSpec) -> Iterator[int]:
    """The positions of the events right before a NOT, or right after it."""
    around = spec.scopes[scope.parent].template
    for state, edges in enumerate(around.edges):
        for edge in edges:
            if any(crossing.scope == scope.number for crossing in edge.crossings):
                yield edge.position if follows else around.position_of[state]
