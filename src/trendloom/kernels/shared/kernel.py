"""Several queries as one kernel: it sees the events of all of them once, and gives the totals of each."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from trendloom.expr.vectors import Vector
from trendloom.kernels.aggregate.measures import sortable
from trendloom.kernels.aggregate.results import Totals
from trendloom.kernels.aggregate.widening import Amounts
from trendloom.kernels.columns.block import Block
from trendloom.kernels.measures import Measure
from trendloom.kernels.shared.program import MergedQueries, merge_queries
from trendloom.kernels.shared.results import SweptQuery
from trendloom.kernels.shared.steps import CountedQuery, SharedSteps
from trendloom.kernels.shared.sweep import sweep_queries
from trendloom.kernels.shared.widened import widen

Array = np.ndarray[Any, Any]


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
