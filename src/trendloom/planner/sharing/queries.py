"""Queries that one sweep can count with others, and how many seconds it should take to answer them in each way.

Such a query has a plain sequence of single or repeated events under skip-till-any-match, with NOTs of single events
between its parts, conditions on single events alone, and returns numbers of matches, or what their events add up to.

There is a formula for each way:

- a sweep: a call, and for every query the gathering of its results; for every event what it costs to look at it, and
  for every cell that it fits a call and its open windows; for every window of a key what it costs to open, emit
  and empty it;
- a segment that is counted per START event: for each of its events one addition per START event that is within reach,
  for each START event what prefixes hold, for each outcome that is read a product per START event and window;
- by itself, a query costs a call, and for each of its events about as much as it has positions.

The constants are nanoseconds on one core of the machine that the benchmarks ran on (`python -m benchmarks.run --only
sharing` shows estimates beside what was measured).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trendloom.expr.nodes import Expr, of_any_event
from trendloom.kernels.contract.aggregates import Measure
from trendloom.kernels.shared import FOREVER, CountedQuery, CountedStep, Family, StepMeasure, family_of
from trendloom.kernels.shared.program import MergedQueries
from trendloom.logical.plan import Attributes
from trendloom.logical.statistics import Statistics
from trendloom.pattern import algebra
from trendloom.pattern.algebra import Atom, Kleene, Negation, Pattern, Round
from trendloom.planner.plan import Physical

MOST_LANES = 32
"""Windows that are open at a time: with more, each query adds up panes on its own in less time."""
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

SharedFilter = tuple[str, tuple[Expr, ...]]
"""A type and the conditions on its event, whichever query and position they are of."""


def shared_filters(physical: Physical) -> list[SharedFilter]:
    """The event filter of each position of a query."""
    return [(kind, tuple(map(of_any_event, tests))) for kind, tests in physical.filters]


def counted_query(physical: Physical, letters: dict[SharedFilter, int]) -> CountedQuery | None:
    """The query as a counted sequence; None: it is not one. Its filters get numbers among the `letters`."""
    plan, spec = physical.plan, physical.kernel.aggregation
    if spec is None or not spec.algebra or spec.pivot is not None or spec.pairs or spec.tests:
        return None
    other = plan.schema.imprecise or plan.hidden or spec.pattern_spec.earliest or spec.pattern_spec.adjacent
    family = family_of([plan.window])
    if other or plan.window.spanning or family is None or family.lanes > MOST_LANES:
        return None
    parts = list(_parts(plan.pattern))
    if None in parts or isinstance(parts[0], Negation) or isinstance(parts[-1], Negation):
        return None
    if any(scope.rules or scope.outer for scope in spec.pattern_spec.scopes[1:]):
        return None
    letter_of = [letters.setdefault(one, len(letters)) for one in shared_filters(physical)]
    steps: list[CountedStep] = []
    step_of: dict[int, int] = {}
    forbidden: set[int] = set()
    for part in parts:
        if isinstance(part, Negation):
            assert isinstance(part.body, Atom)
            forbidden.add(letter_of[part.body.position])
            continue
        atom, repeats = part
        step_of[atom.position] = len(steps)
        steps.append(CountedStep(letter_of[atom.position], repeats, frozenset(forbidden)))
        forbidden = set()
    multiples, measures = [], []
    for measure in spec.measures:
        at = tuple(sorted(step_of[position] for position in measure.positions or ()))
        times = _times(measure, at, steps)
        if times is None:
            measures.append(StepMeasure(measure, at))
        else:
            multiples.append((measure.name, times))
    return CountedQuery(plan.window, tuple(steps), tuple(multiples), tuple(measures))


def _times(measure: Measure, at: tuple[int, ...], steps: list[CountedStep]) -> int | None:
    """How many times the number of matches a measure is, if it is."""
    if measure.function == "matches":
        return 1
    if measure.function != "count" or measure.column is not None or any(steps[step].repeats for step in at):
        return None
    return len(at)


def _parts(pattern: Pattern) -> Iterator[Any]:
    """The atoms in sequence, each with whether it repeats, and NOTs of an atom; None where there is anything else."""
    if isinstance(pattern, Atom):
        yield pattern, False
    elif isinstance(pattern, Kleene) and isinstance(pattern.body, Atom):
        yield pattern.body, True
    elif isinstance(pattern, Negation) and isinstance(pattern.body, Atom):
        yield pattern
    elif isinstance(pattern, Round):
        yield from _parts(pattern.body)
    elif isinstance(pattern, algebra.Sequence):
        for part in pattern.parts:
            yield from _parts(part)
    else:
        yield None


@dataclass(frozen=True)
class Rates:
    """By the number of an event filter how many events pass it; how many keys, and the times that events span.

    `known`: the events were counted.
    """

    events: tuple[float, ...]
    keys: float = 1.0
    span: float | None = None
    known: bool = False

    def of(self, letter: int | None) -> float:
        """Events that pass a filter; None: 0."""
        return 0.0 if letter is None else self.events[letter]

    def windows(self, family: Family) -> float:
        """Windows of a family that hold an event, over all keys: all there are, unless there are few events."""
        if family.grid == FOREVER or self.span is None:
            return self.keys
        return min(self.keys * (self.span + family.reach) / family.grid, sum(self.events) * family.lanes)

    def within_reach(self, letter: int, family: Family) -> float:
        """Events of a key that pass a filter and are in the windows of one of them."""
        share = 1.0 if self.span is None else min(family.reach / self.span, 1.0)
        return self.events[letter] / self.keys * share


def rates_of(filters: Iterable[SharedFilter], attributes: Attributes, statistics: Statistics) -> Rates:
    """The rates of event filters by statistics; those with conditions have a share of the events of a type."""
    known = bool(statistics.types)
    types = [(statistics.types.get(kind, 0.0) if known else UNKNOWN_EVENTS, tests) for kind, tests in filters]
    events = tuple(count * (TESTED if tests else 1.0) for count, tests in types)
    spread = statistics.spread(attributes)
    keys = 1.0 if spread is None else max(spread.distinct, 1.0)
    return Rates(events, keys, None if statistics.span is None else float(statistics.span), known)


def seconds_of_sweep(merged: MergedQueries, rates: Rates) -> float:
    """A sweep for all queries."""
    cells = [cell for cell in merged.cells if cell.letter is not None]
    letters = {letter for cell in merged.cells for letter in (cell.letter, *cell.reset)} | set(merged.noted)
    found = SWEEP + QUERY * len(merged) + sum(EVENT * rates.of(letter) for letter in letters)
    found += sum(step_cost(cell.letter, merged.families[cell.family], rates) for cell in cells)
    for number, family in enumerate(merged.families):
        touched = min(sum(cell.family == number for cell in merged.cells), MOST_EMPTIED)
        found += rates.windows(family) * (WINDOW + EMPTIED * touched)
    found += sum(_results(merged, at, rates) * RESULT for at in range(len(merged)))
    return (found + _per_start(merged, rates)) * NANOSECOND


def _results(merged: MergedQueries, at: int, rates: Rates) -> float:
    """Windows in which a query, by its place in the program, has a match."""
    needed = [merged.cells[cell] for cell in merged.needs[at]]
    family = merged.families[needed[0].family]
    letters = [cell.letter for cell in needed if cell.letter is not None]
    often = all(rates.within_reach(letter, family) >= OFTEN for letter in letters)
    return rates.windows(family) / int(merged.program.every[at]) if often else 0.0


def _per_start(merged: MergedQueries, rates: Rates) -> float:
    """What segments cost that are counted per START event."""
    segments, found = merged.segments, 0.0
    readers: dict[int, float] = {}
    for cell in merged.cells:
        for source, _ in cell.edges:
            readers[source] = readers.get(source, 0.0) + rates.of(cell.letter)
    for number, at in enumerate(segments.family):
        family = merged.families[at]
        letters = merged.noted[segments.positions[number] : segments.positions[number + 1]]
        outcomes = segments.outcome[segments.uses[number] : segments.uses[number + 1]]
        read = [readers.get(int(outcome), rates.windows(family)) for outcome in outcomes]
        found += segment_cost(letters, read, family, rates)
    return found


def seconds_alone(queries: Iterable[CountedQuery], rates: Rates) -> float:
    """Every query by a kernel of its own."""
    found = 0.0
    for query in queries:
        letters = {letter for step in query.steps for letter in (step.letter, *step.forbidden)}
        found += CALL + sum(map(rates.of, letters)) * (ALONE + POSITION * len(query.steps))
    return found * NANOSECOND


def step_cost(letter: int | None, family: Family, rates: Rates) -> float:
    """What a step of one query adds to a sweep."""
    return rates.of(letter) * (CELL + LANE * family.lanes)


def segment_cost(letters: Sequence[int], read: Sequence[float], family: Family, rates: Rates) -> float:
    """What a segment costs that is counted per START event; `read`: by use how often its outcome is read."""
    starts = max(rates.within_reach(letters[0], family), 1.0)
    found = sum(rates.of(letter) * (EXTEND + STARTED * starts) for letter in letters)
    found += len(read) * rates.of(letters[0]) * ENTER * family.lanes
    return found + sum(min(often, rates.of(letters[-1])) * PRODUCT * starts * family.lanes for often in read)


def reads_of_outcome(follower: int | None, family: Family, rates: Rates) -> float:
    """How often the outcome of a segment is read: by events of the step after it, or when windows end."""
    return rates.windows(family) if follower is None else rates.of(follower)
