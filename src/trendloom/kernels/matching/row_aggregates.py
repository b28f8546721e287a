"""Aggregates of each row of a matrix of events: what `avg(b[].x)` is for every partial match at once.

Cost: O(rows · columns). Integer sums are exact: they leave int64 for Python integers where they could overflow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from trendloom.expr.arithmetic import average
from trendloom.expr.arrays import narrow
from trendloom.expr.vectors import Vector
from trendloom.model.schema import Kind

Array = np.ndarray[Any, Any]


def row_aggregate(function: str, column: Vector | None, events: Array, mask: Array) -> Vector:
    """One aggregate per row over the events where `mask` is set; NULL values are skipped."""
    if column is None:
        return Vector(Kind.INT, mask.sum(axis=1))
    if column.valid is not None:
        mask = mask & column.valid[events]
    count = mask.sum(axis=1)
    if function == "count":
        return Vector(Kind.INT, count)
    valid = None if (count > 0).all() else count > 0
    values = column.values[events]
    if function in ("min", "max"):
        return replace(column, values=_extreme(function, values, mask), valid=valid)
    added = _total(values, mask)
    total = replace(column, values=narrow(added, None) if added.dtype == object else added, valid=valid)
    return average(total, count) if function == "avg" else total


def _extreme(function: str, values: Array, mask: Array) -> Array:
    best = np.array(values[:, 0], copy=True)
    known = mask[:, 0].copy()
    better = np.less if function == "min" else np.greater
    for column in range(1, values.shape[1]):
        here = values[:, column]
        take = mask[:, column] & (~known | better(here, best))
        best[take] = here[take]
        known |= mask[:, column]
    return best


def _total(values: Array, mask: Array) -> Array:
    if values.dtype == np.int64 and values.size:
        most = max(abs(int(values.min())), abs(int(values.max())))
        if most * values.shape[1] >= 2**62:
            values = values.astype(object)
    total = np.zeros(len(values), values.dtype)
    for column in range(values.shape[1]):
        total = total + np.where(mask[:, column], values[:, column], 0)
    return total
