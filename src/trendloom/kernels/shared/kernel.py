"""Several queries as one kernel: it sees the events of all of them once, and gives the totals of each."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.vectors import Vector
from trendloom.kernels.aggregate.measures import sortable
from trendloom.kernels.aggregate.results import weights_of
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.measures import Measure
from trendloom.kernels.contract.totals import Amounts, Totals
from trendloom.kernels.shared.program import MergedQueries, merge_queries
from trendloom.kernels.shared.results import SweptQuery
from trendloom.kernels.shared.steps import CountedQuery, SharedSteps
from trendloom.kernels.shared.sweep import sweep_queries

# Exact numbers beyond 62 bits out of two sweeps: one wraps around at 2^64, the other has doubles.
#
# A double says how large a number is, up to an error that is known; what wraps around says which of the integers near
# it it is. Additions and products of numbers that are not negative err by one part in 2^53 each, so after n of them in
# a row the relative error is below n · 2^-53, and a number is certain as long as that is less than half of 2^64.
#
# Cost: one more sweep for the queries whose numbers are too large, and Python integers for their results.


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


@dataclass(frozen=True)
class SharedKernel:
    """Counts sequences in one sweep; `asked`: by the number of a letter what it asks of an event.

    `backwards`: the sweep begins at the end of the stream. `segments`: what is counted for each START event, where
    numbers are exact. `numeric`: exact, float or log numbers.
    """

    queries: tuple[CountedQuery, ...]
    asked: tuple[Any, ...]
    backwards: bool = False
    segments: tuple[SharedSteps, ...] = ()
    numeric: str = "exact"

    @cached_property
    def merged(self) -> MergedQueries:
        doubles = self.numeric != "exact"
        segments = () if doubles or self.backwards else self.segments
        return merge_queries(self.queries, doubles=doubles, backwards=self.backwards, segments=segments)

    @property
    def columns(self) -> tuple[str, ...]:
        """What is added up or compared."""
        measures = [one.measure for query in self.queries for one in query.measures]
        return tuple(dict.fromkeys(one.column for one in measures if one.column is not None))

    def totals(self, block: Block, bit_of: dict[Hashable, int], threads: int = 1) -> Sequence[Totals | None]:
        """The totals of every query, in their order; None: its numbers are too large, and it is answered alone.

        `bit_of`: by what is asked of events, their bit among the `fits` of the block.
        """
        bits = {number: bit_of[asked] for number, asked in enumerate(self.asked)}
        found = sweep_queries(self.merged, block, bits, threads)
        spilled = {number: one for number, one in enumerate(found) if one.spilled}
        wide: dict[int, SweptQuery | None] = dict.fromkeys(spilled)
        if spilled and self.numeric == "exact":
            queries = [self.queries[number] for number in spilled]
            wide = dict(zip(spilled, widen(queries, list(spilled.values()), block, bits, threads), strict=True))
        known = [wide.get(number, one) for number, one in enumerate(found)]
        pairs = zip(self.queries, known, strict=True)
        return [None if one is None else self._totals(query, one, block) for query, one in pairs]

    def _totals(self, query: CountedQuery, found: SweptQuery, block: Block) -> Totals:
        matches, *measured = found.numbers
        values: dict[str, Amounts | Vector] = {
            name: self._amounts(_multiplied(matches, times)) for name, times in query.multiples
        }
        for one, numbers in zip(query.measures, measured, strict=True):
            values[one.measure.name] = self._measured(one.measure, numbers, block)
        return Totals(found.key, found.start, values)

    def _measured(self, measure: Measure, numbers: Array, block: Block) -> Amounts | Vector:
        if measure.function in ("min", "max"):
            assert measure.column is not None
            return sortable(measure, block.columns[measure.column]).restore(numbers)
        return self._amounts(numbers)

    def _amounts(self, numbers: Array) -> Amounts:
        """Integers as they are; doubles as mantissa and exponent."""
        if numbers.dtype != np.float64:
            return Amounts(numbers)
        mantissa, exponent = np.frexp(numbers)
        return Amounts(mantissa, exponent.astype(np.int64))


def _multiplied(numbers: Array, times: int) -> Array:
    if times == 1 or not len(numbers):
        return numbers
    fits = numbers.dtype in (np.float64, object) or int(numbers.max()) < 2**63 // times
    return numbers * times if fits else numbers.astype(object) * times
