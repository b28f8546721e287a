"""From an optimized plan to what a detection kernel is told, and which kernel that is.

Where a step depends on the two events it joins alone, *runs* takes skip-till-next-match and contiguous patterns, and
*postponed* takes skip-till-any-match (both Numba, linear up to the output). *Expansion* takes everything else.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from trendloom.errors import PlanError, option
from trendloom.kernels.detection.spec import Detection, Pair, Place, Rule, Scope
from trendloom.lang.tree import Semantics
from trendloom.pattern import algebra
from trendloom.pattern.template import build_template
from trendloom.physical.consistency import sieves_of
from trendloom.physical.pairs import pairs_of
from trendloom.plan.logical import Plan


class Algorithm(Enum):
    RUNS = "runs"
    POSTPONED = "postponed"
    EXPANSION = "expansion"


@dataclass(frozen=True)
class Choice:
    """The algorithm for finding matches, its input, and the reason."""

    algorithm: Algorithm
    detection: Detection
    pairs: tuple[Pair, ...]
    reason: str
    cost: str


def choose_detection(plan: Plan) -> Choice:
    """The fastest kernel that is right for this plan."""
    detection = describe(plan)
    refuse_open_negation_in_conjunction(plan)
    pairs, obstacle = pairs_of(detection)
    if plan.semantics is Semantics.ANY:
        return _of_any_match(detection, pairs, obstacle)
    if obstacle is None:
        return Choice(
            Algorithm.RUNS,
            detection,
            pairs,
            f"{plan.semantics.value}: the next event of a run depends on its last event alone",
            _cost_of_runs(pairs, plan.semantics),
        )
    return Choice(
        Algorithm.EXPANSION,
        detection,
        (),
        f"{plan.semantics.value}, but {obstacle}",
        "O(candidates tried + output), in bounded memory",
    )


def _of_any_match(detection: Detection, pairs: tuple[Pair, ...], obstacle: str | None) -> Choice:
    if obstacle is None and any(place.branch for place in detection.places):
        obstacle = "AND lets events of one time follow each other"
    if obstacle is None:
        return Choice(
            Algorithm.POSTPONED,
            detection,
            pairs,
            "skip-till-any-match: a step depends on the two events it joins alone, so matches share all but output",
            _cost_of_postponed(pairs),
        )
    return Choice(
        Algorithm.EXPANSION,
        replace(detection, sieves=sieves_of(detection)),
        (),
        f"skip-till-any-match, but {obstacle}",
        "O(partial matches that can still be completed), in bounded memory",
    )


def _cost_of_postponed(pairs: tuple[Pair, ...]) -> str:
    if all(pair.operator in ("=", "!=") for pair in pairs):
        return "O(events + output)"
    return "O(events · log events + output)"


def _cost_of_runs(pairs: tuple[Pair, ...], semantics: Semantics) -> str:
    if not pairs or semantics is Semantics.CONTIGUOUS:
        return "O(events + output)"
    steps = [step for pair in pairs for step in pair.steps]
    if len(set(steps)) < len(steps):
        return "O(events + candidates refused + output): a step has two predicates"
    return "O(events · log events + output)"


def describe(plan: Plan) -> Detection:
    """Tables of positions, scopes and rules."""
    survey = _Survey()
    survey.enter(plan.pattern, 0, (), ())
    survey.scopes[0] = _Found(0, plan.pattern, (), ())
    places = tuple(survey.places[position] for position in sorted(survey.places))
    rules = {
        number: tuple(Rule(c.expr, c.part) for c in plan.conditions if c.scope == number) for number in survey.scopes
    }
    parents = {number: found.parent for number, found in survey.scopes.items()}
    scopes = tuple(
        Scope(
            number,
            found.parent,
            build_template(found.body),
            rules[number],
            _outer(number, parents, rules, places) if number else frozenset(),
            found.parts,
            found.branch,
        )
        for number, found in sorted(survey.scopes.items())
    )
    return Detection(
        places,
        scopes,
        plan.window,
        earliest=plan.semantics is Semantics.NEXT,
        adjacent=plan.semantics is Semantics.CONTIGUOUS,
        plural=plan.kleene,
    )


Parts = tuple[int, ...]
Branch = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class _Found:
    """A scope as it stands in the pattern."""

    parent: int
    body: algebra.Pattern
    parts: Parts
    branch: Branch


@dataclass
class _Survey:
    """Walks a pattern once and notes where every position and NOT stands."""

    places: dict[int, Place] = field(default_factory=dict)
    scopes: dict[int, _Found] = field(default_factory=dict)

    def enter(self, pattern: algebra.Pattern, scope: int, parts: Parts, branch: Branch) -> None:
        match pattern:
            case algebra.Atom():
                self.places[pattern.position] = Place(pattern.type, pattern.variable, scope, parts, branch)
            case algebra.Negation():
                self.scopes[pattern.scope] = _Found(scope, pattern.body, parts, branch)
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
    scope: int, parents: dict[int, int], rules: dict[int, tuple[Rule, ...]], places: tuple[Place, ...]
) -> frozenset[str]:
    """Variables from outside that a NOT, or one inside it, uses."""
    inside = {scope} | {s for s in parents if s and _encloses(scope, s, parents)}
    used: set[str] = set()
    for number in inside:
        for rule in rules[number]:
            used |= {v for v in rule.shape.variables if _owner(v, number, parents, places) not in inside}
    return frozenset(used)


def _encloses(outer: int, inner: int, parents: dict[int, int]) -> bool:
    while inner:
        if inner == outer:
            return True
        inner = parents[inner]
    return False


def _owner(variable: str, scope: int, parents: dict[int, int], places: tuple[Place, ...]) -> int:
    while scope and not any(place.scope == scope and place.variable == variable for place in places):
        scope = parents[scope]
    return scope


def refuse_open_negation_in_conjunction(plan: Plan) -> None:
    for node in algebra.walk(plan.pattern):
        if isinstance(node, algebra.Both):
            for part in node.parts:
                template = build_template(part)
                if any(e.crossings for e in template.starts) or any(w for ways in template.accepts for w in ways):
                    raise PlanError(
                        "a NOT at an optional end of a part of AND is not supported yet",
                        plan.query.clause("PATTERN"),
                        hint=f"{option('engine', 'reference')} runs it on small streams",
                        text=plan.query.text,
                    )
