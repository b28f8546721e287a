"""The events that fit each position, in order of their earliest points: who may come after a time, and before another.

Within a key the earliest points rise, and so does the greatest latest point so far; so the events that may lie between
two times are a slice, found by bisection, with few others among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.interval_block import IntervalBlock
from trendloom.kernels.columns.segments import first_at_least
from trendloom.kernels.jit.compiled import njit

FAR = np.int64(2**62)
"""Later than every point."""


@dataclass(frozen=True, eq=False)
class PositionEvents:
    """`events`: indices into the block, by key and earliest point. Those of key k are `starts[k]` to `starts[k + 1]`.

    `highest`: the greatest latest point of this event and those of its key before it.
    """

    events: Array
    starts: Array
    low: Array
    high: Array

    @cached_property
    def highest(self) -> Array:
        return highest_so_far(self.high, self.starts)

    def between(self, key: Array, after: Array, until: Array | None) -> tuple[Array, Array]:
        """Per row the slice that holds all events of a key that may come later than `after` and not after `until`.

        It may hold others that have ended before: `high > after` is left to be tested. O(log events) per row.
        """
        first, end = self.starts[key], self.starts[key + 1]
        begin = first_at_least(first, end, self.highest, after + 1)
        if until is not None:
            end = first_at_least(first, end, self.low, until + 1)
        return begin, np.maximum(begin, end)

    @cached_property
    def _by_end(self) -> Array:
        key = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        return np.lexsort((self.high, key))

    def least_after(self, values: Array, key: Array, after: Array) -> Array:
        """Per row the least value among the events of a key that may come later than `after`; FAR: there is none."""
        order = self._by_end
        first, end = self.starts[key], self.starts[key + 1]
        begin = first_at_least(first, end, self.high[order], after + 1)
        least = least_from_here(values[order], self.starts)
        return np.where(begin < end, np.r_[least, FAR][begin], FAR)

    @cached_property
    def _soonest_ends(self) -> Array:
        return np.r_[least_from_here(self.high, self.starts), FAR]

    def surely_between(self, key: Array, after: Array, before: Array) -> Array:
        """Per row, whether an event of a key lies between two times for certain."""
        first, end = self.starts[key], self.starts[key + 1]
        begin = first_at_least(first, end, self.low, after + 1)
        return (begin < end) & (self._soonest_ends[begin] < before)


def events_by_position(block: IntervalBlock) -> tuple[PositionEvents, ...]:
    """For every position of the pattern, NOTs included, the events that fit it."""
    found: dict[int, PositionEvents] = {}
    for bit, members in zip(block.bits, block.members, strict=True):
        if bit not in found:
            starts = np.searchsorted(members, block.key_starts).astype(np.int64)
            found[bit] = PositionEvents(members, starts, block.first_point[members], block.last_point[members])
    return tuple(found[bit] for bit in block.bits)


@njit(nogil=True)
def highest_so_far(values: Array, starts: Array) -> Array:
    """Per entry the greatest of its segment up to it. O(entries)."""
    found = values.copy()
    for segment in range(len(starts) - 1):
        for at in range(starts[segment] + 1, starts[segment + 1]):
            if found[at - 1] > found[at]:
                found[at] = found[at - 1]
    return found


@njit(nogil=True)
def least_from_here(values: Array, starts: Array) -> Array:
    """Per entry the least of its segment from it on. O(entries)."""
    found = values.copy()
    for segment in range(len(starts) - 1):
        for at in range(starts[segment + 1] - 2, starts[segment] - 1, -1):
            if found[at + 1] < found[at]:
                found[at] = found[at + 1]
    return found
