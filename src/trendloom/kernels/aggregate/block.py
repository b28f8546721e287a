"""Add up a block: weigh the measures, run the grain in the number systems that they ask for, collect the results.

Cost: that of the grain, once or twice (see `widen`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Attribute, Expr
from trendloom.expr.vectors import Vector, is_true
from trendloom.kernels.aggregate.event_grained import event_grained
from trendloom.kernels.aggregate.measures import Addends, Spans, SpanTotals, prepare, sortable
from trendloom.kernels.aggregate.pattern_grained import pattern_grained
from trendloom.kernels.aggregate.results import from_digits, linear_of, totals_of
from trendloom.kernels.aggregate.spans import spans_of
from trendloom.kernels.aggregate.type_grained import type_grained
from trendloom.kernels.aggregate.widening import layout_of
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.numbers import Numbers
from trendloom.kernels.contract.aggregates import AggregationSpec, Amounts, Grain, OnWidening, Pivot, Totals
from trendloom.kernels.matching.tables import fitting_bits
from trendloom.model.time import Window

# Predicates between events that are not adjacent: one aggregate per pivot.
#
# A pivot is an event that stands once in every match (`S` in `SEQ(S, M+, L)`). Once it is fixed, `S.price < L.price` is
# a condition on L alone. So a block becomes one with a key per pivot, which holds the events of the windows that the
# pivot is in, those that fail a condition with it left out; every match is counted with its one pivot. Pivots go in
# chunks of bounded size.
#
# Cost: O(Σ over pivots of the events in their windows). See Poppe, "Event Stream Analytics", 28.3.2.


CHUNK = 1 << 21
"""Events of all pivots in a chunk, unless one pivot has more."""


def by_pivot(block: Block, pivot: Pivot, window: Window) -> Iterator[tuple[Block, Array]]:
    """Blocks with one key per pivot, and for each key that of the original block."""
    pivots = _pivots(block, pivot)
    key = block.key[pivots]
    low, high = _reach(block, pivots, key, window)
    words = fitting_bits(block)
    ends = np.cumsum(high - low)
    begin = 0
    while begin < len(pivots):
        before = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + CHUNK, side="right")))
        some = slice(begin, end)
        yield _expanded(block, words, pivot, pivots[some], low[some], high[some]), key[some]
        begin = end


def pivoted(block: Block, pivot: Pivot, window: Window) -> int:
    """How many events the blocks of all pivots have together. O(pivots log events)."""
    pivots = _pivots(block, pivot)
    low, high = _reach(block, pivots, block.key[pivots], window)
    return int(np.maximum(high - low, 0).sum())


def _pivots(block: Block, pivot: Pivot) -> Array:
    return np.unique(np.concatenate([block.members[position] for position in pivot.positions]))


def _reach(block: Block, pivots: Array, key: Array, window: Window) -> tuple[Array, Array]:
    if window.within is None or window.slide is None:
        return block.key_starts[key], block.key_starts[key + 1]
    time = block.time[pivots]
    first = (np.floor_divide(time - window.within, window.slide) + 1) * window.slide
    last = np.floor_divide(time, window.slide) * window.slide + window.within
    return block.not_before(key, first), block.not_before(key, last)


def _expanded(block: Block, words: Array, pivot: Pivot, pivots: Array, low: Array, high: Array) -> Block:
    sizes = np.maximum(high - low, 0)
    starts = np.r_[0, np.cumsum(sizes)].astype(np.int64)
    events = np.arange(starts[-1]) + np.repeat(low - starts[:-1], sizes)
    mine = np.repeat(pivots, sizes)
    fits = words[events]
    for position in pivot.positions:
        fits[events != mine] &= ~np.uint64(1 << position)
    for positions, expr in pivot.rules:
        failed = ~is_true(evaluate(expr, _leaf(block, pivot.name, events, mine)))
        for position in positions:
            fits[np.broadcast_to(failed, len(fits))] &= ~np.uint64(1 << position)
    return replace(
        block,
        key_starts=starts,
        time=block.time[events],
        row=block.row[events],
        columns={name: column.take(events) for name, column in block.columns.items()},
        fits=(fits,),
        bits=tuple(range(len(block.bits))),
        instants=block.instants_of(events),
    )


def _leaf(block: Block, name: str, events: Array, pivots: Array) -> Any:
    def leaf(expr: Expr) -> Vector:
        assert isinstance(expr, Attribute)
        return block.columns[expr.column].take(pivots if expr.variable == name else events)

    return leaf


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
    for part, key in by_pivot(block, spec.pivot, spec.pattern_spec.window):
        totals = _aggregate(replace(spec, pivot=None), part, numeric, starts, widening)
        yield replace(totals, key=key[totals.key], whole=False)


def _aggregate(
    spec: AggregationSpec, block: Block, numeric: str, starts: tuple[int, int] | None, widening: OnWidening | None
) -> Totals:
    spans = spans_of(block, spec.pattern_spec.window, spec.pattern_spec.scopes[0].template.minimal_length)
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
