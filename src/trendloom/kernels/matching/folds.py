"""Folds of what each event of a match gives: the values of their parts, and the folds of matches that are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trendloom.expr.arrays import narrow
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Attribute, Expr, Fold, Part
from trendloom.expr.vectors import Vector, aligned, nothing, to_doubles
from trendloom.kernels.columns import segments
from trendloom.kernels.jit.compiled import njit
from trendloom.model.schema import Kind

Array = np.ndarray[Any, Any]
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
