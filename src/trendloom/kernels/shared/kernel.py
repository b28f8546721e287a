"""Several queries as one kernel: it sees the events of all of them once, and gives totals tagged by query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from trendloom.errors import TrendloomError
from trendloom.expr.arrays import Array
from trendloom.expr.vectors import Vector
from trendloom.kernels.aggregate.measures import sortable, weights_of
from trendloom.kernels.columns.block import WORD, Block
from trendloom.kernels.contract import Asked, Built, Divisible, Expected, Failed, Kernel, OnProgress
from trendloom.kernels.contract.aggregates import Amounts, Measure, Totals, Widening, doubles_as_amounts
from trendloom.kernels.contract.emission import EmissionPolicy, between, joint_emission
from trendloom.kernels.contract.matches import ResultColumn
from trendloom.kernels.shared import FOREVER, CountedQuery, SharedSteps
from trendloom.kernels.shared.events import SweptQuery
from trendloom.kernels.shared.program import MergedQueries, merge_queries
from trendloom.kernels.shared.sweep import sweep_queries

Tagged = Totals | Failed
WRAP = 2.0**64
MARGIN = 2.0**62
PRECISION = 2.0**-53
OPERATIONS = 8.0
"""Additions and products that an event makes in a cell, at most."""


@dataclass(frozen=True)
class ApartQuery:
    """A query as it is answered by itself: its kernel, and by position of its pattern the letter."""

    kernel: Kernel[Any, Any]
    letters: tuple[int, ...]

    def results(self, block: Block, on_progress: OnProgress | None) -> Iterator[Totals]:
        """Its results over the block of the group, of which it reads the events that fit a position of its own."""
        bits = tuple(block.bits[letter] for letter in self.letters)
        mine = np.logical_or.reduce([_has_bit(block, bit) for bit in set(bits)])
        _, state = self.kernel.step(self.kernel.start(), replace(block, bits=bits).only(mine), None)
        yield from self.kernel.finish(state, on_progress)


@dataclass(frozen=True, eq=False)
class SharedState:
    """The events of the last step. `before`: windows that ended here are out."""

    block: Block | None = None
    before: int | None = None


@dataclass(frozen=True)
class SharedKernel:
    """Counts sequences in one sweep; `asked`: by the number of a letter its condition on an event.

    Positions of a block are letters. `backwards`: the sweep begins at the end of the stream. `segments`: what is
    counted for each START event, where numbers are exact. `numeric`: exact, float or log numbers. `apart`: the queries
    by themselves, for numbers that are too large for a sweep.
    """

    queries: tuple[CountedQuery, ...]
    asked: tuple[Any, ...]
    backwards: bool = False
    segments: tuple[SharedSteps, ...] = ()
    numeric: str = "exact"
    apart: tuple[ApartQuery, ...] = ()

    version: ClassVar[int] = 1
    family: ClassVar[str] = "SharedKernel"
    adds_up: ClassVar[bool] = True
    aggregation: ClassVar[None] = None
    light: ClassVar[bool] = False
    divisible: ClassVar[Divisible] = Divisible.BY_KEY
    columns: ClassVar[tuple[ResultColumn, ...]] = ()
    keeps: ClassVar[str] = "the events of open windows"
    summarising: ClassVar[None] = None

    @cached_property
    def merged(self) -> MergedQueries:
        doubles = self.numeric != "exact"
        segments = () if doubles or self.backwards else self.segments
        return merge_queries(self.queries, doubles=doubles, backwards=self.backwards, segments=segments)

    @property
    def emission(self) -> EmissionPolicy:
        return joint_emission(query.window for query in self.queries)

    @property
    def reads(self) -> frozenset[str]:
        """What is added up or compared."""
        measures = [one.measure for query in self.queries for one in query.measures]
        return frozenset(one.column for one in measures if one.column is not None)

    def within(self, memory: int) -> Self:
        """The same: results are few."""
        return self

    def in_numbers(self, numeric: str) -> Self:
        apart = tuple(replace(one, kernel=one.kernel.in_numbers(numeric)) for one in self.apart)
        return replace(self, numeric=numeric, apart=apart)

    def start(self) -> SharedState:
        return SharedState()

    def step(self, state: SharedState, block: Block, watermark: int | None) -> tuple[Iterator[Tagged], SharedState]:
        """Take events; give out the windows that have ended."""
        after = SharedState(block, state.before if watermark is None else watermark)
        if watermark is None:
            return iter(()), after
        return self._ended(replace(after, before=state.before), watermark, None), after

    def expected(self, state: SharedState, *, beforehand: bool) -> Expected | None:
        """None: there is one result for a group and window."""
        return None

    def finish(self, state: SharedState, on_progress: OnProgress | None = None) -> Iterator[Tagged]:
        """The results of all queries, one query after the other."""
        return self._ended(state, None, on_progress)

    def kept(self, state: SharedState) -> Array | None:
        return None

    def dump(self, state: SharedState, *, whole: bool = False) -> pa.Table | None:
        """None: the events of open windows are kept."""
        return None

    def load(self, summaries: pa.Table | None, before: int | None) -> SharedState:
        return SharedState(None, before)

    def describe(self, state: SharedState) -> Built | None:
        return None

    def unfold(self, block: Block, variables: frozenset[str], asked: Asked) -> Iterator[Tagged] | None:
        return None

    def _ended(self, state: SharedState, watermark: int | None, on_progress: OnProgress | None) -> Iterator[Tagged]:
        """The windows that end after the last step and not after the watermark."""
        if state.block is None:
            return
        for number, swept in enumerate(self.totals(state.block)):
            try:
                for found in [swept] if swept is not None else self._apart(number, state.block, on_progress):
                    end = found.start + (self.queries[number].window.within or FOREVER)
                    ended = between(end, state.before, watermark)
                    yield replace(found if ended.all() else found.take(np.flatnonzero(ended)), query=number)
            except TrendloomError as error:
                yield Failed(number, error)

    def _apart(self, number: int, block: Block, on_progress: OnProgress | None) -> Iterator[Totals]:
        def report_of_query(found: object) -> None:
            if on_progress is not None:
                on_progress(replace(found, query=number) if isinstance(found, Widening) else found)

        return self.apart[number].results(block, report_of_query)

    def totals(self, block: Block) -> Sequence[Totals | None]:
        """The totals of every query, in their order; None: its numbers are too large for a sweep."""
        bits = dict(enumerate(block.bits))
        found = sweep_queries(self.merged, block, bits)
        spilled = {number: one for number, one in enumerate(found) if one.spilled}
        wide: dict[int, SweptQuery | None] = dict.fromkeys(spilled)
        if spilled and self.numeric == "exact":
            queries = [self.queries[number] for number in spilled]
            wide = dict(zip(spilled, widen(queries, list(spilled.values()), block, bits), strict=True))
        known = [wide.get(number, one) for number, one in enumerate(found)]
        pairs = zip(self.queries, known, strict=True)
        return [None if one is None else _totals(query, one, block) for query, one in pairs]


def widen(
    queries: list[CountedQuery], wrapped: list[SweptQuery], block: Block, bit_of: dict[int, int]
) -> list[SweptQuery | None]:
    """The exact results of queries whose integers have wrapped around at 2^64; None: too large for that, too.

    A second sweep in doubles is near the numbers, up to an error that can be bounded; what wrapped around decides which
    of the integers near it is right. Additions and products of numbers that are not negative err by one part in 2^53
    each, so after n of them in a row the relative error is below n · 2^-53, and a number is certain while that is less
    than half of 2^64. Cost: that sweep, and Python integers for the results.
    """
    merged = merge_queries(queries, doubles=True)
    found = sweep_queries(merged, block, bit_of)
    longest = max(len(query.steps) for query in queries)
    error = OPERATIONS * len(block) * (longest + 1) * PRECISION
    given = zip(queries, wrapped, found, strict=True)
    return [_exact(query, low, near, block, error) for query, low, near in given]


def _totals(query: CountedQuery, found: SweptQuery, block: Block) -> Totals:
    matches, *measured = found.numbers
    values: dict[str, Amounts | Vector] = {
        name: _amounts(_multiplied(matches, times)) for name, times in query.multiples
    }
    for one, numbers in zip(query.measures, measured, strict=True):
        values[one.measure.name] = _measured(one.measure, numbers, block)
    return Totals(found.key, found.start, values)


def _measured(measure: Measure, numbers: Array, block: Block) -> Amounts | Vector:
    if measure.function in ("min", "max"):
        assert measure.column is not None
        return sortable(measure, block.columns[measure.column]).restore(numbers)
    return _amounts(numbers)


def _amounts(numbers: Array) -> Amounts:
    """Integers as they are; doubles as mantissa and exponent."""
    return doubles_as_amounts(numbers) if numbers.dtype == np.float64 else Amounts(numbers)


def _multiplied(numbers: Array, times: int) -> Array:
    if times == 1 or not len(numbers):
        return numbers
    fits = numbers.dtype in (np.float64, object) or int(numbers.max()) < 2**63 // times
    return numbers * times if fits else numbers.astype(object) * times


def _has_bit(block: Block, bit: int) -> Array:
    word = block.fits[bit // WORD]
    found: Array = (word >> word.dtype.type(bit % WORD)) & word.dtype.type(1) != 0
    return found


# ---------------------------------------------------------------------------------- numbers beyond one word


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
    """The integers near doubles, or None where the error is too large to decide."""
    if len(near) and float(near.max()) * error >= MARGIN:
        return None
    wraps = np.rint((near - low.astype(np.float64)) / WRAP)
    if not wraps.any():
        return low
    exact = np.empty(len(low), object)
    exact[:] = [int(one) + (int(times) << 64) for one, times in zip(low, wraps, strict=True)]
    return exact
