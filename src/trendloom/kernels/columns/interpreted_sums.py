"""Sums of numbers in plain NumPy, all lanes of some rows at once: what interpreted kernels do instead of loops.

Each gives the same numbers as its compiled namesake in `numbers` and `cells`, to the bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendloom.kernels.columns.words import BIG, add_scaled

WORD = (1 << 64) - 1


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
                put_integer(a, i + row, lane, integer_at(a, i + row, lane) + integer_at(b, j + row, lane), a.spill)


def integer_at(a: Any, i: int, lane: int) -> int:
    """The exact number a[i] of a lane."""
    if hasattr(a, "low"):
        return (int(a.high[i, lane]) << 64) + int(a.low[i, lane])
    return int.from_bytes(a.words[i, lane].tobytes(), "little", signed=True)


def put_integer(a: Any, i: int, lane: int, value: int, spill: Any) -> bool:
    """a[i] = value in one lane, if it fits; else it is noted in `spill`."""
    words = 2 if hasattr(a, "low") else a.words.shape[2]
    if not -(1 << (64 * words - 2)) <= value < 1 << (64 * words - 2):
        spill[lane] = -1
        return False
    if hasattr(a, "low"):
        a.low[i, lane], a.high[i, lane] = value & WORD, value >> 64
    else:
        a.words[i, lane] = np.frombuffer(value.to_bytes(8 * words, "little", signed=True), np.uint64)
    return True


def clear_rows(a: Any, i: int, count: int) -> None:
    """a[i + r] = 0 for `count` rows r, in all lanes."""
    for one in a[: 1 if hasattr(a, "words") else 2]:  # the last of some systems is what spilled
        one[i : i + count] = 0
