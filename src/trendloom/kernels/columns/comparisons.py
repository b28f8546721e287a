"""The two sides of a comparison as int64 columns whose order and equality are those of the values.

Integers stay as they are, and so do decimals, in units of one size; strings are ranks in a common dictionary, doubles
become the integers that sort like them (their bits, mirrored below zero). An integer compared with a double goes
through doubles where that is exact, else through common ranks. So a kernel compares nothing but int64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Attribute, Expr, Which
from trendloom.expr.vectors import Vector, aligned, is_true, unify
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.sort import sortable_integers
from trendloom.model.schema import Kind


def sides_of(left: Expr, right: Expr, block: Block) -> tuple[Vector, Vector]:
    """Both expressions of every event; their leaves are attributes of that event."""
    return _sides(evaluate(left, _of(block)), evaluate(right, _of(block)), len(block))


def _of(block: Block) -> Any:
    def leaf(expr: Expr) -> Vector:
        assert isinstance(expr, Attribute)
        return block.columns[expr.column]

    return leaf


def _sides(left: Vector, right: Vector, length: int) -> tuple[Vector, Vector]:
    same = left is right
    left, right = left.broadcast(length), right.broadcast(length)
    if Kind.NULL in (left.kind, right.kind):
        nothing = Vector(Kind.INT, np.zeros(length, np.int64), np.zeros(length, np.bool_))
        return nothing, nothing
    if left.dictionary is not None:
        left, right = unify([left, right])
        return left, right
    if left.kind is Kind.BOOL:
        return _with(left, left.values.astype(np.int64)), _with(right, right.values.astype(np.int64))
    left, right = aligned((left, right))
    if left.values.dtype == np.int64 and right.values.dtype == np.int64:
        return left, right
    if all(_exact_as_double(side) for side in (left, right)):
        first = _with(left, sortable_integers(left.values.astype(np.float64)))
        return first, first if same else _with(right, sortable_integers(right.values.astype(np.float64)))
    values = np.concatenate([left.values.astype(object), right.values.astype(object)])
    ranks = np.unique(values, return_inverse=True)[1].reshape(-1)
    return _with(left, ranks[:length]), _with(right, ranks[length:])


def _with(vector: Vector, values: Array) -> Vector:
    return Vector(Kind.INT, values, vector.valid)


def _exact_as_double(vector: Vector) -> bool:
    if vector.values.dtype == np.float64:
        return True
    if vector.values.dtype != np.int64 or len(vector) == 0:
        return len(vector) == 0
    return int(vector.values.min()) >= -(2**53) and int(vector.values.max()) <= 2**53


def tests_hold(tests: Sequence[Expr], block: Block, earlier: Array, later: Array) -> Array:
    """Whether all tests are true of every pair of an earlier and a later event.

    Tests are conditions that are not a comparison of columns: `abs(b[i].x - b[i-1].x) < 2`. Cost: one evaluation in
    NumPy per pair of events and test.
    """

    def leaf(expr: Expr) -> Vector:
        assert isinstance(expr, Attribute)
        side = later if expr.which in (Which.NEXT, Which.CURRENT) else earlier
        return block.columns[expr.column].take(side)

    hold = np.ones(len(earlier), np.bool_)
    for test in tests:
        hold &= is_true(evaluate(test, leaf))
    return hold
