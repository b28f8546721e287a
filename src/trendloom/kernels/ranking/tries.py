"""What did not help is tried again later, and later each time."""

from __future__ import annotations

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit

AMONG_FEW, BY_PIVOT, FROM_KNOWN = range(3)
"""Ways to find the paths of a window: among promising events, by tables around a pivot, from those of the last one."""
NEXT, PAUSE = range(2)
"""Of a way: the window from which on it is tried, and after how many it is tried when it fails again."""
LONGEST_PAUSE = 64


@njit(nogil=True)
def no_tries_yet() -> Array:
    """All ways are tried from the first window on."""
    return np.zeros((3, 2), np.int64)


@njit(**INSIDE, forceinline=True)
def is_due(tries: Array, way: int, window: int) -> bool:
    return bool(window >= tries[way, NEXT])


@njit(**INSIDE, forceinline=True)
def note_try(tries: Array, way: int, window: int, helped: bool) -> None:
    pause = 0 if helped else min(2 * tries[way, PAUSE] + 1, LONGEST_PAUSE)
    tries[way, PAUSE], tries[way, NEXT] = pause, window + 1 + pause
