"""Windows that may hold a signature: those where it has room, each with the points that belong to it.

A window [s, e) in ticks has the points from ceil(s / grain) to ceil(e / grain) - 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trendloom.kernels.uncertain.prefixes import Prefixes
from trendloom.model.window import Window

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class PossibleWindows:
    """`which` signature, the `start` of the window in ticks, and its first and last `points`."""

    which: Array
    start: Array
    points: Array


def span_in_points(window: Window, grain: int) -> int | None:
    """A match takes less than so many points: those that a window can have, or of a bare WITHIN."""
    return None if window.within is None else -(-window.within // grain)


def possible_windows(signatures: Prefixes, window: Window, grain: int) -> PossibleWindows:
    """The windows that may hold each signature, by signature and start.

    If the first event comes no earlier than a window, the last comes at max(least, first point + length - 1).
    """
    assert window.within is not None
    assert window.slide is not None
    lowest = np.floor_divide(signatures.least * grain - window.within, window.slide) + 1
    count = np.maximum(np.floor_divide(signatures.latest * grain, window.slide) - lowest + 1, 0)
    which = np.repeat(np.arange(len(signatures)), count)
    nth = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    start = (lowest[which] + nth) * window.slide
    first, last = -np.floor_divide(-start, grain), -np.floor_divide(-(start + window.within), grain) - 1
    room = np.flatnonzero(last - first >= signatures.length - 1)
    return PossibleWindows(which[room], start[room], np.stack([first[room], last[room]], axis=1))
