"""Arrays below the vectors: integers that widen and narrow, doubles, strings as ranks in a dictionary, and slices."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import pairwise
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Array = np.ndarray[Any, Any]
"""A NumPy array of any type and shape."""

# The stubs of pyarrow type every cast and kernel by its value type, which a reader of all types cannot follow.
ArrowArray = Any  # a pyarrow.Array
ArrowColumn = Any  # a pyarrow.Array or pyarrow.ChunkedArray

EXACT_DOUBLE = 2**53
"""Integers up to this size are doubles without rounding."""

NO_TEXT = np.array([""], dtype=object)
"""The dictionary of a string column that has no value: a dictionary is never empty."""

MANY_TEXTS = 1 << 18
"""Texts from which on a `Coder` is tried."""

LEAST_SLICE = 1 << 18
"""Rows of a slice: fewer are not worth a thread."""

Coder = Callable[[ArrowArray], tuple[Array, ArrowArray] | None]
"""A quicker way to find the distinct texts of a column and the code of each row; None: it is not quicker."""

Given = ParamSpec("Given")
Result = TypeVar("Result")

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


def quotient(left: int, right: int) -> float:
    """The double nearest to a quotient; NaN where it is beyond the doubles."""
    try:
        return left / right
    except OverflowError:
        return math.nan


def as_float(values: Array) -> Array:
    """Numbers as doubles, each rounded to the nearest."""
    if values.dtype == np.object_:
        return np.fromiter(map(to_float, values.tolist()), np.float64, len(values))
    return values.astype(np.float64, copy=False)


# -------------------------------------------------------------------------------------------------- strings


def encode_strings(texts: ArrowColumn, threads: int = 1, coder: Coder | None = None) -> tuple[Array, Array]:
    """Ranks into the sorted dictionary of what occurs, and that dictionary. NULL gets any rank.

    Cost: one hash pass over the column in Arrow, or that of the `coder`, then a sort of the distinct values only. Arrow
    sorts by UTF-8 bytes, which is the order of code points, which is Python's order of strings.
    """

    def encode(low: int, high: int) -> tuple[Array, ArrowArray]:
        some = texts.slice(low, high - low)
        quickly = None if coder is None or len(some) < MANY_TEXTS else coder(in_one(some))
        if quickly is not None:
            return quickly[0], quickly[1].cast(pa.large_string())
        parts = chunks(some.dictionary_encode())
        indices = [_filled(part.indices) for part in parts]
        # All chunks of one encoding share a dictionary.
        return np.concatenate(indices) if len(parts) > 1 else indices[0], parts[0].dictionary.cast(pa.large_string())

    if len(texts) == 0:
        return np.zeros(0, np.int64), NO_TEXT
    parts = in_slices(encode, len(texts), threads)
    distinct, places = _merged([distinct for _, distinct in parts])
    if len(distinct) == 0:
        return np.zeros(len(texts), np.int64), NO_TEXT
    order = pc.array_sort_indices(distinct)
    ranks = np.empty(len(distinct), np.int64)
    ranks[order.to_numpy()] = np.arange(len(distinct))
    found = _ranked(parts, ranks if places is None else ranks[places], threads)
    return found, distinct.take(order).to_numpy(zero_copy_only=False).astype(object, copy=False)


def _merged(dictionaries: list[ArrowArray]) -> tuple[ArrowArray, Array | None]:
    """One dictionary, and where in it the entries of all stand, one after another; None: where they stood."""
    if len(dictionaries) == 1:
        return dictionaries[0], None
    joint = pa.concat_arrays(dictionaries).dictionary_encode()
    return joint.dictionary, joint.indices.to_numpy()


def _ranked(parts: list[tuple[Array, ArrowArray]], ranks: Array, threads: int) -> Array:
    """The ranks of all rows; `ranks` are those of the dictionaries of all parts, one after another."""
    found = np.empty(sum(len(indices) for indices, _ in parts), np.int64)
    arguments, at, first = [], 0, 0
    for indices, distinct in parts:
        arguments.append((indices, ranks[first : first + len(distinct)], found[at : at + len(indices)]))
        at, first = at + len(indices), first + len(distinct)

    def rank(indices: Array, own: Array, into: Array) -> None:
        if len(own):
            np.take(own, indices, out=into, mode="clip")
        else:  # all NULL
            into[:] = 0

    side_by_side(rank, arguments, threads)
    return found


def chunks(column: ArrowColumn) -> list[ArrowArray]:
    """The arrays that a column is made of."""
    return list(column.chunks) if isinstance(column, pa.ChunkedArray) else [column]


def in_one(column: ArrowColumn) -> ArrowArray:
    """A column in one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _filled(indices: ArrowArray) -> Array:
    return np.asarray(indices.fill_null(0))


# --------------------------------------------------------------------------------------------------- slices
#
# What is done to every row by itself is done by several threads, each on a stretch of rows. NumPy, Arrow and compiled
# functions release Python's lock while they go through arrays, so threads run side by side. Starting them costs some
# tenths of a millisecond, so few rows are one slice. Results must not depend on the number of slices.


def slices_of(rows: int, threads: int) -> list[tuple[int, int]]:
    """Stretches of rows, [low, high) each: one for every thread if each gets enough, and at least one."""
    count = max(min(threads, rows // LEAST_SLICE), 1)
    return list(pairwise(rows * number // count for number in range(count + 1)))


def in_slices(function: Callable[[int, int], Result], rows: int, threads: int) -> list[Result]:
    """The results of a function for the slices of so many rows, in their order."""
    return side_by_side(function, slices_of(rows, threads), threads)


def side_by_side(function: Callable[..., Result], arguments: list[tuple[Any, ...]], threads: int) -> list[Result]:
    """The results of a function for each tuple of arguments, in their order."""
    if threads < 2 or len(arguments) < 2:
        return [function(*given) for given in arguments]
    with ThreadPoolExecutor(threads, thread_name_prefix="trendloom") as pool:
        found = [pool.submit(in_context(function), *given) for given in arguments]
    return [one.result() for one in found]


def in_context(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The function, run in a copy of the context of the thread that calls this."""
    context = copy_context()

    def run(*given: Given.args, **named: Given.kwargs) -> Result:
        return context.copy().run(function, *given, **named)

    return run


def taken(values: Array, rows: Array, threads: int) -> Array:
    """`values[rows]`, for rows in range."""
    if values.dtype == object or not len(values) or len(slices_of(len(rows), threads)) == 1:
        chosen: Array = values[rows]
        return chosen
    found = np.empty(len(rows), values.dtype)

    def take(low: int, high: int) -> None:
        # "clip" writes into `out`; otherwise NumPy makes a copy first
        np.take(values, rows[low:high], out=found[low:high], mode="clip")

    in_slices(take, len(rows), threads)
    return found
