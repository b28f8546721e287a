"""Matches as a kernel gives them out: flat arrays, bounded chunks.

Match m binds `events[offsets[m]:offsets[m+1]]` (indices into the block) at `positions` of the same slice, in time
order. With sliding windows a match appears once per window that holds it, with that window's start.

A row may also stand for many matches; it then binds the union of their events. What an algorithm says of a row besides
is a further column, by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.segments import gather_segments


@dataclass(frozen=True, eq=False)
class MatchConfidence:
    """Of matches whose times are not known for certain: how likely each is, and the least and latest times (ticks) of
    its events in all worlds where it is one.
    """

    confidence: Array
    low: Array
    high: Array

    def of_rows(self, rows: Array | slice) -> MatchConfidence:
        return MatchConfidence(self.confidence[rows], self.low[rows], self.high[rows])


@dataclass(frozen=True, eq=False)
class Matches:
    """`columns`: what else is known of every row. `certain_from`: the event whose time decides when a row is certain;
    None: its first. `unions`: a row binds the events of many matches, so those of one instant have no order. `rank`:
    which place each match has among those of its window and partition. `chances`: how likely each is, where its times
    are imprecise. `query`: the number in the group of the query that they answer.
    """

    offsets: Array
    events: Array
    positions: Array
    window_start: Array | None = None
    columns: dict[str, Array] = field(default_factory=dict)
    certain_from: Array | None = None
    unions: bool = False
    rank: Array | None = None
    chances: MatchConfidence | None = None
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
        def of_rows(column: Array | None) -> Array | None:
            return None if column is None else column[rows]

        columns = {name: column[rows] for name, column in self.columns.items()}
        chances = None if self.chances is None else self.chances.of_rows(rows)
        certain_from, rank = of_rows(self.certain_from), of_rows(self.rank)
        return of_rows(self.window_start), columns, certain_from, self.unions, rank, chances, self.query


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
        _together([chunk.window_start for chunk in chunks]),
        {name: np.concatenate([chunk.columns[name] for chunk in chunks]) for name in chunks[0].columns},
        _together([chunk.certain_from for chunk in chunks]),
        chunks[0].unions,
        _together([chunk.rank for chunk in chunks]),
        _together_chances([chunk.chances for chunk in chunks]),
        chunks[0].query,
    )


def _together(columns: list[Array | None]) -> Array | None:
    there = [column for column in columns if column is not None]
    return np.concatenate(there) if there else None


def _together_chances(some: list[MatchConfidence | None]) -> MatchConfidence | None:
    there = [one for one in some if one is not None]
    if not there:
        return None
    return MatchConfidence(
        np.concatenate([one.confidence for one in there]),
        np.concatenate([one.low for one in there]),
        np.concatenate([one.high for one in there]),
    )
