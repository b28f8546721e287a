"""The common ground of all grains: what is added up, over which stretches of events, and what comes out.

Every grain is a function `add_up(addends, spans, like) -> SpanTotals`: for each span (one key, one window) it adds up
all matches whose events lie in the span, in the number system of `like`. Two kinds of measures exist:

- *linear*: the number of matches (always lane 0 of `SpanTotals.numbers`), and sums over the occurrences of events of
  `weight` (1 for COUNT). With c the matches that reach an event, the event adds weight · c to the sum;
- *least values*: MIN and MAX as the least of int64 columns that sort like the values (MAX inverted). `ABSENT` is the
  least value of no match at all, `EMPTY` that of matches without a value; both are greater than every value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.decimals import as_doubles
from trendloom.expr.vectors import Vector
from trendloom.kernels.columns.block import Block, check_range
from trendloom.kernels.columns.numbers import Limbs, Numbers, Wides, zeros_like
from trendloom.kernels.contract.aggregates import AggregationSpec, Amounts, Measure, Totals
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.gaps import Gaps
from trendloom.model.schema import Kind
from trendloom.model.time import Window
from trendloom.pattern.template import Crossings

ABSENT: int = 2**63 - 1
EMPTY: int = 2**63 - 2
NEVER, FREE = -2, -1
"""Instead of a bar: no match starts (ends) here; no NOT has to be checked."""
DIGIT = 60
"""Bits of the digits in which integers beyond 64 bits are weighed."""


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

    def without_least(self) -> Addends:
        """The same without least values."""
        return replace(self, values=self.values[:0], valued=self.valued[:0])


class EventTerms(NamedTuple):
    """What every event adds by itself: see `Addends`, by state instead of position."""

    weights: Array
    weight_of: Array
    weighs: Array  # [measure, state]
    values: Array
    valued: Array  # [extreme, state]


@dataclass(frozen=True, eq=False)
class Linear:
    """A sum over occurrences of the events at some positions; `weight` None: every occurrence counts one."""

    positions: tuple[int, ...]
    weight: Array | None


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


class Bars:
    """NOTs as *bars*, one column for the NOTs of a step.

    A NOT is a threshold in time (see `matching.gaps`): between events e and f it holds iff the latest start of its
    matches that ended before f lies before the events after e. All NOTs of a way must hold, one way is enough; so the
    bar of a step is the least over its ways of the greatest over their NOTs: e passes if
    tie_end[e] > bar[tie_start[f]].
    Bars never fall. The same column decides leading NOTs (against the span's begin) and trailing ones (at its end). A
    NOT that depends on one of the two events has no bar: it is one of the pairs (see `EmptyGap`).
    """

    def __init__(self, addends: Addends) -> None:
        block, automaton = addends.block, addends.automaton
        self._events, self._template = len(block), automaton.spec.scopes[0].template
        self._gaps = Gaps(automaton, block)
        self._columns: list[Array] = []
        self._rows: dict[frozenset[frozenset[int]], int] = {}

    def row(self, ways: Iterable[Crossings]) -> int:
        """The row of the bar of some ways in the table, or FREE."""
        scopes = frozenset(self._gaps.automaton.thresholds_of(way) for way in ways)
        if frozenset() in scopes:
            return FREE
        if scopes not in self._rows:
            self._rows[scopes] = len(self._columns)
            ended = [np.maximum.reduce([self._gaps.threshold(scope) for scope in way]) for way in scopes]
            self._columns.append(np.minimum.reduce(ended))
        return self._rows[scopes]

    def lead(self) -> Array:
        """By state the bar before a match that begins there, or NEVER."""
        found = np.full(len(self._template.position_of), NEVER)
        for step in self._gaps.automaton.starts[0]:
            found[step.target] = self.row(step.ways)
        return found

    def trail(self) -> Array:
        """By state the bar after a match that ends there, or NEVER."""
        return np.array([self.row(ways) if ways else NEVER for ways in self._template.accepts], np.int64)

    def table(self) -> Array:
        """All bars, [row, event], at each event and at the end of the block."""
        return np.stack(self._columns) if self._columns else np.zeros((0, self._events + 1), np.int64)


def no_totals(addends: Addends, spans: Spans, like: Numbers) -> SpanTotals:
    """Totals of spans in which nothing was found yet, in the number system of `like`."""
    return empty_totals(like, len(spans), 1 + addends.linear, addends.extremes)


def empty_totals(like: Numbers, count: int, lanes: int, extremes: int) -> SpanTotals:
    """Totals of so many spans without a match, in the number system of `like`."""
    return SpanTotals(zeros_like(like, count, lanes), np.zeros(count, np.bool_), np.full((count, extremes), ABSENT))


def terms_of(addends: Addends, like: Numbers) -> EventTerms:
    """Weights of inexact systems are doubles: one version to compile for each system."""
    weights = addends.weights if isinstance(like, Wides | Limbs) else addends.weights.astype(np.float64)
    position_of = list(addends.automaton.spec.scopes[0].template.position_of)
    weighs, valued = (np.ascontiguousarray(one[:, position_of]) for one in (addends.weighs, addends.valued))
    return EventTerms(weights, addends.weight_of, weighs, addends.values, valued)


# ------------------------------------------------------------------------------------------------ weights and values


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


def linear_of(
    measures: tuple[Measure, ...], block: Block, *, doubles: bool = False
) -> tuple[list[Linear], dict[str, list[int]]]:
    """The linear measures, and for each measure the lanes that hold its digits, the lowest first."""
    found: list[Linear] = []
    lanes: dict[str, list[int]] = {}
    for measure in measures:
        weights = weights_of(measure, block, doubles=doubles)
        lanes[measure.name] = list(range(len(found) + 1, len(found) + 1 + len(weights)))
        found += [Linear(measure.positions or (), weight) for weight in weights]
    return found, lanes


def weights_of(measure: Measure, block: Block, *, doubles: bool) -> list[Array | None]:
    """What the events of a block weigh in a measure, digit by digit, the lowest first; None: each counts one."""
    if measure.column is None:
        return [None]
    column = block.columns[measure.column]
    if measure.function == "count":
        return [None if column.valid is None else column.valid.astype(np.int64)]
    values = column.values
    if doubles and values.dtype != np.float64:
        values = as_doubles(values, column.scale)
    if column.valid is not None:
        values = np.where(column.valid, values, 0)
    if values.dtype == np.bool_:
        values = values.astype(np.int64)
    if values.dtype != object:
        return [values]
    count = max(1, max((int(value).bit_length() for value in values), default=0) // DIGIT + 1)
    mask = (1 << DIGIT) - 1
    digits = [np.array([(v >> DIGIT * d) & mask for v in values], np.int64) for d in range(count - 1)]
    return [*digits, np.array([v >> DIGIT * (count - 1) for v in values], np.int64)]


def from_digits(amounts: list[Amounts], lanes: list[int]) -> Amounts:
    """A measure out of the lanes that hold its digits."""
    if len(lanes) == 1:
        return amounts[lanes[0]]
    parts = [amounts[lane].values.astype(object) << DIGIT * digit for digit, lane in enumerate(lanes)]
    return Amounts(sum(parts[1:], parts[0]))


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


def totals_of(
    spec: AggregationSpec, key: Array, start: Array, matches: Amounts, values: dict[str, Amounts | Vector]
) -> Totals:
    """The results that have a match."""
    values |= {m.name: matches for m in spec.measures if m.function == "matches"}
    return Totals(key, start, values).take(np.flatnonzero(matches.values != 0))


def _touches_bounds(values: Array) -> bool:
    if values.dtype != np.int64 or len(values) == 0:
        return False
    return bool(values.max() >= EMPTY or values.min() <= -EMPTY)


def _at(positions: int, listed: list[tuple[int, ...]]) -> Array:
    found = np.zeros((len(listed), positions), np.bool_)
    for row, some in enumerate(listed):
        found[row, list(some)] = True
    return found


# ------------------------------------------------------------------------------------------------ spans


def spans_of(block: Block, window: Window, least: int = 1) -> Spans:
    """All keys and windows with at least `least` events, by key and start."""
    check_range(block.time, window)
    return spans_between(block.key_starts, block.time, window, least)


def spans_between(key_starts: Array, time: Array, window: Window, least: int = 1) -> Spans:
    """The same for anything that is sorted by key and time."""
    if window.within is None or window.slide is None:
        keys = np.flatnonzero(np.diff(key_starts) >= max(least, 1))
        return Spans(keys, np.zeros(len(keys), np.int64), key_starts[keys], key_starts[keys + 1])
    found = _spans(key_starts, time, window.within, window.slide, max(least, 1))
    return Spans(*(np.ascontiguousarray(column) for column in found.T))


@njit(nogil=True)
def not_before(time: Array, at: int, end: int, bound: int) -> int:
    """The first event from `at` on whose time is at least `bound`, by galloping. O(log distance)."""
    if at >= end or time[at] >= bound:
        return at
    jump, low = 1, at
    while low + jump < end and time[low + jump] < bound:
        low += jump
        jump *= 2
    high = min(low + jump, end)
    while high - low > 1:
        middle = (low + high) // 2
        if time[middle] < bound:
            low = middle
        else:
            high = middle
    return high


@njit(nogil=True)
def grown(found: Array, count: int) -> Array:
    """The table, or one twice as long with the same rows if it is full. (A slice would take seconds to compile.)"""
    if count < len(found):
        return found
    more = np.empty((2 * len(found), found.shape[1]), np.int64)
    for row in range(count):
        for column in range(found.shape[1]):
            more[row, column] = found[row, column]
    return more


@njit(nogil=True)
def _spans(key_starts: Array, time: Array, within: int, slide: int, least: int) -> Array:
    """(key, start, low, high) of every window with enough events; windows between events are jumped over."""
    found = np.empty((16, 4), np.int64)
    count = 0
    for key in range(len(key_starts) - 1):
        low = high = key_starts[key]
        end = key_starts[key + 1]
        number = (time[low] - within) // slide + 1 if low < end else 0
        while low < end:
            number = max(number, (time[low] - within) // slide + 1)
            start = number * slide
            low = not_before(time, low, end, start)
            high = not_before(time, max(low, high), end, start + within)
            if high - low >= least:
                found = grown(found, count)
                found[count, 0], found[count, 1], found[count, 2], found[count, 3] = key, start, low, high
                count += 1
            number += 1
    return found[:count]
