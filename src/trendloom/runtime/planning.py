"""Bind queries to the columns of a stream and plan them together: the one way from queries to what runs."""

from __future__ import annotations

from collections.abc import Sequence

from trendloom.errors import QueryError
from trendloom.frontend.tql.tree import Query
from trendloom.logical.bind import bind
from trendloom.logical.plan import Plan
from trendloom.logical.statistics import StatisticsOf, nothing_known
from trendloom.logical.workload import for_every_query
from trendloom.model.schema import Schema
from trendloom.planner.limits import NO_LIMITS, Limits
from trendloom.planner.plan import Physical, plan_physically
from trendloom.planner.workload import PhysicalWorkload, plan_workload


def planned(
    queries: tuple[Query, ...], schema: Schema, limits: Limits = NO_LIMITS, statistics: StatisticsOf = nothing_known
) -> PhysicalWorkload:
    """The queries as a workload; raises `QueryError` that names all that cannot run over such events."""
    try:
        return plan_workload(tuple(bind(query, schema) for query in queries), limits, statistics)
    except QueryError:
        _refuse(queries, schema, limits)
        raise


def bound(queries: Sequence[Query], schema: Schema, limits: Limits = NO_LIMITS) -> list[Plan]:
    """The queries bound; an error also names those that could not be planned."""
    try:
        return [bind(query, schema) for query in queries]
    except QueryError:
        _refuse(queries, schema, limits)
        raise


def _refuse(queries: Sequence[Query], schema: Schema, limits: Limits) -> None:
    """Raise an error that names all queries that cannot run."""
    for_every_query(queries, lambda query: plan_physically(bind(query, schema), limits))


def planned_together(plans: Sequence[Plan], limits: Limits = NO_LIMITS) -> PhysicalWorkload:
    """The same for queries that are bound already."""
    try:
        return plan_workload(tuple(plans), limits)
    except QueryError:
        for_every_query(plans, lambda plan: plan_physically(plan, limits))
        raise


def planned_alone(query: Query, schema: Schema, limits: Limits = NO_LIMITS) -> Physical:
    """One query."""
    return planned((query,), schema, limits).queries[0]
