"""Conditions on two adjacent events that are not a comparison of columns: evaluated for all pairs of a part at once.

A part is a run of batches, or some items of one batch, with a bounded number of pairs (a later and an earlier item of
the batch). Its truths are one flat column that the compiled sweep reads. Cost: O(pairs) evaluations in NumPy, in slices
that stay in cache; memory O(`MOST_PAIRS`), unless the events of one time alone have more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from trendloom.expr.nodes import Expr
from trendloom.kernels.aggregate.event_grained.batches import Batches
from trendloom.kernels.aggregate.event_grained.events_by_state import Items
from trendloom.kernels.aggregate.event_grained.structures import Move
from trendloom.kernels.aggregate.event_grained.sweep import SweepPart
from trendloom.kernels.columns.block import Block
from trendloom.kernels.matching.adjacent_tests import tests_hold

Array = np.ndarray[Any, Any]

MOST_PAIRS = 1 << 22
MOST_ITEMS = 1 << 18
SLICE = 1 << 16
NO_LIMIT = 2**62


def parts_without_tests(batches: Batches) -> Iterator[SweepPart]:
    """All batches at once."""
    yield SweepPart(0, len(batches.span), -1, NO_LIMIT, np.zeros((0, 0), np.int64), np.zeros(0, np.bool_))


@dataclass(frozen=True, eq=False)
class Truths:
    """The tested moves of a pattern with their conditions, over one block."""

    moves: list[Move]
    tests: list[tuple[Expr, ...]]
    block: Block
    items: Items

    def parts(self, batches: Batches) -> Iterator[SweepPart]:
        """Parts of all batches, in order, with their truths."""
        sizes = np.cumsum(batches.high - batches.low)
        begin = 0
        while begin < len(sizes):
            done = sizes[begin - 1] if begin else 0
            end = max(int(np.searchsorted(sizes, done + MOST_ITEMS, side="right")), begin + 1)
            yield from self._run(batches, begin, end)
            begin = end

    def _run(self, batches: Batches, begin: int, end: int) -> Iterator[SweepPart]:
        """Batches begin to end: together, in halves, or the one batch cut into stretches of items."""
        pairs = _Pairs(self, batches, begin, end)
        if pairs.count <= MOST_PAIRS:
            yield SweepPart(begin, end, -1, NO_LIMIT, pairs.at, self._evaluated(pairs, 0, len(pairs.item)))
        elif end - begin > 1:
            middle = (begin + end) // 2
            yield from self._run(batches, begin, middle)
            yield from self._run(batches, middle, end)
        else:
            for low, high in pairs.stretches(self.items):
                truth = self._evaluated(pairs, low, high)
                at = pairs.at[:, low:high] - pairs.offset[low]
                yield SweepPart(begin, end, int(pairs.item[low]), int(pairs.item[high - 1]) + 1, at, truth)

    def _evaluated(self, pairs: _Pairs, low: int, high: int) -> Array:
        """The truths of the pairs of items low to high, in the order of `pairs.at`."""
        size = int(pairs.offset[high] - pairs.offset[low])
        truth = np.zeros(size, np.bool_)
        for number, (move, tests) in enumerate(zip(self.moves, self.tests, strict=True)):
            count = pairs.counts[number, low:high]
            ends = np.cumsum(count)
            later, earlier = self.items.event[pairs.item[low:high]], self.items.of(move.state)
            for begin in range(0, int(ends[-1]) if len(ends) else 0, SLICE):
                pair = np.arange(begin, min(begin + SLICE, int(ends[-1])))
                which = np.searchsorted(ends, pair, side="right")
                nth = pair - (ends[which] - count[which])
                before = earlier[pairs.first[number, low:high][which] + nth]
                at = pairs.at[number, low:high][which] - pairs.offset[low] + nth
                truth[at] = tests_hold(tests, self.block, before, later[which])
        return truth


class _Pairs:
    """All items of some batches one after another, and for every tested move how many predecessors each has."""

    def __init__(self, truths: Truths, batches: Batches, begin: int, end: int) -> None:
        items = truths.items
        sizes = batches.high[begin:end] - batches.low[begin:end]
        which = np.repeat(np.arange(begin, end), sizes)
        self.item = np.arange(len(which)) - np.repeat(np.cumsum(sizes) - sizes - batches.low[begin:end], sizes)
        event, state = items.event[self.item], items.state[self.item]
        shape = (len(truths.moves), len(which))
        self.first, self.counts = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for number, move in enumerate(truths.moves):
            earlier = items.of(move.state)
            self.first[number] = np.searchsorted(earlier, batches.first_event[which])
            last = np.searchsorted(earlier, items.tie_start[event])
            self.counts[number] = np.where(state == move.step.target, np.maximum(last - self.first[number], 0), 0)
        total = self.counts.sum(axis=0)
        self.offset = np.concatenate([np.zeros(1, np.int64), np.cumsum(total)])
        self.at = self.offset[:-1] + np.cumsum(self.counts, axis=0) - self.counts
        self.count = int(self.offset[-1])

    def stretches(self, items: Items) -> Iterator[tuple[int, int]]:
        """Cuts between events of different times, each with few pairs."""
        ends = np.searchsorted(items.event[self.item], items.tie_end[items.event[self.item]])
        low = 0
        while low < len(self.item):
            high = max(int(np.searchsorted(self.offset, self.offset[low] + MOST_PAIRS, side="right")) - 1, low + 1)
            high = int(ends[high - 1])
            yield low, high
            low = high
