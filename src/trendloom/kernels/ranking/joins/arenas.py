"""Where combinations are looked for: stretches of events that are joined each on its own, and what is ranked together.

An *arena* is a window of a key, or a whole key. A bound on spans cuts a key by time into panes as long as the bound: a
match that begins in a pane ends in it or in the next, so these two are an arena, for matches that begin in the first.

Arenas with the same `group` are ranked together: the panes of a key, and with OVERALL those of all keys. Which of them
are looked at at all is decided by what each can give at best (`kernel`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block
from trendloom.kernels.ranking.cells.windows import ranges_of, spans_of
from trendloom.kernels.ranking.joins.operand import JoinOperand
from trendloom.model.time import Window


@dataclass(frozen=True, eq=False)
class Arenas:
    """The events of arena i are those from `low[i]` to `high[i]`, of operand o those from `begin[o][i]` on.

    `start`: of windows. `first_end`: where the events end with which a match may begin; None: anywhere.
    """

    low: Array
    high: Array
    begin: tuple[Array, ...]
    group: Array
    start: Array | None
    first_end: Array | None

    def __len__(self) -> int:
        return len(self.low)

    def events(self, chosen: Array, events: int) -> Array:
        """Which events lie in some arenas."""
        change = np.zeros(events + 1, np.int64)
        np.add.at(change, self.low[chosen], 1)
        np.add.at(change, self.high[chosen], -1)
        found: Array = np.cumsum(change)[:-1] > 0
        return found

    def holding(self, block: Block, first: Array, start: Array | None) -> Array:
        """The arenas of matches, by their first events and the starts of their windows."""
        if self.first_end is not None:
            return np.searchsorted(self.low, first, side="right") - 1
        if start is None or self.start is None:
            return block.key[first]
        starts = np.unique(self.start)
        codes = block.key[self.low] * len(starts) + np.searchsorted(starts, self.start)
        return np.searchsorted(codes, block.key[first] * len(starts) + np.searchsorted(starts, start))


def arenas_of(block: Block, window: Window, operands: Sequence[JoinOperand], *, overall: bool) -> Arenas:
    """The arenas of a block, in the order of their events."""
    if window.spanning:
        spans, _ = spans_of(block, window)
        group = np.zeros(len(spans.pane_low), np.int64) if overall else block.key[spans.pane_low]
        begin = tuple(spans.pane_low for _ in operands)
        return Arenas(spans.pane_low, spans.pane_high, begin, group, None, spans.pane_end)
    ranges, start = ranges_of(block, window)
    if start is None:
        group = np.zeros(len(ranges.low), np.int64) if overall else np.arange(len(ranges.low))
        return Arenas(ranges.low, ranges.high, tuple(ranges.low for _ in operands), group, None, None)
    assert window.within is not None
    group = np.unique(start, return_inverse=True)[1].reshape(-1) if overall else np.arange(len(start))
    begin = tuple(_begins(block, ranges.low, start + window.within, operand.within) for operand in operands)
    return Arenas(ranges.low, ranges.high, begin, group, start, None)


def _begins(block: Block, low: Array, end: Array, within: int | None) -> Array:
    """Where the events of an operand begin in windows, which hold events and end at `end`."""
    if within is None:
        return low
    return np.maximum(low, block.not_before(block.key[low], end - within))


def combinations_in(arenas: Arenas, operands: Sequence[JoinOperand], block: Block, kept: Array | None = None) -> Array:
    """By arena at most how many combinations there are, of all events or of those `kept`. O(events · positions)."""
    found = np.ones(len(arenas))
    with np.errstate(over="ignore"):
        for operand, begin in zip(operands, arenas.begin, strict=True):
            found *= sequences_in(operand, begin, arenas.high, block, kept)
    return found


def sequences_in(operand: JoinOperand, begin: Array, end: Array, block: Block, kept: Array | None = None) -> Array:
    """By stretch of events at most how many sequences an operand has."""
    found = np.zeros(len(begin))
    with np.errstate(over="ignore"):
        for branch in operand.branches:
            product = np.ones(len(begin))
            for position in branch.positions:
                members = block.members[position]
                members = members if kept is None else members[kept[members]]
                product *= np.maximum(np.searchsorted(members, end) - np.searchsorted(members, begin), 0)
            found += product
    return found
