"""The local engine: one process, no Java, all keys of the stream in one columnar call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from threading import Event

import pyarrow as pa

from trendloom.expr.arrays import Array
from trendloom.io.events import Events
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import Keys
from trendloom.kernels.contract.totals import Totals, Widening
from trendloom.logical.plan import Plan
from trendloom.planner.plan import Physical
from trendloom.runtime import task
from trendloom.runtime.aggregate_rows import finish_aggregates
from trendloom.runtime.blocks import Shared, Stream
from trendloom.runtime.equal_times import Tied
from trendloom.runtime.limits import warning_of_digits, with_memory
from trendloom.runtime.result_builder import Progress
from trendloom.runtime.result_columns import aggregate_schema, empty_batch

Together = Callable[[int], tuple[Block, Keys, Totals] | None]
"""The totals of a query that is answered together with others, by so many threads; None: it is answered alone."""


def run(
    physical: Physical,
    events: Events,
    *,
    numeric: str = "exact",
    limit: int | None = None,
    progress: Progress | None = None,
    unsorted: Callable[[], None] | None = None,
    foreseen: Callable[[str], None] | None = None,
    tied: Tied | None = None,
    beforehand: Callable[[str], None] | None = None,
    threads: int | None = None,
    shared: Shared | None = None,
    together: Together | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of one query, in batches; at least one batch, so that columns are known where there is no row.

    `beforehand` receives a warning of exact numbers that take long, before they are computed. `threads`: all cores, if
    not given. `shared`: what other queries over these events have made already; `together`: gives the results, where
    they are found with those of other queries.
    """

    told_of_digits = Event()

    def hear(found: object) -> None:
        warning = warning_of_digits(found) if isinstance(found, Widening) else None
        if warning is not None and beforehand is not None and not told_of_digits.is_set():
            told_of_digits.set()
            beforehand(warning)

    cores = threads or os.cpu_count() or 1
    plan, physical = physical.plan, with_memory(physical)
    stream = stream_of(physical, events, tied, shared, cores)
    table = stream.table
    if physical.aggregates:
        found = None if together is None else together(cores)
        if found is not None:
            merged = task.partial_of(physical, stream, *found)
        else:
            merged = task.partial(physical, stream, numeric=numeric, progress=progress, hear=hear, threads=cores)
        schema = aggregate_schema(plan, table.schema, numeric, pa.int64())
        if merged is None:
            yield empty_batch(schema)
            return
        result = finish_aggregates(plan, table.schema, merged, numeric, spark=False)
        yield from result.slice(0, limit).combine_chunks().to_batches() or [empty_batch(result.schema)]
        return
    told = None if foreseen is None else lambda expected: foreseen(str(expected))
    shown = task.show(physical, stream)
    yield from task.rows(
        shown, limit=limit, progress=progress, unsorted=unsorted, foreseen=told, exact=None, threads=cores
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
