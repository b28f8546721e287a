"""Matches as a kernel gives them out: flat arrays, bounded chunks.

Match m binds `events[offsets[m]:offsets[m+1]]` (indices into the block) at `positions` of the same slice, in time
order. With sliding windows a match appears once per window that holds it, with that window's start.

A row may also stand for many matches; it then binds the union of their events. What an algorithm says of a row besides
is a further column, by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.vectors import Vector, joined
from trendloom.kernels.columns.segments import gather_segments
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
        return start, {name: _of_rows(column, rows) for name, column in self.columns.items()}, self.query


def _of_rows(column: Any, rows: Array | slice) -> Any:
    if isinstance(column, Vector):
        return column.part(rows.start, rows.stop) if isinstance(rows, slice) else column.take(rows)
    return column[rows]


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
