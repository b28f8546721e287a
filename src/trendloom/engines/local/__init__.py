"""The local engine: one process, no Java, all keys of the stream in one columnar call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from trendloom.expr.arrays import Array
from trendloom.io.events import Events
from trendloom.kernels.contract.aggregates import Widening
from trendloom.logical.plan import Plan
from trendloom.planner.plan import Physical
from trendloom.planner.query_group import QueryGroup, group_of_one
from trendloom.runtime import task
from trendloom.runtime.aggregates import finish_aggregates
from trendloom.runtime.blocks import Shared, Stream
from trendloom.runtime.limits import warning_of_digits, with_memory
from trendloom.runtime.result_builder import Progress
from trendloom.runtime.result_columns import aggregate_schema, empty_batch
from trendloom.runtime.task import GroupResults
from trendloom.runtime.warnings import Tied


def run(
    physical: Physical,
    events: Events,
    *,
    numeric: str = "exact",
    limit: int | None = None,
    progress: Progress | None = None,
    foreseen: Callable[[str], None] | None = None,
    beforehand: Callable[[str], None] | None = None,
    threads: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a single query, in batches; see `rows`. `threads`: all cores, if not given."""
    cores = threads or os.cpu_count() or 1
    group = group_of_one(physical).in_numbers(numeric)
    results = results_of(group, lambda: stream_of_columns(group.scanned, group.plan, events, threads=cores), beforehand)
    return rows(results, 0, numeric=numeric, limit=limit, progress=progress, foreseen=foreseen)


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
    progress: Progress | None = None,
    unsorted: Callable[[], None] | None = None,
    foreseen: Callable[[str], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a query of a group; at least one batch, so that columns are known where there is no row."""
    physical = results.group.queries[query]
    if physical.aggregates:
        plan, schema = physical.plan, results.stream.table.schema
        merged = results.partial(query, progress=progress)
        if merged is None:
            yield empty_batch(aggregate_schema(plan, schema, numeric, pa.int64()))
            return
        result = finish_aggregates(plan, schema, merged, numeric, spark=False)
        yield from result.slice(0, limit).combine_chunks().to_batches() or [empty_batch(result.schema)]
        return
    expected = None if foreseen is None else lambda number: foreseen(str(number))
    yield from task.rows(
        results.arranged(query), limit=limit, exact=None, callbacks=task.RowCallbacks(progress, expected, unsorted)
    )


def stream_of(
    physical: Physical, events: Events, tied: Tied | None = None, shared: Shared | None = None, threads: int = 1
) -> Stream:
    """The events with the columns that the query reads."""
    return stream_of_columns(physical.plan.scan.columns, physical.plan, events, tied, shared, threads)


def stream_of_columns(
    columns: Sequence[str], plan: Plan, events: Events, tied: Tied | None = None, shared: Shared | None = None,
    threads: int = 1,
) -> Stream:  # fmt: skip
    """The events with some columns; the plan is that of any query over them."""
    table = events.table.select(list(columns))
    kinds = {column.name: column.kind for column in plan.schema.columns}
    shared = Shared() if shared is None else shared
    shared.vectors[plan.schema.type] = events.types
    return Stream(table, kinds, ticks_of(events), shared.vectors, tied, shared, threads, events.intervals)


def ticks_of(events: Events) -> Array:
    """The times of events; where these are imprecise, the earliest."""
    if events.ticks is not None:
        return events.ticks
    assert events.intervals is not None
    return events.intervals.low
