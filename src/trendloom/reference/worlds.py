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
from dataclasses import dataclass, replace
from fractions import Fraction

from trendloom.errors import DataError, option
from trendloom.logical.plan import Aggregation, Plan
from trendloom.pattern.algebra import atoms
from trendloom.reference import budget as limits
from trendloom.reference.budget import StepBudget
from trendloom.reference.expected import Expectation, expected_row
from trendloom.reference.matches import Binding, Search
from trendloom.reference.points import Points, points_of
from trendloom.reference.results import Cell, Key, Placed, match_row
from trendloom.reference.stream import Bounds, StreamEvent, cut_partitions, cut_windows, read_event

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
    """What all worlds of a partition give: the signatures, and how likely each window has a match at all."""

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
    if size > limits.WORLD_LIMIT:
        raise DataError(
            f"the intervals of a partition allow {size} worlds; the reference evaluator tries at most "
            f"{limits.WORLD_LIMIT}",
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
        yield Placed((*cell.key, signature.low, signature.high, *_signature_key(signature.binding, points)), row)


def _signature_key(binding: Binding, points: Sequence[Points]) -> Key:
    """The earliest times of all events, then their values, variables and positions: as precise matches are ordered."""
    return (
        tuple(min(points[event.row]) for event, _ in binding),
        tuple(event.content for event, _ in binding),
        tuple((atom.variable, atom.position) for _, atom in binding),
        tuple(event.row for event, _ in binding),
    )


def _aggregated(
    plan: Plan, output: Aggregation, found: Mapping[tuple[object, ...], FoundInPartition]
) -> Iterator[Placed]:
    """Partitions that agree on the grouping attributes are one group; their events are independent."""
    groups: dict[Cell, Expectation] = {}
    for partition, some in found.items():
        values = dict(zip(plan.partition, partition, strict=True))
        group = tuple(values[name] for name in plan.group_by)
        for window, probability in some.some_match.items():
            groups.setdefault(Cell(window, group), Expectation()).add_partition(probability)
        for window, signature in _likely(plan, some):
            groups[Cell(window, group)].matches.append((signature.confidence, signature.binding))
    for cell, expectation in groups.items():
        if expectation.matches:
            yield expected_row(plan, output, cell, expectation)
