"""How many seconds it should take to answer queries, by a formula for each way.

- a sweep: a call, and for every query the gathering of its results; for every event what it costs to look at it, and
  for every cell that it fits a call and its open windows; for every window of a key what it costs to open, give out
  and empty it;
- a segment that is counted per START event: for each of its events one addition per START event that is within reach,
  for each START event what prefixes hold, for each outcome that is read a product per START event and window;
- by itself, a query costs a call, and for each of its events about as much as it has positions.

The constants are nanoseconds on one core of the machine that the benchmarks ran on (`python -m benchmarks.run --only
sharing` shows estimates beside what was measured).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trendloom.kernels.shared import FOREVER, CountedQuery, Family
from trendloom.kernels.shared.program import MergedQueries
from trendloom.logical.statistics import Statistics

EVENT, CELL, LANE, WINDOW, EMPTIED, RESULT = 35.0, 13.0, 2.2, 60.0, 1.5, 130.0
EXTEND, STARTED, ENTER, PRODUCT = 300.0, 1.5, 3.0, 3.0
MOST_EMPTIED = 250.0
"""Cells that a window has touched, about, where there are many of them."""
OFTEN = 3.0
"""Events of every step in a window beyond which there will be a match in it."""
CALL, ALONE, POSITION = 8e6, 200.0, 30.0
SWEEP, QUERY = 1e6, 4e4
NANOSECOND = 1e-9
UNKNOWN_EVENTS = 1000.0
TESTED = 0.3
"""The share of events that pass conditions on them alone, without statistics."""


@dataclass(frozen=True)
class Rates:
    """By the number of an event filter how many events pass it; how many keys, and the times that events span.

    `known`: the events were counted.
    """

    events: tuple[float, ...]
    keys: float = 1.0
    span: float | None = None
    known: bool = False

    def windows(self, family: Family) -> float:
        """Windows of a family that hold an event, over all keys: all there are, unless there are few events."""
        if family.grid == FOREVER or self.span is None:
            return self.keys
        return min(self.keys * (self.span + family.reach) / family.grid, sum(self.events) * family.lanes)

    def within_reach(self, number: int, family: Family) -> float:
        """Events of a key that pass a filter and are in the windows of one of them."""
        share = 1.0 if self.span is None else min(family.reach / self.span, 1.0)
        return self.events[number] / self.keys * share


def rates_of(asked: Sequence[Any], attributes: tuple[str, ...], statistics: Statistics) -> Rates:
    """The rates of event filters by statistics; those with conditions have a share of the events of a type."""
    known = bool(statistics.types)
    types = [statistics.types.get(kind, 0.0) if known else UNKNOWN_EVENTS for kind, _ in asked]
    events = [count * (TESTED if tests else 1.0) for count, (_, tests) in zip(types, asked, strict=True)]
    spread = statistics.spread(attributes)
    keys = 1.0 if spread is None else max(spread.distinct, 1.0)
    return Rates(tuple(events), keys, None if statistics.span is None else float(statistics.span), known)


def seconds_of_sweep(merged: MergedQueries, rates: Rates) -> float:
    """A sweep for all queries."""
    lanes = [family.lanes for family in merged.families]
    cells = [cell for cell in merged.cells if cell.letter is not None]
    event_filters = {number for cell in merged.cells for number in (cell.letter, *cell.reset)} | set(merged.noted)
    found = SWEEP + QUERY * len(merged) + sum(EVENT * _of(number, rates) for number in event_filters)
    found += sum(_of(cell.letter, rates) * (CELL + LANE * lanes[cell.family]) for cell in cells)
    for number, family in enumerate(merged.families):
        touched = min(sum(cell.family == number for cell in merged.cells), MOST_EMPTIED)
        found += rates.windows(family) * (WINDOW + EMPTIED * touched)
    found += sum(_results(merged, at, rates) * RESULT for at in range(len(merged)))
    return (found + _per_start(merged, rates)) * NANOSECOND


def _results(merged: MergedQueries, at: int, rates: Rates) -> float:
    """Windows in which a query, by its place in the program, has a match."""
    needed = [merged.cells[cell] for cell in merged.needs[at]]
    family = merged.families[needed[0].family]
    event_filters = [cell.letter for cell in needed if cell.letter is not None]
    often = all(rates.within_reach(number, family) >= OFTEN for number in event_filters)
    return rates.windows(family) / int(merged.program.every[at]) if often else 0.0


def _per_start(merged: MergedQueries, rates: Rates) -> float:
    segments, found = merged.segments, 0.0
    readers: dict[int, float] = {}
    for cell in merged.cells:
        for source, _ in cell.edges:
            readers[source] = readers.get(source, 0.0) + _of(cell.letter, rates)
    for number, at in enumerate(segments.family):
        family, event_filters = (
            merged.families[at],
            merged.noted[segments.positions[number] : segments.positions[number + 1]],
        )
        outcomes = segments.outcome[segments.uses[number] : segments.uses[number + 1]]
        asked = [readers.get(int(outcome), rates.windows(family)) for outcome in outcomes]
        found += segment_cost(event_filters, asked, family, rates)
    return found


def _of(number: int | None, rates: Rates) -> float:
    return 0.0 if number is None else rates.events[number]


def seconds_alone(queries: Sequence[CountedQuery], rates: Rates) -> float:
    """Every query by a kernel of its own."""
    found = 0.0
    for query in queries:
        event_filters = {number for step in query.steps for number in (step.letter, *step.forbidden)}
        events = sum(_of(number, rates) for number in event_filters)
        found += CALL + events * (ALONE + POSITION * len(query.steps))
    return found * NANOSECOND


def step_cost(number: int | None, family: Family, rates: Rates) -> float:
    """What a step of one query adds to a sweep."""
    return _of(number, rates) * (CELL + LANE * family.lanes)


def segment_cost(event_filters: Sequence[int], asked: Sequence[float], family: Family, rates: Rates) -> float:
    """What a segment costs that is counted per START event; `asked`: by use how often its outcome is read."""
    starts = max(rates.within_reach(event_filters[0], family), 1.0)
    found = sum(_of(number, rates) * (EXTEND + STARTED * starts) for number in event_filters)
    found += len(asked) * _of(event_filters[0], rates) * ENTER * family.lanes
    return found + sum(min(often, _of(event_filters[-1], rates)) * PRODUCT * starts * family.lanes for often in asked)


def often_asked(follower: int | None, family: Family, rates: Rates) -> float:
    """How often the outcome of a segment is read: by events of the step after it, or when windows end."""
    return rates.windows(family) if follower is None else _of(follower, rates)
