"""Results of adding up: one number or value per measure, key and window; and measures as weights of events."""

from __future__ import annotations

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.decimals import as_doubles
from trendloom.expr.vectors import Vector
from trendloom.kernels.aggregate.measures import Linear
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.aggregates import AggregationSpec, Amounts, Measure, Totals

DIGIT = 60
"""Bits of the digits in which integers beyond 64 bits are weighed."""


def totals_of(
    spec: AggregationSpec, key: Array, start: Array, matches: Amounts, values: dict[str, Amounts | Vector]
) -> Totals:
    """The results that have a match."""
    values |= {m.name: matches for m in spec.measures if m.function == "matches"}
    return Totals(key, start, values).take(np.flatnonzero(matches.values != 0))


# ------------------------------------------------------------------------------------------------ weights


def linear_of(
    measures: tuple[Measure, ...], block: Block, *, doubles: bool = False
) -> tuple[list[Linear], dict[str, list[int]]]:
    """The linear measures, and for each measure the lanes that hold its digits, the lowest first."""
    found: list[Linear] = []
    lanes: dict[str, list[int]] = {}
    for measure in measures:
        weights = weights_of(measure, block, doubles=doubles)
        lanes[measure.name] = list(range(len(found) + 1, len(found) + 1 + len(weights)))
        found += [Linear(measure.positions or (), weight) for weight in weights]
    return found, lanes


def weights_of(measure: Measure, block: Block, *, doubles: bool) -> list[Array | None]:
    """What the events of a block weigh in a measure, digit by digit, the lowest first; None: each counts one."""
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


def from_digits(amounts: list[Amounts], lanes: list[int]) -> Amounts:
    """A measure out of the lanes that hold its digits."""
    if len(lanes) == 1:
        return amounts[lanes[0]]
    parts = [amounts[lane].values.astype(object) << DIGIT * digit for digit, lane in enumerate(lanes)]
    return Amounts(sum(parts[1:], parts[0]))
