"""Exact integers of any size as Arrow columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.errors import RunError, option
from trendloom.model.numbers import exact_array, to_text

Array = np.ndarray[Any, Any]


def integers_as(numbers: Array, exact: pa.DataType) -> pa.Array:
    """Integers as a column of the type given; one that does not fit is refused."""
    if pa.types.is_string(exact):
        return pa.array([to_text(int(number)) for number in numbers], exact)
    if numbers.dtype == np.int64:
        return pa.array(numbers).cast(exact)
    if pa.types.is_decimal(exact) and max(numbers, default=0) >= 10**exact.precision:
        raise RunError(
            f"a row stands for more matches than DECIMAL({exact.precision},0) can hold",
            hint=f"use a smaller window or more selective predicates, {option('engine', 'local')}, where numbers are "
            f"as wide as they need, or COUNT(*) with {option('numeric', 'log')}",
        )
    return exact_array(numbers.tolist()).cast(exact)


def width_of(columns: list[Array]) -> pa.DataType:
    """The narrowest type that holds all of them."""
    most = [max(numbers, default=0) for numbers in columns if numbers.dtype != np.int64]
    return exact_array(most).type
