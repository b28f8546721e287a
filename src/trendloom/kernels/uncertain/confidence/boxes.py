"""Where the events of a signature can lie: for each a least and a greatest point, as tight as the order allows.

A box is an array with a row for each event, or more: its `LOW` and its `HIGH` point. What depends on the times of both
the first and the last event (a span, a NOT at either end under a bare WITHIN) is summed over boxes in which they are
fixed. Cost: O(length) per box.
"""

from __future__ import annotations

from typing import NamedTuple

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.uncertain.confidence.points import HIGH, LOW


class TimeLimits(NamedTuple):
    """When a signature may take place: less than `span` points from first to last, in the points of its window.

    Without a span, or without a window, they are `FAR`. `bare`: a NOT at either end looks as far as the span.
    """

    span: int
    first: int
    last: int
    bare: bool


@njit(**INSIDE, forceinline=True)
def tighten(box: Array, length: int, span: int) -> bool:
    """Leave each event only the points that others leave it; says whether all have some.

    The lower bounds go forward, the upper ones backward; then the span raises the first lower bound and cuts the last
    upper one, and both go on once more. Cost: O(length).
    """
    if not in_order(box, length):
        return False
    last = length - 1
    if box[last, HIGH] - box[0, LOW] < span:
        return True
    box[0, LOW] = max(box[0, LOW], box[last, LOW] - span + 1)
    box[last, HIGH] = min(box[last, HIGH], box[0, HIGH] + span - 1)
    return in_order(box, length)


@njit(**INSIDE, forceinline=True)
def in_order(box: Array, length: int) -> bool:
    """The same without a span."""
    for j in range(1, length):
        box[j, LOW] = max(box[j, LOW], box[j - 1, LOW] + 1)
    for j in range(length - 2, -1, -1):
        box[j, HIGH] = min(box[j, HIGH], box[j + 1, HIGH] - 1)
    possible = True
    for j in range(length):
        possible = possible and box[j, LOW] <= box[j, HIGH]
    return possible


@njit(**INSIDE, forceinline=True)
def narrow(whole: Array, box: Array, length: int, starts: tuple[int, int], ends: tuple[int, int]) -> bool:
    """Make `box` the part of another where the first and the last event lie between two points each."""
    for j in range(length):
        box[j, LOW], box[j, HIGH] = whole[j, LOW], whole[j, HIGH]
    box[0, LOW], box[0, HIGH] = max(box[0, LOW], starts[0]), min(box[0, HIGH], starts[1])
    last = length - 1
    box[last, LOW], box[last, HIGH] = max(box[last, LOW], ends[0]), min(box[last, HIGH], ends[1])
    return in_order(box, length)
