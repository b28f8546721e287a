"""Which conditions speak of two adjacent events of a match, and on which steps.

`left(e) op right(f)` becomes a `Pair`: two columns and an operator, which ordered structures can answer. Any other
condition on two adjacent events is a `Test`. A condition on two variables that NEXT does not mention (`a.x < b.x`) is
one too, where events of the one always follow events of the other directly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

from trendloom.expr.nodes import MIRRORED, Aggregate, Attribute, Comparison, Expr, Extent, Which, walk, with_attributes
from trendloom.kernels.matching.automaton import Machine
from trendloom.kernels.matching.spec import Absence, Compared, Detection, EmptyGap, Pair, Rule
from trendloom.kernels.measures import Test
from trendloom.pattern.template import Edge, Template

Move = tuple[int, int]  # from a state to a state


def adjacent(rule: Rule, detection: Detection, machine: Machine) -> tuple[Pair | Test | None, str | None]:
    """The condition as a pair or a test, or why it is neither. `machine` says how steps are numbered."""
    if rule.shape.whole or any(isinstance(node, Aggregate | Extent) for node in walk(rule.expr)):
        return None, "a predicate looks at more than two events"
    if rule.shape.pair is None and not rule.shape.looks_back:
        if len(rule.shape.each) != 2:
            return None, "a predicate compares events that are not next to each other"
        moves, earlier = _moves_between(rule, detection)
        if moves is None:
            return None, "a predicate compares events that are not next to each other"
    elif rule.part is not None:
        return None, "a predicate speaks of the events of one round"
    elif len(rule.shape.chosen) > 2 or (rule.shape.looks_back and rule.shape.each):
        return None, "a predicate looks at more than two events"
    else:
        moves, earlier = _moves_of(rule, detection), None
        if moves is None:
            return None, "a predicate looks back past other events"
    return _numbered(rule.expr, earlier, moves, machine), None


def _numbered(expr: Expr, earlier: str | None, moves: frozenset[Move], machine: Machine) -> Pair | Test:
    steps = frozenset(
        (state, step.number)
        for state, steps in enumerate(machine.moves[0])
        for step in steps
        if (state, step.target) in moves
    )
    expr = expr if earlier is None else _with_roles(expr, earlier)
    if isinstance(expr, Comparison):
        first, second = side(expr.left), side(expr.right)
        if (first, second) == ("earlier", "later"):
            return Pair(expr.left, expr.operator, expr.right, steps)
        if (first, second) == ("later", "earlier"):
            return Pair(expr.right, MIRRORED[expr.operator], expr.left, steps)
    return Test(expr, steps)


def side(expr: Expr) -> str:
    """Which of the two events an expression speaks of: earlier, later, both (or neither)."""
    later = {Which.NEXT, Which.CURRENT}
    sides = {"later" if n.which in later else "earlier" for n in walk(expr) if isinstance(n, Attribute)}
    return sides.pop() if len(sides) == 1 else "both"


def _with_roles(expr: Expr, earlier: str) -> Expr:
    """The same expression, with the attributes of the later event read as NEXT."""
    return with_attributes(expr, lambda one: one if one.variable == earlier else replace(one, which=Which.NEXT))


# ------------------------------------------------------------------------------------------------- moves


def _variables(detection: Detection) -> list[str]:
    """The variable that entering each state binds."""
    return [detection.places[position].variable for position in detection.scopes[0].template.position_of]


def _edges(template: Template) -> list[tuple[int, Edge]]:
    return [(state, edge) for state, edges in enumerate(template.edges) for edge in edges]


def _moves_of(rule: Rule, detection: Detection) -> frozenset[Move] | None:
    """The steps between two events that NEXT or [i-1] compares; None if it can reach further back."""
    template, variable = detection.scopes[0].template, _variables(detection)
    edges = _edges(template)
    if rule.shape.pair is not None:
        left, right = rule.shape.pair
        return frozenset((s, e.target) for s, e in edges if variable[s] == left and variable[e.target] == right)
    name = rule.shape.index
    later = _reached_from({s for s, v in enumerate(variable) if v == name}, edges)
    if any(variable[e.target] == name and variable[s] != name and s in later for s, e in edges):
        return None
    return frozenset((s, e.target) for s, e in edges if variable[s] == name and variable[e.target] == name)


def _moves_between(rule: Rule, detection: Detection) -> tuple[frozenset[Move] | None, str | None]:
    """The steps from one of the two variables of a rule to the other, if no match binds both in any other way.

    Also the variable that comes first. A rule of one round looks at the steps inside a round only.
    """
    if any(place.branch for place in detection.places):
        return None, None
    for first, second in (sorted(rule.shape.each), sorted(rule.shape.each, reverse=True)):
        if rule.part is None and {first, second} & detection.plural:
            continue
        moves = _only_moves(rule, detection, first, second)
        if moves is not None:
            return moves, first
    return None, None


def _only_moves(rule: Rule, detection: Detection, first: str, second: str) -> frozenset[Move] | None:
    template, variable = detection.scopes[0].template, _variables(detection)
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
    seen: set[int] = set()
    todo = list(states)
    while todo:
        state = todo.pop()
        for source, edge in edges:
            if source == state and edge.target not in seen:
                seen.add(edge.target)
                todo.append(edge.target)
    return seen


# Which conditions speak of two neighbours of a match, by the positions that these fit.


Positions = tuple[int, int]


@dataclass(frozen=True)
class Neighbours:
    """`conditions` on each pair of positions; `whole`: no other condition and no NOT decides about a match."""

    conditions: dict[Positions, tuple[Expr, ...]]
    whole: bool


def neighbours_of(detection: Detection) -> Neighbours:
    """The conditions of a pattern on neighbours; attributes of the later one are read with NEXT or CURRENT."""
    machine = Machine(detection)
    position_of = detection.scopes[0].template.position_of
    found: dict[Positions, tuple[Expr, ...]] = {}
    whole = len(detection.scopes) == 1
    for rule in detection.scopes[0].rules:
        condition, _ = adjacent(rule, detection, machine)
        if condition is None:
            whole = False
            continue
        expr = _comparison(condition) if isinstance(condition, Pair) else condition.expr
        for state, step in condition.steps:
            key = position_of[state], machine.steps[step].position
            found[key] = (*(one for one in found.get(key, ()) if one != expr), expr)
    return Neighbours(found, whole)


def _comparison(pair: Pair) -> Expr:
    return Comparison(cast("Any", pair.operator), pair.left, pair.right)


# NOTs that depend on one event next to them, as comparisons of the two events of a step.


SEVERAL_WAYS = "there are several ways to derive a match"


def empty_gaps(machine: Machine) -> tuple[EmptyGap, ...] | str:
    """One for each such NOT of the pattern, equal NOTs together; or why a step is possible although one is violated."""
    found: dict[Absence, set[tuple[int, int]]] = {}
    for state, steps in enumerate(machine.moves[0]):
        for step in steps:
            absences = [machine.spec.scopes[crossing.scope].absence for way in step.ways for crossing in way]
            for absence in absences:
                if absence is not None:
                    found.setdefault(absence, set()).add((state, step.number))
            if any(absences) and len(step.ways) > 1:
                return SEVERAL_WAYS
    return tuple(EmptyGap(absence, frozenset(steps)) for absence, steps in found.items())


# Which rules compare two consecutive events of a run: `left(e) op right(f)`, two columns and an operator.
#
# If all rules are such pairs and all NOTs are thresholds or pairs of columns, too, the successor of an event depends on
# that event alone, and runs can be followed by a table of successors.


MOST_POSITIONS = 64


def pairs_of(detection: Detection) -> tuple[tuple[Compared, ...], str | None]:
    """The pairs, or the reason why a run cannot be followed by its last event alone."""
    machine = Machine(detection)
    obstacle = _obstacle(detection, machine)
    pairs: list[Pair] = []
    for rule in detection.scopes[0].rules if obstacle is None else ():
        found, obstacle = adjacent(rule, detection, machine)
        if not isinstance(found, Pair):
            return (), obstacle or "a predicate is not a comparison of one event with the other"
        pairs.append(found)
    gaps = empty_gaps(machine)
    if obstacle is not None or isinstance(gaps, str):
        return (), obstacle or SEVERAL_WAYS
    return (*pairs, *gaps), None


def _obstacle(detection: Detection, machine: Machine) -> str | None:
    if detection.scopes[0].open_ended:
        return "a leading or trailing NOT is decided on each complete match"
    return run_obstacle(detection, machine)


def run_obstacle(detection: Detection, machine: Machine) -> str | None:
    """Why steps of a run depend on more than two events, leading and trailing NOTs aside."""
    if len(detection.places) > MOST_POSITIONS:
        return f"the pattern has more than {MOST_POSITIONS} positions"
    if machine.ambiguous or any(len(step.ways) > 1 for steps in machine.moves[0] for step in steps):
        return SEVERAL_WAYS
    for scope in detection.scopes[1:]:
        if scope.parent == 0 and (scope.waits or scope.open_ended):
            return "a NOT depends on the match around it"
    return None
