"""Events by the definitions, the streams they are cut into (partitions, then windows), and rows of results.

An event has a time and an *instant*: the time and the values of the columns that order events of equal time, if such
are named. Before, between and after compare instants; windows, spans and durations compare times. Equal instants have
no order. Where an order of rows is needed all the same, it follows the values of the rows, so the order of the input
decides nothing but the choice between two rows that are the same in every column.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from trendloom.errors import DataError, option
from trendloom.model.schema import Kind, Schema
from trendloom.model.time import Window

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


STEP_LIMIT = 5_000_000
"""Elementary steps (an event tried, an event of a binding copied, a predicate evaluated) of one evaluation."""


class StepBudget:
    """Counts elementary steps, and ends the run above a limit: the cost of the definitions can grow like 2^n."""

    def __init__(self) -> None:
        self.limit, self.spent = STEP_LIMIT, 0

    def spend(self, steps: int = 1) -> None:
        self.spent += steps
        if self.spent > self.limit:
            raise DataError(
                f"the reference evaluator gave up after {self.limit} steps: it tries every combination of events",
                hint=f"use {option('engine', 'local')}, or fewer events",
            )


OrderKey = tuple[int, object]
Instant = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class StreamEvent:
    """One event. Events are compared by identity: two equal rows are two events."""

    row: int
    time: int
    instant: Instant
    type: object
    values: Mapping[str, object]
    content: tuple[OrderKey, ...]

    def value(self, column: str) -> object:
        return self.values.get(column)


Stream = tuple[StreamEvent, ...]
"""Events by instant, then content."""

Bounds = tuple[int, int]


def order_key(value: object) -> OrderKey:
    """A key that puts any two values in an order: NULL first, then by kind, then by value."""
    if value is None:
        return (0, 0)
    if isinstance(value, bool):
        return (1, value)
    if isinstance(value, int | float | Fraction):
        return (2, value)
    return (3, value) if isinstance(value, str) else (4, repr(value))


def ordered(events: Iterable[StreamEvent]) -> Stream:
    return tuple(sorted(events, key=lambda event: (event.instant, event.content, event.row)))


def read_event(number: int, row: Mapping[str, object], schema: Schema, time: int | None = None) -> StreamEvent:
    """An event from an input row. `time` is given where the row itself only bounds it (imprecise time)."""
    values = {column.name: _plain(row.get(column.name), column.kind) for column in schema.columns}
    content = tuple(order_key(value) for value in values.values())
    when = values.get(schema.time) if time is None else time
    if not isinstance(when, int):
        raise DataError(f"row {number} has no time", hint=f"every row needs a value in column '{schema.time}'")
    instant = (when, *(_place(values.get(name)) for name in schema.order))
    return StreamEvent(number, when, instant, values.get(schema.type), {**values, schema.time: when}, content)


def _place(value: object) -> OrderKey:
    """Where a value stands among those of its column: NULL first."""
    return (0, 0) if value is None else (1, value)


def _plain(value: object, kind: Kind) -> object:
    """NaN is NULL, −0.0 is 0.0, decimals are exact fractions, durations microseconds."""
    if isinstance(value, Decimal):
        if value.is_nan():
            return None
        return int(value) if kind is Kind.INT else Fraction(value)
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(microseconds=1)
    if isinstance(value, float):
        return None if math.isnan(value) else value + 0.0
    return value


def cut_partitions(
    events: Iterable[StreamEvent], attributes: Sequence[str]
) -> dict[tuple[object, ...], list[StreamEvent]]:
    """The events by the values of the attributes; a NULL in one of them puts a row in no partition."""
    partitions: dict[tuple[object, ...], list[StreamEvent]] = {}
    for event in events:
        key = tuple(event.value(attribute) for attribute in attributes)
        if all(value is not None for value in key):
            partitions.setdefault(key, []).append(event)
    return partitions


def cut_windows(
    events: Sequence[StreamEvent], window: Window, budget: StepBudget
) -> Iterator[tuple[Bounds | None, Stream]]:
    """Each window that holds an event, with its events as a stream of their own; without SLIDE, the whole stream."""
    if window.within is None or window.slide is None:
        yield None, ordered(events)
        return
    within, slide = window.within, window.slide
    starts: set[int] = set()
    for event in events:
        first = (event.time - within) // slide + 1  # the least k with event.time < k·slide + within
        budget.spend(max(1, event.time // slide - first + 1))
        starts.update(k * slide for k in range(first, event.time // slide + 1))
    for start in sorted(starts):
        budget.spend(len(events))
        inside = [event for event in events if start <= event.time < start + within]
        yield (start, start + within), ordered(inside)
