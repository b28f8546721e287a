"""What is allowed but probably not meant.

Ambiguous patterns, NEXT that never applies, types without events, and `sum(b.x)` where `sum(b[].x)` was probably meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace

from trendloom.errors import QueryWarning, did_you_mean
from trendloom.expr.quantifiers import shape_of
from trendloom.frontend import tree
from trendloom.frontend.source import SourceText
from trendloom.frontend.tql.keywords import AGGREGATES
from trendloom.frontend.tql.printer import write_expression, write_length
from trendloom.logical.bind.patterns import events_of
from trendloom.logical.plan import Plan
from trendloom.model.selection import Trends
from trendloom.pattern.algebra import Pattern, negations
from trendloom.pattern.template import adjacent_variables, ambiguous_types


def warnings_of(plan: Plan) -> tuple[QueryWarning, ...]:
    """All warnings of a bound query, in the order of its clauses."""
    return (*_absent_types(plan), *_ambiguity(plan), *_idle_next(plan), *_totals_in_small_letters(plan))


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


def _totals_in_small_letters(plan: Plan) -> Iterator[QueryWarning]:
    """`sum(b.x)` beside WITHIN alone: over all matches of a window, where `sum(b[].x)` is of one match."""
    query = plan.query
    if query.within is None or query.within.slide is not None or isinstance(query.returns, Trends):
        return
    for item in query.returns:
        for call in _totals(item.expression):
            (of,) = call.arguments
            assert isinstance(of, tree.Reference)
            if of.variable in plan.kleene and _written(call, query.text)[:1].islower():
                inside = write_expression(tree.Call(call.name, (replace(of, index=tree.Index.ALL),)))
                yield QueryWarning(
                    f"'{_written(call, query.text)}' is over all matches, so each row is of a window of "
                    f"{write_length(query.within.within)}, and the windows do not overlap",
                    call.span,
                    f"of one match: {inside}; over all matches, in capitals: {write_expression(call)}",
                    query.text,
                )


def _totals(node: object) -> Iterator[tree.Call]:
    """The aggregates over all matches of a variable's events."""
    if isinstance(node, tree.Call) and node.name in AGGREGATES and len(node.arguments) == 1:
        of = node.arguments[0]
        if isinstance(of, tree.Reference) and of.index is tree.Index.EACH:
            yield node
    if isinstance(node, tuple):
        for part in node:
            yield from _totals(part)
    elif is_dataclass(node):
        for field in fields(node):
            yield from _totals(getattr(node, field.name))


def _written(node: tree.Call, text: str | None) -> str:
    """The node as the query has it: the tree does not know capitals."""
    if node.span is None or text is None:
        return ""
    start = SourceText(text).offset(node.span)
    return text[start : start + node.span.length]


def _scoped(pattern: Pattern) -> Iterator[tuple[int, Pattern]]:
    for negation in negations(pattern):
        yield negation.scope, negation.body
        yield from _scoped(negation.body)
