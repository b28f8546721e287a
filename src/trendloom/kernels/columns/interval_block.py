"""A block of events whose times are intervals: sorted by key and by the earliest time, all keys at once.

`time` is the earliest time (`low`). That an event stands before another means nothing but that it may have begun
earlier; who came first is a matter of chance, and `confidence` computes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block
from trendloom.model.imprecision import Intervals, Masses


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
