"""One expression, one value: SQL's three-valued logic and aggregates on plain Python values.

`evaluate` walks the tree; `read` gives the value of each leaf (an event of a match, a group, an aggregate).
NULL is None. A result that is not a number (overflow of finite numbers included) is NULL too. Decimals are fractions:
exact among themselves and with integers; beside a float they are the nearest float.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

from trendloom.expr import nodes
from trendloom.expr.nodes import Expr
from trendloom.model.schema import Kind
from trendloom.reference.stream import Scalar, StreamEvent

Leaf = nodes.Attribute | nodes.Aggregate | nodes.Extent | nodes.Fold | nodes.Group | nodes.Total
Read = Callable[[Leaf], object]
Number = int | float | Fraction

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def evaluate(expr: Expr, read: Read) -> Scalar:
    """The value of an expression."""
    if isinstance(expr, nodes.Constant):
        return Fraction(expr.value) if isinstance(expr.value, Decimal) else expr.value
    if isinstance(expr, Leaf):
        return cast(Scalar, read(expr))
    if isinstance(expr, nodes.Junction):
        return _junction(expr.operator, [_truth(evaluate(operand, read)) for operand in expr.operands])
    if isinstance(expr, nodes.Inverse):
        truth = _truth(evaluate(expr.operand, read))
        return None if truth is None else not truth
    if isinstance(expr, nodes.NullTest):
        return (evaluate(expr.operand, read) is None) != expr.negated
    if isinstance(expr, nodes.Function):
        return _function(expr, [evaluate(argument, read) for argument in expr.arguments])
    if isinstance(expr, nodes.Wildcard):
        return _like(evaluate(expr.operand, read), expr.pattern)
    if isinstance(expr, nodes.Negate):
        operand = evaluate(expr.operand, read)
        return None if operand is None else -cast(Number, operand)
    left, right = evaluate(expr.left, read), evaluate(expr.right, read)
    if left is None or right is None:
        return None
    if isinstance(expr, nodes.Comparison):
        return _compare(expr.operator, left, right)
    return _arithmetic(expr.operator, cast(Number, left), cast(Number, right))


def _truth(value: Scalar) -> bool | None:
    return None if value is None else bool(value)


def _junction(operator: str, operands: Sequence[bool | None]) -> bool | None:
    decisive = operator == "or"  # one TRUE decides an OR, one FALSE an AND
    if any(operand is decisive for operand in operands):
        return decisive
    return None if any(operand is None for operand in operands) else not decisive


def _compare(operator: str, left: Scalar, right: Scalar) -> bool | None:
    if isinstance(left, float) or isinstance(right, float):
        left, right = _nearest(left), _nearest(right)
    return None if left is None or right is None else bool(_OPERATORS[operator](left, right))


def _nearest(value: Scalar) -> Scalar:
    """A decimal as the nearest float; NULL where it is beyond the floats."""
    try:
        return float(value) if isinstance(value, Fraction) else value
    except OverflowError:
        return None


def _arithmetic(operator: str, left: Number, right: Number) -> Number | None:
    if operator in ("/", "%") and right == 0:
        return None
    try:
        found = _OPERATORS[operator](left, right)
        return _number(float(found) if operator == "/" else found, left, right)
    except OverflowError:
        return None


def _number(result: Number, *operands: Number) -> Number | None:
    """The result; NULL where it is not a number, or infinite although every operand was finite."""
    if isinstance(result, int | Fraction):
        return result
    if math.isnan(result) or (math.isinf(result) and all(math.isfinite(operand) for operand in operands)):
        return None
    return result


def _like(value: Scalar, pattern: str) -> bool | None:
    if value is None:
        return None
    wild = {"%": ".*", "_": "."}
    expression = "".join(wild.get(character, re.escape(character)) for character in pattern)
    return re.fullmatch(expression, str(value), re.DOTALL) is not None


def _function(expr: nodes.Function, arguments: Sequence[Scalar]) -> Scalar:
    name = expr.name
    if expr.kind is Kind.FLOAT:
        arguments = [_nearest(value) for value in arguments]
    elif expr.kind is Kind.DECIMAL and name != "round":
        arguments = [Fraction(value) if isinstance(value, int) else value for value in arguments]
    if name == "coalesce":
        return next((argument for argument in arguments if argument is not None), None)
    if any(argument is None for argument in arguments):
        return None
    if name in ("lower", "upper", "length"):
        text = str(arguments[0])
        return len(text) if name == "length" else text.lower() if name == "lower" else text.upper()
    numbers = cast(Sequence[Number], arguments)
    if name in ("least", "greatest"):
        return min(numbers) if name == "least" else max(numbers)
    function = _round_to if len(numbers) == 2 else _MATHEMATICS[name]
    try:
        return _number(function(*numbers), numbers[0])
    except (ValueError, OverflowError):
        return None


def _round(value: Number) -> int:
    """To the nearest whole number, halves away from zero."""
    size = math.floor(abs(Fraction(value)) + Fraction(1, 2))
    return size if value >= 0 else -size


def _round_to(value: Number, digits: Number) -> float | Fraction:
    scale = Fraction(10) ** int(digits)
    rounded = Fraction(_round(Fraction(value) * scale)) / scale
    return rounded if isinstance(value, Fraction) else float(rounded)


_MATHEMATICS: dict[str, Callable[..., Number]] = {
    "abs": abs,
    "sqrt": math.sqrt,
    "ln": math.log,
    "exp": math.exp,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": _round,
}


# ---------------------------------------------------------------------------------------------- aggregates
#
# NULLs are skipped, and of nothing there is only a count. Inside one match (`aggregate`) numbers are added in time
# order with ordinary arithmetic. Over all matches (`total`) floats are added exactly and rounded once, which is the
# value that every engine must be near to. Integers and decimals are exact in both; their averages are the doubles
# nearest to the quotient.


def aggregate(function: str, column: str | None, events: Sequence[StreamEvent]) -> Scalar:
    """`f(b[].x)` of these events."""
    if column is None:
        return len(events)
    values = _present(event.value(column) for event in events)
    if function == "count":
        return len(values)
    if not values:
        return None
    if function in ("min", "max"):
        return cast(Scalar, min(values) if function == "min" else max(values))
    try:
        added = _added(values)
        return _finite(added if function == "sum" else average(added, len(values)), values)
    except OverflowError:
        return None


def average(added: Number, count: int) -> float:
    """A sum of so many numbers, divided."""
    return added / count if isinstance(added, float) else float(Fraction(added) / count)


def combined(operator: str, values: Sequence[Number], kind: Kind) -> Number | None:
    """The values from left to right, as doubles where `kind` is that of doubles."""
    try:
        numbers = [float(value) for value in values] if kind is Kind.FLOAT else list(values)
    except OverflowError:
        return None
    if operator in ("least", "greatest"):
        return min(numbers) if operator == "least" else max(numbers)
    found, *rest = numbers
    for number in rest:
        found = found + number if operator == "+" else found * number
    return _finite(found, numbers)


def _added(values: Sequence[Number]) -> Number:
    added: Number = 0
    for value in values:  # not sum(): it rounds differently from one Python to the next
        added = added + value
    return added


def _finite(result: Number, values: Sequence[Number]) -> Number | None:
    """NULL where the result is not a number, or infinite although every value was finite."""
    if isinstance(result, int | Fraction) or math.isfinite(result):
        return result
    return None if math.isnan(result) or all(math.isfinite(value) for value in values) else result


def extent(events: Sequence[StreamEvent]) -> int | None:
    """`duration(b)`: last minus first time."""
    times = [event.time for event in events]
    return max(times) - min(times) if times else None


def total(function: str, values: Iterable[object]) -> Scalar:
    """An aggregate of one value for every occurrence of an event in a match."""
    present = _present(values)
    if function == "count":
        return len(present)
    if not present:
        return None
    if function in ("min", "max"):
        return cast(Scalar, min(present) if function == "min" else max(present))
    if all(isinstance(value, int | Fraction) for value in present):
        added = sum(present)
        return added if function == "sum" else _rounded(Fraction(added) / len(present))
    if not all(math.isfinite(value) for value in present):
        infinite = _added([float(value) for value in present])
        return None if math.isnan(infinite) else infinite
    exact = sum((Fraction(value) for value in present), Fraction(0))
    return _rounded(exact if function == "sum" else exact / len(present))


def _rounded(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _present(values: Iterable[object]) -> list[Any]:
    return [value for value in values if value is not None]
