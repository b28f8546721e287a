"""Sums of numbers in plain NumPy, all lanes of some rows at once: what interpreted kernels do instead of loops.

Each gives the same numbers as its compiled namesake in `numbers` and `cells`, to the bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendloom.kernels.columns.words import BIG, add_limbs, add_scaled

MOST = np.iinfo(np.int64).max


def add_rows(a: Any, i: int, b: Any, j: int, count: int) -> None:
    """a[i + r] += b[j + r] for `count` rows r, in all lanes. O(count · lanes · words)."""
    to, of = slice(i, i + count), slice(j, j + count)
    if hasattr(a, "value"):
        a.value[to] += b.value[of]
    elif hasattr(a, "low"):
        added = b.low[of]
        low = a.low[to] + added
        high = a.high[to] + b.high[of] + (low < added)
        a.low[to], a.high[to] = low, high
        np.bitwise_or(a.spill, np.bitwise_or.reduce(high ^ (high << 1), axis=0), out=a.spill)
    elif hasattr(a, "mantissa"):
        total = a.mantissa[to] + b.mantissa[of]
        if not a.exponent[to].any() and not b.exponent[of].any() and (np.abs(total) < BIG).all():
            a.mantissa[to] = total
            return
        for row in range(count):
            for lane in range(a.mantissa.shape[1]):
                add_scaled(a, i + row, lane, b.mantissa[j + row, lane], b.exponent[j + row, lane])
    else:
        for row in range(count):
            for lane in range(a.words.shape[1]):
                add_limbs(a, i + row, lane, b.words[j + row, lane], False)


def clear_rows(a: Any, i: int, count: int) -> None:
    """a[i + r] = 0 for `count` rows r, in all lanes."""
    for one in a[: 1 if hasattr(a, "words") else 2]:  # the last of some systems is what spilled
        one[i : i + count] = 0


def merge_cells(a: Any, i: int, b: Any, j: int) -> None:
    """As `cells.merge`."""
    add_rows(a.numbers, i * a.width, b.numbers, j * a.width, a.width)
    if a.least.shape[2] > 0:
        np.minimum(a.least[i], b.least[j], out=a.least[i])


def wipe_cell(a: Any, i: int) -> None:
    """As `cells.wipe`."""
    clear_rows(a.numbers, i * a.width, a.width)
    a.least[i] = MOST
