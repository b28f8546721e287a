"""The best sequences of single events by a preference that is monotone in the part of each of them.

Parts are read in the order of what they can give (`parts`). Whether a preference is monotone may depend on the events:
a product is, where neither factor is negative. So that is looked at here, and where it is not so, all are listed.
Cost: that of `parts_in_windows`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Arithmetic, Attribute, Constant, Expr, Function, Negate
from trendloom.expr.vectors import Vector
from trendloom.kernels.columns.block import Block, check_range
from trendloom.kernels.contract.matches import Matches, join
from trendloom.kernels.ranking.kernel import ListingKernel, RankingKernel
from trendloom.kernels.ranking.parts import Parts, best_of_parts
from trendloom.kernels.ranking.select import best_of
from trendloom.kernels.ranking.windows import ranges_of

PART = " part"
"""The column that a part of a preference reads in `SequenceParts.whole`."""


@dataclass(frozen=True)
class SequenceParts:
    """A preference over a sequence: the positions and their variables in order, and by variable its part.

    `whole` is the preference with an attribute `PART` of a variable in the place of its part.
    """

    positions: tuple[int, ...]
    variables: tuple[str, ...]
    parts: tuple[tuple[str, Expr], ...]
    whole: Expr


@dataclass(frozen=True)
class PartsKernel(RankingKernel):
    """`listing`: what ranks matches where the preference is not monotone, or a part is NULL."""

    sequence: SequenceParts
    listing: ListingKernel

    def within(self, memory: int) -> Self:
        return replace(self, listing=self.listing.within(memory))

    def best(self, block: Block) -> Matches:
        if not len(block):
            return join([])
        check_range(block.time, self.pattern_spec.window)
        parts = self._parts(block)
        if parts is None:
            return self.listing.best(block)
        ranges, start = ranges_of(block, self.pattern_spec.window)
        found = best_of_parts(parts, ranges.low, ranges.high, self.scoring.limit, ties=True)
        if found.more.any() or np.isnan(found.scores).any():
            return self.listing.best(block)
        rows, length = found.events.shape
        starts = None if start is None else np.repeat(start, np.diff(found.offsets))
        positions = np.tile(np.array(self.sequence.positions, np.int32), rows)
        matches = Matches(np.arange(rows + 1, dtype=np.int64) * length, found.events.reshape(-1), positions, starts)
        return best_of(self.scored(block, matches), block, self.scoring).matches if rows else join([])

    def _parts(self, block: Block) -> Parts | None:
        """Events of each position with their parts, and how the score depends on them; None: it cannot be said."""
        given = dict(self.sequence.parts)
        events, vectors = [], {}
        for position, variable in zip(self.sequence.positions, self.sequence.variables, strict=True):
            members = block.members[position]
            events.append(members)
            vector = Vector(self.sequence.whole.kind, np.zeros(len(members), np.int64))
            if variable in given:
                vector = evaluate(given[variable], _columns_of(block, members)).broadcast(len(members))
            if vector.values.dtype == object or (vector.valid is not None and not vector.valid.all()):
                return None
            vectors[variable] = vector
        bounds = {name: _bounds(vector) for name, vector in vectors.items()}
        directions = directions_of(self.sequence.whole, bounds)
        if directions is None:
            return None
        sign = -1 if self.scoring.descending else 1
        rises = [directions.rises.get(name, True) == (sign > 0) for name in self.sequence.variables]
        values = [vectors[name].values for name in self.sequence.variables]
        return Parts(events, values, block.tie_end, self._score(vectors, sign), rises)

    def _score(self, vectors: dict[str, Vector], sign: int) -> Callable[[list[Array]], Array]:
        """Scores of parts, in which small is good; doubles, NaN where there is none."""
        column = {name: number for number, name in enumerate(self.sequence.variables)}

        def score(values: list[Array]) -> Array:
            def leaf(expr: Expr) -> Vector:
                assert isinstance(expr, Attribute)
                return replace(vectors[expr.variable], values=values[column[expr.variable]], valid=None)

            found = evaluate(self.sequence.whole, leaf).broadcast(len(values[0]))
            numbers = found.values.astype(np.float64) * sign
            return numbers if found.valid is None else np.where(found.valid, numbers, np.nan)

        return score


def _columns_of(block: Block, members: Array) -> Callable[[Expr], Vector]:
    def leaf(expr: Expr) -> Vector:
        assert isinstance(expr, Attribute)
        return block.columns[expr.column].take(members)

    return leaf


Bounds = tuple[float, float]


def _bounds(vector: Vector) -> Bounds:
    if not len(vector):
        return 0.0, 0.0
    unit = 10.0**vector.scale
    return float(vector.values.min()) / unit, float(vector.values.max()) / unit


# --------------------------------------------------------------------------------------------------- monotone

HUGE, TINY = 1e150, 1e-150
"""Numbers stay between these, so that no step is beyond the doubles."""
RISING: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt, "exp": math.exp, "floor": math.floor, "ceil": math.ceil, "round": lambda x: x + 1,
}  # fmt: skip
"""Functions that rise, and what bounds become."""
LARGE = dict.fromkeys(RISING, HUGE) | {"exp": 300.0}


@dataclass(frozen=True)
class Directions:
    """By variable whether an expression rises with its part, else falls; and the least and greatest value it has."""

    rises: dict[str, bool]
    low: float
    high: float


def directions_of(expr: Expr, bounds: dict[str, Bounds]) -> Directions | None:
    """How an expression depends on parts that lie between bounds; None: it is not monotone in one, or has no value."""
    match expr:
        case Constant(int() | float() as value):
            return Directions({}, float(value), float(value))
        case Attribute(variable):
            return _limited({variable: True}, *bounds[variable])
        case Negate(operand):
            return _turned(directions_of(operand, bounds))
        case Arithmetic("+", left, right):
            return _added(directions_of(left, bounds), directions_of(right, bounds))
        case Arithmetic("-", left, right):
            return _added(directions_of(left, bounds), _turned(directions_of(right, bounds)))
        case Arithmetic("*", left, right):
            return _multiplied(directions_of(left, bounds), directions_of(right, bounds))
        case Arithmetic("/", left, Constant(int() | float() as value)) if abs(value) > TINY:
            return _multiplied(directions_of(left, bounds), Directions({}, 1 / value, 1 / value))
        case Function(name, (operand,)):
            found = directions_of(operand, bounds)
            if name not in RISING or found is None or (name == "sqrt" and found.low < 0) or found.high > LARGE[name]:
                return None
            return _limited(found.rises, *(RISING[name](one) for one in (found.low, found.high)))
        case Function("least" | "greatest", arguments):
            return _joined([directions_of(one, bounds) for one in arguments])
    return None


def _limited(rises: dict[str, bool], low: float, high: float) -> Directions | None:
    """Directions of what stays far from the ends of the doubles."""
    return Directions(rises, low, high) if low > -HUGE and high < HUGE else None


def _turned(one: Directions | None) -> Directions | None:
    return (
        None if one is None else Directions({name: not rise for name, rise in one.rises.items()}, -one.high, -one.low)
    )


def _together(one: Directions, other: Directions) -> dict[str, bool] | None:
    """The directions of both; None: they differ."""
    if any(one.rises[name] != other.rises[name] for name in one.rises.keys() & other.rises.keys()):
        return None
    return one.rises | other.rises


def _added(one: Directions | None, other: Directions | None) -> Directions | None:
    if one is None or other is None:
        return None
    rises = _together(one, other)
    return None if rises is None else _limited(rises, one.low + other.low, one.high + other.high)


def _multiplied(one: Directions | None, other: Directions | None) -> Directions | None:
    """A product rises with factors as long as neither is negative; a negative constant turns it around."""
    if one is None or other is None:
        return None
    for constant, factor in ((one, other), (other, one)):
        if not constant.rises and constant.high < 0:
            return _multiplied(_turned(constant), _turned(factor))
    if not one.rises or not other.rises:  # a constant that is not negative
        rises = one.rises | other.rises
        products = [x * y for x in (one.low, one.high) for y in (other.low, other.high)]
        return _limited(rises, min(products), max(products))
    if one.low < 0 or other.low < 0:
        return None
    shared = _together(one, other)
    return None if shared is None else _limited(shared, one.low * other.low, one.high * other.high)


def _joined(several: list[Directions | None]) -> Directions | None:
    known = [one for one in several if one is not None]
    if len(known) < len(several):
        return None
    found = known[0]
    for one in known[1:]:
        rises = _together(found, one)
        if rises is None:
            return None
        found = Directions(rises, min(found.low, one.low), max(found.high, one.high))
    return found
