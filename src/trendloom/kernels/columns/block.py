"""A block of events as kernels see it: columns sorted by key and time, all keys at once.

Everything a kernel asks about order is an index: the events of one key are a slice, events of equal time are a
smaller slice inside it, and "later than event i" is "from tie_end[i] on". Row order of the input is gone after sorting,
so no answer can depend on it.

Where columns order events of equal time, the order is that of *instants* (see `ties`): ties, and whatever is before or
after, go by them. Windows, spans and durations go by the time alone. Without such columns an instant is a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

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
    """How events of any two keys stand to each other: numbers for events by their rows in the input.

    `moments` order them by time, then by the columns that order equal times; `contents` by all that they hold.
    """

    moments: Callable[[Array], Array]
    contents: Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Block:
    """`key_starts[k]` is where key k begins (one more entry for the end); `row` is each event's row in the input.

    An event fits position p of the pattern, by type and local predicates, if it has bit `bits[p]`: of word b // 64 of
    `fits`, bit b % 64. Positions that ask for the same share a bit.

    `instants`: numbers that order the events of a key, where times alone do not; None: they do. `standing`: for who
    ranks events of all keys.
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
        assert self.standing is not None, "nobody said how the events stand"
        return self.standing.moments(self.row[events])

    def contents(self, events: Array) -> Array:
        """Numbers that order some events by all that they hold."""
        assert self.standing is not None, "nobody said how the events stand"
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

    def only(self, kept: Array) -> Block:
        """The events where `kept` is set; keys keep their numbers."""
        if kept.all():
            return self
        rows = np.flatnonzero(kept)
        return self._with(np.searchsorted(rows, self.key_starts), rows)

    def of_keys(self, first: int, last: int) -> Block:
        """The events of the keys from `first` up to `last`, as views; keys are numbered from zero."""
        low, high = int(self.key_starts[first]), int(self.key_starts[last])
        return Block(
            self.key_starts[first : last + 1] - low,
            self.time[low:high],
            self.row[low:high],
            {name: column.part(low, high) for name, column in self.columns.items()},
            tuple(words[low:high] for words in self.fits),
            self.bits,
            None if self.instants is None else self.instants[low:high],
            self.standing,
        )

    def _with(self, key_starts: Array, rows: Array) -> Block:
        return Block(
            key_starts,
            self.time[rows],
            self.row[rows],
            {name: column.take(rows) for name, column in self.columns.items()},
            tuple(words[rows] for words in self.fits),
            self.bits,
            self.instants_of(rows),
            self.standing,
        )

    def instants_of(self, events: Array) -> Array | None:
        """The `instants` of a block of these events."""
        return None if self.instants is None else self.instants[events]


# A block of events whose times are intervals: sorted by key and by the earliest time, all keys at once.
#
# `time` is the earliest time (`low`). That an event stands before another means nothing but that it may have begun
# earlier; who came first is a matter of chance, and `confidence` computes it.


@dataclass(frozen=True, eq=False)
class IntervalBlock(Block):
    """`high`: the latest time of each event, in ticks like `time`. `grain`: ticks from one point to the next.

    `masses`: the probabilities of points, as `Intervals` has them.
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

    def of_keys(self, first: int, last: int) -> IntervalBlock:
        """The events of the keys from `first` up to `last`; keys are numbered from zero."""
        low, high = int(self.key_starts[first]), int(self.key_starts[last])
        return self._with_intervals(super().of_keys(first, last), np.arange(low, high))

    def _with(self, key_starts: Array, rows: Array) -> IntervalBlock:
        return self._with_intervals(super()._with(key_starts, rows), rows)

    def _with_intervals(self, block: Block, rows: Array) -> IntervalBlock:
        masses = None if self.masses is None else self.masses.take(rows)
        return _joined(block, self.high[rows], self.grain, masses)


def with_intervals(block: Block, intervals: Intervals, grain: int) -> IntervalBlock:
    """A block, sorted by the earliest times, with the intervals of its events; these are by rows of the input."""
    masses = None if intervals.masses is None else intervals.masses.take(block.row)
    return _joined(block, intervals.high[block.row], grain, masses)


def _joined(block: Block, high: Array, grain: int, masses: Masses | None) -> IntervalBlock:
    return IntervalBlock(
        block.key_starts, block.time, block.row, block.columns, block.fits, block.bits, None, block.standing,
        high, grain, masses,
    )  # fmt: skip


# Windows by the times of events: which hold a stretch, and how far a match that starts at an event may reach.


def check_range(time: Array, window: Window) -> None:
    """Refuse times so large that a window's bounds would not fit 64 bits."""
    reach = (window.within or 0) + (window.slide or 0)
    if len(time) and max(abs(int(time[0])), abs(int(time.min())), abs(int(time.max()))) + reach >= 2**62:
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
