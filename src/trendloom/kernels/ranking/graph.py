"""The graph of a ranked pattern over a block, and what its events add to a score, as compiled code reads it.

Cells are pairs of state and event. A match is a path from a state that starts to one that accepts; every cell whose
position has a part of the preference has a weight, and the value of a path is the fold of its weights. What a move may
lead to depends on the two events it joins alone, and there are several ways to find the best of what came before:

- FREE: no predicate and no NOT: the best cell so far of a state;
- EQUAL: one equality: the best of each value; ORDER: one order predicate: a Fenwick tree over ranks of values;
- RECENT: NOTs alone: what they let through are the latest cells, so a stack whose values worsen towards the latest;
- TESTED: everything else: cells are tested one by one, from the latest back to the first that a NOT cuts off;
- STEP: under skip-till-next-match and contiguous: the successors of a cell are known (`successors`).

Compiled code cannot hold numbers beyond 64 bits, and skips no NULLs: then there is no weighing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.nodes import Fold
from trendloom.expr.vectors import Vector
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.matches import fold_scale, values_of_parts
from trendloom.kernels.contract.pattern_spec import Compared, PatternSpec
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.reachability import accepting, cuts_of, places_of_pair
from trendloom.kernels.matching.successors import successors_of
from trendloom.kernels.matching.tables import OPERATORS, Checks, Moves, checks_of, fitting_bits, moves_of
from trendloom.model.schema import Kind

FREE, EQUAL, ORDER, RECENT, TESTED, STEP = range(6)
SUM, PRODUCT, LEAST, GREATEST = range(4)
"""How weights are folded."""
FOLDS = {"+": SUM, "*": PRODUCT, "least": LEAST, "greatest": GREATEST}
MOST = 2**62
"""Sums and products stay below this."""
MOST_DOUBLE = 1e300


@njit(**INSIDE, forceinline=True)
def folded(operator: int, before: Any, weight: Any) -> Any:
    """A fold with one more weight."""
    if operator == SUM:
        return before + weight
    if operator == GREATEST:
        return max(before, weight)
    return before * weight if operator == PRODUCT else min(before, weight)


class EventWeights(NamedTuple):
    """By state which row of `value` its events read (−1: none), and where that is `unknown`; smaller folds are better.

    `unit` holds what an empty fold is, in the type of the weights: of products −1 where the greatest are best.
    """

    row: Array
    value: Array
    unknown: Array
    unit: Array
    operator: int


class Strata(NamedTuple):
    """The events that fit each position of a sequence; less weight is better.

    Stratum t has the entries from `begin[t]` to `begin[t + 1]`: `event` (ascending) and `weight` (finite). `tie_end`:
    by event of the block, the first later one of its key.
    """

    begin: Array
    event: Array
    weight: Array
    tie_end: Array


class RankedGraph(NamedTuple):
    """Moves of state s lead on as `moves.begin[s]` says; those into it are `into_begin[s]` to `into_begin[s + 1]`.

    EQUAL and ORDER moves look up the best cell by a value: `lookup[m]` is the number of the lookup (−1: none), whose
    answers are `size` many from `base` on. Event e looks at `sought[l, e]`, and is found at `placed[l, e]`; −1: NULL.
    """

    fits: Array
    position: Array
    starts: Array
    accepts: Array
    moves: Moves
    source: Array
    into_begin: Array
    into: Array
    way: Array
    lookup: Array
    sought: Array
    placed: Array
    base: Array
    size: Array
    cuts: Array
    checks: Checks
    successor: Array  # by state and event: the first event of the next time at which a run goes on, or −1


def graph_of(pattern_spec: PatternSpec, pairs: tuple[Compared, ...], block: Block) -> RankedGraph:
    """The graph of a pattern whose steps depend on the two events they join alone."""
    automaton = Automaton(pattern_spec)
    moves, checks, fits = moves_of(automaton, pairs), checks_of(automaton, pairs, block), fitting_bits(block)
    position = np.array(pattern_spec.scopes[0].template.position_of, np.int64)
    starts = np.zeros(len(position), np.bool_)
    starts[[step.target for step in automaton.starts[0]]] = True
    source = np.repeat(np.arange(len(position)), np.diff(moves.begin))
    into = np.argsort(moves.target, kind="stable")
    into_begin = np.searchsorted(moves.target[into], np.arange(len(position) + 1))
    runs = pattern_spec.earliest or pattern_spec.adjacent
    way = (
        np.full(len(source), STEP) if runs else np.array([_way(move, checks) for move in range(len(source))], np.int64)
    )
    lookup, sought, placed, size = _lookups(way, checks, len(block))
    successor = np.full((1, 1), -1, np.int32)
    if runs:
        key_end = np.repeat(block.key_starts[1:], np.diff(block.key_starts))
        successor = successors_of(automaton, block, fits, key_end, moves, checks).event
    return RankedGraph(
        fits, position, starts, accepting(automaton), moves, source, into_begin.astype(np.int64), into.astype(np.int64),
        way.astype(np.int64), lookup, sought, placed, np.cumsum(size) - size, size, cuts_of(checks), checks, successor,
    )  # fmt: skip


def _way(move: int, checks: Checks) -> int:
    pairs = checks.pairs[checks.pairs_begin[move] : checks.pairs_begin[move + 1]]
    nots = checks.nots_begin[move + 1] - checks.nots_begin[move]
    if not len(pairs):
        return RECENT if nots else FREE
    operator = OPERATORS[checks.operators[pairs[0]]]
    if nots or len(pairs) > 1 or operator == "!=":
        return TESTED
    return EQUAL if operator == "=" else ORDER


def _lookups(way: Array, checks: Checks, events: int) -> tuple[Array, Array, Array, Array]:
    """The lookup of every move, and where events look and are found."""
    lookup = np.full(len(way), -1, np.int64)
    numbers: dict[int, int] = {}
    for move in np.flatnonzero((way == EQUAL) | (way == ORDER)):
        lookup[move] = len(numbers)
        numbers[int(move)] = int(checks.pairs[checks.pairs_begin[move]])
    sought, placed = np.full((2, len(numbers), events), -1, np.int32)
    size = np.zeros(len(numbers), np.int64)
    for number, pair in enumerate(numbers.values()):
        _, sought[number], placed[number], size[number] = places_of_pair(checks, pair)
    return lookup, sought, placed, size


# ------------------------------------------------------------------------------------------------ weights


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
        """Whether an event has no weight where one is needed."""
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
        """The same for compiled code, where folds are turned around if `sign` is −1, so that small ones are good."""
        operator, value = self.operator, np.stack(self.values)
        if self.sign < 0 and operator != PRODUCT:
            operator, value = {LEAST: GREATEST, GREATEST: LEAST}.get(operator, operator), -value
        unknown = np.stack(
            [np.zeros(len(v), np.bool_) if u is None else u for v, u in zip(self.values, self.unknown, strict=True)]
        )
        rows = np.array([self.part_of.get(position, -1) for position in self.position_of], np.int64)
        unit = _unit(operator, value) * (self.sign if operator == PRODUCT else 1)
        return EventWeights(rows, value, unknown, unit, operator)

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
    operator = FOLDS[fold.operator]
    if skips or not _fits(operator, values, unknown, longest, most):
        return None
    part_of = {position: part for part, some in enumerate(positions) for position in some}
    states = pattern_spec.scopes[0].template.position_of
    sign = -1 if descending else 1
    return Weighing(operator, sign, part_of, states, values, unknown, longest, fold_scale(fold, found))


def _unknown(vector: Vector, block: Block, positions: tuple[int, ...]) -> Array | None:
    """Which events have no weight although they fit where one is needed; None: none of them."""
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
