"""Bind queries to the columns of a stream and plan them together: the one way from queries to what runs."""

from __future__ import annotations

from trendloom.lang.tree import Query
from trendloom.model.schema import Schema
from trendloom.physical.limits import NO_LIMITS, Limits
from trendloom.physical.plan import Physical
from trendloom.physical.workload import PhysicalWorkload, plan_workload
from trendloom.plan.bind import bind
from trendloom.plan.statistics import StatisticsOf, nothing_known


def planned(
    queries: tuple[Query, ...], schema: Schema, limits: Limits = NO_LIMITS, statistics: StatisticsOf = nothing_known
) -> PhysicalWorkload:
    """The queries as a workload; raises `QueryError` for the first that cannot run over such events."""
    return plan_workload(tuple(bind(query, schema) for query in queries), limits, statistics)


def planned_alone(query: Query, schema: Schema, limits: Limits = NO_LIMITS) -> Physical:
    """One query."""
    return planned((query,), schema, limits).queries[0]
