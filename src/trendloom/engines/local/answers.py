"""Queries in this process: read once, planned together; columns, keys and sorted events are shared among them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext

import pyarrow as pa

from trendloom.engines import local
from trendloom.engines.answers import Answer, Watch
from trendloom.errors import QueryWarning
from trendloom.frontend.tree import Query
from trendloom.io.events import Events
from trendloom.kernels.jit.compiled import observe_compilations
from trendloom.logical.statistics import UNKNOWN, StatisticsOf
from trendloom.optimizer.nesting_costs import compared_values
from trendloom.optimizer.split_by_equality import split_by_equality
from trendloom.options import Options
from trendloom.planner.workload import QueryGroup
from trendloom.runtime.blocks import Shared
from trendloom.runtime.planning import planned
from trendloom.runtime.reading import load_needed
from trendloom.runtime.statistics import describe_passed_later, statistics_of_stream
from trendloom.runtime.task import GroupResults
from trendloom.runtime.warnings import Ties, warning_of_ties


def answers(
    queries: tuple[Query, ...], source: object, options: Options, watch: Watch
) -> tuple[Sequence[QueryWarning], list[Answer]]:
    """Warnings about the events, and the answers; rows are computed when they are read."""
    events = load_needed(queries, source, options)
    known = statistics_of_stream(events)
    workload = planned(queries, events.schema, options.limits, known if len(queries) > 1 else _if_compared(known))
    shared = Shared(workload.optimized.shared_attributes)
    rows: dict[int, Iterator[pa.RecordBatch]] = {}
    for group in workload.groups:
        results = _results(group.in_numbers(options.numeric), events, options, watch, shared)
        rows |= {number: _rows(results, query, options, watch) for query, number in enumerate(group.members)}
    return events.warnings, [
        Answer(one.plan, rows[number], describe_passed_later(plan, events))
        for number, (plan, one) in enumerate(zip(workload.bound, workload.queries, strict=True))
    ]


def _if_compared(known: StatisticsOf) -> StatisticsOf:
    """The same statistics, for queries whose plans depend on the values that they compare."""
    return lambda plan: known(plan) if compared_values(split_by_equality(plan)) else UNKNOWN


def _results(group: QueryGroup, events: Events, options: Options, watch: Watch, shared: Shared) -> GroupResults:
    """The results of a group, over the columns that its queries read."""

    def tied(ties: Ties) -> None:
        warning = warning_of_ties(group.plan, ties)
        if warning is not None:
            watch.warn(warning, group.name)

    threads = options.threads or os.cpu_count() or 1
    return local.results_of(group, lambda: local.stream_of(group, events, tied, shared, threads), watch.beforehand)


def _rows(results: GroupResults, query: int, options: Options, watch: Watch) -> Iterator[pa.RecordBatch]:
    with nullcontext() if watch.compiling is None else observe_compilations(watch.compiling):
        yield from local.rows(results, query, numeric=options.numeric, limit=options.limit, watch=watch)
