"""What events add to a score, as compiled code reads it; or that it cannot: numbers beyond 64 bits, NULLs to skip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trendloom.expr.nodes import Fold
from trendloom.expr.vectors import Vector
from trendloom.kernels.columns.block import Block
from trendloom.kernels.ground.folds import values_of_parts
from trendloom.kernels.ground.spec import Detection
from trendloom.kernels.ranking.cells.graph import GREATEST, LEAST, PRODUCT, SUM, EventWeights
from trendloom.kernels.ranking.strata import Strata
from trendloom.model.schema import Kind

Array = np.ndarray[Any, Any]

OPERATORS = {"+": SUM, "*": PRODUCT, "least": LEAST, "greatest": GREATEST}
MOST = 2**62
"""Sums and products stay below this."""
MOST_DOUBLE = 1e300


@dataclass(frozen=True, eq=False)
class Weighing:
    """The weights of a block. `slack`: by how much folds from both ends can differ; `scale`: digits after the point."""

    weights: EventWeights
    slack: float
    scale: int

    @property
    def blanks(self) -> bool:
        """Whether an event has no weight where one is asked for."""
        return bool(self.weights.unknown.any())


def weighing_of(fold: Fold, detection: Detection, block: Block, longest: int, *, descending: bool) -> Weighing | None:
    """What events add to the fold, where small is good unless `descending`; None: compiled code cannot do it.

    `longest`: the most events that a match can have.
    """
    everyone = np.arange(len(block))
    found = values_of_parts(fold, [everyone] * len(fold.parts), lambda name, _: block.columns[name])
    positions = [detection.positions(0, part.variable) for part in fold.parts]
    if any(one.values.dtype == object for one in found):
        return None
    value = np.stack([one.values for one in found])
    unknown = np.stack([_unknown(one, block, at) for one, at in zip(found, positions, strict=True)])
    skipped = [part.variable in detection.plural and unknown[row].any() for row, part in enumerate(fold.parts)]
    if any(skipped) or not _fits(fold.operator, value, unknown, longest):
        return None
    row_of = {position: row for row, some in enumerate(positions) for position in some}
    row = np.array([row_of.get(position, -1) for position in detection.scopes[0].template.position_of], np.int64)
    operator = OPERATORS[fold.operator]
    weights = EventWeights(
        row, np.ascontiguousarray(value), unknown, _unit(operator, value), operator, -1 if descending else 1
    )
    scale = sum(one.scale for one in found) if fold.operator == "*" else max(one.scale for one in found)
    return Weighing(weights, _slack(operator, value, unknown, longest), scale)


def _unknown(vector: Vector, block: Block, positions: tuple[int, ...]) -> Array:
    """Which events have no weight although they fit where one is asked for."""
    unknown = np.zeros(len(block), np.bool_)
    if vector.valid is not None:
        for position in positions:
            events = block.members[position]
            unknown[events] |= ~vector.valid[events]
    return unknown


def _fits(operator: str, value: Array, unknown: Array, longest: int) -> bool:
    """Whether no fold can leave 64 bits, or the doubles."""
    known = np.where(unknown, value.dtype.type(0), value)
    if value.dtype == np.float64:
        if not np.isfinite(known).all():
            return False
        most = np.abs(known).max(axis=1, initial=0.0)
        with np.errstate(over="ignore"):
            return bool((most.max() * longest if operator == "+" else np.prod(np.maximum(most, 1.0))) < MOST_DOUBLE)
    largest = [max(abs(int(row.min(initial=0))), abs(int(row.max(initial=0)))) for row in known]
    if operator == "*":
        return int(np.prod([max(one, 1) for one in largest], dtype=object)) < MOST
    return max(largest) * (longest if operator == "+" else 1) < MOST


def _unit(operator: int, value: Array) -> Array:
    if operator in (SUM, PRODUCT):
        return np.array([operator], value.dtype)
    if value.dtype == np.float64:
        return np.array([np.inf if operator == LEAST else -np.inf])
    return np.array([MOST if operator == LEAST else -MOST], np.int64)


def _slack(operator: int, value: Array, unknown: Array, longest: int) -> float:
    """A bound of what the order of additions and products can change."""
    if value.dtype != np.float64 or operator in (LEAST, GREATEST):
        return 0.0
    most = np.where(unknown, 0.0, np.abs(value)).max(axis=1, initial=0.0)
    size = most.max() * longest if operator == SUM else float(np.prod(np.maximum(most, 1.0)))
    return float(4 * longest * np.finfo(np.float64).eps * size)


def fold_vector(values: Array, fold: Fold, scale: int) -> Vector:
    """Values of folds as a vector."""
    return Vector(Kind.FLOAT if values.dtype == np.float64 else fold.kind, values, scale=scale)


def strata_of(weights: EventWeights, block: Block, detection: Detection) -> Strata:
    """The events of each position of a sequence that have a weight, or need none; less weight is better."""
    nothing = weights.value.dtype.type(0)
    if weights.operator != SUM:
        nothing = np.finfo(np.float64).min if weights.value.dtype == np.float64 else np.int64(-MOST)
    events, values = [], []
    for state, position in enumerate(detection.scopes[0].template.position_of):
        members, row = block.members[position], weights.row[state]
        if row >= 0 and weights.unknown[row].any():
            members = members[~weights.unknown[row, members]]
        events.append(members)
        values.append(np.full(len(members), nothing) if row < 0 else weights.value[row, members] * weights.sign)
    begin = np.cumsum([0, *map(len, events)]).astype(np.int64)
    return Strata(begin, np.concatenate(events).astype(np.int32), np.concatenate(values), block.tie_end)
