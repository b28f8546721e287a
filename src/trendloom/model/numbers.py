"""Exact numbers of any size as Arrow columns.

A column of exact integers is int64 where all its values fit, else decimal128(38,0), else decimal256(76,0), else
decimal text: nothing is ever rounded or wrapped. Decimals are integers in units of their last digit, and are likewise
decimal128(38,s), decimal256(76,s) or text, with s digits after the point.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa

MOST_DIGITS = 76
"""Digits of the widest decimals of Arrow."""

WORD = 2**64 - 1
DECIMALS = {38: pa.decimal128, MOST_DIGITS: pa.decimal256}
"""Arrow's decimals by the digits that they hold."""


def exact_array(values: Sequence[int | None], scale: int | None = None) -> pa.Array:
    """The narrowest exact Arrow array that holds all values; with a scale they are units of decimals."""
    known = [value for value in values if value is not None]
    least, most = min(known, default=0), max(known, default=0)
    if scale is None and least >= -(2**63) and most < 2**63:
        return pa.array(values, pa.int64())
    digits, most = scale or 0, max(-least, most)
    for widest, make in DECIMALS.items():
        if most < 10**widest and digits <= widest:
            return decimals(values, make(widest, digits))
    return pa.array([None if value is None else to_text(value, digits) for value in values], pa.string())


def decimals(units: Sequence[int | None], kind: pa.DataType) -> pa.Array:
    """Units as decimals of a type that holds them: Arrow's are their words, the lowest first."""
    words = np.empty((len(units), kind.bit_width // 64), np.uint64)
    there = None
    rest = np.empty(len(units), object)
    rest[:] = units
    if None in units:
        known = rest != None  # noqa: E711 (asked of every element)
        there = pa.py_buffer(np.packbits(known, bitorder="little"))
        rest[~known] = 0
    for at in range(words.shape[1]):
        words[:, at] = (rest & WORD).astype(np.uint64)
        rest = rest >> 64
    return pa.Array.from_buffers(kind, len(units), [there, pa.py_buffer(words)])


def to_text(value: int, scale: int = 0) -> str:
    """An integer as decimal text, of any length: `str` refuses thousands of digits, and takes quadratic time.

    The last `scale` digits stand after the point.
    """
    text = str(value) if value.bit_length() < 10_000 else format(Decimal(value), "f")
    if scale == 0:
        return text
    sign, digits = ("-", text[1:]) if value < 0 else ("", text)
    digits = digits.rjust(scale + 1, "0")
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}"


def from_text(text: str) -> int:
    """The integer that `to_text` wrote."""
    return int(text) if len(text) < 4_000 else int(Decimal(text))


# ------------------------------------------------------------------------------------------------ decimals


def units_of(value: Decimal | Fraction | int, scale: int) -> int:
    """A number in units; it must be a whole number of them."""
    found: Fraction = Fraction(value) * 10**scale
    if found.denominator != 1:
        raise ValueError(f"{value} has more than {scale} digits after the point")
    return int(found)


def scale_of(value: Decimal) -> int:
    """How many digits after the point a number needs."""
    scale = 0
    denominator = Fraction(value).denominator
    while denominator > 1:
        denominator, scale = denominator // _shared_with_ten(denominator), scale + 1
    return scale


def _shared_with_ten(number: int) -> int:
    return 10 if number % 10 == 0 else 5 if number % 5 == 0 else 2
