"""The column `matches` of collapsed trends: exact integers, which may have any number of digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.errors import RunError
from trendloom.model.numbers import exact_array, to_text

Array = np.ndarray[Any, Any]


def number_of_matches(numbers: Array, exact: pa.DataType) -> pa.Array:
    """Integers as a column of the type given; one that does not fit is refused."""
    if pa.types.is_string(exact):
        return pa.array([to_text(int(number)) for number in numbers], exact)
    if numbers.dtype == np.int64:
        return pa.array(numbers).cast(exact)
    if pa.types.is_decimal(exact) and max(numbers, default=0) >= 10**exact.precision:
        raise RunError(
            f"a row stands for more matches than DECIMAL({exact.precision},0) can hold",
            hint="use a smaller window or more selective predicates, --engine local, where numbers are as wide as they "
            "need, or COUNT(*) with --numeric log",
        )
    return exact_array(numbers.tolist()).cast(exact)


def width_of(numbers: Array) -> pa.DataType:
    """The narrowest type that holds all of them."""
    most = [] if numbers.dtype == np.int64 else [max(numbers, default=0)]
    return exact_array(most).type
