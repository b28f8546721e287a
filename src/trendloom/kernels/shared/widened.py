"""Exact numbers beyond 62 bits out of two sweeps: one wraps around at 2^64, the other has doubles.

A double says how large a number is, up to an error that is known; what wraps around says which of the integers near it
it is. Additions and products of numbers that are not negative err by one part in 2^53 each, so after n of them in a row
the relative error is below n · 2^-53, and a number is certain as long as that is less than half of 2^64.

Cost: one more sweep for the queries whose numbers are too large, and Python integers for their results.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendloom.kernels.aggregate.results import weights_of
from trendloom.kernels.columns.block import Block
from trendloom.kernels.measures import Measure
from trendloom.kernels.shared.program import merge_queries
from trendloom.kernels.shared.results import SweptQuery
from trendloom.kernels.shared.steps import CountedQuery
from trendloom.kernels.shared.sweep import sweep_queries

Array = np.ndarray[Any, Any]

WRAP = 2.0**64
MARGIN = 2.0**62
PRECISION = 2.0**-53
OPERATIONS = 8.0
"""Additions and products that an event makes in a cell, at most."""


def widen(
    queries: list[CountedQuery], wrapped: list[SweptQuery], block: Block, bit_of: dict[int, int], threads: int
) -> list[SweptQuery | None]:
    """The results of queries whose integers have wrapped around; None: too large for that, too."""
    merged = merge_queries(queries, doubles=True)
    found = sweep_queries(merged, block, bit_of, threads)
    longest = max(len(query.steps) for query in queries)
    error = OPERATIONS * len(block) * (longest + 1) * PRECISION
    given = zip(queries, wrapped, found, strict=True)
    return [_exact(query, low, near, block, error) for query, low, near in given]


def _exact(query: CountedQuery, low: SweptQuery, near: SweptQuery, block: Block, error: float) -> SweptQuery | None:
    """Numbers that are near doubles and leave these integers when divided by 2^64."""
    if near.spilled:
        return None
    numbers = [_joined(_aligned(low, near, low.numbers[0]), near.numbers[0], error)]
    for measure, mine, doubles in zip(query.measures, low.numbers[1:], near.numbers[1:], strict=True):
        exact = measure.measure.function in ("count", "sum") and not measure.measure.fractional
        if exact and not _is_whole(measure.measure, block):
            return None
        numbers.append(_joined(_aligned(low, near, mine), doubles, error) if exact else doubles)
    if any(one is None for one in numbers):
        return None
    return SweptQuery(near.key, near.start, tuple(one for one in numbers if one is not None), False)


def _is_whole(measure: Measure, block: Block) -> bool:
    """Whether weights are words and none is negative, so that errors do not grow by cancelling."""
    (weight, *more) = weights_of(measure, block, doubles=False)
    return not more and (weight is None or (weight.dtype != np.float64 and not (weight < 0).any()))


def _aligned(low: SweptQuery, near: SweptQuery, numbers: Array) -> Array:
    """The integers by the keys and windows of the doubles; those that are zero when wrapped around are missing."""
    starts = np.unique(near.start)
    codes = [one.key * len(starts) + np.searchsorted(starts, one.start) for one in (low, near)]
    found = np.zeros(len(near.key), np.int64)
    found[np.searchsorted(codes[1], codes[0])] = numbers
    return found


def _joined(low: Array, near: Array, error: float) -> Array | None:
    """The integers near doubles, or None where an error is too large to tell."""
    if len(near) and float(near.max()) * error >= MARGIN:
        return None
    wraps = np.rint((near - low.astype(np.float64)) / WRAP)
    if not wraps.any():
        return low
    exact = np.empty(len(low), object)
    exact[:] = [int(one) + (int(times) << 64) for one, times in zip(low, wraps, strict=True)]
    return exact
