"""Aggregates of values, as SQL has them: NULLs are skipped, and of nothing there is only a count.

Two families. Inside one match (`aggregate`) numbers are added in time order with ordinary arithmetic. Over all matches
(`total`) floats are added exactly and rounded once, which is the value that every engine must be near to. Integers and
decimals are exact in both; their averages are the doubles nearest to the quotient.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, cast

from trendloom.model.schema import Kind
from trendloom.reference.stream import Scalar, StreamEvent

Number = int | float | Fraction


def aggregate(function: str, column: str | None, events: Sequence[StreamEvent]) -> Scalar:
    """`f(b[].x)` of these events."""
    if column is None:
        return len(events)
    values = _present(event.value(column) for event in events)
    if function == "count":
        return len(values)
    if not values:
        return None
    if function in ("min", "max"):
        return cast(Scalar, min(values) if function == "min" else max(values))
    try:
        added = _added(values)
        return _finite(added if function == "sum" else average(added, len(values)), values)
    except OverflowError:
        return None


def average(added: Number, count: int) -> float:
    """A sum of so many numbers, divided."""
    return added / count if isinstance(added, float) else float(Fraction(added) / count)


def combined(operator: str, values: Sequence[Number], kind: Kind) -> Number | None:
    """The values from left to right, as doubles where `kind` is that of doubles."""
    try:
        numbers = [float(value) for value in values] if kind is Kind.FLOAT else list(values)
    except OverflowError:
        return None
    if operator in ("least", "greatest"):
        return min(numbers) if operator == "least" else max(numbers)
    found, *rest = numbers
    for number in rest:
        found = found + number if operator == "+" else found * number
    return _finite(found, numbers)


def _added(values: Sequence[Number]) -> Number:
    added: Number = 0
    for value in values:  # not sum(): it rounds differently from one Python to the next
        added = added + value
    return added


def _finite(result: Number, values: Sequence[Number]) -> Number | None:
    """NULL where the result is not a number, or infinite although every value was finite."""
    if isinstance(result, int | Fraction) or math.isfinite(result):
        return result
    return None if math.isnan(result) or all(math.isfinite(value) for value in values) else result


def extent(events: Sequence[StreamEvent]) -> int | None:
    """`duration(b)`: last minus first time."""
    times = [event.time for event in events]
    return max(times) - min(times) if times else None


def total(function: str, values: Iterable[object]) -> Scalar:
    """An aggregate of one value for every occurrence of an event in a match."""
    present = _present(values)
    if function == "count":
        return len(present)
    if not present:
        return None
    if function in ("min", "max"):
        return cast(Scalar, min(present) if function == "min" else max(present))
    if all(isinstance(value, int | Fraction) for value in present):
        added = sum(present)
        return added if function == "sum" else _rounded(Fraction(added) / len(present))
    if not all(math.isfinite(value) for value in present):
        infinite = _added([float(value) for value in present])
        return None if math.isnan(infinite) else infinite
    exact = sum((Fraction(value) for value in present), Fraction(0))
    return _rounded(exact if function == "sum" else exact / len(present))


def _rounded(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _present(values: Iterable[object]) -> list[Any]:
    return [value for value in values if value is not None]
