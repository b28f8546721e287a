"""Bind the queries of a workload: one error for all that are wrong, and one table for the rows of all.

The columns of all queries stand in one table, so those of one name must be of one kind. Widths within a kind do not
matter, because a type that holds all values exactly is found for them. An integer and a number with a point are of
different kinds: as doubles, integers would lose digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from trendloom.errors import BindError, QueryError, Span, option
from trendloom.frontend.tql.printer import write_expression
from trendloom.frontend.tree import Query
from trendloom.logical.bind.types import article
from trendloom.logical.plan import SCORE, Aggregation, Plan
from trendloom.model.schema import Kind
from trendloom.model.selection import Trends

One = TypeVar("One", Query, Plan)
Made = TypeVar("Made")

MATCHES = "matches"
"""The column that collapsed trends have."""


def for_every_query(queries: Sequence[One], make: Callable[[One], Made]) -> list[Made]:
    """The results for all queries; one error for all that are refused."""
    made: list[Made] = []
    wrong: dict[str, QueryError] = {}
    for query in queries:
        try:
            made.append(make(query))
        except QueryError as error:
            if len(queries) == 1:
                raise
            wrong[str(query.name)] = error.of_query(query.name)
    if wrong:
        raise _error_of_several(wrong, len(queries))
    return made


def _error_of_several(wrong: Mapping[str, QueryError], among: int) -> QueryError:
    """The only error, or one with all as its parts: a `BindError` if any is, since other columns may avoid those."""
    first, *more = parts = list(wrong.values())
    if not more:
        return first
    kind = BindError if any(isinstance(error, BindError) for error in parts) else type(first)
    message = f"{len(parts)} of {among} queries are refused: {', '.join(wrong)}"
    return kind(message, first.span, text=first.text, parts=parts)


@dataclass(frozen=True)
class OutputColumn:
    """A column of the rows of a query: its kind, and the place in the query that it comes from."""

    name: str
    kind: Kind
    query: Query
    span: Span | None

    def described(self) -> BindError:
        """The kind of the column, as a part of an error."""
        error = BindError(f"column '{self.name}' is {article(self.kind)}", self.span, text=self.query.text)
        return error.of_query(self.query.name)


def refuse_clashing_columns(plans: Sequence[Plan], hint: str | None = None) -> None:
    """Refuse queries whose rows do not fit one table, by names and places of all of them."""
    named: dict[str, list[OutputColumn]] = {}
    for plan in plans:
        for column in columns_of(plan):
            if column.kind is not Kind.NULL:
                named.setdefault(column.name, []).append(column)
    clashing = [some for some in named.values() if len({column.kind for column in some}) > 1]
    if clashing:
        parts = [column.described() for some in clashing for column in some]
        names = ", ".join(f"'{some[0].name}'" for some in clashing)
        raise BindError(
            f"the queries cannot share one table of results: {names} {'is' if len(clashing) == 1 else 'are'} of "
            "different kinds",
            parts[0].span,
            hint=hint or f"{_way_out(clashing)}, or choose one query with {option('query')}",
            text=parts[0].text,
            parts=parts,
        )


def _way_out(clashing: list[list[OutputColumn]]) -> str:
    if all(some[0].name == SCORE for some in clashing):
        return "make all scores numbers with a point, e.g. RANK BY 1.0 * (...)"
    return "rename columns that differ with AS"


def columns_of(plan: Plan) -> Iterator[OutputColumn]:
    """The columns that can be called like those of another query, and be something else there."""
    query = plan.query
    given = plan.group_by if isinstance(plan.output, Aggregation) else plan.partition
    for name in given:
        place = query.clause("GROUP BY") if name in plan.group_by else query.clause("WHERE")
        yield OutputColumn(name, plan.schema.kind(name) or Kind.OTHER, query, place)
    if plan.ranking is not None:
        yield OutputColumn(SCORE, plan.ranking.kind, query, query.clause("RANK BY"))
    if isinstance(plan.output, Trends):
        if plan.output is Trends.COLLAPSED:
            yield OutputColumn(MATCHES, Kind.INT, query, query.clause("RETURN"))
        return
    assert not isinstance(query.returns, Trends)
    places = {item.alias or write_expression(item.expression): item.span for item in query.returns}
    for value in plan.output.values:
        yield OutputColumn(value.name, value.kind, query, places.get(value.name))
