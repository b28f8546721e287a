"""Conditions on two adjacent events of a match, and the steps to which they apply.

`left(e) op right(f)` becomes a `Pair`: two columns and an operator, which ordered structures can answer. Any other
condition on two adjacent events is a `Test`. A condition on two variables that NEXT does not mention (`a.x < b.x`) is
one too, where events of the one always follow events of the other directly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

from trendloom.expr.nodes import MIRRORED, Aggregate, Attribute, Comparison, Expr, Extent, Which, walk, with_attributes
from trendloom.kernels.contract.aggregates import Test
from trendloom.kernels.contract.pattern_spec import Compared, EmptyGap, NegationGuard, Pair, PatternSpec, Rule
from trendloom.kernels.matching.automaton import Automaton
from trendloom.pattern.template import Edge, Template, closure
from trendloom.planner.request import Refusal, RefusalCode

Move = tuple[int, int]  # from a state to a state
Positions = tuple[int, int]
FAR_APART = Refusal(RefusalCode.PREDICATE, "a predicate compares events that are not next to each other")
SEVERAL_WAYS = Refusal(RefusalCode.PATTERN, "there are several ways to derive a match")
NO_COMPARISON = Refusal(RefusalCode.PREDICATE, "a predicate is not a comparison of one event with the other")
MOST_POSITIONS = 64


def adjacent(rule: Rule, pattern_spec: PatternSpec, automaton: Automaton) -> Pair | Test | Refusal:
    """The condition as a pair or a test, or why it is neither; steps are numbered as in `automaton`."""
    if rule.shape.whole or any(isinstance(node, Aggregate | Extent) for node in walk(rule.expr)):
        return Refusal(RefusalCode.PREDICATE, "a predicate looks at more than two events")
    if rule.shape.pair is None and not rule.shape.looks_back:
        if len(rule.shape.each) != 2:
            return FAR_APART
        moves, earlier = _moves_between(rule, pattern_spec)
        if moves is None:
            return FAR_APART
    elif rule.part is not None:
        return Refusal(RefusalCode.PREDICATE, "a predicate speaks of the events of one round")
    elif len(rule.shape.chosen) > 2 or (rule.shape.looks_back and rule.shape.each):
        return Refusal(RefusalCode.PREDICATE, "a predicate looks at more than two events")
    else:
        moves, earlier = _moves_of(rule, pattern_spec), None
        if moves is None:
            return Refusal(RefusalCode.PREDICATE, "a predicate looks back past other events")
    return _numbered(rule.expr, earlier, moves, automaton)


def _numbered(expr: Expr, earlier: str | None, moves: frozenset[Move], automaton: Automaton) -> Pair | Test:
    steps = frozenset((state, step.number) for state, step in automaton.transitions if (state, step.target) in moves)
    expr = expr if earlier is None else _with_roles(expr, earlier)
    if isinstance(expr, Comparison):
        first, second = side(expr.left), side(expr.right)
        if (first, second) == ("earlier", "later"):
            return Pair(expr.left, expr.operator, expr.right, steps)
        if (first, second) == ("later", "earlier"):
            return Pair(expr.right, MIRRORED[expr.operator], expr.left, steps)
    return Test(expr, steps)


def side(expr: Expr) -> str:
    """Which of the two events an expression reads: earlier, later, both (or neither)."""
    later = {Which.NEXT, Which.CURRENT}
    sides = {"later" if n.which in later else "earlier" for n in walk(expr) if isinstance(n, Attribute)}
    return sides.pop() if len(sides) == 1 else "both"


def _with_roles(expr: Expr, earlier: str) -> Expr:
    """The same expression, with the attributes of the later event read as NEXT."""
    return with_attributes(expr, lambda one: one if one.variable == earlier else replace(one, which=Which.NEXT))


# ------------------------------------------------------------------------------------------------- moves


def _variables(pattern_spec: PatternSpec) -> list[str]:
    """The variable that entering each state binds."""
    return [pattern_spec.places[position].variable for position in pattern_spec.scopes[0].template.position_of]


def _edges(template: Template) -> list[tuple[int, Edge]]:
    return [(state, edge) for state, edges in enumerate(template.edges) for edge in edges]


def _moves_of(rule: Rule, pattern_spec: PatternSpec) -> frozenset[Move] | None:
    """The steps between two events that NEXT or [i-1] compares; None if it can reach further back."""
    template, variable = pattern_spec.scopes[0].template, _variables(pattern_spec)
    edges = _edges(template)
    if rule.shape.pair is not None:
        left, right = rule.shape.pair
        return frozenset((s, e.target) for s, e in edges if variable[s] == left and variable[e.target] == right)
    name = rule.shape.index
    later = _reached_from({s for s, v in enumerate(variable) if v == name}, edges)
    if any(variable[e.target] == name and variable[s] != name and s in later for s, e in edges):
        return None
    return frozenset((s, e.target) for s, e in edges if variable[s] == name and variable[e.target] == name)


def _moves_between(rule: Rule, pattern_spec: PatternSpec) -> tuple[frozenset[Move] | None, str | None]:
    """The steps from one of the two variables of a rule to the other, if no match binds both in any other way.

    Also the variable that comes first. A rule of one round looks at the steps inside a round only.
    """
    if any(place.branch for place in pattern_spec.places):
        return None, None
    for first, second in (sorted(rule.shape.each), sorted(rule.shape.each, reverse=True)):
        if rule.part is None and {first, second} & pattern_spec.plural:
            continue
        moves = _only_moves(rule, pattern_spec, first, second)
        if moves is not None:
            return moves, first
    return None, None


def _only_moves(rule: Rule, pattern_spec: PatternSpec, first: str, second: str) -> frozenset[Move] | None:
    template, variable = pattern_spec.scopes[0].template, _variables(pattern_spec)
    edges = _edges(template)
    inside = [(s, e) for s, e in edges if rule.part is None or rule.part not in e.rounds]
    one = {s for s, v in enumerate(variable) if v == first}
    other = {s for s, v in enumerate(variable) if v == second}
    after_first, after_second = _reached_from(one, inside), _reached_from(other, inside)
    if not one or not other or after_second & one or after_first & one or after_second & other:
        return None
    into = [(s, e) for s, e in inside if e.target in other and (s in one or s in after_first)]
    if any(s not in one for s, _ in into):
        return None
    moves = frozenset((s, e.target) for s, e in into)
    if any((s, e.target) in moves for s, e in edges if rule.part is not None and rule.part in e.rounds):
        return None
    return moves


def _reached_from(states: set[int], edges: list[tuple[int, Edge]]) -> set[int]:
    """What comes after some states, they themselves where they come again."""
    following: dict[int, set[int]] = {}
    for source, edge in edges:
        following.setdefault(source, set()).add(edge.target)
    after = set[int]().union(*(following.get(state, set()) for state in states))
    return closure(after, lambda state: following.get(state, set()))


@dataclass(frozen=True)
class Neighbours:
    """`conditions` on each pair of positions; `whole`: no other condition and no NOT decides about a match."""

    conditions: dict[Positions, tuple[Expr, ...]]
    whole: bool


def neighbours_of(pattern_spec: PatternSpec) -> Neighbours:
    """The conditions of a pattern on neighbours; attributes of the later one are read with NEXT or CURRENT."""
    automaton = Automaton(pattern_spec)
    position_of = pattern_spec.scopes[0].template.position_of
    found: dict[Positions, tuple[Expr, ...]] = {}
    whole = len(pattern_spec.scopes) == 1
    for rule in pattern_spec.scopes[0].rules:
        condition = adjacent(rule, pattern_spec, automaton)
        if isinstance(condition, Refusal):
            whole = False
            continue
        expr = _comparison(condition) if isinstance(condition, Pair) else condition.expr
        for state, step in condition.steps:
            key = position_of[state], automaton.steps[step].position
            found[key] = (*(one for one in found.get(key, ()) if one != expr), expr)
    return Neighbours(found, whole)


def _comparison(pair: Pair) -> Expr:
    return Comparison(cast("Any", pair.operator), pair.left, pair.right)


def empty_gaps(automaton: Automaton) -> tuple[EmptyGap, ...] | Refusal:
    """One for each such NOT of the pattern, equal NOTs together; or why a step is possible although one is violated."""
    found: dict[NegationGuard, set[tuple[int, int]]] = {}
    for state, step in automaton.transitions:
        crossed = [automaton.spec.scopes[crossing.scope].negation_guard for way in step.ways for crossing in way]
        guards = [guard for guard in crossed if guard is not None]
        if guards and len(step.ways) > 1:
            return SEVERAL_WAYS
        for guard in guards:
            found.setdefault(guard, set()).add((state, step.number))
    return tuple(EmptyGap(guard, frozenset(steps)) for guard, steps in found.items())


def pairs_of(pattern_spec: PatternSpec) -> tuple[Compared, ...] | Refusal:
    """The pairs, or why a run cannot be followed by its last event alone.

    A pair is `left(e) op right(f)`, two columns and an operator, for two consecutive events of a run. If all rules are
    such pairs and all NOTs are thresholds or pairs of columns, too, the successor of an event depends on that event
    alone, and runs can be followed by a table of successors.
    """
    if pattern_spec.scopes[0].open_ended:
        return Refusal(RefusalCode.NEGATION, "a leading or trailing NOT is decided on each complete match")
    automaton = Automaton(pattern_spec)
    refusal = run_refusal(pattern_spec, automaton)
    if refusal is not None:
        return refusal
    pairs: list[Pair] = []
    for rule in pattern_spec.scopes[0].rules:
        found = adjacent(rule, pattern_spec, automaton)
        if isinstance(found, Refusal):
            return found
        if isinstance(found, Test):
            return NO_COMPARISON
        pairs.append(found)
    gaps = empty_gaps(automaton)
    return gaps if isinstance(gaps, Refusal) else (*pairs, *gaps)


def pairs_in_order(pattern_spec: PatternSpec) -> tuple[Compared, ...] | Refusal:
    """The pairs of a pattern whose steps lead to later events; AND also allows events of one time."""
    pairs = pairs_of(pattern_spec)
    if not isinstance(pairs, Refusal) and any(place.branch for place in pattern_spec.places):
        return Refusal(RefusalCode.PATTERN, "AND lets events of one time follow each other")
    return pairs


def run_refusal(pattern_spec: PatternSpec, automaton: Automaton) -> Refusal | None:
    """Why steps of a run depend on more than two events, leading and trailing NOTs aside."""
    if len(pattern_spec.places) > MOST_POSITIONS:
        return Refusal(RefusalCode.PATTERN, f"the pattern has more than {MOST_POSITIONS} positions")
    if automaton.ambiguous or any(len(step.ways) > 1 for _, step in automaton.transitions):
        return SEVERAL_WAYS
    for scope in pattern_spec.scopes[1:]:
        if scope.parent == 0 and (scope.waits or scope.open_ended):
            return Refusal(RefusalCode.NEGATION, "a NOT depends on the match around it")
    return None
