"""What events add to a score, as compiled code reads it; or that it cannot: numbers beyond 64 bits, NULLs to skip."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.nodes import Fold
from trendloom.expr.vectors import Vector
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.matches import fold_scale, values_of_parts
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.ranking.graph import GREATEST, LEAST, PRODUCT, SUM, EventWeights
from trendloom.kernels.ranking.strata import Strata
from trendloom.model.schema import Kind

OPERATORS = {"+": SUM, "*": PRODUCT, "least": LEAST, "greatest": GREATEST}
MOST = 2**62
"""Sums and products stay below this."""
MOST_DOUBLE = 1e300


@dataclass(frozen=True, eq=False)
class Weighing:
    """What events of a block add to a fold: by part their values, and where these are unknown (None: nowhere).

    `part_of`: by position the part that its events have. `position_of`: the positions of states. `sign`: 1 where small
    is good, else −1. `longest`: the most events that a match can have. `scale`: digits after the point.
    """

    operator: int
    sign: int
    part_of: Mapping[int, int]
    position_of: tuple[int, ...]
    values: tuple[Array, ...]
    unknown: tuple[Array | None, ...]
    longest: int
    scale: int

    @property
    def blanks(self) -> bool:
        """Whether an event has no weight where one is asked for."""
        return any(some is not None for some in self.unknown)

    def only(self, events: Array) -> Weighing:
        """The same for some events."""
        unknown = tuple(None if some is None else some[events] for some in self.unknown)
        return replace(self, values=tuple(some[events] for some in self.values), unknown=unknown)

    def without_weights(self) -> Weighing:
        """Nothing is added: every match has the same value."""
        values = tuple(np.zeros_like(some) for some in self.values)
        return replace(self, operator=SUM, values=values, unknown=(None,) * len(values))

    @cached_property
    def weights(self) -> EventWeights:
        """The same, as compiled code reads it."""
        value = np.stack(self.values)
        unknown = np.stack(
            [np.zeros(len(v), np.bool_) if u is None else u for v, u in zip(self.values, self.unknown, strict=True)]
        )
        rows = np.array([self.part_of.get(position, -1) for position in self.position_of], np.int64)
        return EventWeights(rows, value, unknown, _unit(self.operator, value), self.operator, self.sign)

    @cached_property
    def slack(self) -> float:
        """A bound of what the order of additions and products can change."""
        if self.values[0].dtype != np.float64 or self.operator in (LEAST, GREATEST):
            return 0.0
        most = [_largest(value, unknown) for value, unknown in zip(self.values, self.unknown, strict=True)]
        size = max(most) * self.longest if self.operator == SUM else float(np.prod(np.maximum(most, 1.0)))
        return float(4 * self.longest * np.finfo(np.float64).eps * size)


def weighing_of(
    fold: Fold, pattern_spec: PatternSpec, block: Block, longest: int, *, descending: bool, most: int = MOST
) -> Weighing | None:
    """What events add to the fold, where small is good unless `descending`; None: compiled code cannot do it.

    `longest`: the most events that a match can have. `most`: integers that are folded stay below it.
    """
    everyone = np.arange(len(block))
    found = values_of_parts(fold, [everyone] * len(fold.parts), lambda name, _: block.columns[name])
    positions = [pattern_spec.positions(0, part.variable) for part in fold.parts]
    if any(one.values.dtype == object for one in found):
        return None
    values = tuple(one.values for one in found)
    unknown = tuple(_unknown(one, block, at) for one, at in zip(found, positions, strict=True))
    skips = any(u is not None and p.variable in pattern_spec.plural for p, u in zip(fold.parts, unknown, strict=True))
    operator = OPERATORS[fold.operator]
    if skips or not _fits(operator, values, unknown, longest, most):
        return None
    part_of = {position: part for part, some in enumerate(positions) for position in some}
    states = pattern_spec.scopes[0].template.position_of
    sign = -1 if descending else 1
    return Weighing(operator, sign, part_of, states, values, unknown, longest, fold_scale(fold, found))


def _unknown(vector: Vector, block: Block, positions: tuple[int, ...]) -> Array | None:
    """Which events have no weight although they fit where one is asked for; None: none of them."""
    if vector.valid is None:
        return None
    unknown = np.zeros(len(block), np.bool_)
    for position in positions:
        events = block.members[position]
        unknown[events] |= ~vector.valid[events]
    return unknown if unknown.any() else None


def _largest(value: Array, unknown: Array | None) -> float:
    known = value if unknown is None else value[~unknown]
    return max(abs(known.min(initial=0).item()), abs(known.max(initial=0).item()))


def _fits(operator: int, values: tuple[Array, ...], unknown: tuple[Array | None, ...], longest: int, most: int) -> bool:
    """Whether no fold can leave 64 bits, or the doubles."""
    largest = [_largest(value, some) for value, some in zip(values, unknown, strict=True)]
    if not all(map(math.isfinite, largest)):
        return False
    if operator == PRODUCT:
        size = math.prod(max(one, 1) for one in largest)
    else:
        size = max(largest) * (longest if operator == SUM else 1)
    return size < (MOST_DOUBLE if values[0].dtype == np.float64 else most)


def _unit(operator: int, value: Array) -> Array:
    if operator in (SUM, PRODUCT):
        return np.array([operator], value.dtype)
    if value.dtype == np.float64:
        return np.array([np.inf if operator == LEAST else -np.inf])
    return np.array([MOST if operator == LEAST else -MOST], np.int64)


def fold_vector(values: Array, fold: Fold, scale: int) -> Vector:
    """Values of folds as a vector."""
    return Vector(Kind.FLOAT if values.dtype == np.float64 else fold.kind, values, scale=scale)


def strata_of(weighing: Weighing, block: Block, positions: tuple[int, ...]) -> Strata:
    """The events of each position of a sequence that have a weight, or need none; less weight is better."""
    kind = weighing.values[0].dtype
    nothing = kind.type(0)
    if weighing.operator != SUM:
        nothing = np.finfo(np.float64).min if kind == np.float64 else np.int64(-MOST)
    events, values = [], []
    for position in positions:
        members, part = block.members[position], weighing.part_of.get(position)
        if part is None:
            values.append(np.full(len(members), nothing, kind))
        else:
            unknown = weighing.unknown[part]
            members = members if unknown is None else members[~unknown[members]]
            values.append(weighing.values[part][members] * weighing.sign)
        events.append(members)
    begin = np.cumsum([0, *map(len, events)]).astype(np.int64)
    return Strata(begin, np.concatenate(events).astype(np.int32), np.concatenate(values), block.tie_end)
