"""Which stretches of events have a result: one per key and window that holds enough events for a match.

Cost: O(keys + windows · log events).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendloom.kernels.aggregation.job import Spans
from trendloom.kernels.columns.block import Block
from trendloom.kernels.detection.windows import check_range
from trendloom.model.window import Window

Array = np.ndarray[Any, Any]


def spans_of(block: Block, window: Window, least: int = 1) -> Spans:
    """All keys and windows with at least `least` events, by key and start."""
    check_range(block.time, window)
    if window.within is None or window.slide is None:
        keys = np.flatnonzero(np.diff(block.key_starts) >= least)
        return Spans(keys, np.zeros(len(keys), np.int64), block.key_starts[keys], block.key_starts[keys + 1])
    keys = np.flatnonzero(np.diff(block.key_starts) > 0)
    first, last = block.time[block.key_starts[keys]], block.time[block.key_starts[keys + 1] - 1]
    lowest = np.floor_divide(first - window.within, window.slide) + 1
    count = np.floor_divide(last, window.slide) - lowest + 1
    key = np.repeat(keys, count)
    number = np.arange(len(key)) - np.repeat(np.cumsum(count) - count - lowest, count)
    start = number * window.slide
    low, high = block.not_before(key, start), block.not_before(key, start + window.within)
    return Spans(key, start, low, high).take(np.flatnonzero(high - low >= least))
