"""Values of matches, for a whole chunk at once: what RETURN and preferences compute from each match.

Every leaf is one pass over the events of the chunk's matches; expressions over leaves are vectorised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from trendloom.expr.arrays import Array, narrow
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Aggregate, Attribute, Expr, Extent, Fold, Group, Part, Which
from trendloom.expr.operators import average
from trendloom.expr.vectors import Vector, aligned, nothing, to_doubles
from trendloom.kernels.columns import segments
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.matches import Matches
from trendloom.kernels.contract.pattern_spec import PatternPosition
from trendloom.kernels.jit.compiled import njit
from trendloom.model.schema import Kind

# Folds of what each event of a match gives: the values of their parts, and the folds of matches that are found.


ValuesOf = Callable[[str, Array], Vector]
"""The values that events of a block have in a column."""


def values_of_parts(fold: Fold, events: list[Array], values_of: ValuesOf) -> list[Vector]:
    """What events give to the parts of a fold, in numbers of one kind; those of part i are `events[i]`.

    Doubles where the fold is of doubles, else units of one size; a product is of the sizes of all its factors together.
    """
    found = [_value(part, some, values_of) for part, some in zip(fold.parts, events, strict=True)]
    if fold.kind is Kind.FLOAT:
        return [to_doubles(one) for one in found]
    return found if fold.operator == "*" else aligned(found)


def _value(part: Part, events: Array, values_of: ValuesOf) -> Vector:
    def leaf(expr: Expr) -> Vector:
        assert isinstance(expr, Attribute)
        return values_of(expr.column, events)

    vector = evaluate(part.expr, leaf)
    if vector.kind is Kind.NULL:
        return nothing(Kind.INT, len(events))
    return vector.broadcast(len(events))


def fold_scale(fold: Fold, values: list[Vector]) -> int:
    """The digits after the point of a fold of such values."""
    scales = [one.scale for one in values]
    return sum(scales) if fold.operator == "*" else max(scales)


def folds_of_matches(fold: Fold, offsets: Array, flags: list[Array], events: Array, values_of: ValuesOf) -> Vector:
    """The fold of each match; `flags[i]`: which entries are events of part i. O(entries), exact at any size."""
    entries = [np.flatnonzero(some) for some in flags]
    values = values_of_parts(fold, [events[some] for some in entries], values_of)
    given, known = _scattered(values, entries, len(events))
    valid = np.ones(len(offsets) - 1, np.bool_)
    for part, some, vector in zip(fold.parts, entries, values, strict=True):
        if part.counts:
            continue
        mine = np.zeros(len(events), np.bool_)
        mine[some] = True if vector.valid is None else vector.valid
        valid &= segments.first_where(offsets, mine) >= 0
    found = _folded(fold.operator, offsets, given, known)
    if found.dtype == np.float64:
        finite = np.isfinite(found) | ~segments.all_where(offsets, np.isfinite(given), known)
        valid &= finite & ~np.isnan(found)
    return Vector(fold.kind, found, None if valid.all() else valid, scale=fold_scale(fold, values))


def _scattered(values: list[Vector], entries: list[Array], length: int) -> tuple[Array, Array]:
    """Values of parts at the entries that they belong to, and which entries have one that is known."""
    kind = np.result_type(*(one.values.dtype for one in values))
    given, known = np.zeros(length, kind), np.zeros(length, np.bool_)
    for some, vector in zip(entries, values, strict=True):
        given[some] = vector.values
        known[some] = True if vector.valid is None else vector.valid
    return given, known


def _folded(operator: str, offsets: Array, values: Array, flags: Array) -> Array:
    found: Array
    if values.dtype == np.float64:
        found = _fold_doubles(offsets, values, flags, ("+", "*", "least", "greatest").index(operator))
        return found
    if values.dtype == np.int64 and operator != "*":
        if operator == "+":
            found, over = segments.sum_int64(offsets, values, flags)
            if not over.any():
                return found
        else:
            find = segments.min_where if operator == "least" else segments.max_where
            found = find(offsets, values, flags)[0]
            return found
    operation = {"+": np.add, "*": np.multiply, "least": np.minimum, "greatest": np.maximum}[operator]
    return folded_exactly(operation, values.astype(object), offsets, flags)


def folded_exactly(operation: np.ufunc, values: Array, offsets: Array, flags: Array) -> Array:
    """Integers beyond 64 bits, segment by segment; 0 where nothing is flagged."""
    before = np.r_[0, np.cumsum(flags)][offsets]
    some = np.flatnonzero(np.diff(before))
    found = np.zeros(len(offsets) - 1, object)
    if len(some):
        found[some] = operation.reduceat(values[flags], before[some])
    return narrow(found, None)


@njit(nogil=True)
def _fold_doubles(offsets: Array, values: Array, flags: Array, operator: int) -> Array:
    """The fold of each segment from its first entry on, every step rounded as doubles are. O(entries)."""
    found = np.zeros(len(offsets) - 1, np.float64)
    for segment in range(len(found)):
        first = True
        for entry in range(offsets[segment], offsets[segment + 1]):
            if not flags[entry]:
                continue
            value = values[entry]
            if first:
                found[segment] = value
            elif operator == 0:
                found[segment] += value
            elif operator == 1:
                found[segment] *= value
            elif operator == 2:
                found[segment] = min(found[segment], value)
            else:
                found[segment] = max(found[segment], value)
            first = False
    return found


def binding_positions(places: tuple[PatternPosition, ...]) -> dict[str, Array]:
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
