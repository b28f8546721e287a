"""Values of matches: what RETURN computes from each match, for a whole chunk at once.

Every leaf is one pass over the events of the chunk's matches; expressions over leaves are vectorised.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from trendloom.engines.columnar.events import Stream
from trendloom.expr.arithmetic import average
from trendloom.expr.arrays import narrow
from trendloom.expr.nodes import Aggregate, Attribute, Expr, Extent, Group, Which
from trendloom.expr.vectors import Vector
from trendloom.kernels.columns import segments
from trendloom.kernels.columns.block import Block
from trendloom.kernels.ground.matches import Matches
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
        raise AssertionError(f"{expr} is not a value of a match")

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
        return _aggregate(expr, column, offsets, flags)


def _aggregate(expr: Aggregate, column: Vector, offsets: Array, flags: Array) -> Vector:
    count = segments.count_where(offsets, flags)
    if expr.function == "count":
        return Vector(Kind.INT, count)
    if expr.function in ("min", "max"):
        return replace(column, values=_extremes(expr.function, column.values, offsets, flags), valid=count > 0)
    total = replace(column, values=_sums(column.values, offsets, flags), valid=count > 0)
    return average(total, count) if expr.function == "avg" else total


def _extremes(function: str, values: Array, offsets: Array, flags: Array) -> Array:
    if values.dtype == object:
        return _folded(np.minimum if function == "min" else np.maximum, values, offsets, flags)
    find = segments.min_where if function == "min" else segments.max_where
    found: Array = find(offsets, values, flags)[0]
    return found


def _sums(values: Array, offsets: Array, flags: Array) -> Array:
    found: Array
    if values.dtype == np.float64:
        found = segments.sum_float(offsets, values, flags)
        return found
    if values.dtype == np.int64:
        found, over = segments.sum_int64(offsets, values, flags)
        if not over.any():
            return found
    return _folded(np.add, values.astype(object), offsets, flags)


def _folded(operation: np.ufunc, values: Array, offsets: Array, flags: Array) -> Array:
    """Integers beyond 64 bits, segment by segment; 0 where nothing is flagged."""
    before = np.r_[0, np.cumsum(flags)][offsets]
    some = np.flatnonzero(np.diff(before))
    found = np.zeros(len(offsets) - 1, object)
    if len(some):
        found[some] = operation.reduceat(values[flags], before[some])
    return narrow(found, None)
