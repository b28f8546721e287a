"""Arithmetic on 64-bit words and scaled doubles, in place: what the number systems of `numbers` are made of.

Numbers of two words and more are in two's complement; `spill[lane]` turns negative where a result does not fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit

STEP = 512
BIG, SMALL = 2.0**256, 2.0**-256
UP, DOWN = 2.0**512, 2.0**-512


@njit(**INSIDE, forceinline=True)
def carry_of(before: Any, after: Any) -> Any:
    return np.int64(1) if after < before else np.int64(0)


@njit(**INSIDE)
def multiply_words(a: Any, b: Any) -> Any:
    """The two words of a product of unsigned words: (low, high)."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & mask, a >> half, b & mask, b >> half
    low, middle, other, high = a0 * b0, a1 * b0, a0 * b1, a1 * b1
    carried = (low >> half) + (middle & mask) + (other & mask)
    return (low & mask) | (carried << half), high + (middle >> half) + (other >> half) + (carried >> half)


@njit(**INSIDE, wraps=True)
def _magnitude(low: Any, high: Any) -> Any:
    """Two words without their sign."""
    if high >= 0:
        return low, np.uint64(high)
    inverse = ~low + np.uint64(1)
    return inverse, np.uint64(~high) + (np.uint64(1) if inverse == 0 else np.uint64(0))


@njit(**INSIDE, forceinline=True, wraps=True)
def add_wide(a: Any, i: Any, lane: Any, low: Any, high: Any) -> None:
    total = a.low[i, lane] + low
    top = a.high[i, lane] + high + carry_of(low, total)
    a.low[i, lane], a.high[i, lane] = total, top
    a.spill[lane] |= top ^ (top << 1)


@njit(**INSIDE)
def wide_product(low: Any, high: Any, factor: Any) -> Any:
    """A signed number of two words times a signed word: (low, high, negative if it does not fit)."""
    return product(low, high, np.uint64(factor), factor >> 63)


@njit(wraps=True)
def product(low: Any, high: Any, other_low: Any, other_high: Any) -> Any:
    """The product of two signed numbers of two words: (low, high, negative if it does not fit)."""
    x0, x1 = _magnitude(low, high)
    y0, y1 = _magnitude(other_low, other_high)
    p0, p1 = multiply_words(x0, y0)
    bad = np.int64(0)
    if x1 != 0 or y1 != 0:
        if x1 != 0 and y1 != 0:
            bad = np.int64(-1)
        q0, q1 = multiply_words(x1, y0) if x1 != 0 else multiply_words(x0, y1)
        p1 += q0
        if q1 != 0 or p1 < q0:
            bad = np.int64(-1)
    if p1 >> np.uint64(62) != 0:
        bad = np.int64(-1)
    if (high < 0) != (other_high < 0):
        p0 = ~p0 + np.uint64(1)
        p1 = ~p1 + (np.uint64(1) if p0 == 0 else np.uint64(0))
    return p0, np.int64(p1), bad


@njit(**INSIDE)
def add_wide_product(a: Any, i: Any, lane: Any, low: Any, high: Any, other_low: Any, other_high: Any) -> None:
    low, high, bad = product(low, high, other_low, other_high)
    a.spill[lane] |= bad
    add_wide(a, i, lane, low, high)


@njit(**INSIDE, wraps=True)
def add_limbs(a: Any, i: Any, lane: Any, words: Array, negative: Any) -> None:
    """Add or subtract; `words` has as many words as the numbers of a."""
    mine, carry = a.words[i, lane], np.uint64(1) if negative else np.uint64(0)
    for at in range(len(mine)):
        word = ~words[at] if negative else words[at]
        total = mine[at] + word
        more = np.uint64(1) if total < word else np.uint64(0)
        after = total + carry
        carry = more + (np.uint64(1) if after < total else np.uint64(0))
        mine[at] = after
    top = np.int64(mine[len(mine) - 1])
    a.spill[lane] |= top ^ (top << 1)


@njit(**INSIDE, wraps=True)
def _unsigned(words: Array) -> Any:
    """The magnitude of a signed number, whether it is negative, and how many words it uses."""
    found = words.copy()
    negative = np.int64(words[len(words) - 1]) < 0
    if negative:
        carry = np.uint64(1)
        for at in range(len(found)):
            found[at] = ~found[at] + carry
            carry = np.uint64(1) if carry == 1 and found[at] == 0 else np.uint64(0)
    used = len(found)
    while used > 0 and found[used - 1] == 0:
        used -= 1
    return found, negative, used


@njit(**INSIDE, wraps=True)
def add_limbs_product(a: Any, i: Any, lane: Any, b: Array, c: Array) -> None:
    x, minus, m = _unsigned(b)
    y, other_minus, n = _unsigned(c)
    size = a.words.shape[2]
    if m + n > size + 1:
        a.spill[lane] = -1
        return
    product = np.zeros(size + 2, np.uint64)
    for p in range(m):
        carry = np.uint64(0)
        for q in range(n):
            low, high = multiply_words(x[p], y[q])
            total = product[p + q] + low
            high += np.uint64(1) if total < low else np.uint64(0)
            after = total + carry
            carry = high + (np.uint64(1) if after < total else np.uint64(0))
            product[p + q] = after
        product[p + n] += carry
    if product[size] != 0 or product[size - 1] >> np.uint64(62) != 0:
        a.spill[lane] = -1
    add_limbs(a, i, lane, product[:size], minus != other_minus)


@njit(**INSIDE, forceinline=True)
def add_scaled(a: Any, i: Any, lane: Any, mantissa: Any, exponent: Any) -> None:
    if mantissa == 0.0:
        return
    mine, own = a.mantissa[i, lane], a.exponent[i, lane]
    if mine == 0.0:
        mine, own = mantissa, exponent
    elif own == exponent:
        mine += mantissa
    elif own == exponent + 1:
        mine += mantissa * DOWN
    elif own == exponent - 1:
        mine, own = mine * DOWN + mantissa, exponent
    elif own < exponent:
        mine, own = mantissa, exponent
    if abs(mine) >= BIG:
        mine, own = mine * DOWN, own + 1
    elif own > 0 and abs(mine) < SMALL:
        mine, own = (mine * UP, own - 1) if mine != 0.0 else (0.0, 0)
    a.mantissa[i, lane], a.exponent[i, lane] = mine, own


@njit(**INSIDE, forceinline=True)
def add_scaled_product(a: Any, i: Any, lane: Any, mantissa: Any, exponent: Any, weight: Any) -> None:
    if abs(weight) >= BIG:
        weight, exponent = weight * DOWN, exponent + 1
    product = mantissa * weight
    if abs(product) >= BIG:
        product, exponent = product * DOWN, exponent + 1
    elif exponent > 0 and abs(product) < SMALL:
        product, exponent = product * UP, exponent - 1
    add_scaled(a, i, lane, product, exponent)


# ------------------------------------------------------------------------- rows of many words: calls, not inlined


@njit(**INSIDE)
def clear_limbs(words: Array, i: int) -> None:
    for lane in range(words.shape[1]):
        for at in range(words.shape[2]):
            words[i, lane, at] = 0


@njit(**INSIDE)
def copy_limbs(into: Array, i: int, of: Array, j: int) -> None:
    for lane in range(into.shape[1]):
        for at in range(into.shape[2]):
            into[i, lane, at] = of[j, lane, at]


@njit(**INSIDE)
def add_limbs_row(a: Any, i: int, words: Array, j: int) -> None:
    for lane in range(words.shape[1]):
        add_limbs(a, i, lane, words[j, lane], False)


@njit(**INSIDE)
def add_limbs_times(a: Any, i: int, words: Array, j: int, weight: Any) -> None:
    word = _as_words(weight, 2)
    for lane in range(words.shape[1]):
        add_limbs_product(a, i, lane, words[j, lane], word)


@njit(**INSIDE)
def add_limbs_unit(a: Any, i: int, lane: int, weight: Any) -> None:
    add_limbs(a, i, lane, _as_words(weight, a.words.shape[2]), False)


@njit(**INSIDE)
def _as_words(weight: Any, size: int) -> Any:
    """An integer in so many words."""
    words = np.empty(size, np.uint64)
    for at in range(size):
        words[at] = np.uint64(weight >> 63)
    words[0] = np.uint64(weight)
    return words


@njit(**INSIDE)
def no_limbs(words: Array, i: int, lane: int) -> bool:
    found = np.uint64(0)
    for at in range(words.shape[2]):
        found |= words[i, lane, at]
    return found == 0


# ------------------------------------------------------------- plain NumPy, all lanes of some rows at once
#
# What interpreted kernels run instead of loops over lanes: the same numbers as the operations of `numbers`, to the bit.

WORD = (1 << 64) - 1


def add_row(a: Any, i: int, b: Any, j: int) -> None:
    """a[i] += b[j], in all lanes. O(lanes · words)."""
    if hasattr(a, "value"):
        a.value[i] += b.value[j]
    elif hasattr(a, "low"):
        low = a.low[i] + b.low[j]
        high = a.high[i] + b.high[j] + (low < b.low[j])
        a.low[i], a.high[i] = low, high
        a.spill[:] |= high ^ (high << 1)
    elif hasattr(a, "mantissa"):
        total = a.mantissa[i] + b.mantissa[j]
        if not a.exponent[i].any() and not b.exponent[j].any() and (np.abs(total) < BIG).all():
            a.mantissa[i] = total
            return
        for lane in range(a.mantissa.shape[1]):
            add_scaled(a, i, lane, b.mantissa[j, lane], b.exponent[j, lane])
    else:
        for lane in range(a.words.shape[1]):
            put_integer(a, i, lane, integer_at(a, i, lane) + integer_at(b, j, lane), a.spill)


def clear_row(a: Any, i: int) -> None:
    """a[i] = 0, in all lanes."""
    for one in a[: 1 if hasattr(a, "words") else 2]:  # the last of some systems is what spilled
        one[i] = 0


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
