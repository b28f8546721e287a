"""A query over a batch DataFrame: project and filter → bring together what belongs together → one call per task.

On the general path the events of a key move to one task, which sorts them once and runs the same kernels as the local
engine. Where the query allows it, less moves (`reduce`, `direct`) or more tasks share a key (`cut`); see `paths`.
Aggregates whose groups are coarser than the partition are added up by a second, small shuffle.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

import pyarrow as pa

from trendloom.engines.spark import paths, ranked_windows
from trendloom.engines.spark.allowed_paths import Path
from trendloom.engines.spark.session import set_arrow_rows
from trendloom.engines.spark.tasks import (
    Batches,
    Job,
    Partial,
    Task,
    as_partials,
    by_key,
    finished,
    mapped,
    merged,
    needed,
    partial_schema,
    stream_of,
)
from trendloom.kernels.contract.matches import Matches
from trendloom.runtime import task
from trendloom.runtime.aggregates import WINDOW
from trendloom.runtime.blocks import Stream
from trendloom.runtime.limits import with_memory
from trendloom.runtime.match_rows import Arranged
from trendloom.runtime.result_columns import aggregate_schema, row_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIRST, LAST = "_first_instant", "_last_instant"
"""Where rows are sorted later: they are ordered by these within a partition, which one task sees whole."""


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
    plan, physical = job.plan, job.physical
    set_arrow_rows(df.sparkSession)
    if plan.ranking is not None:
        return ranked_windows.run(df, job, partitions, path)
    if not physical.aggregates:
        paths.refuse(physical, path)
        moved = by_key(needed(df, plan), plan.keys, partitions)
        return mapped(moved, Task(job, _rows), rows_schema(job))
    moved, partial = paths.spread(df, job, partitions, path, files)
    final = rows_schema(job)
    if not job.adds_up:
        return mapped(moved, Task(job, _WholeGroups(partial)), final)
    found = mapped(moved, Task(job, _Partials(partial)), partial_schema(job))
    keys = [name for name in (WINDOW, *plan.group_by) if name != WINDOW or plan.window.sliding]
    return mapped(by_key(found, tuple(keys), partitions), Task(job, merged), final)


def rows_schema(job: Job) -> pa.Schema:
    """The columns of rows as they leave the tasks."""
    if job.physical.aggregates:
        return aggregate_schema(job.plan, job.schema, job.numeric)
    schema = row_schema(job.physical, job.schema)
    if job.order and job.plan.ranking is None:
        schema = schema.append(pa.field(FIRST, pa.int64())).append(pa.field(LAST, pa.int64()))
    return schema


# ------------------------------------------------------------------------------------------ inside a task


def _rows(job: Job, batches: Batches) -> Batches:
    stream = stream_of(job, batches, job.tied)
    if stream is not None:
        yield from rows_of(job, stream)


def rows_of(job: Job, stream: Stream) -> Batches:
    """Rows per match of the events that a task sees."""
    shown = task.show(with_memory(job.physical, os.cpu_count() or 1), stream)
    yield from job.counted(task.rows(shown, limit=job.limit, more=_ends if job.order else None, ordered=False))


def _ends(shown: Arranged, matches: Matches) -> Mapping[str, pa.Array]:
    """The instants of the first and last event, by which rows are sorted later; of imprecise ones their bounds."""
    sorts = [matches.columns[column.name] for column in shown.physical.kernel.columns if column.sorts]
    if sorts:
        return {FIRST: pa.array(sorts[0]), LAST: pa.array(sorts[-1])}
    instants = (pa.array(shown.block.instant[events]) for events in (matches.first, matches.last))
    return dict(zip((FIRST, LAST), instants, strict=True))


@dataclass(frozen=True)
class _WholeGroups:
    """A task that sees all there is of its groups: it finishes them."""

    partial: Partial

    def __call__(self, job: Job, batches: Batches) -> Batches:
        return finished(job, self.partial(job, batches))


@dataclass(frozen=True)
class _Partials:
    """A task that sees a part of its groups: others add up what it finds."""

    partial: Partial

    def __call__(self, job: Job, batches: Batches) -> Batches:
        return as_partials(job, self.partial(job, batches))
