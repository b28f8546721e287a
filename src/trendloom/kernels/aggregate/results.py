"""Results of adding up: one number or value per measure, key and window; and measures as weights of events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trendloom.expr.decimals import as_doubles
from trendloom.expr.vectors import Vector, joined
from trendloom.kernels.aggregate.measures import Linear
from trendloom.kernels.aggregate.widening import Amounts, join_amounts
from trendloom.kernels.columns.block import Block
from trendloom.kernels.measures import AggregationSpec, Measure

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

    @property
    def size(self) -> int:
        """How many entries it holds."""
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
