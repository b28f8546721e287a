"""Expressions over whole columns: one NumPy operation per node, SQL's logic, the exact numbers of the language.

The caller evaluates the leaves (`leaf`): a predicate on one event reads columns of events, a value of a match reads
columns of matches, HAVING reads columns of groups. Constants have length 1 and so does every expression without a
leaf; `Vector.broadcast` gives full length. Cost: a few passes over the rows per node. The meaning is that of the scalar
evaluator of the reference, row by row; tests/property/test_expressions.py holds the two together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.functions import apply, like
from trendloom.expr.nodes import (
    Aggregate,
    Arithmetic,
    Attribute,
    Comparison,
    Constant,
    Expr,
    Extent,
    Fold,
    Function,
    Group,
    Inverse,
    Junction,
    Negate,
    NullTest,
    Total,
    Wildcard,
)
from trendloom.expr.operators import calculate, compare, negate
from trendloom.expr.vectors import Vector, constant, joint_length
from trendloom.model.schema import Kind

Leaf = Attribute | Aggregate | Extent | Fold | Group | Total


def evaluate(expr: Expr, leaf: Callable[[Leaf], Vector]) -> Vector:
    """The values of an expression for all rows; `leaf` gives the vector of each attribute, aggregate or group."""
    match expr:
        case Constant(value, kind):
            return constant(value, kind)
        case Attribute() | Aggregate() | Extent() | Fold() | Group() | Total():
            return leaf(expr)
        case Negate(operand, kind):
            return negate(evaluate(operand, leaf), kind)
        case Arithmetic(operator, left, right, kind):
            return calculate(operator, evaluate(left, leaf), evaluate(right, leaf), kind)
        case Comparison(operator, left, right):
            return compare(operator, evaluate(left, leaf), evaluate(right, leaf))
        case Junction(operator, operands):
            return _joined(operator, [evaluate(operand, leaf) for operand in operands])
        case Inverse(operand):
            return _inverted(evaluate(operand, leaf))
        case NullTest(operand, negated):
            return _null_test(evaluate(operand, leaf), negated)
        case Wildcard(operand, pattern):
            return like(evaluate(operand, leaf), pattern)
        case Function(name, arguments, kind):
            return apply(name, [evaluate(argument, leaf) for argument in arguments], kind)


def _truths(vector: Vector) -> tuple[Array, Array]:
    """Where a condition is true and where it is false; neither where it is unknown."""
    if vector.kind is Kind.NULL:
        nowhere = np.zeros(len(vector), np.bool_)
        return nowhere, nowhere
    if vector.valid is None:
        return vector.values, ~vector.values
    return vector.values & vector.valid, ~vector.values & vector.valid


def _joined(operator: str, operands: list[Vector]) -> Vector:
    """Kleene's AND: false if one is, true if all are, else unknown. OR is the same with the roles exchanged."""
    length = joint_length(operands)
    if all(operand.valid is None and operand.kind is Kind.BOOL for operand in operands):
        fold = np.logical_and if operator == "and" else np.logical_or
        return Vector(Kind.BOOL, _folded(fold, [operand.values for operand in operands], operator == "and", length))
    pairs = [_truths(operand) for operand in operands]
    if operator == "and":
        true = _folded(np.logical_and, [pair[0] for pair in pairs], True, length)
        false = _folded(np.logical_or, [pair[1] for pair in pairs], False, length)
    else:
        true = _folded(np.logical_or, [pair[0] for pair in pairs], False, length)
        false = _folded(np.logical_and, [pair[1] for pair in pairs], True, length)
    return Vector(Kind.BOOL, true, true | false)


def _folded(operation: np.ufunc, masks: list[Array], start: bool, length: int) -> Array:
    result: Array = np.full(length, start)
    for mask in masks:
        operation(result, mask, out=result)
    return result


def _inverted(operand: Vector) -> Vector:
    if operand.kind is Kind.NULL:
        return Vector(Kind.BOOL, np.zeros(len(operand), np.bool_), operand.valid)
    return Vector(Kind.BOOL, ~operand.values, operand.valid)


def _null_test(operand: Vector, negated: bool) -> Vector:
    if operand.valid is None:
        return Vector(Kind.BOOL, np.full(len(operand), negated))
    return Vector(Kind.BOOL, operand.valid.copy() if negated else ~operand.valid)
