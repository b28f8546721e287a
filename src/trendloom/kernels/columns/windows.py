"""Windows by the times of events: which hold a stretch, and how far a match that starts at an event may reach."""

from __future__ import annotations

import numpy as np

from trendloom.errors import DataError
from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block
from trendloom.model.time import Window


def check_range(time: Array, window: Window) -> None:
    """Refuse times so large that a window's bounds would not fit 64 bits."""
    reach = (window.within or 0) + (window.slide or 0)
    if len(time) and max(abs(int(time[0])), abs(int(time.min())), abs(int(time.max()))) + reach >= 2**62:
        raise DataError("times and windows beyond 2^62 ticks are not supported", hint="use a coarser time unit")


def horizons(block: Block, window: Window) -> Array | None:
    """For each event the index of the first event of its key that no match starting there can hold."""
    if window.within is None:
        return None
    start = block.time if window.slide is None else np.floor_divide(block.time, window.slide) * window.slide
    return block.not_before(block.key, start + window.within)


def windows_of(first: Array, last: Array, window: Window) -> tuple[Array, Array]:
    """The windows that hold each stretch [first, last]: (which stretch, start of the window), by stretch and start."""
    assert window.slide is not None
    lowest, count = numbers_of_windows(first, last, window)
    which = np.repeat(np.arange(len(first)), count)
    within_stretch = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    return which, (lowest[which] + within_stretch) * window.slide


def numbers_of_windows(first: Array, last: Array, window: Window) -> tuple[Array, Array]:
    """The windows that hold each stretch [first, last]: the number of the first, and how many."""
    assert window.within is not None
    assert window.slide is not None
    lowest = np.floor_divide(last - window.within, window.slide) + 1
    return lowest, np.maximum(np.floor_divide(first, window.slide) - lowest + 1, 0)
