"""When an event may have happened, and how likely: straight from the definition, one row at a time.

From its bounds, or from its time and error, an event has an earliest and a latest time. Both are floored to the grain;
every multiple of the grain between them is a point. Points are equally likely unless the row says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from trendloom.errors import DataError
from trendloom.model.imprecision import Imprecision
from trendloom.model.schema import Kind, Schema

Points = Mapping[int, Fraction]
"""The possible times, in order, each with its probability, which is above zero."""


def points_of(number: int, row: Mapping[str, object], schema: Schema) -> Points:
    """The points of the event of a row."""
    how = schema.imprecision
    assert how is not None
    earliest, latest = _between(number, row, schema) if schema.bounds is not None else _around(number, row, schema, how)
    low, high = math.floor(earliest / how.grain) * how.grain, math.floor(latest / how.grain) * how.grain
    times = range(low, high + 1, how.grain)
    given = None if how.probability is None else row.get(how.probability)
    if given is None:
        return {time: Fraction(1, len(times)) for time in times}
    shares = _shares(number, given, len(times))
    return {time: share for time, share in zip(times, shares, strict=True) if share}


def _between(number: int, row: Mapping[str, object], schema: Schema) -> tuple[Fraction, Fraction]:
    low, high = (row.get(name) for name in schema.bounds or ())
    if not isinstance(low, int) or not isinstance(high, int) or low > high:
        raise DataError(
            f"row {number} has no interval of times: {low!r} to {high!r}", hint="low must not be above high"
        )
    return Fraction(low), Fraction(high)


def _around(number: int, row: Mapping[str, object], schema: Schema, how: Imprecision) -> tuple[Fraction, Fraction]:
    time = row.get(schema.time)
    error = dict(how.by_type).get(str(row.get(schema.type)), how.error)
    if how.error_column is not None:
        error = _error(number, row.get(how.error_column), schema, how.error_column)
    if not isinstance(time, int) or error < 0:
        raise DataError(f"row {number} has no time or error: {time!r}, {error}", hint="errors are zero or more")
    return time - error, time + error


def _error(number: int, value: object, schema: Schema, column: str) -> Fraction:
    """The error in ticks: a plain number counts seconds for timestamps, else the unit of the time column."""
    if not isinstance(value, int | float | Decimal | Fraction) or value != value:
        raise DataError(f"row {number} has no error of its time: {value!r}", hint="fill in the column first")
    exact = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    if schema.kind(column) is Kind.DURATION:
        return exact / schema.axis.tick
    return exact * 1_000_000 / schema.axis.tick if schema.axis.timestamp else exact


def _shares(number: int, given: object, points: int) -> list[Fraction]:
    """The given numbers, divided by their sum."""
    numbers = [Fraction(float(value)) for value in given] if isinstance(given, Sequence) else []
    if len(numbers) != points or min(numbers) < 0 or not sum(numbers):
        raise DataError(f"row {number} has no probability for each of {points} points: {given!r}", hint="one each")
    return [value / sum(numbers) for value in numbers]
