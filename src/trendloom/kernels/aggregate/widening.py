"""Which number system holds which measure, and what happens when a number does not fit.

- `exact`: two words; spans that spill are estimated in scaled numbers and repeated with as many words as they need.
  Sums of doubles are scaled numbers throughout, so that an average is right however many matches there are.
- `float`: doubles; spans where one is infinite are repeated in scaled numbers, for the sake of averages.
- `log`: scaled numbers.

Cost: one sweep; a span that needs w words costs about w/2 times as much once more. Their number is reported before
that (`Widening`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.measures import Spans, SpanTotals
from trendloom.kernels.columns.numbers import Doubles, Limbs, Numbers, Scaled, Wides, integers, zeros
from trendloom.kernels.columns.words import STEP
from trendloom.kernels.contract.aggregates import AggregationSpec, Amounts, Measure, OnWidening, TooManyDigits, Widening


class Sweeper(Protocol):
    """Something that adds up spans in any number system."""

    @property
    def lanes(self) -> int: ...

    def sweep(self, spans: Spans, numbers: Numbers) -> SpanTotals: ...

    def without_least(self) -> Sweeper: ...


MOST_WORDS = 1 << 18
"""Words of a number beyond which exact arithmetic is refused: that is five million digits."""


@dataclass(frozen=True)
class MeasureGroup:
    """Measures that are added up together, after the number of matches."""

    measures: tuple[Measure, ...]
    system: type[Numbers]

    @property
    def exact(self) -> bool:
        return self.system is Wides

    def run(
        self, sweeper: Sweeper, spans: Spans, widening: OnWidening | None = None
    ) -> tuple[list[Amounts], Array]:  # fmt: skip
        """Amounts by lane (the matches first), and the least values; `widening` is called before long numbers."""
        return _exactly(sweeper, spans, widening) if self.exact else _nearly(sweeper, spans, self.system)


@dataclass(frozen=True)
class Layout:
    """All measures of an aggregation; the least values go with the first part."""

    parts: tuple[MeasureGroup, ...]
    extremes: tuple[Measure, ...]


def layout_of(spec: AggregationSpec, numeric: str) -> Layout:
    """Which measures go together. Depends on the query alone, so that results of different tasks fit together."""
    extremes = tuple(m for m in spec.measures if m.function in ("min", "max"))
    sums = tuple(m for m in spec.measures if m.function in ("count", "sum"))
    if numeric != "exact":
        return Layout((MeasureGroup(sums, Doubles if numeric == "float" else Scaled),), extremes)
    fractional = tuple(m for m in sums if m.fractional)
    exact = MeasureGroup(tuple(m for m in sums if not m.fractional), Wides)
    return Layout((exact, MeasureGroup(fractional, Scaled)) if fractional else (exact,), extremes)


def _exactly(sweeper: Sweeper, spans: Spans, widening: OnWidening | None) -> tuple[list[Amounts], Array]:
    found = sweeper.sweep(spans, zeros(Wides, 1, 1))
    assert isinstance(found.numbers, Wides)
    lanes = [integers(found.numbers, lane) for lane in range(sweeper.lanes)]
    again = np.flatnonzero(found.spilled)
    if len(again):
        lanes = [lane.astype(object) for lane in lanes]
        only = sweeper.without_least()
        bits = bits_of(only.sweep(spans.take(again), zeros(Scaled, 1, 1)).numbers)
        words = words_of(bits.max(axis=1))
        if widening is not None:
            widening(_foreseen(spans.take(again), bits, words))

        def add_up_wider(rows: Array, size: int) -> Array:
            widened = only.sweep(spans.take(rows), zeros(Limbs, 1, 1, size))
            assert isinstance(widened.numbers, Limbs)
            for lane in range(sweeper.lanes):
                lanes[lane][rows] = integers(widened.numbers, lane)
            return widened.spilled

        repeat_wider(again, words, add_up_wider)
    return [Amounts(lane) for lane in lanes], found.least


def repeat_wider(again: Array, words: Array, compute: Callable[[Array, int], Array]) -> None:
    """Compute the rows `again` with so many words each, and with twice as many where these do not hold them.

    `compute(rows, words)` stores what it finds, and returns which of the rows spill.
    """
    while len(again):
        left = []
        for size in np.unique(words):
            rows = np.flatnonzero(words == size)
            left.append(rows[compute(again[rows], int(size))])
        more = np.concatenate(left)
        again, words = again[more], _allowed(words[more] * 2)


def bits_of(estimates: Numbers) -> Array:
    """How many bits each of some scaled numbers has before the point."""
    assert isinstance(estimates, Scaled)
    bits: Array = np.frexp(estimates.mantissa)[1] + STEP * estimates.exponent
    return bits


def _foreseen(spans: Spans, bits: Array, words: Array) -> Widening:
    most = int(bits[:, 0].argmax())
    digits = int(bits.max() * math.log10(2)) + 1
    work = int(((spans.high - spans.low) * words).sum())
    return Widening(digits, work, int(bits[most, 0]), int(spans.key[most]), int(spans.start[most]))


def words_of(bits: Array) -> Array:
    """Words for numbers of so many bits, rounded up to a power of two."""
    return _allowed(2 ** np.ceil(np.log2(np.maximum(bits / 64 + 1, 4))).astype(np.int64))


def _allowed(words: Array) -> Array:
    """The same, unless it is beyond reason."""
    if len(words) and words.max() > MOST_WORDS:
        raise TooManyDigits(MOST_WORDS)
    return words


def _nearly(sweeper: Sweeper, spans: Spans, system: type[Numbers]) -> tuple[list[Amounts], Array]:
    found = sweeper.sweep(spans, zeros(system, 1, 1))
    mantissa, exponent = _scaled(found.numbers)
    again = np.flatnonzero(~np.isfinite(mantissa).all(axis=1))
    if len(again) and system is Doubles:
        repeated = sweeper.without_least().sweep(spans.take(again), zeros(Scaled, 1, 1))
        mantissa[again], exponent[again] = _scaled(repeated.numbers)
    return [Amounts(mantissa[:, lane], exponent[:, lane]) for lane in range(sweeper.lanes)], found.least


def _scaled(numbers: Numbers) -> tuple[Array, Array]:
    """Mantissas from a half up to one, and exponents of two."""
    assert isinstance(numbers, Doubles | Scaled)
    if isinstance(numbers, Doubles):
        mantissa, exponent = np.frexp(numbers.value)
        return mantissa, exponent.astype(np.int64)
    mantissa, exponent = np.frexp(numbers.mantissa)
    return mantissa, np.where(mantissa == 0, 0, exponent + STEP * numbers.exponent)
