"""One expression, one value: SQL's three-valued logic on plain Python values.

`evaluate` walks the tree; what the leaves mean (an event of a match, a group, an aggregate) is asked of `read`.
NULL is None. A result that is not a number (overflow of finite numbers included) is NULL too. Decimals are fractions:
exact among themselves and with integers; beside a float they are the nearest float.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import cast

from trendloom.expr import nodes
from trendloom.expr.nodes import Expr
from trendloom.model.schema import Kind
from trendloom.reference.stream import Scalar

Leaf = nodes.Attribute | nodes.Aggregate | nodes.Extent | nodes.Fold | nodes.Group | nodes.Total
Read = Callable[[Leaf], object]
Number = int | float | Fraction


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
    return _arithmetic(expr, cast(Number, left), cast(Number, right))


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
    if left is None or right is None:
        return None
    if operator == "=":
        return left == right
    if operator == "!=":
        return left != right
    small, large = cast(tuple[Number, Number], (left, right) if operator in ("<", "<=") else (right, left))
    return small < large if operator in ("<", ">") else small <= large


def _nearest(value: Scalar) -> Scalar:
    """A decimal as the nearest float; NULL where it is beyond the floats."""
    try:
        return float(value) if isinstance(value, Fraction) else value
    except OverflowError:
        return None


def _arithmetic(expr: nodes.Arithmetic, left: Number, right: Number) -> Number | None:
    if expr.operator in ("/", "%") and right == 0:
        return None
    try:
        return _number(_compute(expr.operator, left, right), left, right)
    except OverflowError:
        return None


def _compute(operator: str, left: Number, right: Number) -> Number:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    if operator == "%":
        return left % right
    quotient = left / right
    return float(quotient) if isinstance(quotient, Fraction) else quotient


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
    try:
        return _number(_mathematics(name, numbers), numbers[0])
    except (ValueError, OverflowError):
        return None


def _mathematics(name: str, numbers: Sequence[Number]) -> Number:
    value = numbers[0]
    if name == "abs":
        return cast(Number, abs(value))
    if name == "sqrt":
        return math.sqrt(value)
    if name == "ln":
        return math.log(value)
    if name == "exp":
        return math.exp(value)
    if name == "floor":
        return math.floor(value)
    if name == "ceil":
        return math.ceil(value)
    if name == "round":
        return _round(value) if len(numbers) == 1 else _round_to(value, int(numbers[1]))
    raise TypeError(f"no function '{name}'")


def _round(value: Number) -> int:
    """To the nearest whole number, halves away from zero."""
    size = math.floor(abs(Fraction(value)) + Fraction(1, 2))
    return size if value >= 0 else -size


def _round_to(value: Number, digits: int) -> float | Fraction:
    scale = Fraction(10) ** digits
    rounded = Fraction(_round(Fraction(value) * scale)) / scale
    return rounded if isinstance(value, Fraction) else float(rounded)
