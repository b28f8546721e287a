"""Add up a block: weigh the measures, run the grain in the number systems that they ask for, collect the results.

Cost: that of the grain, once or twice (see `widen`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trendloom.expr.vectors import Vector
from trendloom.kernels.aggregate.event_grained import event_grained
from trendloom.kernels.aggregate.measures import Addends, Spans, SpanTotals, prepare, sortable
from trendloom.kernels.aggregate.pattern_grained import pattern_grained
from trendloom.kernels.aggregate.pivots import by_pivot
from trendloom.kernels.aggregate.results import Totals, from_digits, linear_of, totals_of
from trendloom.kernels.aggregate.spans import spans_of
from trendloom.kernels.aggregate.type_grained import type_grained
from trendloom.kernels.aggregate.widening import Amounts, OnWidening, layout_of
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.numbers import Numbers
from trendloom.kernels.measures import AggregationSpec, Grain

Array = np.ndarray[Any, Any]


def aggregate(
    spec: AggregationSpec, block: Block, numeric: str, starts: tuple[int, int] | None = None,
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
    spec: AggregationSpec, block: Block, numeric: str, starts: tuple[int, int] | None, widening: OnWidening | None
) -> Totals:
    spans = spans_of(block, spec.detection.window, spec.detection.scopes[0].template.minimal_length)
    spans = spans if starts is None else spans.starting(*starts)
    layout = layout_of(spec, numeric)
    extremes = [(m, sortable(m, block.columns[m.column])) for m in layout.extremes if m.column]
    found = []
    for number, part in enumerate(layout.parts):
        linear, lanes = linear_of(part.measures, block, doubles=not part.exact)
        addends = prepare(spec, block, linear, extremes if number == 0 else [])
        found.append((part, lanes, *part.run(Swept(addends), spans, widening)))
    least = found[0][-1]
    values: dict[str, Amounts | Vector] = {m.name: one.restore(least[:, at]) for at, (m, one) in enumerate(extremes)}
    for part, lanes, amounts, _ in found:
        values |= {m.name: from_digits(amounts, lanes[m.name]) for m in part.measures}
    return totals_of(spec, spans.key, spans.start, found[0][2][0], values)


@dataclass(frozen=True, eq=False)
class Swept:
    """A block as something that can be added up in any number system."""

    addends: Addends

    @property
    def lanes(self) -> int:
        return self.addends.linear + 1

    def sweep(self, spans: Spans, numbers: Numbers) -> SpanTotals:
        """Run the grain that the plan chose."""
        spec = self.addends.spec
        if spec.algebra:
            return type_grained.sweep(self.addends, spans, numbers)
        if spec.grain is Grain.PATTERN:
            return pattern_grained.sweep(self.addends, spans, numbers)
        return event_grained.sweep(self.addends, spans, numbers)

    def without_least(self) -> Swept:
        return Swept(replace(self.addends, values=self.addends.values[:0], valued=self.addends.valued[:0]))
