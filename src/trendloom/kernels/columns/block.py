"""A block of events as kernels see it: columns sorted by key and time, all keys at once; and windows over them.

Every question of order is one of indices: the events of one key are a slice, events of equal time are a smaller slice
inside it, and "later than event i" is "from tie_end[i] on". Row order of the input is gone after sorting, so no answer
can depend on it.

Where columns order events of equal time, the order is that of *instants* (see `sort.order_ties`): ties, and whatever is
before or after, go by them. Windows, spans and durations go by the time alone. Without such columns an instant is a
time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from trendloom.errors import DataError
from trendloom.expr.arrays import Array
from trendloom.expr.vectors import Vector
from trendloom.kernels.columns.segments import first_at_least, indices_with_bit, tie_ends, tie_starts
from trendloom.model.imprecision import Intervals, Masses
from trendloom.model.time import Window

WORD = 64
"""Bits of a word of `fits`."""


@dataclass(frozen=True)
class Standing:
    """How events of any two keys compare: numbers for events by their rows in the input.

    `moments` order them by time, then by the columns that order equal times; `contents` by all their values.
    """

    moments: Callable[[Array], Array]
    contents: Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Block:
    """`key_starts[k]` is where key k begins (one more entry for the end); `row` is each event's row in the input.

    An event fits position p of the pattern, by type and local predicates, if it has bit `bits[p]`: of word b // 64 of
    `fits`, bit b % 64. Positions with the same filter share a bit.

    `instants`: numbers that order the events of a key, where times alone do not; None: they do. `standing`: for
    rankings of events of all keys.
    """

    key_starts: Array
    time: Array
    row: Array
    columns: Mapping[str, Vector]
    fits: tuple[Array, ...] = ()
    bits: tuple[int, ...] = ()
    instants: Array | None = None
    standing: Standing | None = None

    def __len__(self) -> int:
        return len(self.time)

    @property
    def keys(self) -> int:
        return len(self.key_starts) - 1

    @cached_property
    def members(self) -> tuple[Array, ...]:
        """For every position the indices of the events that fit it."""
        found = {bit: indices_with_bit(self.fits[bit // WORD], bit % WORD) for bit in set(self.bits)}
        return tuple(found[bit] for bit in self.bits)

    @cached_property
    def key(self) -> Array:
        """The key of every event."""
        return np.repeat(np.arange(self.keys, dtype=np.int64), np.diff(self.key_starts))

    @property
    def instant(self) -> Array:
        """Of two events of a key the one with the lesser number is before the other; equal ones have no order."""
        return self.time if self.instants is None else self.instants

    def moments(self, events: Array) -> Array:
        """Numbers that order some events by time, and by the columns that order equal times."""
        assert self.standing is not None
        return self.standing.moments(self.row[events])

    def contents(self, events: Array) -> Array:
        """Numbers that order some events by all their values."""
        assert self.standing is not None
        return self.standing.contents(self.row[events])

    @cached_property
    def tie_end(self) -> Array:
        """For each event the first later one of its key (or the key's end)."""
        return tie_ends(self.key_starts, self.instant)

    @cached_property
    def tie_start(self) -> Array:
        """For each event the first one of its key and instant."""
        return tie_starts(self.tie_end)

    def not_before(self, key: Array, time: Array) -> Array:
        """Index of the first event of `key` whose time is at least `time`. O(log n) each."""
        return first_at_least(self.key_starts[key], self.key_starts[key + 1], self.time, time)

    def only(self, kept: Array) -> Self:
        """The events where `kept` is set; keys keep their numbers."""
        if kept.all():
            return self
        rows = np.flatnonzero(kept)
        return self._part(np.searchsorted(rows, self.key_starts), rows)

    def of_keys(self, first: int, last: int) -> Self:
        """The events of the keys from `first` up to `last`, as views; keys are numbered from zero."""
        low, high = int(self.key_starts[first]), int(self.key_starts[last])
        return self._part(self.key_starts[first : last + 1] - low, slice(low, high))

    def _part(self, key_starts: Array, rows: Array | slice) -> Self:
        return replace(
            self,
            key_starts=key_starts,
            time=self.time[rows],
            row=self.row[rows],
            columns={name: rows_of_column(column, rows) for name, column in self.columns.items()},
            fits=tuple(words[rows] for words in self.fits),
            instants=self.instants_of(rows),
        )

    def instants_of(self, events: Array | slice) -> Array | None:
        """The `instants` of a block of these events."""
        return None if self.instants is None else self.instants[events]


@dataclass(frozen=True, eq=False)
class IntervalBlock(Block):
    """A block of events whose times are intervals: sorted by key and by the earliest time, which is their `time`.

    That an event stands before another means only that it may have begun earlier; which of them came first is a matter
    of chance, and `kernels.uncertain` computes it.

    `high`: the latest time of each event, in ticks like `time`. `grain`: ticks from one point to the next. `masses`:
    the probabilities of points, as `Intervals` has them.
    """

    high: Array = None  # type: ignore[assignment]
    grain: int = 1
    masses: Masses | None = None

    @cached_property
    def first_point(self) -> Array:
        """The earliest time of every event, in points: multiples of the grain."""
        return self.time // self.grain

    @cached_property
    def last_point(self) -> Array:
        """The latest time of every event, in points."""
        return self.high // self.grain

    @cached_property
    def most_points(self) -> int:
        """Points of the longest interval."""
        return int((self.last_point - self.first_point).max(initial=0)) + 1

    def _part(self, key_starts: Array, rows: Array | slice) -> Self:
        masses = None if self.masses is None else self.masses.take(np.arange(len(self))[rows])
        return replace(super()._part(key_starts, rows), high=self.high[rows], masses=masses)


def with_intervals(block: Block, intervals: Intervals, grain: int) -> IntervalBlock:
    """A block, sorted by the earliest times, with the intervals of its events; these are by rows of the input."""
    masses = None if intervals.masses is None else intervals.masses.take(block.row)
    own = {one.name: getattr(block, one.name) for one in fields(Block)}
    return IntervalBlock(**own, high=intervals.high[block.row], grain=grain, masses=masses)


def rows_of_column(column: Any, rows: Array | slice) -> Any:
    """Some rows of an array or vector; views where they are a slice."""
    if isinstance(column, Vector):
        return column.part(rows.start, rows.stop) if isinstance(rows, slice) else column.take(rows)
    return column[rows]


# ------------------------------------------------------------------------------------------------- windows


def check_range(time: Array, window: Window) -> None:
    """Refuse times so large that a window's bounds would not fit 64 bits."""
    reach = (window.within or 0) + (window.slide or 0)
    if len(time) and max(abs(int(time.min())), abs(int(time.max()))) + reach >= 2**62:
        raise DataError("times and windows beyond 2^62 ticks are not supported", hint="use a coarser time unit")


def horizons(block: Block, window: Window) -> Array | None:
    """For each event the index of the first event of its key that no match starting there can hold."""
    if window.within is None:
        return None
    start = block.time if window.slide is None else np.floor_divide(block.time, window.slide) * window.slide
    return block.not_before(block.key, start + window.within)


def windows_of(first: Array, last: Array, window: Window) -> tuple[Array, Array]:
    """The windows that hold each stretch [first, last]: (which stretch, start of the window), by stretch and start."""
    assert window.slide is not None
    lowest, count = numbers_of_windows(first, last, window)
    which = np.repeat(np.arange(len(first)), count)
    within_stretch = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    return which, (lowest[which] + within_stretch) * window.slide


def numbers_of_windows(first: Array, last: Array, window: Window) -> tuple[Array, Array]:
    """The windows that hold each stretch [first, last]: the number of the first, and how many."""
    assert window.within is not None
    assert window.slide is not None
    lowest = np.floor_divide(last - window.within, window.slide) + 1
    return lowest, np.maximum(np.floor_divide(first, window.slide) - lowest + 1, 0)
