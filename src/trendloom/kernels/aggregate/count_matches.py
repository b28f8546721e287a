"""How many matches there are, without finding them: in doubles, exact below 2^53."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.vectors import Vector
from trendloom.kernels.aggregate.block import aggregate, pivoted
from trendloom.kernels.columns.block import Block, horizons
from trendloom.kernels.contract import Expected
from trendloom.kernels.contract.aggregates import AggregationSpec, Amounts
from trendloom.kernels.contract.pattern_spec import PatternSpec

WORTH_COUNTING = 1e6
"""Matches that there could be at most, up to which nothing is counted first."""
MOST_STEPS = 1e8
"""Events that counting may look at: some seconds. Beyond, matches are counted as they are found."""


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
        return self._numbers(block)

    def total(self, block: Block) -> Expected | None:
        """The number of matches, however few; None where counting takes too long."""
        if self.steps(block) > MOST_STEPS:
            return None
        return Expected(float(self._numbers(block).sum()), self.exact)

    def steps(self, block: Block) -> int:
        """How many events counting looks at: those around each pivot, if conditions between distant events need it."""
        pivot = self.aggregation.pivot
        return len(block) if pivot is None else pivoted(block, pivot, self.aggregation.pattern_spec.window)

    def _numbers(self, block: Block) -> Array:
        return _by_window(self.aggregation, block)


def _total(aggregation: AggregationSpec, block: Block) -> float:
    with np.errstate(over="ignore"):
        return float(_by_window(aggregation, block).sum())


def _by_window(aggregation: AggregationSpec, block: Block) -> Array:
    parts = [_numbers(totals.values["matches"]) for totals in aggregate(aggregation, block, "float")]
    return np.concatenate([np.zeros(0), *parts])


def _numbers(amounts: Amounts | Vector) -> Array:
    assert isinstance(amounts, Amounts)
    values = amounts.values.astype(np.float64)
    if amounts.exponent is not None:
        with np.errstate(over="ignore"):
            values = np.ldexp(values, np.minimum(amounts.exponent, 1 << 20).astype(np.int32))
    return values


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
