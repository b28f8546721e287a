"""Which rules compare two consecutive events of a run: `left(e) op right(f)`, two columns and an operator.

If all rules are such pairs and all NOTs are thresholds, the successor of an event depends on that event alone, and runs
can be followed by a table of successors.
"""

from __future__ import annotations

from trendloom.expr.nodes import Aggregate, Attribute, Comparison, Expr, Extent, Which, walk
from trendloom.kernels.detection.machine import Machine, Step
from trendloom.kernels.detection.spec import Detection, Pair, Rule

MOST_POSITIONS = 64
FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def pairs_of(detection: Detection) -> tuple[tuple[Pair, ...], str | None]:
    """The pairs, or the reason why a run cannot be followed by its last event alone."""
    machine = Machine(detection)
    obstacle = _obstacle(detection, machine)
    pairs: list[Pair] = []
    for rule in detection.scopes[0].rules if obstacle is None else ():
        found, obstacle = _pair(rule, detection, machine)
        if found is None:
            return (), obstacle
        pairs.append(found)
    return tuple(pairs), obstacle


def _obstacle(detection: Detection, machine: Machine) -> str | None:
    if len(detection.places) > MOST_POSITIONS:
        return f"the pattern has more than {MOST_POSITIONS} positions"
    if detection.scopes[0].open_ended:
        return "a leading or trailing NOT is decided on each complete match"
    if machine.ambiguous or any(len(step.ways) > 1 for step in machine.steps):
        return "there are several ways to derive a match"
    for scope in detection.scopes[1:]:
        if scope.parent == 0 and (scope.outer or scope.open_ended):
            return "a NOT depends on the match around it"
    return None


def _pair(rule: Rule, detection: Detection, machine: Machine) -> tuple[Pair | None, str | None]:
    expr, shape = rule.expr, rule.shape
    if rule.part is not None:
        return None, "a predicate speaks of the events of one round"
    if shape.pair is None and not shape.looks_back:
        return None, "a predicate compares events that are not next to each other"
    if not isinstance(expr, Comparison) or any(isinstance(n, Aggregate | Extent) for n in walk(expr)):
        return None, "a predicate looks at more than two events"
    if shape.whole or len(shape.chosen) > 2 or (shape.looks_back and shape.each):
        return None, "a predicate looks at more than two events"
    first, second = _side(expr.left), _side(expr.right)
    if {first, second} != {"earlier", "later"}:
        return None, "a predicate is no comparison of one event with the other"
    steps = _steps(rule, detection, machine)
    if steps is None:
        return None, "a predicate looks back past other events"
    if first == "earlier":
        return Pair(expr.left, expr.operator, expr.right, steps), None
    return Pair(expr.right, FLIPPED[expr.operator], expr.left, steps), None


def _side(expr: Expr) -> str:
    """Which of the two events an expression speaks of."""
    later = {Which.NEXT, Which.CURRENT}
    sides = {"later" if n.which in later else "earlier" for n in walk(expr) if isinstance(n, Attribute)}
    return sides.pop() if len(sides) == 1 else "both"


def _steps(rule: Rule, detection: Detection, machine: Machine) -> frozenset[tuple[int, int]] | None:
    """The steps between two events that the rule compares; None if it can reach further back."""
    variable = [detection.places[p].variable for p in detection.scopes[0].template.position_of]
    moves = [(state, step) for state, steps in enumerate(machine.moves[0]) for step in steps]

    def binds(step: Step) -> str:
        return detection.places[step.position].variable

    if rule.shape.pair is not None:
        left, right = rule.shape.pair
        return frozenset((s, step.number) for s, step in moves if variable[s] == left and binds(step) == right)
    name = rule.shape.index
    later = _reached_from({s for s, v in enumerate(variable) if v == name}, moves)
    if any(binds(step) == name and variable[state] != name and state in later for state, step in moves):
        return None
    return frozenset((s, step.number) for s, step in moves if variable[s] == name and binds(step) == name)


def _reached_from(states: set[int], moves: list[tuple[int, Step]]) -> set[int]:
    seen: set[int] = set()
    todo = list(states)
    while todo:
        state = todo.pop()
        for source, step in moves:
            if source == state and step.target not in seen:
                seen.add(step.target)
                todo.append(step.target)
    return seen
