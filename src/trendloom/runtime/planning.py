"""From bound queries to executable plans, in one direction: query rules, workload rules, then algorithms."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from trendloom.errors import QueryError
from trendloom.frontend.tree import Query
from trendloom.logical.bind import bind, too_deep
from trendloom.logical.bind.workload import for_every_query
from trendloom.logical.plan import Plan, Workload
from trendloom.logical.statistics import UNKNOWN, Statistics, StatisticsOf, nothing_known
from trendloom.model.amounts import NO_LIMITS, Limits
from trendloom.model.schema import Schema
from trendloom.optimizer import CostedRule, Rule, optimize, optimize_workload
from trendloom.planner.plan import Physical, choose
from trendloom.planner.request import Algorithm
from trendloom.planner.workload import PhysicalWorkload, plan_workload


def plan_query(
    plan: Plan,
    limits: Limits = NO_LIMITS,
    algorithms: tuple[Algorithm, ...] | None = None,
    statistics: Statistics = UNKNOWN,
    without: Collection[Rule | CostedRule] = (),
) -> Physical:
    """Optimize a bound query, but for the rules it is to do `without`, and choose its algorithm."""
    try:
        return choose(optimize(plan, statistics, without), limits, algorithms, statistics)
    except RecursionError:
        raise too_deep(plan.query) from None


def plan_queries(
    plans: tuple[Plan, ...], limits: Limits = NO_LIMITS, statistics: StatisticsOf = nothing_known
) -> PhysicalWorkload:
    """Optimize bound queries, each by itself and then together, and choose their algorithms."""
    plan = plans[0] if plans else None
    try:
        optimized = []
        for plan in plans:
            optimized.append(optimize(plan, statistics(plan)))
        return plan_workload(plans, optimize_workload(Workload(tuple(optimized))), limits, statistics)
    except RecursionError:
        assert plan is not None
        raise too_deep(plan.query) from None


def planned(
    queries: tuple[Query, ...], schema: Schema, limits: Limits = NO_LIMITS, statistics: StatisticsOf = nothing_known
) -> PhysicalWorkload:
    """The queries as a workload; raises `QueryError` that names all that cannot run over such events."""
    return planned_together(bound(queries, schema, limits), limits, statistics)


def bound(queries: Sequence[Query], schema: Schema, limits: Limits = NO_LIMITS) -> list[Plan]:
    """The queries bound; an error also names those that could not be planned."""
    try:
        return [bind(query, schema) for query in queries]
    except QueryError:
        for_every_query(queries, lambda query: plan_query(bind(query, schema), limits))
        raise


def planned_together(
    plans: Sequence[Plan], limits: Limits = NO_LIMITS, statistics: StatisticsOf = nothing_known
) -> PhysicalWorkload:
    """Bound queries as a workload; raises `QueryError` that names all that cannot run."""
    try:
        return plan_queries(tuple(plans), limits, statistics)
    except QueryError:
        for_every_query(plans, lambda plan: plan_query(plan, limits))
        raise


def planned_alone(query: Query, schema: Schema, limits: Limits = NO_LIMITS) -> Physical:
    """One query."""
    return planned((query,), schema, limits).queries[0]
