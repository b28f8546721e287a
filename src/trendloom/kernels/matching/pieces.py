"""Slices of a sorted list, one for each row, as pairs of a row and an element, in pieces of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def pieces(members: Array, begin: Array, count: Array, size: int) -> Iterator[tuple[Array, Array]]:
    """Row r goes with the `count[r]` members from `begin[r]` on; at most `size` pairs (and at least one) in a piece."""
    last = np.cumsum(count)
    total = int(last[-1]) if len(last) else 0
    size = max(1, size)
    for start in range(0, total, size):
        flat = np.arange(start, min(start + size, total))
        rows = np.searchsorted(last, flat, side="right")
        yield rows, members[begin[rows] + flat - (last[rows] - count[rows])]
