"""+ - * / % and comparisons on vectors: exact between integers and decimals, doubles as IEEE says, NULL as in SQL.

Integers stay in int64 as long as the operands' bounds prove that no result can leave it: two passes for the bounds,
one for the operation. Otherwise the column goes through Python ints (about 100 ns per row) and comes back to int64
where the results fit. Times, durations and units of decimals are integers here. Bounds and operations also run over
slots that are NULL, whose results are ignored.

Strings over one dictionary are compared as ranks. A constant is looked up once in the other side's dictionary; two
dictionaries are merged first (at the cost of their size, not of the rows). An integer beyond 2^53 is compared with a
double by the double's floor and ceiling, because rounding the integer would make different numbers equal. Beside a
double a decimal is the double nearest to it: a double that was written as 0.3 is meant as 0.3.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from trendloom.expr.arrays import EXACT_DOUBLE, Array, as_float, narrow, quotient
from trendloom.expr.decimals import as_doubles
from trendloom.expr.nodes import MIRRORED
from trendloom.expr.vectors import Vector, aligned, joint_length, joint_validity, known_doubles, nothing, unify
from trendloom.model.schema import Kind

LEAST, MOST = -(2**63), 2**63 - 1

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "%": np.mod,
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def calculate(operator: str, left: Vector, right: Vector, kind: Kind) -> Vector:
    """`left operator right`; NULL where an operand is, where the divisor is 0, where doubles overflow or give NaN."""
    length = joint_length((left, right))
    if Kind.NULL in (left.kind, right.kind):
        return nothing(kind, length)
    valid = joint_validity((left, right), length)
    if operator in "/%":
        right, valid = _without_zeros(right, valid, length)
    doubles = np.float64 in (left.values.dtype, right.values.dtype)
    if doubles or operator != "*":
        left, right = aligned((left, right))
    if operator == "/":
        return finish(_quotients(left, right), valid, kind)
    if doubles:
        return finish(_of_doubles(_OPERATIONS[operator], left.values, right.values), valid, kind)
    scale = left.scale + right.scale if operator == "*" else left.scale
    return finish(_of_integers(operator, left, right, valid), valid, kind, scale)


def negate(operand: Vector, kind: Kind) -> Vector:
    """`-operand`."""
    if operand.kind is Kind.NULL:
        return nothing(kind, len(operand))
    if operand.values.dtype == np.float64:
        return finish(-operand.values, operand.valid, kind)
    return calculate("-", Vector(operand.kind, np.zeros(1, np.int64), scale=operand.scale), operand, kind)


def average(total: Vector, count: Array) -> Vector:
    """Sums divided by how many values they are of, each quotient rounded once; NULL where the sum is."""
    return calculate("/", total, Vector(Kind.INT, np.maximum(count, 1)), Kind.FLOAT)


def finish(values: Array, valid: Array | None, kind: Kind, scale: int = 0) -> Vector:
    """A numeric result as a vector of its kind, NaN as NULL."""
    if kind is Kind.FLOAT:
        values = as_doubles(values, scale)
    if values.dtype == np.float64:
        return known_doubles(values, valid, kind)
    return Vector(kind, values, valid, scale=scale)


def bounds(vector: Vector, *, valid_only: bool = False) -> tuple[int, int]:
    """Least and greatest integer, and 0: over all slots, which is cheap and safe, or over the valid ones alone."""
    values = vector.values
    if valid_only and vector.valid is not None:
        values = values[vector.valid]
    if len(values) == 0:
        return 0, 0
    return min(int(values.min()), 0), max(int(values.max()), 0)


def small(vector: Vector) -> bool:
    """Whether every integer is a double without rounding."""
    if vector.values.dtype == np.object_:
        return False
    return any(_within(bounds(vector, valid_only=known), -EXACT_DOUBLE, EXACT_DOUBLE) for known in (False, True))


def _within(found: tuple[int, int], least: int, most: int) -> bool:
    return least <= found[0] and found[1] <= most


def _without_zeros(divisor: Vector, valid: Array | None, length: int) -> tuple[Vector, Array | None]:
    """The divisor with 1 in place of 0 and of what is not known, and the mask without those rows."""
    zero = divisor.values == 0
    if not zero.any():
        return divisor, valid
    valid = np.broadcast_to(~zero if valid is None else valid & ~zero, length)
    return replace(divisor, values=np.where(zero, 1, divisor.values)), valid


def _of_doubles(operation: Callable[[Any, Any], Any], left: Array, right: Array) -> Array:
    """The IEEE result, with NaN where finite operands overflow."""
    left, right = as_float(left), as_float(right)
    with np.errstate(all="ignore"):
        results = np.asarray(operation(left, right))
    infinite = np.isinf(results)
    if infinite.any():
        results[infinite & np.isfinite(left) & np.isfinite(right)] = np.nan
    return results


def _of_integers(operator: str, left: Vector, right: Vector, valid: Array | None) -> Array:
    operation = _OPERATIONS[operator]
    if np.object_ not in (left.values.dtype, right.values.dtype) and _fits(operator, left, right):
        return np.asarray(operation(left.values, right.values))
    wide = operation(left.values.astype(object), right.values.astype(object))
    return narrow(np.asarray(wide, dtype=object), valid)


def _fits(operator: str, left: Vector, right: Vector) -> bool:
    """Whether no result can leave int64. A remainder lies between 0 and its divisor."""
    if operator == "%":
        return True
    return any(
        _within(_reach(operator, bounds(left, valid_only=known), bounds(right, valid_only=known)), LEAST, MOST)
        for known in (False, True)
    )


def _reach(operator: str, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    """Bounds of the results from bounds of the operands."""
    if operator == "+":
        return left[0] + right[0], left[1] + right[1]
    if operator == "-":
        return left[0] - right[1], left[1] - right[0]
    products = [one * other for one in left for other in right]
    return min(products), max(products)


def _quotients(left: Vector, right: Vector) -> Array:
    """Real division. Integers that doubles cannot hold are divided exactly, then rounded once."""
    if np.float64 in (left.values.dtype, right.values.dtype) or (small(left) and small(right)):
        return _of_doubles(np.divide, left.values, right.values)
    wide = np.broadcast_arrays(left.values.astype(object), right.values.astype(object))
    return np.fromiter(map(quotient, wide[0].tolist(), wide[1].tolist()), np.float64, len(wide[0]))


# ---------------------------------------------------------------------------------------------- comparisons


def compare(operator: str, left: Vector, right: Vector) -> Vector:
    """`left operator right` as a BOOL vector."""
    length = joint_length((left, right))
    if Kind.NULL in (left.kind, right.kind):
        return nothing(Kind.BOOL, length)
    left, right = aligned((left, right))
    if left.dictionary is not None and right.dictionary is not None:
        truth = _compare_strings(operator, left, right)
    else:
        with np.errstate(invalid="ignore"):  # NaN lies in slots that are NULL
            truth = _compare_numbers(operator, left, right)
    return Vector(Kind.BOOL, truth, joint_validity((left, right), length))


def _compare_strings(operator: str, left: Vector, right: Vector) -> Array:
    if left.dictionary is not right.dictionary:
        if len(right) == 1:
            return _compare_with_text(operator, left, right)
        if len(left) == 1:
            return _compare_with_text(MIRRORED[operator], right, left)
        left, right = unify((left, right))
    return np.asarray(_OPERATIONS[operator](left.values, right.values))


def _compare_with_text(operator: str, texts: Vector, one: Vector) -> Array:
    """A column with one text: where the text is not in the dictionary, its place there decides."""
    assert texts.dictionary is not None
    assert one.dictionary is not None
    text = one.dictionary[one.values[0]]
    place = bisect_left(texts.dictionary, text)
    if place == len(texts.dictionary) or texts.dictionary[place] != text:
        if operator in ("=", "!="):
            return np.full(len(texts), operator == "!=")
        operator = "<" if operator in ("<", "<=") else ">="
    return np.asarray(_OPERATIONS[operator](texts.values, place))


def _compare_numbers(operator: str, left: Vector, right: Vector) -> Array:
    if left.values.dtype == np.float64 and right.values.dtype != np.float64:
        return _compare_mixed(MIRRORED[operator], right, left)
    if right.values.dtype == np.float64 and left.values.dtype != np.float64:
        return _compare_mixed(operator, left, right)
    return np.asarray(_OPERATIONS[operator](left.values, right.values), dtype=np.bool_)


def _compare_mixed(operator: str, integers: Vector, doubles: Vector) -> Array:
    """Integers with doubles, as exact numbers."""
    operation = _OPERATIONS[operator]
    if integers.values.dtype == np.object_:
        return np.asarray(operation(integers.values, doubles.values.astype(object)), dtype=np.bool_)
    if small(integers):
        return np.asarray(operation(integers.values.astype(np.float64), doubles.values))
    return np.asarray(operation(_order(integers.values, doubles.values), 0))


def _order(integers: Array, doubles: Array) -> Array:
    """-1, 0 or 1 for less, equal, greater: i < d exactly if i < ceil(d), and i > d exactly if i > floor(d)."""
    above, below = doubles >= 2.0**63, doubles < -(2.0**63)
    inside = np.where(above | below | np.isnan(doubles), 0.0, doubles)
    less = integers < np.ceil(inside).astype(np.int64)
    greater = integers > np.floor(inside).astype(np.int64)
    order = greater.astype(np.int8) - less.astype(np.int8)
    return np.where(above, -1, np.where(below, 1, order))
