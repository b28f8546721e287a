"""Queries of a workload that one kernel answers together: sequences whose matches are counted.

Such a query has a plain sequence of single or repeated events under skip-till-any-match, conditions on single events
alone, and asks for numbers of matches. Queries meet by their set of keys; windows, groups and conditions are their own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from trendloom.expr.nodes import Attribute, Expr
from trendloom.kernels.sharing.kernel import Multiples, SharedKernel
from trendloom.kernels.sharing.merged_sequences import CountedStep, lanes_of, merge_sequences
from trendloom.kernels.totals.spec import Measure
from trendloom.pattern.algebra import Atom, Kleene, Pattern, Round, Sequence
from trendloom.physical.considered import Considered
from trendloom.physical.plan import Physical
from trendloom.plan.logical import Plan
from trendloom.plan.workload import Workload

MOST_LANES = 32
"""Windows that are open at a time: with more, every query had better add up panes by itself."""


@dataclass(frozen=True)
class CountedSequence:
    """A query as a sequence of steps, and how many times the number of matches each of its measures is."""

    steps: tuple[CountedStep, ...]
    measures: Multiples


@dataclass(frozen=True)
class AnsweredTogether:
    """Queries of one set of keys, by their numbers in the workload, that one kernel answers; `saved`: for EXPLAIN."""

    members: tuple[int, ...]
    kernel: SharedKernel
    saved: str
    considered: Considered | None = None


def answered_together(workload: Workload, queries: tuple[Physical, ...]) -> tuple[AnsweredTogether, ...]:
    """The groups of queries that are answered by one kernel."""
    found = []
    for keys in workload.key_sets:
        taken = [(number, counted_sequence(queries[number])) for number in keys.members]
        counted = [(number, one) for number, one in taken if isinstance(one, CountedSequence)]
        if len(counted) > 1:
            merged = merge_sequences([(queries[number].plan.window, one.steps) for number, one in counted])
            kernel = SharedKernel(merged, tuple(one.measures for _, one in counted))
            saved = f"{merged.nodes} prefixes for {sum(len(one.steps) for _, one in counted)} positions"
            found.append(AnsweredTogether(tuple(number for number, _ in counted), kernel, saved))
    return tuple(found)


def counted_sequence(physical: Physical) -> CountedSequence | str:
    """The query as a counted sequence, or why it is none."""
    plan, spec = physical.plan, physical.kernel.aggregation
    if spec is None or not spec.algebra or spec.pivot is not None or spec.pairs or spec.tests:
        return "it does not count matches by the types of their events alone"
    if spec.detection.earliest or spec.detection.adjacent or len(spec.detection.scopes) > 1:
        return "it has a NOT, or other semantics than skip-till-any-match"
    if plan.window.spanning or lanes_of(plan.window) > MOST_LANES:
        return f"more than {MOST_LANES} of its windows are open at a time"
    parts = list(_parts(plan.pattern))
    if None in parts:
        return "its pattern is more than a sequence of single and repeated events"
    steps = [(atom, repeats) for atom, repeats in parts if atom is not None]
    times = [_times(measure, {atom.position: repeats for atom, repeats in steps}) for measure in spec.measures]
    known = [(measure.name, one) for measure, one in zip(spec.measures, times, strict=True) if one is not None]
    if len(known) < len(times):
        return "it asks for more than numbers of matches"
    return CountedSequence(tuple(CountedStep(letter_of(plan, atom), repeats) for atom, repeats in steps), tuple(known))


def _times(measure: Measure, repeats: dict[int, bool]) -> int | None:
    """How many times the number of matches a measure is, if it is."""
    if measure.function == "matches":
        return 1
    if measure.function != "count" or measure.column is not None or measure.positions is None:
        return None
    return None if any(repeats[position] for position in measure.positions) else len(measure.positions)


def _parts(pattern: Pattern) -> Iterator[Any]:
    """The atoms in sequence, each with whether it repeats; None where there is anything else."""
    if isinstance(pattern, Atom):
        yield pattern, False
    elif isinstance(pattern, Kleene) and isinstance(pattern.body, Atom):
        yield pattern.body, True
    elif isinstance(pattern, Round):
        yield from _parts(pattern.body)
    elif isinstance(pattern, Sequence):
        for part in pattern.parts:
            yield from _parts(part)
    else:
        yield None


def letter_of(plan: Plan, atom: Atom) -> Hashable:
    """What an event must be to take the place of an atom."""
    return atom.type, tuple(_of_any(expr) for position, expr in plan.filters if position == atom.position)


def _of_any(expr: Expr) -> Expr:
    """The expression without the names of variables."""
    if isinstance(expr, Attribute):
        return replace(expr, variable="")
    changed: dict[str, Any] = {}
    for field in fields(expr):
        value = getattr(expr, field.name)
        if isinstance(value, Expr):
            changed[field.name] = _of_any(value)
        elif isinstance(value, tuple):
            changed[field.name] = tuple(_of_any(part) if isinstance(part, Expr) else part for part in value)
    return replace(expr, **changed) if changed else expr
