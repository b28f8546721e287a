"""Values of matches, for a whole chunk at once: what RETURN and preferences compute from each match.

Every leaf is one pass over the events of the chunk's matches; expressions over leaves are vectorised.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from trendloom.expr.arithmetic import average
from trendloom.expr.nodes import Aggregate, Attribute, Expr, Extent, Fold, Group, Which
from trendloom.expr.vectors import Vector
from trendloom.kernels.columns import segments
from trendloom.kernels.columns.block import Block
from trendloom.kernels.matching.folds import ValuesOf, folded_exactly, folds_of_matches
from trendloom.kernels.matching.matches import Matches
from trendloom.kernels.matching.spec import Place
from trendloom.model.schema import Kind

Array = np.ndarray[Any, Any]


def binding_positions(places: tuple[Place, ...]) -> dict[str, Array]:
    """For each variable of the match which positions bind it."""
    names = {place.variable for place in places if place.scope == 0}
    return {name: np.array([p.variable == name and p.scope == 0 for p in places]) for name in names}


class MatchValues:
    """The leaves of values over one chunk of matches. `binds[v]`: which positions bind variable v.

    `values_of` reads a column of events, `group_of` an attribute that all events of a match share.
    """

    def __init__(
        self, block: Block, matches: Matches, binds: dict[str, Array], values_of: ValuesOf,
        group_of: ValuesOf | None = None,
    ) -> None:  # fmt: skip
        self.block, self.matches, self.binds = block, matches, binds
        self.values_of, self.group_of = values_of, group_of or values_of

    def leaf(self, expr: Expr) -> Vector:
        match expr:
            case Attribute():
                return self.values_of(expr.column, self.events(expr))
            case Aggregate():
                return self.aggregate(expr)
            case Extent():
                first, last = self.entry(expr.variable, Which.FIRST), self.entry(expr.variable, Which.LAST)
                time = self.block.time[self.matches.events]
                known = first >= 0
                return Vector(expr.kind, np.where(known, time[last] - time[first], 0), known)
            case Fold():
                flags = [self.flags(part.variable) for part in expr.parts]
                return folds_of_matches(expr, self.matches.offsets, flags, self.matches.events, self.values_of)
            case Group():
                return self.group_of(expr.column, self.matches.first)
        raise AssertionError(f"{expr} is not a value of a match")

    def entry(self, variable: str, which: Which) -> Array:
        """Per match the entry of the chunk where a variable is bound first or last; −1: nowhere."""
        find = segments.last_where if which is Which.LAST else segments.first_where
        found: Array = find(self.matches.offsets, self.flags(variable))
        return found

    def flags(self, variable: str) -> Array:
        return self.binds[variable][self.matches.positions]

    def events(self, expr: Attribute) -> Array:
        """Per match the event that an attribute is read from; −1: the variable is not bound."""
        entry = self.entry(expr.variable, expr.which)
        return entry if len(self.matches.events) == 0 else np.where(entry >= 0, self.matches.events[entry], -1)

    def aggregate(self, expr: Aggregate) -> Vector:
        offsets, flags = self.matches.offsets, self.flags(expr.variable)
        if expr.column is None:
            return Vector(Kind.INT, segments.count_where(offsets, flags))
        column = self.values_of(expr.column, self.matches.events)
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
        return folded_exactly(np.minimum if function == "min" else np.maximum, values, offsets, flags)
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
    return folded_exactly(np.add, values.astype(object), offsets, flags)
