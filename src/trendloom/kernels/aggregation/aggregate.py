"""Add up a block: choose the number system, run the grain, and widen exact numbers where they did not fit.

- `exact`: two words; spans that spill are estimated in scaled numbers and repeated with as many words as they need. Sums
  of doubles are scaled numbers throughout, so that an average is right however many matches there are.
- `float`: doubles; spans where one is infinite are repeated in scaled numbers, for the sake of averages.
- `log`: scaled numbers.

Cost: that of the grain, once or twice; a span that needs w words costs w/2 times as much again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trendloom.errors import RunError
from trendloom.expr.vectors import Vector
from trendloom.kernels.aggregation import mixed_grained, pattern_grained, type_grained
from trendloom.kernels.aggregation.job import Found, Job, Linear, Spans, prepare, sortable
from trendloom.kernels.aggregation.pivots import by_pivot
from trendloom.kernels.aggregation.spans import spans_of
from trendloom.kernels.aggregation.spec import Aggregation, Grain, Measure
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.numbers import STEP, Doubles, Limbs, Numbers, Scaled, Wides, integers, zeros

Array = np.ndarray[Any, Any]

MOST_WORDS = 1 << 18
"""Words of a number beyond which exact arithmetic is refused: that is five million digits."""
DIGIT = 60
"""Bits of the digits in which integers beyond 64 bits are weighed."""


@dataclass(frozen=True, eq=False)
class Amounts:
    """One linear measure, per result: exact integers (int64 or objects), or with `exponent` values · 2^exponent."""

    values: Array
    exponent: Array | None = None

    def take(self, rows: Array) -> Amounts:
        return Amounts(self.values[rows], None if self.exponent is None else self.exponent[rows])


@dataclass(frozen=True, eq=False)
class Totals:
    """Results with at least one match: `values` by the name of the measure."""

    key: Array
    start: Array
    values: dict[str, Amounts | Vector]

    def __len__(self) -> int:
        return len(self.key)


def aggregate(spec: Aggregation, block: Block, numeric: str) -> Iterator[Totals]:
    """All results of a block; with a pivot in parts that add up. `block.columns` holds all columns used."""
    if spec.pivot is None:
        yield _aggregate(spec, block, numeric)
        return
    for part, key in by_pivot(block, spec.pivot, spec.detection.window):
        totals = _aggregate(replace(spec, pivot=None), part, numeric)
        yield replace(totals, key=key[totals.key])


def _aggregate(spec: Aggregation, block: Block, numeric: str) -> Totals:
    spans = spans_of(block, spec.detection.window, spec.detection.scopes[0].template.minimal_length)
    extremes = [
        (m, sortable(m, block.columns[m.column])) for m in spec.measures if m.column and m.function in ("min", "max")
    ]
    sums = [m for m in spec.measures if m.function in ("count", "sum")]
    exact = [m for m in sums if numeric == "exact" and not _fractional(m, block)]
    rest = [m for m in sums if m not in exact]
    values: dict[str, Amounts | Vector] = {}
    matches, least = None, None
    if numeric == "exact":
        linear, digits = _linear(exact, block)
        job = prepare(spec, block, linear, extremes)
        amounts, least = _exactly(job, spans)
        matches = amounts[0]
        values |= {m.name: _from_digits(amounts, digits[m.name]) for m in exact}
    if numeric != "exact" or rest:
        linear, digits = _linear(rest, block, doubles=True)
        job = prepare(spec, block, linear, extremes if least is None else [])
        amounts, also = _nearly(job, spans, Doubles if numeric == "float" else Scaled)
        least = also if least is None else least
        matches = amounts[0] if matches is None else matches
        values |= {m.name: amounts[digits[m.name][0]] for m in rest}
    assert matches is not None
    assert least is not None
    values |= {m.name: one.restore(least[:, at]) for at, (m, one) in enumerate(extremes)}
    values |= {m.name: matches for m in spec.measures if m.function == "matches"}
    rows = np.flatnonzero(matches.values != 0)
    return Totals(spans.key[rows], spans.start[rows], {name: value.take(rows) for name, value in values.items()})


def sweep(job: Job, spans: Spans, numbers: Numbers) -> Found:
    """Run the grain that the plan chose."""
    spec = job.spec
    if spec.algebra:
        return type_grained.sweep(job, spans, numbers)
    if spec.grain is Grain.PATTERN:
        return pattern_grained.sweep(job, spans, numbers)
    return mixed_grained.sweep(job, spans, numbers)


# ------------------------------------------------------------------------------------------------ weights


def _fractional(measure: Measure, block: Block) -> bool:
    if measure.function == "count" or measure.column is None:
        return False
    return bool(block.columns[measure.column].values.dtype == np.float64)


def _linear(measures: list[Measure], block: Block, *, doubles: bool = False) -> tuple[list[Linear], dict[str, list[int]]]:
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
        values = values.astype(np.float64)
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


# ---------------------------------------------------------------------------------------- number systems


def _exactly(job: Job, spans: Spans) -> tuple[list[Amounts], Array]:
    """Exact integers: lane by lane, and the least values."""
    found = sweep(job, spans, zeros(Wides, 1, 1))
    assert isinstance(found.numbers, Wides)
    lanes = [integers(found.numbers, lane) for lane in range(job.linear + 1)]
    again = np.flatnonzero(found.spilled)
    if len(again):
        lanes = [lane.astype(object) for lane in lanes]
        only = replace(job, values=job.values[:0], valued=job.valued[:0])
        words = _words_needed(only, spans.take(again))
        while len(again):
            more = []
            for size in np.unique(words):
                rows = np.flatnonzero(words == size)
                widened = sweep(only, spans.take(again[rows]), zeros(Limbs, 1, 1, int(size)))
                assert isinstance(widened.numbers, Limbs)
                for lane in range(job.linear + 1):
                    lanes[lane][again[rows]] = integers(widened.numbers, lane)
                more.append(rows[widened.spilled])
            left = np.concatenate(more)
            again, words = again[left], _allowed(words[left] * 2)
    return [Amounts(lane) for lane in lanes], found.least


def _words_needed(job: Job, spans: Spans) -> Array:
    """How many words the numbers of each span take, rounded up to a power of two."""
    weights = job.weights.astype(np.float64)
    found = sweep(replace(job, weights=weights), spans, zeros(Scaled, 1, 1)).numbers
    assert isinstance(found, Scaled)
    bits = np.max(np.frexp(found.mantissa)[1] + STEP * found.exponent, axis=1)
    return _allowed(2 ** np.ceil(np.log2(np.maximum(bits / 64 + 1, 4))).astype(np.int64))


def _allowed(words: Array) -> Array:
    if len(words) and words.max() > MOST_WORDS:
        raise RunError(
            f"exact numbers of more than {MOST_WORDS * 64 * 3 // 10:,} digits are not computed",
            hint="use --numeric log (numeric='log')",
        )
    return words


def _nearly(job: Job, spans: Spans, system: type[Numbers]) -> tuple[list[Amounts], Array]:
    """Doubles or scaled numbers as mantissa and exponent, and the least values."""
    found = sweep(job, spans, zeros(system, 1, 1))
    mantissa, exponent = _scaled(found.numbers)
    again = np.flatnonzero(~np.isfinite(mantissa).all(axis=1))
    if len(again) and system is Doubles:
        only = replace(job, values=job.values[:0], valued=job.valued[:0])
        repeated = _scaled(sweep(only, spans.take(again), zeros(Scaled, 1, 1)).numbers)
        mantissa[again], exponent[again] = repeated
    return [Amounts(mantissa[:, lane], exponent[:, lane]) for lane in range(job.linear + 1)], found.least


def _scaled(numbers: Numbers) -> tuple[Array, Array]:
    """Mantissas from a half up to one, and exponents of two."""
    assert isinstance(numbers, Doubles | Scaled)
    if isinstance(numbers, Doubles):
        mantissa, exponent = np.frexp(numbers.value)
        return mantissa, exponent.astype(np.int64)
    mantissa, exponent = np.frexp(numbers.mantissa)
    return mantissa, np.where(mantissa == 0, 0, exponent + STEP * numbers.exponent)
