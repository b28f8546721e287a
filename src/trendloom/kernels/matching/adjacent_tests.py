"""Conditions on two adjacent events that are not a comparison of columns: `abs(b[i].x - b[i-1].x) < 2`.

Cost: one evaluation in NumPy per pair of events and condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Attribute, Expr, Which
from trendloom.expr.vectors import Vector, is_true
from trendloom.kernels.columns.block import Block

Array = np.ndarray[Any, Any]


def tests_hold(tests: Sequence[Expr], block: Block, earlier: Array, later: Array) -> Array:
    """Whether all tests are true of every pair of an earlier and a later event."""

    def leaf(expr: Expr) -> Vector:
        assert isinstance(expr, Attribute)
        side = later if expr.which in (Which.NEXT, Which.CURRENT) else earlier
        return block.columns[expr.column].take(side)

    hold = np.ones(len(earlier), np.bool_)
    for test in tests:
        hold &= is_true(evaluate(test, leaf))
    return hold
