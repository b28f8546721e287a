"""Matches as a kernel gives them out: flat arrays, bounded chunks.

Match m binds `events[offsets[m]:offsets[m+1]]` (indices into the block) at `positions` of the same slice, in time
order. With sliding windows a match appears once per window that holds it, with that window's start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Matches:
    offsets: Array
    events: Array
    positions: Array
    window_start: Array | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

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
        start = None if self.window_start is None else self.window_start[begin:end]
        return Matches(self.offsets[begin : end + 1] - low, self.events[low:high], self.positions[low:high], start)

    def take(self, rows: Array) -> Matches:
        """Some of the matches, in the order given."""
        lengths = np.diff(self.offsets)[rows]
        offsets = np.r_[0, np.cumsum(lengths)].astype(np.int64)
        flat = np.repeat(self.offsets[:-1][rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
        start = None if self.window_start is None else self.window_start[rows]
        return Matches(offsets, self.events[flat], self.positions[flat], start)


def join(chunks: list[Matches]) -> Matches:
    """One chunk out of several."""
    if len(chunks) == 1:
        return chunks[0]
    if not chunks:
        return Matches(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int32))
    lengths = np.concatenate([np.diff(chunk.offsets) for chunk in chunks])
    starts = [chunk.window_start for chunk in chunks if chunk.window_start is not None]
    return Matches(
        np.r_[0, np.cumsum(lengths)].astype(np.int64),
        np.concatenate([chunk.events for chunk in chunks]),
        np.concatenate([chunk.positions for chunk in chunks]),
        np.concatenate(starts) if starts else None,
    )
