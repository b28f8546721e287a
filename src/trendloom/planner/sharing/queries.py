"""Queries that can be counted in one sweep with others: sequences of single or repeated events, and what they compute.

Such a query has a plain sequence under skip-till-any-match, with NOTs of single events between its parts, conditions
on single events alone, and asks for numbers of matches, or for what their events add up to.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from trendloom.expr.nodes import of_any_event
from trendloom.kernels.contract.aggregates import Measure
from trendloom.kernels.shared.steps import CountedQuery, CountedStep, StepMeasure, family_of
from trendloom.logical.plan import Plan
from trendloom.pattern.algebra import Atom, Kleene, Negation, Pattern, Round, Sequence
from trendloom.planner.plan import Physical

MOST_LANES = 32
"""Windows that are open at a time: with more, every query had better add up panes by itself."""


@dataclass
class QueryEventFilters:
    """The filters of events of several queries, numbered as they appear."""

    numbers: dict[Hashable, int] = field(default_factory=dict)

    def number(self, asked: Hashable) -> int:
        return self.numbers.setdefault(asked, len(self.numbers))

    @property
    def listed(self) -> tuple[Any, ...]:
        return tuple(self.numbers)


def counted_query(physical: Physical, event_filters: QueryEventFilters) -> CountedQuery | None:
    """The query as a counted sequence; None: it is not one."""
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
    steps: list[CountedStep] = []
    step_of: dict[int, int] = {}
    forbidden: set[int] = set()
    for part in parts:
        if isinstance(part, Negation):
            assert isinstance(part.body, Atom)
            forbidden.add(event_filters.number(asked_of(plan, part.body)))
            continue
        atom, repeats = part
        step_of[atom.position] = len(steps)
        steps.append(CountedStep(event_filters.number(asked_of(plan, atom)), repeats, frozenset(forbidden)))
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
    elif isinstance(pattern, Sequence):
        for part in pattern.parts:
            yield from _parts(part)
    else:
        yield None


def asked_of(plan: Plan, atom: Atom) -> Hashable:
    """What an event must be to be bound by an atom."""
    return atom.type, tuple(of_any_event(expr) for position, expr in plan.filters if position == atom.position)
