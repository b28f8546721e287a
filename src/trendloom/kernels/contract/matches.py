"""Matches as a kernel gives them out: flat arrays, bounded chunks; and the values that RETURN and preferences compute.

Match m binds `events[offsets[m]:offsets[m+1]]` (indices into the block) at `positions` of the same slice, in time
order. With sliding windows a match appears once per window that holds it, with that window's start.

A row may also stand for many matches; it then binds the union of their events. What an algorithm says of a row besides
is a further column, by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from trendloom.expr.arrays import Array, narrow
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Aggregate, Attribute, Expr, Extent, Fold, Group, Part, Which
from trendloom.expr.operators import average
from trendloom.expr.vectors import Vector, aligned, joined, nothing, to_doubles
from trendloom.kernels.columns import segments
from trendloom.kernels.columns.block import Block, rows_of_column
from trendloom.kernels.columns.segments import gather_segments
from trendloom.kernels.contract.pattern_spec import PatternPosition
from trendloom.kernels.jit.compiled import njit
from trendloom.model.schema import Kind


@dataclass(frozen=True)
class ResultColumn:
    """A column that a kernel adds to the rows of matches, in `Matches.columns` by the same name.

    `kind`: of its values; times are in ticks, decimals have `scale` digits after the point. `counts`: a row stands for
    so many matches, an integer of any size, and binds the events of all of them, so those of one instant have no order.
    `sorts`: rows of a window and partition are ordered by the columns marked so, in place of their first and last
    events. `weighs`: in aggregates a match counts as much as this says.
    """

    name: str
    kind: Kind
    meaning: str
    scale: int = 0
    counts: bool = False
    sorts: bool = False
    weighs: bool = False


@dataclass(frozen=True, eq=False)
class Matches:
    """`columns`: arrays or vectors of what else is known of every row: the `ResultColumn`s of the kernel, and what it
    carries for itself.

    `query`: the number in the group of the query that they answer.
    """

    offsets: Array
    events: Array
    positions: Array
    window_start: Array | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    query: int = 0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def size(self) -> int:
        """How many entries of events it holds."""
        return len(self.events)

    @property
    def first(self) -> Array:
        """The first event of every match."""
        return self.events[self.offsets[:-1]]

    @property
    def last(self) -> Array:
        return self.events[self.offsets[1:] - 1]

    @property
    def match(self) -> Array:
        """The match that each entry of `events` belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def part(self, begin: int, end: int) -> Matches:
        """The matches from `begin` up to `end`, as views."""
        low, high = self.offsets[begin], self.offsets[end]
        per_row = self._per_row(slice(begin, end))
        return Matches(self.offsets[begin : end + 1] - low, self.events[low:high], self.positions[low:high], *per_row)

    def take(self, rows: Array) -> Matches:
        """Some of the matches, in the order given."""
        lengths = np.diff(self.offsets)[rows]
        offsets = np.r_[0, np.cumsum(lengths)].astype(np.int64)
        events = gather_segments(self.offsets, self.events, rows, offsets)
        return Matches(offsets, events, self._positions_of(rows, offsets), *self._per_row(rows))

    def _positions_of(self, rows: Array, offsets: Array) -> Array:
        if self.positions.strides == (0,):  # one position for all
            return np.broadcast_to(self.positions[0], offsets[-1]) if len(self.positions) else self.positions
        return gather_segments(self.offsets, self.positions, rows, offsets)

    def _per_row(self, rows: Array | slice) -> tuple[Any, ...]:
        start = None if self.window_start is None else self.window_start[rows]
        return start, {name: rows_of_column(column, rows) for name, column in self.columns.items()}, self.query


def join(chunks: list[Matches]) -> Matches:
    """One chunk out of several."""
    if len(chunks) == 1:
        return chunks[0]
    if not chunks:
        return Matches(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int32))
    lengths = np.concatenate([np.diff(chunk.offsets) for chunk in chunks])
    return Matches(
        np.r_[0, np.cumsum(lengths)].astype(np.int64),
        np.concatenate([chunk.events for chunk in chunks]),
        np.concatenate([chunk.positions for chunk in chunks]),
        _joined([chunk.window_start for chunk in chunks if chunk.window_start is not None]),
        {name: _joined([one.columns[name] for one in chunks if name in one.columns]) for name in _names(chunks)},
        chunks[0].query,
    )


def _names(chunks: list[Matches]) -> dict[str, None]:
    """The columns of chunks; one without rows may lack them."""
    return dict.fromkeys(name for chunk in chunks for name in chunk.columns)


def _joined(columns: list[Any]) -> Any:
    if not columns:
        return None
    return joined(columns) if isinstance(columns[0], Vector) else np.concatenate(columns)


# Values of matches, for a whole chunk at once. Every leaf is one pass over the events of the chunk's matches, a fold
# combines what each of these events gives to its parts, and expressions over leaves are vectorised.


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
    if values.dtype == np.float64:
        found: Array = _fold_doubles(offsets, values, flags, ("+", "*", "least", "greatest").index(operator))
        return found
    if operator == "+":
        return _sums(values, offsets, flags)
    if operator == "*":
        return folded_exactly(np.multiply, values.astype(object), offsets, flags)
    return _extremes(values, offsets, flags, greatest=operator == "greatest")


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
        extremes = _extremes(column.values, offsets, flags, greatest=expr.function == "max")
        return replace(column, values=extremes, valid=count > 0)
    total = replace(column, values=_sums(column.values, offsets, flags), valid=count > 0)
    return average(total, count) if expr.function == "avg" else total


def _extremes(values: Array, offsets: Array, flags: Array, *, greatest: bool) -> Array:
    if values.dtype == object:
        return folded_exactly(np.maximum if greatest else np.minimum, values, offsets, flags)
    found: Array = segments.extreme_where(offsets, values, flags, greatest)
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
