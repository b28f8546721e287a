"""Four classes of conditions on Kleene variables, and where each is tested.

Under skip-till-any-match a match selects a subset of the events that could be selected, so a condition may be decided
once for all matches only if its value does not vary with the subset:

- *true-value consistent*: true against all events before, hence true against any of them (`b[i].x > max(b[..i-1].x)`);
- *false-value consistent*: false against all, hence false against any (`b[i].x < max(b[..i-1].x)`, `count(b[]) >= 3`);
- both: it is about single events (`b.x > 5`, `a.x < b.x`);
- inconsistent: neither (`b[i].x > b[i-1].x`, sum, avg): only the match itself decides.

The class follows from how the two sides of a comparison move as more events are selected: max, count and duration rise,
min falls, sum and avg do either. Values are taken to be known: a NULL is true-value consistent with nothing.
See Zhang, "High-Performance Complex Event Processing for Decision Analytics", ch. 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from enum import Enum

from trendloom.expr import nodes
from trendloom.expr.nodes import MIRRORED, Aggregate, Attribute, Comparison, Expr, Extent, Which
from trendloom.expr.quantifiers import shape_of
from trendloom.kernels.contract.pattern_spec import Compared, Pair, PatternSpec, Rule, Sieve
from trendloom.kernels.matching.automaton import Automaton
from trendloom.logical.display import show_expression
from trendloom.logical.plan import Condition, Plan

KEEPING_ORDER = frozenset({"floor", "ceil", "round", "least", "greatest"})
WALKED = "looked up in shared matching, walked by in result construction"
BOUNDS = "a bound in shared matching, for a step has two; decides in result construction"


class Consistency(Enum):
    """How the truth of a condition against all selected events relates to its truth against some of them."""

    TRUE = "true-value consistent"
    FALSE = "false-value consistent"
    BOTH = "true- and false-value consistent"
    NEITHER = "inconsistent"


Directions = frozenset[int]
"""How a value moves as more events are selected: the directions in which it may, 1 up and −1 down."""
FIXED: Directions = frozenset()
RISES, FALLS, EITHER = frozenset({1}), frozenset({-1}), frozenset({1, -1})
CLASSES = {
    FIXED: Consistency.BOTH,
    RISES: Consistency.FALSE,  # true of some events, true of more
    FALLS: Consistency.TRUE,
    EITHER: Consistency.NEITHER,
}
OF_AGGREGATES = {"max": RISES, "count": RISES, "min": FALLS, "sum": EITHER, "avg": EITHER}


def classify(expr: Expr, plural: frozenset[str]) -> Consistency:
    """The class of a conjunct; `plural` are the variables that bind several events."""
    shape = shape_of(expr)
    if shape.pair is not None and set(shape.pair) & plural:
        return Consistency.NEITHER  # which events are next to each other varies with the selection
    truth = _truth(expr, plural)
    if len(shape.each & plural) > 1:  # it must be true of all pairs: the more events, the harder
        truth |= FALLS
    return CLASSES[truth]


# ------------------------------------------------------------------------------------------- how values move


def _truth(expr: Expr, plural: frozenset[str]) -> Directions:
    """How the truth of a condition moves: up from false to true, or down."""
    match expr:
        case Comparison(operator, left, right):
            first, second = _value(left, plural), _value(right, plural)
            if operator in ("<", "<="):
                return _mirrored(first) | second
            if operator in (">", ">="):
                return first | _mirrored(second)
            return EITHER if first | second else FIXED
        case nodes.Junction():
            return FIXED.union(*(_truth(operand, plural) for operand in expr.operands))
        case nodes.Inverse():
            return _mirrored(_truth(expr.operand, plural))
        case _:
            return _fixed_or_either(nodes.children(expr) or (expr,), plural)


def _value(expr: Expr, plural: frozenset[str]) -> Directions:
    match expr:
        case Attribute():
            moves = expr.which in (Which.PREVIOUS, Which.FIRST, Which.LAST)
            return EITHER if moves and expr.variable in plural else FIXED
        case Aggregate():
            return OF_AGGREGATES[expr.function] if expr.variable in plural else FIXED
        case Extent():
            return RISES if expr.variable in plural else FIXED
        case nodes.Negate():
            return _mirrored(_value(expr.operand, plural))
        case nodes.Arithmetic():
            return _arithmetic(expr, plural)
        case nodes.Function() if expr.name in KEEPING_ORDER:
            return FIXED.union(*(_value(argument, plural) for argument in expr.arguments))
        case _:
            return _fixed_or_either(nodes.children(expr), plural)


def _arithmetic(expr: nodes.Arithmetic, plural: frozenset[str]) -> Directions:
    left, right = _value(expr.left, plural), _value(expr.right, plural)
    if expr.operator in ("+", "-"):
        return left | (right if expr.operator == "+" else _mirrored(right))
    for side, other in ((left, expr.right), (right, expr.left)):
        sign = _sign(other)
        if sign and (expr.operator == "*" or (expr.operator == "/" and other is expr.right)):
            return side if sign > 0 else _mirrored(side)
    return EITHER if left | right else FIXED


def _sign(expr: Expr) -> int:
    """1 or −1 for a number that is written down, else 0."""
    if isinstance(expr, nodes.Negate):
        return -_sign(expr.operand)
    value = expr.value if isinstance(expr, nodes.Constant) else None
    return (value > 0) - (value < 0) if isinstance(value, int | float | Decimal) else 0


def _fixed_or_either(exprs: Iterable[Expr], plural: frozenset[str]) -> Directions:
    return EITHER if any(_value(expr, plural) for expr in exprs) else FIXED


def _mirrored(moves: Directions) -> Directions:
    return frozenset(-direction for direction in moves)


# -------------------------------------------------------------------------------------------- early filters


def sieves_of(pattern_spec: PatternSpec) -> tuple[Sieve, ...]:
    """What false-value consistent conditions on an extreme of the events before discard at once."""
    automaton = Automaton(pattern_spec)
    return tuple(
        sieve for rule in pattern_spec.scopes[0].rules if (sieve := _sieve(rule, pattern_spec, automaton)) is not None
    )


def _sieve(rule: Rule, pattern_spec: PatternSpec, automaton: Automaton) -> Sieve | None:
    """`b[i].x < max(b[..i-1].x)`: some earlier b is greater. Likewise <= with max, > and >= with min."""
    expr = rule.expr
    if not isinstance(expr, Comparison) or classify(expr, pattern_spec.plural) is not Consistency.FALSE:
        return None
    if any(place.branch for place in pattern_spec.places):
        return None  # in an AND an event before may have the same time
    current, past, operator = expr.left, expr.right, str(expr.operator)
    if isinstance(current, Aggregate):
        current, past, operator = past, current, MIRRORED[operator]
    if not (isinstance(current, Attribute) and current.which is Which.CURRENT):
        return None
    if not (isinstance(past, Aggregate) and past.before and past.function in ("min", "max") and past.column):
        return None
    states = pattern_spec.scopes[0].template.position_of
    binds = [pattern_spec.places[position].variable == past.variable for position in states]
    steps = frozenset(
        (state, step.number) for state, step in automaton.transitions if binds[state] and binds[step.target]
    )
    positions = tuple(
        at for at, place in enumerate(pattern_spec.places) if place.scope == 0 and place.variable == past.variable
    )
    earlier = Attribute(past.variable, Which.PREVIOUS, past.column, past.kind)
    return Sieve(Pair(earlier, MIRRORED[operator], current, steps), positions)


# ---------------------------------------------------------------------------------------- where it is tested


def describe_predicates(
    plan: Plan, pattern_spec: PatternSpec, pairs: tuple[Compared, ...] | None
) -> Iterator[tuple[str, Consistency, str]]:
    """Every condition of the match, its class and where it is tested; `pairs` None: partial matches are expanded."""
    texts = dict.fromkeys(
        show_expression(expr, plan.schema.axis) for at, expr in plan.filters if not _negated(at, pattern_spec)
    )
    for text in texts:
        yield text, Consistency.BOTH, "decides which events fit, before matching"
    sifted = {sieve.pair.right for sieve in pattern_spec.sieves}
    steps = [step for pair in pairs or () for step in pair.steps]
    for number, condition in enumerate(c for c in plan.conditions if c.scope == 0):
        if pairs is None:
            where = _while_expanding(condition, sifted)
        else:
            alone = all(steps.count(step) == 1 for step in pairs[number].steps)
            where = WALKED if alone else BOUNDS
        yield condition.text, classify(condition.expr, pattern_spec.plural), where


def _negated(position: int, pattern_spec: PatternSpec) -> bool:
    return pattern_spec.places[position].scope != 0


def _how(condition: Condition) -> str:
    """How the events of an equality are found."""
    if condition.short_cut:
        return ", which is looked up; where its value is nowhere, nothing is tried"
    return ", which is looked up by value" if condition.looked_up else ""


def _while_expanding(condition: Condition, sifted: set[Expr]) -> str:
    if condition.decided_at is None:
        return "postponed to the complete match"
    discards = isinstance(condition.expr, Comparison) and {condition.expr.left, condition.expr.right} & sifted
    early = "discards events before matching, then " if discards else ""
    return f"{early}decides when a partial match binds {condition.decided_at}{_how(condition)}"
