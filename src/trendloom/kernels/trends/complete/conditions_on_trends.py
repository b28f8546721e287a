"""Which complete trends pass conditions on the trend as a whole: `count(p[]) > 10`, `max(p[].x) - min(p[].x) > 3`.

Cost: one pass over the events of the trends per aggregate, then one vectorised expression.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Aggregate, Expr, Extent
from trendloom.expr.vectors import Vector, is_true
from trendloom.kernels.columns import segments
from trendloom.kernels.columns.block import Block
from trendloom.model.schema import Kind

Array = np.ndarray[Any, Any]


def passing(conditions: tuple[Expr, ...], block: Block, offsets: Array, events: Array) -> Array:
    """Per trend, `events[offsets[t]:offsets[t + 1]]`, whether all conditions are true."""
    good = np.ones(len(offsets) - 1, np.bool_)

    def leaf(expr: Expr) -> Vector:
        if isinstance(expr, Extent):
            return Vector(expr.kind, block.time[events[offsets[1:] - 1]] - block.time[events[offsets[:-1]]])
        assert isinstance(expr, Aggregate)
        return _aggregate(expr, None if expr.column is None else block.columns[expr.column], offsets, events)

    for condition in conditions:
        good &= is_true(evaluate(condition, leaf))
    return good


def _aggregate(expr: Aggregate, column: Vector | None, offsets: Array, events: Array) -> Vector:
    if column is None:
        return Vector(Kind.INT, np.diff(offsets))
    known = np.ones(len(events), np.bool_) if column.valid is None else column.valid[events]
    if expr.function == "count":
        return Vector(Kind.INT, segments.count_where(offsets, known))
    find = segments.min_where if expr.function == "min" else segments.max_where
    if column.values.dtype == object:  # beyond 64 bits: compared by rank
        values, ranks = np.unique(column.values, return_inverse=True)
        least, found = find(offsets, ranks.reshape(-1)[events], known)
        return replace(column, values=values[least], valid=found)
    best, found = find(offsets, column.values[events], known)
    return replace(column, values=best, valid=found)
