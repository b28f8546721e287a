"""Comparing vectors: exact between integers, decimals and doubles, by rank between strings, never true for NULL.

Strings over one dictionary are compared as ranks. A constant is looked up once in the other side's dictionary; two
dictionaries are merged first (at the cost of their size, not of the rows). An integer beyond 2^53 is compared with a
double by the double's floor and ceiling, because rounding the integer would make different numbers equal. Decimals are
compared in units of one size; beside a double a decimal is the double nearest to it, because a double that was written
as 0.3 is meant as 0.3.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import numpy as np

from trendloom.expr.arithmetic import small
from trendloom.expr.arrays import Array
from trendloom.expr.nodes import MIRRORED
from trendloom.expr.vectors import Vector, aligned, joint_length, joint_validity, nothing, unify
from trendloom.model.schema import Kind

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


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
