"""An optimized plan as tables that kernels read: positions, scopes and rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from trendloom.kernels.contract.pattern_spec import NegationGuard, PatternPosition, PatternSpec, Rule, Scope
from trendloom.logical.plan import Condition, Plan
from trendloom.model.selection import Semantics
from trendloom.pattern import algebra
from trendloom.pattern.template import Template, build_template

Parts = tuple[int, ...]
Branch = tuple[tuple[int, int], ...]


def describe(plan: Plan) -> PatternSpec:
    """Tables of positions, scopes and rules."""
    survey = _Survey()
    survey.enter(plan.pattern, 0, (), ())
    survey.scopes[0] = _FoundScope(0, plan.pattern, (), ())
    places = tuple(survey.places[position] for position in sorted(survey.places))
    rules = {
        number: tuple(_rule(condition) for condition in plan.conditions if condition.scope == number)
        for number in survey.scopes
    }
    templates = {number: build_template(found.body) for number, found in survey.scopes.items()}
    parents = {number: found.parent for number, found in survey.scopes.items()}
    scopes = tuple(
        Scope(
            number,
            found.parent,
            templates[number],
            rules[number],
            _outer(number, parents, rules, places) if number else frozenset(),
            found.parts,
            found.branch,
            _absence(number, plan, templates, parents),
            dict(plan.alike).get(number),
        )
        for number, found in sorted(survey.scopes.items())
    )
    return PatternSpec(
        places,
        scopes,
        plan.window,
        earliest=plan.semantics is Semantics.NEXT,
        adjacent=plan.semantics is Semantics.CONTIGUOUS,
        plural=plan.kleene,
        hidden=frozenset(p for p, place in enumerate(places) if place.scope == 0 and place.variable in plan.hidden),
    )


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


def _outer(
    scope: int, parents: dict[int, int], rules: dict[int, tuple[Rule, ...]], places: tuple[PatternPosition, ...]
) -> frozenset[str]:
    """Variables from outside that a NOT, or one inside it, uses."""
    inside = {scope} | {s for s in parents if s and _encloses(scope, s, parents)}
    used: set[str] = set()
    for number in inside:
        for rule in rules[number]:
            used |= {v for v in rule.shape.variables if _owner(v, number, parents, places) not in inside}
    return frozenset(used)


def _absence(scope: int, plan: Plan, templates: dict[int, Template], parents: dict[int, int]) -> NegationGuard | None:
    """What the optimizer has noted of a NOT that depends on one event next to it; the same for equal NOTs."""
    noted = {one.scope: one for one in plan.decorrelated}
    if scope not in noted:
        return None
    like = dict(plan.alike)
    first = like.get(scope, scope)
    together = [one for one in noted if like.get(one, one) == first]
    positions = {p for one in together for p in _neighbours(one, noted[one].follows, templates[parents[one]])}
    return NegationGuard(templates[first], noted[first].follows, tuple(sorted(positions)), noted[first].links)


def _neighbours(scope: int, follows: bool, around: Template) -> Iterator[int]:
    """The positions of the events right before a NOT, or right after it."""
    for state, edges in enumerate(around.edges):
        for edge in edges:
            if any(crossing.scope == scope for crossing in edge.crossings):
                yield edge.position if follows else around.position_of[state]


def _encloses(outer: int, inner: int, parents: dict[int, int]) -> bool:
    while inner:
        if inner == outer:
            return True
        inner = parents[inner]
    return False


def _owner(variable: str, scope: int, parents: dict[int, int], places: tuple[PatternPosition, ...]) -> int:
    while scope and not any(place.scope == scope and place.variable == variable for place in places):
        scope = parents[scope]
    return scope
