"""Values of matches: what RETURN computes from each match, for a whole chunk at once.

Every leaf is one pass over the events of the chunk's matches; expressions over leaves are vectorised.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendloom.engines.events import Stream
from trendloom.errors import RunError
from trendloom.expr.nodes import Aggregate, Attribute, Expr, Extent, Group, Which
from trendloom.expr.vectors import Vector
from trendloom.kernels.columns import segments
from trendloom.kernels.columns.block import Block
from trendloom.kernels.detection.matches import Matches
from trendloom.model.schema import Kind

Array = np.ndarray[Any, Any]


class MatchValues:
    """The leaves of RETURN over one chunk of matches. `binds[v]`: which positions bind variable v."""

    def __init__(
        self, stream: Stream, block: Block, matches: Matches, binds: dict[str, Array], key_rows: Array
    ) -> None:
        self.stream, self.block, self.matches, self.binds, self.key_rows = stream, block, matches, binds, key_rows

    def leaf(self, expr: Expr) -> Vector:
        match expr:
            case Attribute():
                return self.stream.vector(expr.column).take(self.rows(expr))
            case Aggregate():
                return self.aggregate(expr)
            case Extent():
                first, last = self.entry(expr.variable, Which.FIRST), self.entry(expr.variable, Which.LAST)
                time = self.block.time[self.matches.events]
                known = first >= 0
                return Vector(expr.kind, np.where(known, time[last] - time[first], 0), known)
            case Group():
                rows = self.key_rows[self.block.key[self.matches.first]]
                return self.stream.vector(expr.column).take(rows)
        raise AssertionError(f"{expr} is no value of a match")

    def entry(self, variable: str, which: Which) -> Array:
        """Per match the entry of the chunk where a variable is bound first or last; −1: nowhere."""
        find = segments.last_where if which is Which.LAST else segments.first_where
        found: Array = find(self.matches.offsets, self.flags(variable))
        return found

    def flags(self, variable: str) -> Array:
        return self.binds[variable][self.matches.positions]

    def rows(self, expr: Attribute) -> Array:
        """Per match the input row an attribute is read from; −1: the variable is not bound."""
        entry = self.entry(expr.variable, expr.which)
        if len(self.matches.events) == 0:
            return entry
        return np.where(entry >= 0, self.block.row[self.matches.events[entry]], -1)

    def aggregate(self, expr: Aggregate) -> Vector:
        offsets, flags = self.matches.offsets, self.flags(expr.variable)
        if expr.column is None:
            return Vector(Kind.INT, segments.count_where(offsets, flags))
        column = self.stream.vector(expr.column).take(self.block.row[self.matches.events])
        if column.valid is not None:
            flags = flags & column.valid
        if column.values.dtype == object:
            column = _as_int64(column, expr)
        return _aggregate(expr, column, offsets, flags)


def _aggregate(expr: Aggregate, column: Vector, offsets: Array, flags: Array) -> Vector:
    count = segments.count_where(offsets, flags)
    if expr.function == "count":
        return Vector(Kind.INT, count)
    if expr.function in ("min", "max"):
        find = segments.min_where if expr.function == "min" else segments.max_where
        values, found = find(offsets, column.values, flags)
        return Vector(expr.kind, values, found, column.dictionary)
    total: Array
    if column.values.dtype == np.float64:
        total = segments.sum_float(offsets, column.values, flags)
    else:
        total, over = segments.sum_int64(offsets, column.values, flags)
        if over.any():
            raise _overflow(expr)
    if expr.function == "avg":
        return Vector(Kind.FLOAT, total / np.maximum(count, 1), count > 0)
    return Vector(expr.kind, total, count > 0)


def _as_int64(column: Vector, expr: Aggregate) -> Vector:
    try:
        return Vector(column.kind, column.values.astype(np.int64), column.valid)
    except OverflowError:
        raise _overflow(expr) from None


def _overflow(expr: Aggregate) -> RunError:
    return RunError(
        f"{expr.function}({expr.variable}[].{expr.column}) of a match is beyond 64 bits",
        hint="cast the column to a floating-point type",
    )
