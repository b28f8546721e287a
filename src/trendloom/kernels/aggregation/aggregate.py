"""Add up a block: weigh the measures, run the grain in the number systems that they ask for, collect the results.

Cost: that of the grain, once or twice (see `widen`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trendloom.expr.decimals import as_doubles
from trendloom.expr.vectors import Vector, joined
from trendloom.kernels.aggregation import mixed_grained, pattern_grained, type_grained
from trendloom.kernels.aggregation.job import Found, Job, Linear, Spans, prepare, sortable
from trendloom.kernels.aggregation.pivots import by_pivot
from trendloom.kernels.aggregation.spans import spans_of
from trendloom.kernels.aggregation.spec import Aggregation, Grain, Measure
from trendloom.kernels.aggregation.widen import Amounts, OnWidening, join_amounts, layout_of
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.numbers import Numbers

Array = np.ndarray[Any, Any]

DIGIT = 60
"""Bits of the digits in which integers beyond 64 bits are weighed."""


@dataclass(frozen=True, eq=False)
class Totals:
    """Results with at least one match: `values` by the name of the measure.

    `whole`: a key and window has one result; else several that add up.
    """

    key: Array
    start: Array
    values: dict[str, Amounts | Vector]
    whole: bool = True

    def __len__(self) -> int:
        return len(self.key)

    def take(self, rows: Array) -> Totals:
        values = {name: one.take(rows) for name, one in self.values.items()}
        return Totals(self.key[rows], self.start[rows], values, self.whole)


def join_totals(parts: Sequence[Totals]) -> Totals:
    """Results of different keys, or windows, as one."""
    if len(parts) == 1:
        return parts[0]
    values: dict[str, Amounts | Vector] = {}
    for name in parts[0].values:
        some = [part.values[name] for part in parts]
        amounts = [one for one in some if isinstance(one, Amounts)]
        values[name] = join_amounts(amounts) if amounts else joined([one for one in some if isinstance(one, Vector)])
    key, start = (np.concatenate([getattr(part, name) for part in parts]) for name in ("key", "start"))
    return Totals(key, start, values, all(part.whole for part in parts))


def aggregate(
    spec: Aggregation, block: Block, numeric: str, starts: tuple[int, int] | None = None,
    widening: OnWidening | None = None,
) -> Iterator[Totals]:  # fmt: skip
    """All results of a block; with a pivot in parts that add up. `block.columns` holds all columns used.

    `starts`: only windows that start from the one time on and before the other. `widening` hears of long numbers.
    """
    if spec.pivot is None:
        yield _aggregate(spec, block, numeric, starts, widening)
        return
    for part, key in by_pivot(block, spec.pivot, spec.detection.window):
        totals = _aggregate(replace(spec, pivot=None), part, numeric, starts, widening)
        yield replace(totals, key=key[totals.key], whole=False)


def _aggregate(
    spec: Aggregation, block: Block, numeric: str, starts: tuple[int, int] | None, widening: OnWidening | None
) -> Totals:
    spans = spans_of(block, spec.detection.window, spec.detection.scopes[0].template.minimal_length)
    spans = spans if starts is None else spans.starting(*starts)
    layout = layout_of(spec, numeric)
    extremes = [(m, sortable(m, block.columns[m.column])) for m in layout.extremes if m.column]
    found = []
    for number, part in enumerate(layout.parts):
        linear, lanes = linear_of(part.measures, block, doubles=not part.exact)
        job = prepare(spec, block, linear, extremes if number == 0 else [])
        found.append((part, lanes, *part.run(Swept(job), spans, widening)))
    least = found[0][-1]
    values: dict[str, Amounts | Vector] = {m.name: one.restore(least[:, at]) for at, (m, one) in enumerate(extremes)}
    for part, lanes, amounts, _ in found:
        values |= {m.name: _from_digits(amounts, lanes[m.name]) for m in part.measures}
    return totals_of(spec, spans.key, spans.start, found[0][2][0], values)


def totals_of(
    spec: Aggregation, key: Array, start: Array, matches: Amounts, values: dict[str, Amounts | Vector]
) -> Totals:
    """The results that have a match."""
    values |= {m.name: matches for m in spec.measures if m.function == "matches"}
    return Totals(key, start, values).take(np.flatnonzero(matches.values != 0))


@dataclass(frozen=True, eq=False)
class Swept:
    """A job as something that can be added up in any number system."""

    job: Job

    @property
    def lanes(self) -> int:
        return self.job.linear + 1

    def sweep(self, spans: Spans, numbers: Numbers) -> Found:
        """Run the grain that the plan chose."""
        spec = self.job.spec
        if spec.algebra:
            return type_grained.sweep(self.job, spans, numbers)
        if spec.grain is Grain.PATTERN:
            return pattern_grained.sweep(self.job, spans, numbers)
        return mixed_grained.sweep(self.job, spans, numbers)

    def without_least(self) -> Swept:
        return Swept(replace(self.job, values=self.job.values[:0], valued=self.job.valued[:0]))


# ------------------------------------------------------------------------------------------------ weights


def linear_of(
    measures: tuple[Measure, ...], block: Block, *, doubles: bool = False
) -> tuple[list[Linear], dict[str, list[int]]]:
    """The linear measures, and for each measure the lanes that hold its digits, the lowest first."""
    found: list[Linear] = []
    lanes: dict[str, list[int]] = {}
    for measure in measures:
        weights = _weights(measure, block, doubles=doubles)
        lanes[measure.name] = list(range(len(found) + 1, len(found) + 1 + len(weights)))
        found += [Linear(measure.positions or (), weight) for weight in weights]
    return found, lanes


def _weights(measure: Measure, block: Block, *, doubles: bool) -> list[Array | None]:
    if measure.column is None:
        return [None]
    column = block.columns[measure.column]
    if measure.function == "count":
        return [None if column.valid is None else column.valid.astype(np.int64)]
    values = column.values
    if doubles and values.dtype != np.float64:
        values = as_doubles(values, column.scale)
    if column.valid is not None:
        values = np.where(column.valid, values, 0)
    if values.dtype == np.bool_:
        values = values.astype(np.int64)
    if values.dtype != object:
        return [values]
    count = max(1, max((int(value).bit_length() for value in values), default=0) // DIGIT + 1)
    mask = (1 << DIGIT) - 1
    digits = [np.array([(v >> DIGIT * d) & mask for v in values], np.int64) for d in range(count - 1)]
    return [*digits, np.array([v >> DIGIT * (count - 1) for v in values], np.int64)]


def _from_digits(amounts: list[Amounts], lanes: list[int]) -> Amounts:
    if len(lanes) == 1:
        return amounts[lanes[0]]
    parts = [amounts[lane].values.astype(object) << DIGIT * digit for digit, lane in enumerate(lanes)]
    return Amounts(sum(parts[1:], parts[0]))
