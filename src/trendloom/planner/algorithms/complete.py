"""Which queries for complete trends are served by the trend graph: one flat Kleene variable, adjacent conditions.

Conditions on the whole variable are tested on the complete trends, where that is right (see `monotone`).
"""

from __future__ import annotations

from trendloom.expr import nodes
from trendloom.expr.nodes import Expr, columns, walk
from trendloom.kernels.contract.aggregates import Test
from trendloom.kernels.contract.pattern_spec import Pair, PatternSpec
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.trends.complete import TrendGraphKernel
from trendloom.kernels.trends.graph import Complete
from trendloom.planner.adjacency import adjacent
from trendloom.planner.estimates import estimate_graph
from trendloom.planner.exists import HIDING
from trendloom.planner.request import Choice, PlanningRequest, Refusal, RefusalCode

# Which conditions on the whole of a match a match passes if one that it contains passes: `count(p[]) > 10`.
#
# Then complete trends can be found first and tested last. Proof: let M be the matches without the condition C. If m
# passes C and lies in n ∈ M, n passes C, too; so what is largest among those that pass is largest in M. Conversely,
# what is largest in M and passes is largest among those that pass.
#
# A side of a comparison *rises* if it never falls when events are added: `count`, `max`, `duration`; it *falls* if it
# never rises: `min`. NULL is what there is before the first value and never comes back. Sums and means do neither.


RISES = {"count": 1, "max": 1, "min": -1}


def monotone(expr: Expr) -> bool:
    """Whether a conjunct stays true when events are added to the variables that it reads as a whole."""
    if isinstance(expr, nodes.Junction):
        return all(monotone(operand) for operand in expr.operands)
    if not isinstance(expr, nodes.Comparison) or expr.operator in ("=", "!="):
        return False
    left, right = _rises(expr.left), _rises(expr.right)
    if left is None or right is None:
        return False
    low, high = (right, left) if expr.operator in (">", ">=") else (left, right)
    return high >= 0 >= low


def _rises(expr: Expr) -> int | None:
    """1: never falls when events are added; −1: never rises; 0: stays; None: undetermined."""
    if not any(isinstance(node, nodes.Attribute | nodes.Aggregate | nodes.Extent) for node in walk(expr)):
        return 0
    match expr:
        case nodes.Aggregate():
            return None if expr.before else RISES.get(expr.function)
        case nodes.Extent():
            return 1
        case nodes.Negate():
            found = _rises(expr.operand)
            return None if found is None else -found
        case nodes.Arithmetic(operator="+" | "-"):
            left, right = _rises(expr.left), _rises(expr.right)
            if left is None or right is None:
                return None
            right = right if expr.operator == "+" else -right
            return left + right if 0 in (left, right) else left if left == right else None
        case _:
            return None


def complete_of(pattern_spec: PatternSpec) -> tuple[Complete, str] | Refusal:
    """What the kernel of complete trends receives, with the reason for it; or why it cannot find them."""
    if pattern_spec.hidden:
        return HIDING
    template = pattern_spec.scopes[0].template
    if len(pattern_spec.scopes) > 1 or len(pattern_spec.places) > 1:
        return Refusal(RefusalCode.PATTERN, "the pattern is more than one variable with +")
    automaton = Automaton(pattern_spec)
    steps = (len(automaton.starts[0]), [len(moves) for moves in automaton.moves[0]])
    if steps != (1, [1]) or not template.accepts[0]:
        return Refusal(RefusalCode.PATTERN, "the pattern is not one variable with +")
    found: list[Pair | Test] = []
    whole: list[Expr] = []
    for rule in pattern_spec.scopes[0].rules:
        if rule.part is None and rule.shape.whole and not rule.shape.chosen:
            if not monotone(rule.expr):
                return Refusal(
                    RefusalCode.PREDICATE, "a condition on the whole of a match may fail for the longer of two"
                )
            whole.append(rule.expr)
            continue
        one = adjacent(rule, pattern_spec, automaton)
        if isinstance(one, Refusal):
            return one
        found.append(one)
    pairs = tuple(one for one in found if isinstance(one, Pair))
    tests = tuple(one for one in found if isinstance(one, Test))
    return Complete(pattern_spec.window, pairs, tests, whole=tuple(whole)), _how(pairs, tests) + _last(whole)


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


# Complete trends of one variable with +: paths through a graph (CET).
#
# See Poppe, "Event Stream Analytics", part on complete event trends.


def consider(request: PlanningRequest) -> Choice | Refusal:
    found = complete_of(request.pattern_spec)
    if isinstance(found, Refusal):
        return found
    graph, reason = found
    return Choice(
        TrendGraphKernel(request.pattern_spec, graph, request.limits.memory),
        "trend graph (CET): an edge where no longer path leads from one event to the other",
        reason,
        "O(edges · log events + events of trends), trends stored as far as the memory allows",
        "walk the graph: one trend at a time (M-CET), or by graphlets whose trends are stored (H-CET)",
        builds=True,
        estimate=estimate_graph(request, graph),
    )
