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
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _decimal(value: int | None) -> Decimal | None:
    return None if value is None else _WIDE.create_decimal(value)
