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

from trendloom.expr.arrays import Array
from trendloom.expr.vectors import Vector
from trendloom.kernels.columns.segments import first_at_least, indices_with_bit, tie_ends, tie_starts

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
