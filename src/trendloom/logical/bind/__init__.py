"""Bind a query to a schema: from the tree of a front end to a logical plan, or to an error with its place.

What each file of this folder resolves, in order; how deep a query may be nested is checked here, first of all:

    query           the clauses: types, partition, conditions, window, output; then warnings
    patterns        positions, NOT scopes and variables of the pattern; which variable may be used where
    expressions     the kind of every node; `types` has the kinds that go together
    ranking         RANK BY, with scores in the form that kernels need
    imprecise_time  restrictions of imprecise time
    workload        several queries: one error for all, and columns that fit one table
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trendloom.errors import BindError, QueryError
from trendloom.frontend import tree
from trendloom.frontend.tree import Query
from trendloom.logical.bind.query import QueryBinding
from trendloom.logical.bind.workload import for_every_query
from trendloom.logical.plan import Plan
from trendloom.model.schema import Schema

MOST_NESTED = 100
"""Depth of nesting: all that walks over patterns and expressions is recursive, and Python's stack bounds it."""

_OF_A_PATTERN = 2.0
_OF_A_TERM = 0.4  # `a + b + c + ...` is nested too, without parentheses
_PATTERNS = tree.Seq | tree.Repeat | tree.Not | tree.Or | tree.And | tree.Exists | tree.OperandWithin


def bind(query: Query, schema: Schema) -> Plan:
    """The logical plan of a query over streams of this schema."""
    try:
        check_depth(query)
        return QueryBinding(query, schema).plan()
    except QueryError as error:
        if error.text is None:
            error.text = query.text
        raise
    except RecursionError:
        raise too_deep(query) from None


def bind_workload(queries: Sequence[Query], schema: Schema) -> list[Plan]:
    """The plans of a workload; an error names every query that is wrong."""
    return for_every_query(queries, lambda query: bind(query, schema))


def check_depth(query: tree.Query) -> None:
    """Refuse patterns and expressions that are nested too deeply. Looks at every node once, without recursion."""
    stack: list[tuple[tree.Node, float]] = [(query, 0.0)]
    while stack:
        node, depth = stack.pop()
        if depth > MOST_NESTED:
            raise too_deep(query)
        stack.extend((part, depth + _weight(part)) for part in _parts(node))


def too_deep(query: tree.Query) -> BindError:
    return BindError(
        "the query is nested too deeply",
        query.clause("PATTERN"),
        hint="use fewer brackets and NOTs inside each other, and + instead of a large {n,m}",
        text=query.text,
    )


def _weight(node: tree.Node) -> float:
    if isinstance(node, tree.Binary):
        return _OF_A_TERM
    return _OF_A_PATTERN if isinstance(node, _PATTERNS) else 1


def _parts(node: tree.Node) -> Iterator[tree.Node]:
    for value in vars(node).values():
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, tree.Node):
                yield part
