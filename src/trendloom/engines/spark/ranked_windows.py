"""Ranked matches on Spark: a task gives the best of what it sees; who sees parts of a window gives candidates for it.

- By key: the events of a key move to one task, which ranks them. Where all partitions are ranked together, tasks give
  the best of their keys, and a second small stage ranks these: by window, or in one task without windows.
- Without a key the windows are independent: time is cut at their starts (`cut`), and nothing has to be merged.
- With neither, one task sees all events.

Cost: one shuffle of the events; of the second stage: the wanted rows of each window and task, with their events.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from trendloom.engines.spark import paths
from trendloom.engines.spark.allowed_paths import Path, obstacle
from trendloom.engines.spark.tasks import Batches, Job, Task, by_key, mapped, needed, stream_of
from trendloom.engines.spark.time_cut import SEGMENT, Segments, regular_segments, segments_of, spread_by_segment
from trendloom.kernels.columns.keys import encode_keys
from trendloom.kernels.contract.matches import Matches
from trendloom.runtime import task
from trendloom.runtime.blocks import Stream, build_block
from trendloom.runtime.limits import with_memory
from trendloom.runtime.match_rows import Arranged
from trendloom.runtime.result_builder import BOUND, bound_events, bound_type, rank_together
from trendloom.runtime.result_columns import row_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WINDOW_START = "window_start"


def run(df: DataFrame, job: Job, partitions: int | None, path: Path | None) -> DataFrame:
    """The ranked rows of a query. The data are looked at beforehand only where the path is not given as `GENERAL`."""
    plan = job.plan
    paths.refuse(job.physical, path)
    rows = needed(df, plan)
    segments = _segments(rows, job, path)
    if segments is not None:
        moved = spread_by_segment(rows, job, segments, partitions)
        return mapped(moved, Task(job, CutRanks(segments)), ranked_schema(job))
    moved = by_key(rows, plan.keys, partitions)
    if not plan.ranks_across_keys:
        return mapped(moved, Task(job, _ranked), ranked_schema(job))
    found = mapped(moved, Task(job, _ranked), candidates_schema(job))
    together = by_key(found, (WINDOW_START,) if plan.window.sliding else (), partitions)
    return mapped(together, Task(job, _merged), ranked_schema(job))


def _segments(rows: DataFrame, job: Job, path: Path | None) -> Segments | None:
    """How time is cut; None: not at all."""
    plan = job.plan
    if obstacle(job.physical, Path.CUT) is not None or (plan.keys and path is not Path.CUT):
        return None
    wanted = paths.SEGMENTS_PER_CORE * paths.cores(rows)
    if path is Path.GENERAL:
        return regular_segments(plan.window, wanted)
    known = paths.counted(rows, plan)
    if known.first is None or known.last is None:
        return None
    return segments_of(plan.window, known.first, known.last, wanted)


def ranked_schema(job: Job) -> pa.Schema:
    """The columns of ranked rows."""
    return row_schema(job.physical, job.schema)


def candidates_schema(job: Job) -> pa.Schema:
    """The columns of rows that are to be ranked together with those of other tasks."""
    return ranked_schema(job).append(pa.field(BOUND, bound_type(job.schema)))


# ------------------------------------------------------------------------------------------ inside a task


def _ranked(job: Job, batches: Batches) -> Batches:
    stream = stream_of(job, batches, job.tied)
    if stream is not None:
        yield from ranks_of(job, stream)


def ranks_of(job: Job, stream: Stream) -> Batches:
    """The best of the events that a task sees; with their events where others have candidates, too."""
    shown = task.show(with_memory(job.physical, os.cpu_count() or 1), stream)
    if job.plan.ranks_across_keys:
        yield from task.rows(shown, limit=job.limit, more=_bound)
    else:
        yield from job.counted(task.rows(shown, limit=job.limit))


def _bound(shown: Arranged, matches: Matches) -> Mapping[str, pa.Array]:
    return {BOUND: bound_events(shown, matches)}


@dataclass(frozen=True)
class CutRanks:
    """The best of the windows that some segments own."""

    segments: Segments

    def __call__(self, job: Job, batches: Batches) -> Batches:
        stream = stream_of(job, batches)
        if stream is None:
            return
        segment = stream.vector(SEGMENT)
        stream = replace(stream, table=stream.table.drop_columns([SEGMENT]))
        keys = encode_keys([*map(stream.vector, job.plan.keys), segment])
        physical = with_memory(job.physical, os.cpu_count() or 1)
        shown = Arranged(physical, stream, *build_block(physical, stream, keys))

        def owned(matches: Matches) -> Matches:
            assert matches.window_start is not None
            mine = segment.values[shown.block.row[matches.first]]
            return matches.take(np.flatnonzero(self.segments.owner(matches.window_start, job.plan.window) == mine))

        yield from job.counted(task.rows(shown, limit=job.limit, keep=owned))


def _merged(job: Job, batches: Batches) -> Batches:
    """Candidates of all tasks, ranked together."""
    found = [batch for batch in batches if batch.num_rows]
    if found:
        yield from job.counted(ranked_rows(job, pa.Table.from_batches(found)))


def ranked_rows(job: Job, candidates: pa.Table) -> Batches:
    """The rows of candidates that are all there."""
    yield from rank_together(job.physical, candidates).to_batches()
