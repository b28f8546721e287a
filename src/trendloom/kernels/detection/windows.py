"""Windows and matches: how far a match may reach, and which windows hold it.

A window's result depends only on its own events, and whether an event extends a partial match depends only on events
up to it. So matches are found once, bounded by the *horizon* of their first event (the end of the last window that
starts before it), and then handed to every window that holds them whole. Only leading and trailing NOTs look at the
window itself; they are decided per window.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendloom.errors import DataError
from trendloom.kernels.columns.block import Block
from trendloom.model.window import Window

Array = np.ndarray[Any, Any]


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
    assert window.within is not None
    assert window.slide is not None
    lowest = np.floor_divide(last - window.within, window.slide) + 1
    highest = np.floor_divide(first, window.slide)
    count = np.maximum(highest - lowest + 1, 0)
    which = np.repeat(np.arange(len(first)), count)
    within_stretch = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    return which, (lowest[which] + within_stretch) * window.slide


def surroundings(block: Block, first: Array, last: Array, start: Array | None, window: Window) -> tuple[Array, Array]:
    """Indices [low, high) of the events that leading and trailing NOTs of a match look at."""
    key = block.key[first]
    low, high = block.key_starts[key], block.key_starts[key + 1]
    if window.within is None:
        return low, high
    if start is None:
        return (
            block.not_before(key, block.time[last] - window.within + 1),
            block.not_before(key, block.time[first] + window.within),
        )
    return block.not_before(key, start), block.not_before(key, start + window.within)
