"""Where the events of a signature can lie: for each a least and a greatest point, as tight as the order allows.

A box restricts the first and the last event; what depends on both of their times (a span, a NOT at either end under a
bare WITHIN) is summed over boxes in which they are fixed. Cost: O(length) per box.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.kernels.compiled import INSIDE, njit

Array = np.ndarray[Any, Any]

FAR = 1 << 61
"""A point beyond all others, and a span that binds nobody."""


class Box(NamedTuple):
    """By number in the signature, the least and the greatest point of its events; longer than the signature."""

    low: Array
    high: Array


class Limits(NamedTuple):
    """When a signature may take place: less than `span` points from first to last, in the points of its window.

    Without a span, or without a window, they are `FAR`. `bare`: a NOT at either end looks as far as the span.
    """

    span: int
    first: int
    last: int
    bare: bool


@njit(**INSIDE)
def tighten(box: Box, length: int, span: int) -> bool:
    """Leave each event only the points that others leave it; says whether all have some.

    The lower bounds go forward, the upper ones backward; then the span raises the first lower bound and cuts the last
    upper one, and both go on once more. Cost: O(length).
    """
    if not in_order(box, length):
        return False
    last = length - 1
    if box.high[last] - box.low[0] < span:
        return True
    box.low[0] = max(box.low[0], box.low[last] - span + 1)
    box.high[last] = min(box.high[last], box.high[0] + span - 1)
    return in_order(box, length)


@njit(**INSIDE)
def in_order(box: Box, length: int) -> bool:
    """The same without a span."""
    low, high = box.low, box.high
    for j in range(1, length):
        low[j] = max(low[j], low[j - 1] + 1)
    for j in range(length - 2, -1, -1):
        high[j] = min(high[j], high[j + 1] - 1)
    for j in range(length):
        if low[j] > high[j]:
            return False
    return True


@njit(**INSIDE)
def narrow(whole: Box, box: Box, length: int, starts: tuple[int, int], ends: tuple[int, int]) -> bool:
    """Make `box` the part of another where the first and the last event lie between two points each."""
    for j in range(length):
        box.low[j], box.high[j] = whole.low[j], whole.high[j]
    box.low[0], box.high[0] = max(box.low[0], starts[0]), min(box.high[0], starts[1])
    last = length - 1
    box.low[last], box.high[last] = max(box.low[last], ends[0]), min(box.high[last], ends[1])
    return in_order(box, length)
