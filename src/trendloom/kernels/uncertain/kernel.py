"""Signatures with their confidences_of, under the contract every kernel keeps.

On a live stream the watermark bounds the earliest times of what is still to come. A match is certain:

- under skip-till-any-match without NOT when all its events are there;
- otherwise when nobody can come that may lie before its last event: when the watermark has passed the latest time of
  that (`Certain.LATEST`);
- with a trailing NOT when the watermark is WITHIN ahead of the latest time of its first event, or at the end of its
  window.

All these depend on the events of a match alone, so that every match is given out once, however the stream is cut.
Cost: that of the search (`growth`) and of the confidences (`confidence.weigh`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block, IntervalBlock
from trendloom.kernels.contract.emission import Certain, EmissionPolicy, between
from trendloom.kernels.contract.matches import Matches, ResultColumn
from trendloom.kernels.match.search import SearchKernel, SearchState
from trendloom.kernels.uncertain.confidence.confidence import confidences_of
from trendloom.kernels.uncertain.search import FoundSignatures, signatures_of
from trendloom.model.schema import Kind

CONFIDENCE, TIME_LOW, TIME_HIGH = "confidence", "time_low", "time_high"


@dataclass(frozen=True)
class ImpreciseKernel(SearchKernel):
    """`threshold`: only matches at least so likely. `slack`: ticks from the earliest time of an event to its latest."""

    _: KW_ONLY
    threshold: Fraction | None = None
    slack: int = 0

    def all(self, block: Block) -> Iterator[Matches]:
        assert isinstance(block, IntervalBlock)
        for found in signatures_of(self.pattern_spec, block, threshold=self.threshold):
            matches = self._weighed(found, block)
            if len(matches):
                yield matches

    def _weighed(self, found: FoundSignatures, block: IntervalBlock) -> Matches:
        signatures = found.signatures
        likely, kept = confidences_of(signatures, block, self.threshold)
        columns = {CONFIDENCE: likely.confidence, TIME_LOW: likely.low, TIME_HIGH: likely.high}
        matches = Matches(signatures.offsets, signatures.events, signatures.positions, found.window_start, columns)
        return matches if kept.all() else matches.take(np.flatnonzero(kept))

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        return (
            ResultColumn(CONFIDENCE, Kind.FLOAT, "how likely a match is", weighs=True),
            ResultColumn(TIME_LOW, Kind.TIME, "the earliest time of its events", sorts=True),
            ResultColumn(TIME_HIGH, Kind.TIME, "the latest time of its events", sorts=True),
        )

    @property
    def emission(self) -> EmissionPolicy:
        known = super().emission
        if known.certain is Certain.LAST and (self.pattern_spec.earliest or len(self.pattern_spec.scopes) > 1):
            known = replace(known, certain=Certain.LATEST)
        return replace(known, slack=self.slack)

    def step(self, state: SearchState, block: Block, watermark: int | None) -> tuple[Iterator[Matches], SearchState]:
        """As every search; events that are too early by their latest times are let go."""
        found, after = super().step(state, block, watermark)
        if watermark is None or self.pattern_spec.window.within is None:
            return found, after
        assert isinstance(block, IntervalBlock)
        return found, replace(after, kept=np.flatnonzero(self._needed(block, watermark)))

    def _needed(self, block: IntervalBlock, watermark: int) -> Array:
        """Which events may be part of a match that is not certain yet, or decide about one."""
        emission, within = self.emission, self.pattern_spec.window.within or 0
        if emission.window.sliding:
            needed: Array = block.high >= emission.first_open(watermark)
            return needed
        open_ = block.high + within > watermark if emission.certain is Certain.FIRST else block.high >= watermark
        earliest = watermark
        if emission.certain is not Certain.LAST:
            earliest = min(earliest, int(block.time[open_].min(initial=watermark)))
        return block.high > earliest - within

    def _found(self, block: Block, before: int | None, watermark: int | None) -> Iterator[Matches]:
        if self.emission.certain is not Certain.LATEST or before is None:
            return super()._found(block, before, watermark)
        assert isinstance(block, IntervalBlock)
        news = np.zeros(block.keys, np.bool_)
        news[block.key[block.high >= before]] = True
        return self.fresh(block, self._among(block, news[block.key]), before, watermark)

    def fresh(
        self, block: Block, found: Iterator[Matches], before: int | None, watermark: int | None
    ) -> Iterator[Matches]:
        assert isinstance(block, IntervalBlock)
        for matches in found:
            fresh = between(self._moments(block, matches), before, watermark)
            if fresh.any():
                yield matches if fresh.all() else matches.take(np.flatnonzero(fresh))

    def _moments(self, block: IntervalBlock, matches: Matches) -> Array:
        """The least watermark at which each match is certain."""
        emission, start = self.emission, matches.window_start
        if emission.certain is Certain.LAST:
            last = np.maximum.reduceat(block.time[matches.events], matches.offsets[:-1])
        else:
            last = block.high[matches.last]
            if start is not None:
                last = np.minimum(last, start + (emission.window.within or 0) - 1)
        return emission.moment(block.high[matches.first], last, start)
