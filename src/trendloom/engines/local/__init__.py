"""The local engine: one process, no Java, all keys of the stream in one columnar call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pyarrow as pa

from trendloom.engines.answers import UNWATCHED, Watch
from trendloom.expr.arrays import Array
from trendloom.io.events import Events
from trendloom.kernels.contract.aggregates import Widening
from trendloom.planner.plan import Physical
from trendloom.planner.workload import QueryGroup, group_of_one
from trendloom.runtime import task
from trendloom.runtime.aggregates import finish_aggregates
from trendloom.runtime.blocks import Shared, Stream
from trendloom.runtime.limits import warning_of_digits, with_memory
from trendloom.runtime.result_columns import aggregate_schema, empty_batch
from trendloom.runtime.task import GroupResults
from trendloom.runtime.warnings import Tied


def run(
    physical: Physical, events: Events, *, numeric: str = "exact", limit: int | None = None, threads: int | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a single query, in batches; see `rows`. `threads`: all cores, if not given."""
    cores = threads or os.cpu_count() or 1
    group = group_of_one(physical).in_numbers(numeric)
    return rows(results_of(group, lambda: stream_of(group, events, threads=cores)), 0, numeric=numeric, limit=limit)


def results_of(
    group: QueryGroup, stream: Callable[[], Stream], beforehand: Callable[[str], None] | None = None
) -> GroupResults:
    """The results of a group, computed when they are read.

    `beforehand` receives a warning of exact numbers that take long, before they are computed, once for a query.
    """
    warned: set[int] = set()

    def on_progress(found: object) -> None:
        warning = warning_of_digits(found) if isinstance(found, Widening) else None
        if isinstance(found, Widening) and warning and beforehand is not None and found.query not in warned:
            warned.add(found.query)
            beforehand(warning)

    return GroupResults(with_memory(group), stream, on_progress=on_progress)


def rows(
    results: GroupResults,
    query: int,
    *,
    numeric: str = "exact",
    limit: int | None = None,
    watch: Watch = UNWATCHED,
) -> Iterator[pa.RecordBatch]:
    """The rows of a query of a group; at least one batch, so that columns are known where there is no row."""
    physical = results.group.queries[query]
    if physical.aggregates:
        plan, schema = physical.plan, results.stream.table.schema
        merged = results.partial(query, progress=watch.progress)
        if merged is None:
            yield empty_batch(aggregate_schema(plan, schema, numeric, pa.int64()))
            return
        result = finish_aggregates(plan, schema, merged, numeric, spark=False)
        yield from result.slice(0, limit).combine_chunks().to_batches() or [empty_batch(result.schema)]
        return
    foreseen = watch.foreseen
    expected = None if foreseen is None else lambda number: foreseen(str(number))
    yield from task.rows(
        results.arranged(query),
        limit=limit,
        exact=None,
        callbacks=task.RowCallbacks(watch.progress, expected, watch.unsorted),
    )


def stream_of(
    group: QueryGroup | Physical,
    events: Events,
    tied: Tied | None = None,
    shared: Shared | None = None,
    threads: int = 1,
) -> Stream:
    """The events with the columns that a query, or the queries of a group, read."""
    plan = group.plan
    table = events.table.select(list(group.scanned if isinstance(group, QueryGroup) else plan.scan.columns))
    kinds = {column.name: column.kind for column in plan.schema.columns}
    shared = Shared() if shared is None else shared
    shared.vectors[plan.schema.type] = events.types
    return Stream(table, kinds, _earliest(events), shared.vectors, tied, shared, threads, events.intervals)


def _earliest(events: Events) -> Array:
    """The times of events; where these are imprecise, the earliest."""
    if events.ticks is not None:
        return events.ticks
    assert events.intervals is not None
    return events.intervals.low
