"""Imprecise time: every world, one after another.

An event happens at one of the points of its interval, each with its probability. A *world* picks a point for each event
of a partition; its probability is the product of theirs. The query is run in every world. What matches is known by its
*signature*, the list of its events with their positions in the pattern: its confidence is the probability of the worlds
in which it matches, exactly, and its time range covers these matches.
Cost: the product of the numbers of points, bounded by `WORLD_LIMIT`, times the cost of one world.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial

from trendloom.errors import DataError, option
from trendloom.expr.nodes import Total
from trendloom.logical.plan import Aggregation, Plan
from trendloom.model.imprecision import Imprecision
from trendloom.model.schema import Kind, Schema
from trendloom.pattern.algebra import atoms
from trendloom.reference.matches import Binding, Search
from trendloom.reference.results import Cell, Placed, aggregate_row, binding_key, group_of, match_row
from trendloom.reference.stream import (
    Bounds,
    Scalar,
    StepBudget,
    StreamEvent,
    cut_partitions,
    cut_windows,
    read_event,
)

WORLD_LIMIT = 200_000
"""Possible worlds of one partition."""

Points = Mapping[int, Fraction]
"""The possible times, in order, each with its probability, which is above zero."""


def points_of(number: int, row: Mapping[str, object], schema: Schema) -> Points:
    """The points of the event of a row, straight from the definition.

    From its bounds, or from its time and error, an event has an earliest and a latest time. Both are floored to the
    grain; every multiple of the grain between them is a point. Points are equally likely unless the row has their
    probabilities.
    """
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


@dataclass
class Expectation:
    """The matches of one group and window with their confidences, and the probability that there is none at all."""

    matches: list[tuple[Fraction, Binding]] = field(default_factory=list)
    none: Fraction = Fraction(1)


def _expected(leaf: Total, found: Expectation) -> Scalar:
    """The expected value of an aggregate: each match counts as much as it is likely.

    The expected value of a sum is the sum of the expected values, whether or not matches depend on each other.
    """
    if leaf.function == "probability":
        return 1 - found.none
    if leaf.positions is None:
        return sum((confidence for confidence, _ in found.matches), Fraction(0))
    occurrences = [
        (confidence, event)
        for confidence, binding in found.matches
        for event, atom in binding
        if atom.position in leaf.positions
    ]
    if leaf.column is None:
        return sum((confidence for confidence, _ in occurrences), Fraction(0))
    column = leaf.column
    known = [(confidence, event.value(column)) for confidence, event in occurrences if event.value(column) is not None]
    if leaf.function == "count":
        return sum((confidence for confidence, _ in known), Fraction(0))
    if leaf.function != "sum":
        raise TypeError(f"{leaf.text} has no expected value")
    return _sum([(confidence, value) for confidence, value in known if isinstance(value, int | float | Fraction)])


def _sum(values: list[tuple[Fraction, int | float | Fraction]]) -> Fraction | float | None:
    """Exactly; of nothing it is NULL, and so it is of infinities that cancel."""
    if not values:
        return None
    infinite = {value for _, value in values if isinstance(value, float) and math.isinf(value)}
    if infinite:
        return infinite.pop() if len(infinite) == 1 else None
    return sum((confidence * Fraction(value) for confidence, value in values), Fraction(0))


Signature = tuple[Bounds | None, tuple[tuple[int, int], ...]]
"""A window, and the events of a match in order: number of the row, position in the pattern."""

Input = Mapping[str, object]
World = tuple[Fraction, list[StreamEvent]]


@dataclass(frozen=True)
class FoundSignature:
    """A signature: a binding that shows it, how likely it is, and the times it covers."""

    binding: Binding
    confidence: Fraction
    low: int
    high: int

    def in_one_more(self, binding: Binding, probability: Fraction) -> FoundSignature:
        """The same, seen in another world."""
        first, last = binding[0][0].time, binding[-1][0].time
        return FoundSignature(self.binding, self.confidence + probability, min(self.low, first), max(self.high, last))


@dataclass
class FoundInPartition:
    """The signatures in all worlds of a partition, and the probability of each window to have a match at all."""

    signatures: dict[Signature, FoundSignature]
    some_match: dict[Bounds | None, Fraction]


def evaluate_worlds(plan: Plan, rows: Sequence[Input], budget: StepBudget) -> list[Placed]:
    """The rows of a query over a stream with imprecise time."""
    points = [points_of(number, row, plan.schema) for number, row in enumerate(rows)]
    events = [read_event(number, row, plan.schema, min(points[number])) for number, row in enumerate(rows)]
    named = {atom.type for atom in atoms(plan.pattern)}  # events of other types take part in nothing
    search = Search(plan, budget)
    found: dict[tuple[object, ...], FoundInPartition] = {}
    for partition, members in cut_partitions(events, plan.partition).items():
        numbers = [event.row for event in members if event.type in named]
        found[partition] = _found(plan, search, _worlds(plan, rows, numbers, points))
    if isinstance(plan.output, Aggregation):
        return list(_aggregated(plan, plan.output, found))
    return [placed for partition, some in found.items() for placed in _match_rows(plan, partition, some, points)]


def _worlds(plan: Plan, rows: Sequence[Input], numbers: Sequence[int], points: Sequence[Points]) -> Iterator[World]:
    """Every choice of a point for each of these rows, with its probability."""
    size = math.prod(len(points[number]) for number in numbers)
    if size > WORLD_LIMIT:
        raise DataError(
            f"the intervals of a partition allow {size} worlds; the reference evaluator tries at most {WORLD_LIMIT}",
            hint=f"use {option('engine', 'local')}, or fewer events with shorter intervals",
        )
    choices = [
        [(share, read_event(number, rows[number], plan.schema, time)) for time, share in points[number].items()]
        for number in numbers
    ]
    for world in itertools.product(*choices):
        yield math.prod((share for share, _ in world), start=Fraction(1)), [event for _, event in world]


def _found(plan: Plan, search: Search, worlds: Iterator[World]) -> FoundInPartition:
    signatures: dict[Signature, FoundSignature] = {}
    some_match: dict[Bounds | None, Fraction] = {}
    for probability, events in worlds:
        for window, stream in cut_windows(events, plan.window, search.budget):
            bindings = list(search.matches(stream))
            if bindings:
                some_match[window] = some_match.get(window, Fraction(0)) + probability
            for binding in bindings:
                signature = window, tuple((event.row, atom.position) for event, atom in binding)
                known = signatures.get(signature)
                if known is None:
                    known = FoundSignature(binding, Fraction(0), binding[0][0].time, binding[-1][0].time)
                signatures[signature] = known.in_one_more(binding, probability)
    return FoundInPartition(signatures, some_match)


def _likely(plan: Plan, found: FoundInPartition) -> Iterator[tuple[Bounds | None, FoundSignature]]:
    """The signatures that are likely enough, each with its window."""
    for (window, _), signature in found.signatures.items():
        if plan.confidence is None or signature.confidence >= plan.confidence:
            yield window, signature


def _match_rows(
    plan: Plan, partition: tuple[object, ...], found: FoundInPartition, points: Sequence[Points]
) -> Iterator[Placed]:
    for window, signature in _likely(plan, found):
        cell = Cell(window, partition)
        row = replace(
            match_row(plan, cell, signature.binding),
            confidence=signature.confidence,
            time_low=signature.low,
            time_high=signature.high,
        )
        earliest = tuple(min(points[event.row]) for event, _ in signature.binding)
        key = (*cell.key, signature.low, signature.high, earliest, *binding_key(signature.binding)[3:])
        yield Placed(key, row)


def _aggregated(
    plan: Plan, output: Aggregation, found: Mapping[tuple[object, ...], FoundInPartition]
) -> Iterator[Placed]:
    """The rows of all groups. Partitions are independent, so the probability that none has a match is the product."""
    groups: dict[Cell, Expectation] = {}
    for partition, some in found.items():
        for window, probability in some.some_match.items():
            expectation = groups.setdefault(group_of(plan, Cell(window, partition)), Expectation())
            expectation.none *= 1 - probability
        for window, signature in _likely(plan, some):
            members = groups[group_of(plan, Cell(window, partition))].matches
            members.append((signature.confidence, signature.binding))
    for cell, expectation in groups.items():
        row = aggregate_row(plan, output, cell, partial(_expected, found=expectation)) if expectation.matches else None
        if row is not None:
            yield row
