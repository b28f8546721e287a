"""Exact integers of any size as Arrow columns.

A column of exact results is int64 where all its values fit, else decimal128(38,0), else decimal256(76,0), else
decimal text: nothing is ever rounded or wrapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal

import pyarrow as pa

_WIDE = Context(prec=100)


def exact_array(values: Sequence[int | None]) -> pa.Array:
    """The narrowest exact Arrow array that holds all values."""
    most = max((abs(value) for value in values if value is not None), default=0)
    if all(value is None or -(2**63) <= value < 2**63 for value in values):
        return pa.array(values, pa.int64())
    if most < 10**38:
        return pa.array([_decimal(value) for value in values], pa.decimal128(38, 0))
    if most < 10**76:
        return pa.array([_decimal(value) for value in values], pa.decimal256(76, 0))
    return pa.array([None if value is None else to_text(value) for value in values], pa.string())


def to_text(value: int) -> str:
    """An integer as decimal text, of any length: `str` refuses thousands of digits, and takes quadratic time."""
    return str(value) if value.bit_length() < 10_000 else format(Decimal(value), "f")


def from_text(text: str) -> int:
    """The integer that `to_text` wrote."""
    return int(text) if len(text) < 4_000 else int(Decimal(text))


def _decimal(value: int | None) -> Decimal | None:
    return None if value is None else _WIDE.create_decimal(value)
