"""A query over a batch DataFrame: project and filter → bring together what belongs together → one call per task.

On the general path the events of a key move to one task, which sorts them once and runs the same kernels as the local
engine. Where the query allows it, less moves (`reduce`) or more tasks share a key (`time_cut`); see `paths`.
Aggregates whose groups are coarser than the partition are added up by a second, small shuffle. So are the best of all
partitions ranked together: tasks give the best of their keys, which meet by window, or in one task without windows.
Cost: one shuffle of the events; of the second stage: partial aggregates, or the best rows of each window and task with
their events.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

import pyarrow as pa

from trendloom.engines.spark import paths
from trendloom.engines.spark.plan_steps import Path, obstacle
from trendloom.engines.spark.session import set_arrow_rows
from trendloom.engines.spark.tasks import Batches, Job, Partial, by_key, gathered, mapped, needed, stream_of
from trendloom.engines.spark.time_cut import Segments, cut_ranks, regular_segments, segments_of, spread_by_segment
from trendloom.kernels.contract.aggregates import Measure
from trendloom.kernels.contract.matches import Matches
from trendloom.logical.plan import Plan
from trendloom.model.schema import Kind
from trendloom.planner.measures import measures_of
from trendloom.runtime import task
from trendloom.runtime.aggregates import EXPONENT, WINDOW, finish_aggregates, merge_partials
from trendloom.runtime.blocks import Stream
from trendloom.runtime.limits import with_memory
from trendloom.runtime.match_rows import Arranged
from trendloom.runtime.result_builder import BOUND, bound_events, bound_type, merge_ranked
from trendloom.runtime.result_columns import EXACT_ON_SPARK, aggregate_schema, row_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIRST, LAST = "_first_instant", "_last_instant"
"""Where rows are sorted later: they are ordered by these within a partition, which one task sees whole."""
WINDOW_START = "window_start"


def run(
    df: DataFrame,
    job: Job,
    *,
    partitions: int | None = None,
    path: Path | None = None,
    files: tuple[FilePath, ...] = (),
) -> DataFrame:
    """The rows of a query over a DataFrame.

    `path` None chooses the path, which may take a look at the data (a small job) before this returns; the general path
    and rows per match without ranks never do. `files`: where the DataFrame comes from, if that is Parquet.
    """
    set_arrow_rows(df.sparkSession)
    if job.physical.aggregates:
        moved, measured = paths.spread(df, job, partitions, path, files)
        body = partial(_aggregates, measured, job)
    else:
        paths.refuse(job.physical, path)
        rows = needed(df, job.plan)
        segments = _segments(rows, job, path)
        if segments is None:
            moved, body = by_key(rows, job.plan.keys, partitions), partial(_matches, job)
        else:
            moved, body = spread_by_segment(rows, job, segments, partitions), partial(cut_ranks, segments, job)
    if not job.in_parts:
        return mapped(moved, body, rows_schema(job))
    parts = mapped(moved, body, parts_schema(job))
    window, groups = (WINDOW, job.plan.group_by) if job.physical.aggregates else (WINDOW_START, ())
    keys = (window, *groups) if job.plan.window.sliding else groups
    return mapped(by_key(parts, keys, partitions), partial(_joined, job), rows_schema(job))


def rows_schema(job: Job) -> pa.Schema:
    """The columns of rows as they leave the tasks."""
    if job.physical.aggregates:
        return aggregate_schema(job.plan, job.schema, job.numeric)
    schema = row_schema(job.physical, job.schema)
    if job.order and job.plan.ranking is None:
        schema = schema.append(pa.field(FIRST, pa.int64())).append(pa.field(LAST, pa.int64()))
    return schema


def parts_schema(job: Job) -> pa.Schema:
    """The columns of parts of results, which meet in another task: partial aggregates, or rows with their events."""
    plan = job.plan
    if not job.physical.aggregates:
        return row_schema(job.physical, job.schema).append(pa.field(BOUND, bound_type(job.schema)))
    fields = [pa.field(name, job.schema.field(name).type) for name in plan.group_by]
    if plan.window.sliding:
        fields.append(pa.field(WINDOW, pa.int64()))
    for measure in measures_of(plan):
        kind = _measure_type(measure, plan, job.schema)
        linear = measure.function in ("matches", "count", "sum")
        scaled = job.physical.kernel.adds_up and linear and (job.numeric != "exact" or kind != pa.string())
        if scaled or plan.schema.imprecise:
            fields += [pa.field(measure.name, pa.float64()), pa.field(measure.name + EXPONENT, pa.int64())]
        else:
            fields.append(pa.field(measure.name, kind))
    return pa.schema(fields)


def _measure_type(measure: Measure, plan: Plan, schema: pa.Schema) -> pa.DataType:
    function, name, kind = measure.function, measure.column, measure.kind
    if function in ("matches", "count"):
        return pa.string()
    of = plan.schema.kind(name) if name is not None and name != plan.schema.time else Kind.INT
    if function == "sum":
        return pa.float64() if of is Kind.FLOAT else pa.string()
    if name is not None and pa.types.is_decimal(schema.field(name).type):
        return schema.field(name).type if of is Kind.DECIMAL else EXACT_ON_SPARK
    known = {Kind.FLOAT: pa.float64(), Kind.STRING: pa.string(), Kind.BOOL: pa.bool_(), Kind.NULL: pa.null()}
    return known.get(of or kind, pa.int64())


def _segments(rows: DataFrame, job: Job, path: Path | None) -> Segments | None:
    """How time is cut for ranked matches; None: not at all. The events are counted first unless `path` is `GENERAL`."""
    plan = job.plan
    if plan.ranking is None or obstacle(job.physical, Path.CUT) is not None or (plan.keys and path is not Path.CUT):
        return None
    wanted = paths.SEGMENTS_PER_CORE * paths.cores(rows.sparkSession)
    if path is Path.GENERAL:
        return regular_segments(plan.window, wanted)
    known = paths.counted(rows, plan)
    if known.first is None or known.last is None:
        return None
    return segments_of(plan.window, known.first, known.last, wanted)


# ------------------------------------------------------------------------------------------ inside a task


def _aggregates(measured: Partial, job: Job, batches: Batches) -> Batches:
    return aggregates_of(job, measured(job, batches))


def _matches(job: Job, batches: Batches) -> Batches:
    stream = stream_of(job, batches, job.tied)
    if stream is not None:
        yield from rows_of(job, stream)


def _joined(job: Job, batches: Batches) -> Batches:
    parts = gathered(batches)
    if parts is not None:
        yield from joined(job, [parts])


def aggregates_of(job: Job, found: pa.Table | None) -> Batches:
    """Partial aggregates as result rows; as they are where other tasks have parts of the same groups."""
    if found is None:
        return
    if job.adds_up:
        schema = parts_schema(job)
        yield from found.select(schema.names).cast(schema).to_batches()
    else:
        yield from _finished(job, found)


def rows_of(job: Job, stream: Stream) -> Batches:
    """Rows per match of some events; with the events of each match where other tasks have candidates for its rank."""
    shown = task.show(with_memory(job.physical, os.cpu_count() or 1), stream)
    if job.in_parts:
        yield from task.rows(shown, limit=job.limit, more=_bound)
    else:
        more = _ends if job.order and job.plan.ranking is None else None
        yield from job.counted(task.rows(shown, limit=job.limit, more=more, ordered=False))


def joined(job: Job, parts: Sequence[pa.Table]) -> Batches:
    """The result rows of groups or windows of which these are all parts."""
    if job.adds_up:
        yield from _finished(job, merge_partials(job.plan, parts))
    else:
        yield from job.counted(merge_ranked(job.physical, pa.concat_tables(parts)).to_batches())


def _finished(job: Job, whole: pa.Table) -> Batches:
    """Result rows of aggregates of whole groups."""
    result = finish_aggregates(job.plan, job.schema, whole, job.numeric, spark=True)
    yield from result.cast(aggregate_schema(job.plan, job.schema, job.numeric)).to_batches()


def _bound(shown: Arranged, matches: Matches) -> Mapping[str, pa.Array]:
    return {BOUND: bound_events(shown, matches)}


def _ends(shown: Arranged, matches: Matches) -> Mapping[str, pa.Array]:
    """The instants of the first and last event, by which rows are sorted later; of imprecise ones their bounds."""
    sorts = [matches.columns[column.name] for column in shown.physical.kernel.columns if column.sorts]
    if sorts:
        return {FIRST: pa.array(sorts[0]), LAST: pa.array(sorts[-1])}
    instants = (pa.array(shown.block.instant[events]) for events in (matches.first, matches.last))
    return dict(zip((FIRST, LAST), instants, strict=True))
