"""The common ground of all grains: what is added up, over which stretches of events, and what comes out.

Every grain is a function `sweep(addends, spans, like) -> SpanTotals`: for each span (one key, one window) it adds up
all matches whose events lie in the span. `like` says in which number system. Two kinds of measures exist:

- *linear*: the number of matches (always lane 0 of `SpanTotals.numbers`), and sums over the occurrences of events of
  `weight` (1 for COUNT). With c the matches that reach an event, the event adds weight · c to the sum;
- *least values*: MIN and MAX as the least of int64 columns that sort like the values (MAX inverted). `ABSENT` is the
  least value of no match at all, `EMPTY` that of matches without a value; both are greater than every value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.vectors import Vector
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.fenwick import words_of
from trendloom.kernels.columns.numbers import Numbers, zeros
from trendloom.kernels.contract.aggregates import AggregationSpec, Measure
from trendloom.kernels.matching.automaton import Automaton
from trendloom.model.schema import Kind

ABSENT: int = 2**63 - 1
EMPTY: int = 2**63 - 2


@dataclass(frozen=True, eq=False)
class Spans:
    """Stretches of events, one per result: events `low` to `high` of the block, all of one key, in one window.

    Ordered by key, then by start. `start` is the window's first tick; without windows a key is one span, starting at 0.
    """

    key: Array
    start: Array
    low: Array
    high: Array

    def __len__(self) -> int:
        return len(self.key)

    def take(self, rows: Array) -> Spans:
        return Spans(self.key[rows], self.start[rows], self.low[rows], self.high[rows])

    def starting(self, first: int, end: int) -> Spans:
        """Those whose window starts from `first` on and before `end`."""
        return self.take(np.flatnonzero((self.start >= first) & (self.start < end)))


class SpanTotals(NamedTuple):
    """Per span: `numbers[span]` with lane 0 the matches and lane 1 + m linear measure m; `least[span, extreme]`.

    `spilled`: spans whose exact numbers did not fit; they are added up again with more words.
    """

    numbers: Numbers
    spilled: Array
    least: Array


@dataclass(frozen=True, eq=False)
class Addends:
    """One block to be added up: row `weight_of[m]` of `weights` holds the weights of linear measure m (−1: all are 1).

    `weighs[m, p]`: whether events at position p count for linear measure m; `valued[x, p]`: for least value x.
    """

    spec: AggregationSpec
    block: Block
    weights: Array  # [row, event], int64 or float64
    weight_of: Array
    weighs: Array
    values: Array  # [extreme, event], int64
    valued: Array

    @cached_property
    def automaton(self) -> Automaton:
        return Automaton(self.spec.pattern_spec)

    @property
    def linear(self) -> int:
        """How many linear measures there are besides the number of matches."""
        return len(self.weight_of)

    @property
    def extremes(self) -> int:
        return len(self.values)


def no_totals(addends: Addends, spans: Spans, like: Numbers) -> SpanTotals:
    """Totals of spans in which nothing was found yet, in the number system of `like`."""
    return SpanTotals(
        zeros(type(like), len(spans), 1 + addends.linear, words_of(like)),
        np.zeros(len(spans), np.bool_),
        np.full((len(spans), addends.extremes), ABSENT),
    )


@dataclass(frozen=True, eq=False)
class Sortable:
    """A column as int64 that sort like its values, and the way back. `table`: sorted values that the integers rank."""

    ranks: Array  # EMPTY where there is no value
    kind: Kind
    greatest: bool
    doubles: bool
    table: Array | None
    dictionary: Array | None
    scale: int = 0  # digits after the point, of decimals

    def restore(self, least: Array) -> Vector:
        """Values of results; NULL where there is none."""
        found = least < EMPTY
        values = np.where(found, least, 0)
        values = ~values if self.greatest else values
        values = np.where(found, values, 0)
        if self.table is not None:
            values = self.table[values] if len(self.table) else np.zeros(len(values), np.int64)
        elif self.doubles:
            values = np.where(values < 0, np.int64(-(2**63)) - values, values).view(np.float64)
        if self.kind is Kind.BOOL:
            values = values.astype(np.bool_)
        return Vector(self.kind, values, found, self.dictionary, self.scale)


def sortable(measure: Measure, column: Vector) -> Sortable:
    """The column of a MIN or MAX."""
    greatest = measure.function == "max"
    values, doubles, table = column.values, False, None
    if values.dtype == np.float64:
        bits = (values + 0.0).view(np.int64)
        values, doubles = np.where(bits < 0, np.int64(-(2**63)) - bits, bits), True
    elif values.dtype == object or _touches_bounds(values):
        table, values = np.unique(values, return_inverse=True)
        values = values.reshape(-1)
    ranks = values.astype(np.int64)
    ranks = ~ranks if greatest else ranks
    if column.valid is not None:
        ranks = np.where(column.valid, ranks, EMPTY)
    return Sortable(ranks, column.kind, greatest, doubles, table, column.dictionary, column.scale)


def _touches_bounds(values: Array) -> bool:
    if values.dtype != np.int64 or len(values) == 0:
        return False
    return bool(values.max() >= EMPTY or values.min() <= -EMPTY)


def prepare(
    spec: AggregationSpec, block: Block, linear: list[Linear], values: list[tuple[Measure, Sortable]]
) -> Addends:
    """Weights and values as the tables that kernels read."""
    positions = len(spec.pattern_spec.places)
    rows = [one.weight for one in linear if one.weight is not None]
    kind = np.float64 if any(row.dtype == np.float64 for row in rows) else np.int64
    numbers = iter(range(len(rows)))
    return Addends(
        spec,
        block,
        np.stack([row.astype(kind, copy=False) for row in rows]) if rows else np.zeros((0, 0), np.int64),
        np.array([-1 if one.weight is None else next(numbers) for one in linear], np.int64),
        _at(positions, [one.positions for one in linear]),
        np.stack([one.ranks for _, one in values]) if values else np.zeros((0, 0), np.int64),
        _at(positions, [measure.positions or () for measure, _ in values]),
    )


@dataclass(frozen=True, eq=False)
class Linear:
    """A sum over occurrences of the events at some positions; `weight` None: every occurrence counts one."""

    positions: tuple[int, ...]
    weight: Array | None


def _at(positions: int, listed: list[tuple[int, ...]]) -> Array:
    found = np.zeros((len(listed), positions), np.bool_)
    for row, some in enumerate(listed):
        found[row, list(some)] = True
    return found
