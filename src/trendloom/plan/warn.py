"""What is allowed but probably not meant: ambiguous patterns, NEXT that never applies, types without events."""

from __future__ import annotations

from collections.abc import Iterator

from trendloom.errors import QueryWarning, did_you_mean
from trendloom.expr.shape import shape_of
from trendloom.pattern.algebra import Pattern, negations
from trendloom.pattern.template import adjacent_variables, ambiguous_types
from trendloom.plan.logical import Plan
from trendloom.plan.patterns import events_of


def warnings_of(plan: Plan) -> tuple[QueryWarning, ...]:
    """All warnings of a bound query, in the order of its clauses."""
    return (*_absent_types(plan), *_ambiguity(plan), *_idle_next(plan))


def _absent_types(plan: Plan) -> Iterator[QueryWarning]:
    present = plan.schema.present
    told: set[str] = set()
    for event in events_of(plan.query.pattern):
        if present is not None and event.type not in present and event.type not in told:
            told.add(event.type)
            yield QueryWarning(
                f"the events have no type '{event.type}'",
                event.span,
                did_you_mean(event.type, present) if present else None,
                plan.query.text,
            )


def _ambiguity(plan: Plan) -> Iterator[QueryWarning]:
    word = ambiguous_types(plan.pattern)
    if word is not None:
        yield QueryWarning(
            f"ambiguous pattern: the events {' '.join(word)} match it in more than one way, each counted",
            plan.query.clause("PATTERN"),
            "two matches may hold the same events at different places of the pattern",
            plan.query.text,
        )


def _idle_next(plan: Plan) -> Iterator[QueryWarning]:
    scopes = {0: plan.pattern, **dict(_scoped(plan.pattern))}
    for condition in plan.conditions:
        pair = shape_of(condition.expr).pair
        if pair is not None and pair not in adjacent_variables(scopes[condition.scope]):
            yield QueryWarning(
                f"'{condition.text}' is always true: events of {pair[0]} and {pair[1]} are never adjacent",
                plan.query.clause("WHERE"),
                "NEXT speaks of events next to each other in the match",
                plan.query.text,
            )


def _scoped(pattern: Pattern) -> Iterator[tuple[int, Pattern]]:
    for negation in negations(pattern):
        yield negation.scope, negation.body
        yield from _scoped(negation.body)
