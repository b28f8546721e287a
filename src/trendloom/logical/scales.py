"""How many digits stand after the point of an exact value: known before anything runs, so results have one type.

As on paper: a sum, a difference or a remainder has as many as the longer operand, a product as many as both together;
`round` leaves at most as many as it says. What evaluation does with vectors (`expr.arithmetic`) follows the same rules.
"""

from __future__ import annotations

from decimal import Decimal

from trendloom.expr import nodes
from trendloom.model.numbers import scale_of
from trendloom.model.schema import Kind, Schema


def digits_after_point(expr: nodes.Expr, schema: Schema) -> int:
    """The scale of an expression; 0 where it is not of decimals."""
    if expr.kind is not Kind.DECIMAL:
        return 0
    match expr:
        case nodes.Constant(value):
            return scale_of(value) if isinstance(value, Decimal) else 0
        case nodes.Attribute() | nodes.Aggregate() | nodes.Total() | nodes.Group():
            return schema.scale(expr.column)
        case nodes.Fold("*", parts):
            return sum(digits_after_point(part.expr, schema) for part in parts)
        case nodes.Fold(_, parts):
            return max(digits_after_point(part.expr, schema) for part in parts)
        case nodes.Arithmetic("*", left, right):
            return digits_after_point(left, schema) + digits_after_point(right, schema)
        case nodes.Function("round", (operand, nodes.Constant(places))):
            return min(digits_after_point(operand, schema), max(int(places or 0), 0))
        case _:
            return max(digits_after_point(operand, schema) for operand in nodes.children(expr))
