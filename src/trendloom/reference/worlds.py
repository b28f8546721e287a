"""Imprecise time: every world, one after another.

An event lies anywhere in [low, high]; a world gives each event one time, and all worlds of a partition are equally
likely. The query is run in every world. What matches is known by the sequence of its events (the *signature*): its
confidence is the share of the worlds in which it matches, exactly. Values of a match and ties are read in the first
world in which the signature matches.
Cost: the product of the lengths of the intervals, bounded by `WORLD_LIMIT`, times the cost of one world.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from trendloom.errors import DataError, PlanError, option
from trendloom.model.schema import Schema
from trendloom.model.semantics import Trends
from trendloom.plan.logical import Aggregation, Plan
from trendloom.reference import budget as limits
from trendloom.reference.budget import StepBudget
from trendloom.reference.matches import Binding, Search
from trendloom.reference.ranking import in_operand_windows, ranked
from trendloom.reference.results import Cell, Placed, binding_key, complete_only, match_row, without_hidden
from trendloom.reference.rows import Row
from trendloom.reference.stream import Bounds, StreamEvent, cut_partitions, cut_windows, read_event

Signature = tuple[Bounds | None, tuple[int, ...]]
Input = Mapping[str, object]


@dataclass(frozen=True)
class FoundSignature:
    """A signature: a binding that shows it, in how many of all worlds it matches, and the times it covers."""

    binding: Binding
    worlds: int
    of: int
    low: int
    high: int

    @property
    def confidence(self) -> Fraction:
        return Fraction(self.worlds, self.of)


def evaluate_worlds(plan: Plan, rows: Sequence[Input], budget: StepBudget) -> list[Placed]:
    """The rows of a query over a stream with imprecise time."""
    if isinstance(plan.output, Aggregation) or plan.output is Trends.COLLAPSED:
        raise PlanError("with imprecise time a query gives matches one by one", hint="RETURN TRENDS")
    intervals = [_interval(number, row, plan.schema) for number, row in enumerate(rows)]
    first = [read_event(number, row, plan.schema, intervals[number][0]) for number, row in enumerate(rows)]
    search = Search(plan, budget)
    cells: list[tuple[Cell, Mapping[Binding, FoundSignature]]] = []
    for partition, events in cut_partitions(first, plan.partition).items():
        numbers = [event.row for event in events]
        size = math.prod(high - low + 1 for low, high in (intervals[number] for number in numbers))
        if size > limits.WORLD_LIMIT:
            raise DataError(
                f"the intervals of a partition allow {size} worlds; the reference evaluator tries at most "
                f"{limits.WORLD_LIMIT}",
                hint=f"use {option('engine', 'local')}, or fewer events with shorter intervals",
            )
        found = _signatures(plan, search, _worlds(rows, numbers, intervals, plan.schema), size)
        cells.extend(_cells(plan, partition, found))
    return list(_rows(plan, cells))


def _interval(number: int, row: Input, schema: Schema) -> Bounds:
    low, high = (row.get(name) for name in schema.bounds or ("", ""))
    if not isinstance(low, int) or not isinstance(high, int) or low > high:
        raise DataError(
            f"row {number} has no interval of times: {low!r} to {high!r}", hint="low must not be above high"
        )
    return low, high


def _worlds(
    rows: Sequence[Input], numbers: Sequence[int], intervals: Sequence[Bounds], schema: Schema
) -> Iterator[list[StreamEvent]]:
    choices = [
        [read_event(number, rows[number], schema, time) for time in range(low, high + 1)]
        for number, (low, high) in ((number, intervals[number]) for number in numbers)
    ]
    for world in itertools.product(*choices):
        yield list(world)


def _signatures(
    plan: Plan, search: Search, worlds: Iterable[Sequence[StreamEvent]], size: int
) -> dict[Signature, FoundSignature]:
    signatures: dict[Signature, FoundSignature] = {}
    for events in worlds:
        for window, stream in cut_windows(events, plan.window, search.budget):
            found = in_operand_windows(plan.operand_windows, window, search.matches(stream))
            bindings = without_hidden(found, plan.hidden)
            if plan.output is Trends.COMPLETE:
                bindings = complete_only(bindings)
            in_world: dict[Signature, Binding] = {}  # bindings of one sequence at different positions are one
            for binding in sorted(bindings, key=binding_key):
                in_world.setdefault((window, tuple(event.row for event, _ in binding)), binding)
            for signature, binding in in_world.items():
                signatures[signature] = _seen_again(signatures.get(signature), binding, size)
    return signatures


def _seen_again(known: FoundSignature | None, binding: Binding, size: int) -> FoundSignature:
    first, last = binding[0][0].time, binding[-1][0].time
    if known is None:
        return FoundSignature(binding, 1, size, first, last)
    return FoundSignature(known.binding, known.worlds + 1, size, min(known.low, first), max(known.high, last))


def _cells(
    plan: Plan, partition: tuple[object, ...], found: Mapping[Signature, FoundSignature]
) -> Iterator[tuple[Cell, dict[Binding, FoundSignature]]]:
    """The signatures of each window of a partition that are likely enough."""
    by_window: dict[Bounds | None, dict[Binding, FoundSignature]] = {}
    for (window, _), signature in found.items():
        if plan.confidence is None or signature.confidence >= plan.confidence:
            by_window.setdefault(window, {})[signature.binding] = signature
    for window, signatures in by_window.items():
        yield Cell(window, partition), signatures


def _rows(plan: Plan, cells: Sequence[tuple[Cell, Mapping[Binding, FoundSignature]]]) -> Iterator[Placed]:
    if plan.ranking is not None:
        signatures = {(cell, binding): signature for cell, some in cells for binding, signature in some.items()}
        for found in ranked(plan, plan.ranking, cells):
            placed = found.placed(plan, plan.ranking)
            yield Placed(placed.key, _with_confidence(placed.row, signatures[found.cell, found.binding]))
        return
    for cell, some in cells:
        for binding, signature in some.items():
            key = (*cell.key, signature.low, signature.high, *binding_key(binding))
            yield Placed(key, _with_confidence(match_row(plan, cell, binding), signature))


def _with_confidence(row: Row, found: FoundSignature) -> Row:
    return replace(row, confidence=found.confidence, time_low=found.low, time_high=found.high)
