"""Bind a query to a schema: from the tree of a front end to a logical plan, or to an error with its place.

What each file of this folder resolves, in order:

    query           the clauses: types, partition, conditions, window, output
    patterns        positions, NOT scopes and variables of the pattern
    expressions     the kind of every node; `types` says which kinds go together
    scoping         which variable may be used where
    ranking         RANK BY; `preferences` puts scores in the form that kernels need
    imprecise_time  what does not go with imprecise time
    nesting_limit   how deep a query may be nested
    warnings        what is allowed but probably not meant
    workload        several queries: one error for all, and columns that fit one table
"""

from __future__ import annotations

from collections.abc import Sequence

from trendloom.errors import QueryError
from trendloom.frontend.tree import Query
from trendloom.logical.bind.nesting_limit import too_deep
from trendloom.logical.bind.query import QueryBinding
from trendloom.logical.bind.workload import for_every_query
from trendloom.logical.plan import Plan
from trendloom.model.schema import Schema


def bind(query: Query, schema: Schema) -> Plan:
    """The logical plan of a query over streams of this schema."""
    try:
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
