"""Exact numbers: decimals as whole numbers of units, and Arrow columns for integers and decimals of any size.

12.30 with two digits after the point is 1230 units. Units are int64, or Python ints in an object array where int64
cannot hold them, so a column of decimals is compared, sorted, grouped and added up as a column of integers is. The
number of digits after the point (the scale) belongs to the column, not to each value.

Arrow holds a decimal as two's complement in 64-bit words, the lowest first. Where every value fits the lowest word,
that word is the column: no loop, whatever the type allows. Wider ones cost about 150 ns a value.

A column of exact integers is int64 where all its values fit, else decimal128(38,0), else decimal256(76,0), else
decimal text: nothing is ever rounded or wrapped. Decimals are likewise decimal128(38,s), decimal256(76,s) or text,
with s digits after the point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import MAX_PREC, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.expr.arrays import EXACT_DOUBLE, Array, ArrowArray, as_float, narrow, quotient
from trendloom.model.schema import DIGITS_IN_WORD

MOST_DIGITS = 76
"""Digits of the widest decimals of Arrow."""

DECIMALS = {38: pa.decimal128, MOST_DIGITS: pa.decimal256}
"""Arrow's decimals by the digits that they hold."""

WORD = 2**64 - 1

EXACT_POWER = 22
"""Powers of ten up to this one are doubles without rounding."""

_EXACT = Context(prec=MAX_PREC)


# -------------------------------------------------------------------------------------------------- reading


def read_units(array: ArrowArray) -> Array:
    """The units of a decimal array; what lies in the slots of NULL means nothing."""
    words = _words(array)
    lowest, rest = words[:, 0], words[:, 1:]
    fits = (rest == (lowest >> 63)[:, None]).all(axis=1)
    if array.null_count:
        fits |= ~np.asarray(array.is_valid())
    if fits.all():
        return np.ascontiguousarray(lowest)
    units = words[:, -1].astype(object)
    for word in range(words.shape[1] - 2, -1, -1):
        units = (units << 64) + words[:, word].view(np.uint64).astype(object)
    return units if not array.null_count else np.where(np.asarray(array.is_valid()), units, 0).astype(object)


def _words(array: ArrowArray) -> Array:
    """The words of every value, the lowest first: [value, word]."""
    width = array.type.bit_width
    if width < 128:  # decimal32 and decimal64
        array, width = array.cast(pa.decimal128(array.type.precision, array.type.scale)), 128
    count = width // 64
    flat = np.frombuffer(array.buffers()[1], np.int64) if len(array) else np.zeros(0, np.int64)
    return flat[count * array.offset : count * (array.offset + len(array))].reshape(len(array), count)


# --------------------------------------------------------------------------------------------------- values


def rescaled(units: Array, more: int) -> Array:
    """The same numbers with `more` digits after the point (not fewer)."""
    if more == 0 or len(units) == 0:
        return units
    if units.dtype == np.int64 and more <= DIGITS_IN_WORD:
        most = (2**63 - 1) // 10**more
        if -most <= int(units.min()) and int(units.max()) <= most:
            return units * np.int64(10**more)
    return narrow(units.astype(object) * 10**more, None)


def units_below(units: Array, digits: int) -> Array:
    """The greatest whole numbers that are not greater, in units of 10^digits."""
    return _divided(units, digits)


def units_above(units: Array, digits: int) -> Array:
    """The least whole numbers that are not less, in units of 10^digits."""
    return _divided(units, digits, lambda units, rest, power: rest != 0)


def nearest_units(units: Array, digits: int) -> Array:
    """The nearest whole numbers, halves away from zero, in units of 10^digits."""
    return _divided(units, digits, lambda units, rest, power: np.where(units >= 0, 2 * rest >= power, 2 * rest > power))


def _divided(units: Array, digits: int, up: Callable[[Array, Array, int], Array] | None = None) -> Array:
    """Units divided by 10^digits; `up` decides, by units, remainders and power, which quotients are rounded up."""
    if digits == 0:
        return units
    units, power = (units if digits <= DIGITS_IN_WORD else units.astype(object)), 10**digits
    quotients = np.floor_divide(units, power)
    return narrow(quotients if up is None else quotients + up(units, np.remainder(units, power), power), None)


def as_doubles(units: Array, scale: int) -> Array:
    """The double nearest to each number; NaN where there is none."""
    if scale == 0 or units.dtype == np.float64:
        return as_float(units)
    if units.dtype == np.int64 and scale <= EXACT_POWER and _are_exact_doubles(units):
        return units / float(10**scale)  # one division of two exact doubles rounds once
    power = 10**scale
    return np.fromiter((quotient(value, power) for value in units.tolist()), np.float64, len(units))


def _are_exact_doubles(units: Array) -> bool:
    return len(units) == 0 or (int(units.min()) >= -EXACT_DOUBLE and int(units.max()) <= EXACT_DOUBLE)


# -------------------------------------------------------------------------------------------------- writing


def write_units(units: Array, valid: Array | None, scale: int) -> ArrowArray:
    """Units as decimals: decimal128(38, scale) where they fit, else decimal256(76, scale), else text."""
    if units.dtype != np.int64 or scale > 38:
        known: list[Any] = units.tolist()
        if valid is not None:
            known = [value if there else None for value, there in zip(known, valid.tolist(), strict=True)]
        return exact_array(known, scale)
    words = np.stack([units, units >> 63], axis=1)
    mask = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.decimal128(38, scale), len(units), [mask, pa.py_buffer(words)])


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


# ------------------------------------------------------------------------------------------- single numbers


def as_decimal(units: int, scale: int) -> Decimal:
    """Units as a number with its digits after the point."""
    return _EXACT.scaleb(Decimal(units), -scale)


def units_of(value: Decimal | Fraction | int, scale: int) -> int:
    """A number in units; it must be a whole number of them."""
    found: Fraction = Fraction(value) * 10**scale
    if found.denominator != 1:
        raise ValueError(f"{value} has more than {scale} digits after the point")
    return int(found)


def scale_of(value: Decimal) -> int:
    """The digits after the point that a number needs."""
    return max(-int(value.normalize(_EXACT).as_tuple().exponent), 0)


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
