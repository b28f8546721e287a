"""Which queries for complete trends are served by the trend graph: one flat Kleene variable, adjacent conditions.

Conditions on the whole variable are tested on the complete trends, where that is right (see `monotone`).
"""

from __future__ import annotations

from trendloom.expr.nodes import Expr, columns
from trendloom.kernels.matching.automaton import Machine
from trendloom.kernels.matching.spec import Detection, Pair
from trendloom.kernels.measures import Test
from trendloom.kernels.trends.complete.spec import Complete
from trendloom.planner.adjacency import adjacent
from trendloom.planner.algorithms.monotone import monotone


def complete_of(detection: Detection) -> tuple[Complete | None, str]:
    """What the kernel of complete trends receives, and the reason for it or against it."""
    template = detection.scopes[0].template
    if len(detection.scopes) > 1 or len(detection.places) > 1:
        return None, "the pattern is more than one variable with +"
    machine = Machine(detection)
    steps = (len(machine.starts[0]), [len(moves) for moves in machine.moves[0]])
    if steps != (1, [1]) or not template.accepts[0]:
        return None, "the pattern is not one variable with +"
    found: list[Pair | Test] = []
    whole: list[Expr] = []
    for rule in detection.scopes[0].rules:
        if rule.part is None and rule.shape.whole and not rule.shape.chosen:
            if not monotone(rule.expr):
                return None, "a condition on the whole of a match may fail for the longer of two"
            whole.append(rule.expr)
            continue
        one, obstacle = adjacent(rule, detection, machine)
        if one is None:
            return None, obstacle or "a predicate looks at more than two events"
        found.append(one)
    pairs = tuple(one for one in found if isinstance(one, Pair))
    tests = tuple(one for one in found if isinstance(one, Test))
    return Complete(detection.window, pairs, tests, whole=tuple(whole)), _how(pairs, tests) + _last(whole)


def _last(whole: list[Expr]) -> str:
    """What is tested on complete trends."""
    some = "a condition on the whole is" if len(whole) == 1 else "conditions on the whole are"
    return f"; {some} tested last: a trend around one that passes passes, too" if whole else ""


def _how(pairs: tuple[Pair, ...], tests: tuple[Test, ...]) -> str:
    """How the edges of the graph are found."""
    flat = "a variable with +, conditions on adjacent events"
    if tests:
        return f"{flat}; a condition fits no index: each event is tested with those of its windows, in columns"
    if not pairs:
        return f"{flat}; events in order of time"
    if any(pair.operator == "=" for pair in pairs):
        return f"{flat}; events before another are found by value"
    if len(pairs) == 1 and pairs[0].operator != "!=" and columns(pairs[0].left) == columns(pairs[0].right):
        return f"{flat}; events before another are found in order of value and time"
    return f"{flat}; each event is compared with those of its windows that do not precede it in another way"
