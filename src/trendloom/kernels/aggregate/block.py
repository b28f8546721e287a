"""Add up a block, and count its matches without finding them.

Adding up is to weigh the measures, run the grain in the number systems that they need, collect the results.
Conditions between events that are not adjacent have one aggregate per pivot (`by_pivot`). Matches are counted in
doubles, exact below 2^53.

Cost: that of the grain, once or twice (see `widening`).
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
from trendloom.kernels.aggregate import event_grained, pattern_grained, type_grained
from trendloom.kernels.aggregate.measures import (
    Addends,
    Spans,
    SpanTotals,
    from_digits,
    linear_of,
    prepare,
    sortable,
    spans_of,
    totals_of,
)
from trendloom.kernels.aggregate.widening import layout_of
from trendloom.kernels.columns.block import Block, horizons
from trendloom.kernels.columns.numbers import Numbers
from trendloom.kernels.contract import Expected
from trendloom.kernels.contract.aggregates import AggregationSpec, Amounts, Grain, OnWidening, Pivot, Totals
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.matching.tables import fitting_bits
from trendloom.model.time import Window

CHUNK = 1 << 21
"""Events of all pivots in a chunk, unless one pivot has more."""
WORTH_COUNTING = 1e6
"""Matches that there could be at most, up to which nothing is counted first."""
MOST_STEPS = 1e8
"""Events that counting may look at: some seconds. Beyond, matches are counted as they are found."""


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
            return type_grained.add_up(self.addends, spans, numbers)
        if spec.grain is Grain.PATTERN:
            return pattern_grained.add_up(self.addends, spans, numbers)
        return event_grained.add_up(self.addends, spans, numbers)

    def without_least(self) -> Swept:
        return Swept(self.addends.without_least())


@dataclass(frozen=True)
class CountInSpans:
    """A lower bound of the matches that span less than w, by sliding windows of w (`longer`) and of w − slide
    (`shorter`; None where w is the slide): w / slide = `overlap`.

    A match that touches d + 1 stretches of time as long as the slide lies in `overlap` − d of the former windows and in
    one less of the latter, if in any. So their difference counts each match with d < `overlap` once; all of these span
    less than w, and all that span at most w − slide are among them.
    Doubles do: the difference is no smaller than `longer` / `overlap`.
    """

    longer: AggregationSpec
    shorter: AggregationSpec | None
    overlap: int

    def least(self, block: Block) -> float:
        """The lower bound; of numbers beyond the doubles the largest that is certain."""
        longer = _total(self.longer, block)
        if np.isinf(longer):
            return float(np.finfo(np.float64).max) / self.overlap
        return longer if self.shorter is None else max(longer - _total(self.shorter, block), 0.0)


@dataclass(frozen=True)
class Count:
    """`aggregation` counts the matches of `pattern_spec`, exactly or at most, without what it cannot decide.

    `in_spans`: a lower bound of matches whose span is bounded.
    """

    pattern_spec: PatternSpec
    aggregation: AggregationSpec
    exact: bool
    in_spans: CountInSpans | None = None

    def expected(self, block: Block) -> Expected | None:
        """The number of matches; None where there cannot be many, or counting takes too long. O(steps)."""
        found = self.by_window(block)
        if found is None:
            return None
        number = float(found.sum())
        if self.in_spans is None or number <= WORTH_COUNTING:
            return Expected(number, self.exact)
        return Expected(number, self.exact, least=self.in_spans.least(block))

    def by_window(self, block: Block) -> Array | None:
        """The numbers of all windows and keys that have any; None where nothing is counted."""
        if crude_bound(self.pattern_spec, block) <= WORTH_COUNTING or self.steps(block) > MOST_STEPS:
            return None
        return _by_window(self.aggregation, block)

    def total(self, block: Block) -> Expected | None:
        """The number of matches, however few; None where counting takes too long."""
        if self.steps(block) > MOST_STEPS:
            return None
        return Expected(float(_by_window(self.aggregation, block).sum()), self.exact)

    def steps(self, block: Block) -> int:
        """How many events counting looks at: those around each pivot, if conditions between distant events need it."""
        pivot = self.aggregation.pivot
        return len(block) if pivot is None else pivoted(block, pivot, self.aggregation.pattern_spec.window)


def aggregate(
    spec: AggregationSpec, block: Block, numeric: str, starts: tuple[int, int] | None = None,
    widening: OnWidening | None = None,
) -> Iterator[Totals]:  # fmt: skip
    """All results of a block; with a pivot in parts that add up. `block.columns` holds all columns used.

    `starts`: only windows that start from the one time on and before the other. `widening` is called before long
    numbers are computed.
    """
    if spec.pivot is None:
        yield _aggregate(spec, block, numeric, starts, widening)
        return
    for part, key in by_pivot(block, spec.pivot, spec.pattern_spec.window):
        totals = _aggregate(replace(spec, pivot=None), part, numeric, starts, widening)
        yield replace(totals, key=key[totals.key], whole=False)


def by_pivot(block: Block, pivot: Pivot, window: Window) -> Iterator[tuple[Block, Array]]:
    """Blocks with one key per pivot, and for each key that of the original block.

    A pivot is an event that stands once in every match (`S` in `SEQ(S, M+, L)`). Once it is fixed, `S.price < L.price`,
    a predicate between events that are not adjacent, is a condition on L alone. So a pivot has the events of windows
    that it is in, without those that fail a condition with it, and every match is counted with its one pivot.

    Cost: O(Σ over pivots of the events in their windows). See Poppe, "Event Stream Analytics", 28.3.2.
    """
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


def crude_bound(pattern_spec: PatternSpec, block: Block) -> float:
    """At most so many: every choice of later events, of as many as a match without Kleene parts can have."""
    if len(block) == 0:
        return 0.0
    horizon = horizons(block, pattern_spec.window)
    limit = block.key_starts[1:][block.key] if horizon is None else horizon
    reach = np.maximum(limit - np.arange(len(block)), 1).astype(np.float64)
    kleene = bool(pattern_spec.plural)
    positions = sum(place.scope == 0 for place in pattern_spec.places)
    with np.errstate(over="ignore"):
        # with several positions an event can stand at more than one of them
        choices = (1.0 + positions) ** reach if kleene else reach ** (positions - 1) * positions
    overlap = 1.0
    if pattern_spec.window.slide is not None and pattern_spec.window.within is not None:
        overlap = max(1.0, pattern_spec.window.within / pattern_spec.window.slide)
    return float(choices.sum() * overlap)


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


def _by_window(aggregation: AggregationSpec, block: Block) -> Array:
    """The numbers of matches of all windows and keys that have any; infinite beyond the doubles."""
    parts = [_doubles(totals.values["matches"]) for totals in aggregate(aggregation, block, "float")]
    return np.concatenate([np.zeros(0), *parts])


def _doubles(amounts: Amounts | Vector) -> Array:
    assert isinstance(amounts, Amounts)
    values = amounts.values.astype(np.float64)
    if amounts.exponent is not None:
        with np.errstate(over="ignore"):
            values = np.ldexp(values, np.minimum(amounts.exponent, 1 << 20).astype(np.int32))
    return values


def _total(aggregation: AggregationSpec, block: Block) -> float:
    with np.errstate(over="ignore"):
        return float(_by_window(aggregation, block).sum())
