"""Conditions on two adjacent events, evaluated for many pairs at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Attribute, Expr, Which
from trendloom.expr.vectors import Vector, is_true
from trendloom.kernels.columns.block import Block

Array = np.ndarray[Any, Any]


def true_of_pairs(tests: tuple[Expr, ...], block: Block, earlier: Array, later: Array) -> Array:
    """Whether all tests are true of every pair."""

    def leaf(expr: Expr) -> Vector:
        assert isinstance(expr, Attribute)
        side = later if expr.which in (Which.NEXT, Which.CURRENT) else earlier
        return block.columns[expr.column].take(side)

    passed = np.ones(len(earlier), np.bool_)
    for test in tests:
        passed &= is_true(evaluate(test, leaf))
    return passed
