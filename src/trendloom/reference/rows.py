"""What the reference gives back: plain rows, before anybody makes columns of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

Scalar = int | float | Fraction | str | bool | None
"""A value of the language. Times and durations are whole ticks, decimals fractions; NaN does not occur."""


@dataclass(frozen=True)
class Row:
    """One row of the result. A field that does not apply to the query's RETURN is None.

    `partition` has the values of `plan.partition`, for aggregates over matches those of `plan.group_by`.
    `events` are (number of the input row, variable) in time order; `values` follow `plan.output.values`.
    """

    partition: tuple[object, ...] = ()
    window: tuple[int, int] | None = None
    events: tuple[tuple[int, str], ...] | None = None
    values: tuple[Scalar, ...] | None = None
    matches: int | None = None
    rank: int | None = None
    score: int | float | Fraction | None = None
    confidence: Fraction | None = None
    time_low: int | None = None
    time_high: int | None = None
