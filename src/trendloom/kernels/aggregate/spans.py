"""Which stretches of events have a result: one per key and window that holds enough events for a match.

Cost: O(keys + windows · log(events of a window)); windows without events cost nothing.
"""

from __future__ import annotations

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.measures import Spans
from trendloom.kernels.columns.block import Block, check_range
from trendloom.kernels.jit.compiled import njit
from trendloom.model.time import Window


def spans_of(block: Block, window: Window, least: int = 1) -> Spans:
    """All keys and windows with at least `least` events, by key and start."""
    check_range(block.time, window)
    return spans_between(block.key_starts, block.time, window, least)


def spans_between(key_starts: Array, time: Array, window: Window, least: int = 1) -> Spans:
    """The same for anything that is sorted by key and time."""
    if window.within is None or window.slide is None:
        keys = np.flatnonzero(np.diff(key_starts) >= max(least, 1))
        return Spans(keys, np.zeros(len(keys), np.int64), key_starts[keys], key_starts[keys + 1])
    found = _spans(key_starts, time, window.within, window.slide, max(least, 1))
    return Spans(*(np.ascontiguousarray(column) for column in found.T))


@njit(nogil=True)
def not_before(time: Array, at: int, end: int, bound: int) -> int:
    """The first event from `at` on whose time is at least `bound`, by galloping. O(log distance)."""
    if at >= end or time[at] >= bound:
        return at
    jump, low = 1, at
    while low + jump < end and time[low + jump] < bound:
        low += jump
        jump *= 2
    high = min(low + jump, end)
    while high - low > 1:
        middle = (low + high) // 2
        if time[middle] < bound:
            low = middle
        else:
            high = middle
    return high


@njit(nogil=True)
def grown(found: Array, count: int) -> Array:
    """The table, or one twice as long with the same rows if it is full. (A slice would take seconds to compile.)"""
    if count < len(found):
        return found
    more = np.empty((2 * len(found), found.shape[1]), np.int64)
    for row in range(count):
        for column in range(found.shape[1]):
            more[row, column] = found[row, column]
    return more


@njit(nogil=True)
def _spans(key_starts: Array, time: Array, within: int, slide: int, least: int) -> Array:
    """(key, start, low, high) of every window with enough events; windows between events are jumped over."""
    found = np.empty((16, 4), np.int64)
    count = 0
    for key in range(len(key_starts) - 1):
        low = high = key_starts[key]
        end = key_starts[key + 1]
        number = (time[low] - within) // slide + 1 if low < end else 0
        while low < end:
            number = max(number, (time[low] - within) // slide + 1)
            start = number * slide
            low = not_before(time, low, end, start)
            high = not_before(time, max(low, high), end, start + within)
            if high - low >= least:
                found = grown(found, count)
                found[count, 0], found[count, 1], found[count, 2], found[count, 3] = key, start, low, high
                count += 1
            number += 1
    return found[:count]
