"""Where complete trends begin and end, window by window, as two comparisons of numbers.

A path from e to f is complete in a window that holds both if the latest event that may precede e and the earliest that
may follow f lie outside. So it is complete in a range of windows, found once, whatever their overlap. With
`from_[e]`, `to[e]` of its first and `least[f]`, `most[f]` of its last event that range is empty unless
least[f] ≤ to[e] and from_[e] ≤ most[f]:

- sliding windows: e begins trends of the windows number from_..to, f ends those of least..most;
- a bare WITHIN: e is preceded by nothing in reach of the end, f is followed by nothing in reach of the beginning;
- no window: e is preceded, f followed by nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.trends.complete.graph import NEVER, TrendGraph
from trendloom.model.time import Window


class FrameColumns(NamedTuple):
    """`begins[e]`: whether a trend can begin there at all; `limit[e]`: the first event that it cannot hold."""

    begins: Array
    ends: Array
    from_: Array
    to: Array
    least: Array
    most: Array
    limit: Array


@dataclass(frozen=True, eq=False)
class Frames:
    """The columns of `FrameColumns`, and the window that they are of."""

    window: Window
    begins: Array
    ends: Array
    from_: Array
    to: Array
    least: Array
    most: Array
    limit: Array

    @property
    def columns(self) -> FrameColumns:
        """All of them, for compiled code."""
        return FrameColumns(self.begins, self.ends, self.from_, self.to, self.least, self.most, self.limit)

    def windows(self, first: Array, last: Array) -> tuple[Array, Array]:
        """For trends from `first` to `last` the sliding windows in which they are complete: the first, and how many."""
        low = np.maximum(self.from_[first], self.least[last])
        return low, np.minimum(self.to[first], self.most[last]) - low + 1


def frames_of(graph: TrendGraph, window: Window) -> Frames:
    """Cost: O(log events) per event."""
    block = graph.block
    time = block.time
    ends_of_keys = block.key_starts[1:][block.key]
    if window.within is None:
        none = np.zeros(len(graph), np.int64)
        followed = (graph.after < NEVER).astype(np.int64)
        return Frames(window, graph.before == -NEVER, followed == 0, none, none, followed, none, ends_of_keys)
    if window.slide is None:
        from_ = np.where(graph.before == -NEVER, -NEVER, graph.before + window.within)
        every = np.ones(len(graph), np.bool_)
        limit = block.not_before(block.key, time + window.within)
        return Frames(window, every, every, from_, -(time + window.within), -graph.after, time, limit)
    lowest = np.floor_divide(time - window.within, window.slide) + 1
    highest = np.floor_divide(time, window.slide)
    from_ = np.maximum(lowest, np.floor_divide(graph.before, window.slide) + 1)
    most = np.floor_divide(graph.after - window.within, window.slide)
    limit = block.not_before(block.key, highest * window.slide + window.within)
    ends = (lowest <= most) & (lowest <= highest)
    return Frames(window, from_ <= highest, ends, from_, highest, np.where(ends, lowest, NEVER), most, limit)
