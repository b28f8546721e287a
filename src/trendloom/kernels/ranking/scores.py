"""How matches are scored: the preferences of a ranking, their scores for a whole chunk at once, and operand windows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.evaluate import evaluate
from trendloom.expr.functions import apply
from trendloom.expr.nodes import Expr
from trendloom.expr.operators import average, calculate
from trendloom.expr.vectors import Vector, constant
from trendloom.kernels.columns import segments
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.segments import first_where
from trendloom.kernels.contract.match_values import MatchValues
from trendloom.kernels.contract.matches import Matches
from trendloom.model.schema import Kind
from trendloom.model.time import Window

RANK, SCORE = "rank", "score"
"""Columns of ranked rows."""


@dataclass(frozen=True)
class OperandSpan:
    """Events bound at these positions lie in the last `within` ticks of a window; without SLIDE, so close together."""

    positions: tuple[int, ...]
    within: int


@dataclass(frozen=True)
class Scoring:
    """The `limit` best matches of each window and key, or of each window (`overall`); NULL scores are the worst.

    A score is the one preference, or `merge` (sum, avg, min, max) of those of which a variable is bound. `variables`
    are those of each preference. `names` are the variables of all positions, by which ties are broken at last.
    `kind` and `scale`: of scores, and the digits after their point.
    """

    preferences: tuple[Expr, ...]
    merge: str | None
    descending: bool
    limit: int
    overall: bool
    variables: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]
    spans: tuple[OperandSpan, ...] = ()
    scale: int = 0
    kind: Kind = Kind.FLOAT


def scores_of(scoring: Scoring, values: MatchValues) -> Vector:
    """The scores of matches. A preference none of whose variables is bound is left out of a merge; NULL: no score."""
    length = len(values.matches)
    found = [evaluate(expr, values.leaf).broadcast(length) for expr in scoring.preferences]
    if scoring.merge is None:
        return found[0]
    bound = [_any_bound(values, names) for names in scoring.variables]
    kind = _common_kind(found)
    known = np.logical_and.reduce([_known(one) | ~there for one, there in zip(found, bound, strict=True)])
    found = [replace(one, valid=_known(one) & there) for one, there in zip(found, bound, strict=True)]
    merged = _sum(found, kind) if scoring.merge in ("sum", "avg") else _extreme(scoring.merge, found, kind)
    if scoring.merge == "avg":
        merged = average(merged, np.sum(bound, axis=0))
    return replace(merged, valid=known & np.logical_or.reduce(bound) & _known(merged))


def _known(vector: Vector) -> Array:
    return np.ones(len(vector), np.bool_) if vector.valid is None else vector.valid


def _common_kind(found: list[Vector]) -> Kind:
    kinds = {one.kind for one in found}
    return next((kind for kind in (Kind.FLOAT, Kind.DECIMAL) if kind in kinds), Kind.INT)


def _sum(found: list[Vector], kind: Kind) -> Vector:
    """The sum of what is known, from left to right."""
    nothing = constant(0, Kind.INT)
    total, *others = (apply("coalesce", [one, nothing], one.kind) for one in found)
    for more in others:
        total = calculate("+", total, more, kind)
    return total


def _extreme(function: str, found: list[Vector], kind: Kind) -> Vector:
    """The least or greatest of what is known."""
    best, *others = found
    for more in others:
        both = apply("least" if function == "min" else "greatest", [best, more], kind)
        best = apply("coalesce", [both, best, more], kind)
    return best


def _any_bound(values: MatchValues, names: tuple[str, ...]) -> Array:
    """Per match whether one of these variables is bound."""
    flags = np.zeros(len(values.matches.events), np.bool_)
    if not names:  # a constant is never left out
        return np.ones(len(values.matches), np.bool_)
    for name in names:
        flags |= values.flags(name)
    found: Array = first_where(values.matches.offsets, flags) >= 0
    return found


def inside_operand_spans(matches: Matches, block: Block, scoring: Scoring, window: Window) -> Matches:
    """The matches whose operands lie in the last part of the window, or close together. O(entries) each."""
    if not scoring.spans or not len(matches):
        return matches
    kept = np.ones(len(matches), np.bool_)
    time = block.time[matches.events]
    for span in scoring.spans:
        flags = np.isin(matches.positions, span.positions)
        first, last = (find(matches.offsets, flags) for find in (segments.first_where, segments.last_where))
        if matches.window_start is None:
            inside = time[last] - time[first] < span.within
        else:
            assert window.within is not None
            inside = time[first] >= matches.window_start + window.within - span.within
        kept &= inside | (first < 0)
    return matches if kept.all() else matches.take(np.flatnonzero(kept))
