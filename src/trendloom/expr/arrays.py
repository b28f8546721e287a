"""Arrays below the vectors: integers that widen and narrow, doubles, and strings as ranks in a sorted dictionary."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Array = NDArray[Any]

# The stubs of pyarrow type every cast and kernel by its value type, which a reader of all types cannot follow.
ArrowArray = Any  # a pyarrow.Array
ArrowColumn = Any  # a pyarrow.Array or pyarrow.ChunkedArray

EXACT_DOUBLE = 2**53
"""Integers up to this size are doubles without rounding."""

NO_TEXT = np.array([""], dtype=object)
"""The dictionary of a string column that has no value: a dictionary is never empty."""

# ------------------------------------------------------------------------------------------------- integers


def narrow(values: Array, valid: Array | None) -> Array:
    """Python ints as int64 where every valid one fits."""
    if valid is not None:
        values = np.where(valid, values, 0).astype(object)
    try:
        return values.astype(np.int64)
    except OverflowError:
        return values


def to_float(value: int | float) -> float:
    """The nearest double; NaN, which becomes NULL, where an integer is beyond the doubles."""
    try:
        return float(value)
    except OverflowError:
        return math.nan


def as_float(values: Array) -> Array:
    """Numbers as doubles, each rounded to the nearest."""
    if values.dtype == np.object_:
        return np.fromiter(map(to_float, values.tolist()), np.float64, len(values))
    return values.astype(np.float64, copy=False)


# -------------------------------------------------------------------------------------------------- strings


def encode_strings(texts: ArrowColumn) -> tuple[Array, Array]:
    """Ranks into the sorted dictionary of what occurs, and that dictionary. NULL gets rank 0.

    Cost: one hash pass over the column in Arrow, then a sort of the distinct values only. Arrow sorts by UTF-8
    bytes, which is the order of code points, which is Python's order of strings.
    """
    parts = chunks(texts.dictionary_encode())
    if not parts:
        return np.zeros(0, np.int64), NO_TEXT
    # All chunks of one encoding share a dictionary.
    indices, distinct = np.concatenate([_filled(part.indices) for part in parts]), parts[0].dictionary
    if len(distinct) == 0:
        return np.zeros(len(indices), np.int64), NO_TEXT
    order = pc.array_sort_indices(distinct.cast(pa.large_string()))
    ranks = np.empty(len(distinct), np.int64)
    ranks[order.to_numpy()] = np.arange(len(distinct))
    return ranks[indices], distinct.take(order).to_numpy(zero_copy_only=False).astype(object, copy=False)


def chunks(column: ArrowColumn) -> list[ArrowArray]:
    """The arrays that a column is made of."""
    return list(column.chunks) if isinstance(column, pa.ChunkedArray) else [column]


def _filled(indices: ArrowArray) -> Array:
    return np.asarray(indices.fill_null(0))
