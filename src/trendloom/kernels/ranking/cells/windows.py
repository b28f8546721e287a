"""Windows of a block as ranges of events, and spans as panes: what boards are made of."""

from __future__ import annotations

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.windows import horizons, numbers_of_windows
from trendloom.kernels.ranking.cells.boards import Ranges, SpanBoards
from trendloom.model.time import Window


def ranges_of(block: Block, window: Window) -> tuple[Ranges, Array | None]:
    """The windows that hold events, by key and start, and their starts; without windows the keys."""
    if window.slide is None:
        return Ranges(block.key_starts[:-1], block.key_starts[1:]), None
    assert window.within is not None
    low, count = numbers_of_windows(block.time, block.time, window)
    last = low + count - 1
    same = np.r_[False, block.key[1:] == block.key[:-1]]
    begin = np.where(same, np.maximum(low, np.r_[0, last[:-1]] + 1), low)
    count = np.maximum(last - begin + 1, 0)
    which = np.repeat(np.arange(len(block)), count)
    number = begin[which] + np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    start, key = number * window.slide, block.key[which]
    return Ranges(block.not_before(key, start), block.not_before(key, start + window.within)), start


def spans_of(block: Block, window: Window) -> tuple[SpanBoards, int]:
    """Keys, the limits of their starts and the panes in which these lie; and the most events of a span."""
    assert window.within is not None
    limit = horizons(block, window)
    assert limit is not None
    pane = np.floor_divide(block.time, window.within)
    fresh = (pane[1:] != pane[:-1]) | (block.key[1:] != block.key[:-1])
    low = np.flatnonzero(np.r_[True, fresh][: len(block)])
    end = np.r_[low[1:], len(block)]
    high = block.not_before(block.key[low], (pane[low] + 2) * window.within)
    return SpanBoards(block.key_starts, limit, low, end, high), int((limit - np.arange(len(block))).max(initial=1))
