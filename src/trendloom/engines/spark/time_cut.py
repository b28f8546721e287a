"""One hot key on all cores: time is cut into segments at starts of windows, and each segment is a task of its own.

A segment owns the windows that start in it, and receives every event of those. A segment is at least as long as a
window, so an event is in two segments at most, and every window leaves one task.
Cost: events near a cut are shuffled and added up twice.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from trendloom.engines.spark.columns import column, moment_of
from trendloom.engines.spark.tasks import Batches, Job, key_columns, keyed_by, stream_of
from trendloom.expr.arrays import Array
from trendloom.kernels.columns.keys import Keys, encode_keys
from trendloom.kernels.contract.aggregates import Totals
from trendloom.kernels.contract.matches import Matches
from trendloom.model.time import TimeAxis, Window
from trendloom.runtime import task
from trendloom.runtime.blocks import Stream, build_block
from trendloom.runtime.limits import with_memory
from trendloom.runtime.match_rows import Arranged

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


SEGMENT = " segment"
WINDOWS_LONG = 8
"""Windows in a segment where the times of the events are not known: one event in so many is repeated."""


@dataclass(frozen=True)
class Segments:
    """Segment j owns `width` windows, from number `first + j · width` on (window k starts at k · slide).

    `count`: how many there are, or into how many tasks they go where that is not known.
    """

    first: int
    width: int
    count: int

    def owner(self, start: Array, window: Window) -> Array:
        """The segment that owns windows by their start."""
        assert window.slide is not None
        return np.asarray((start // window.slide - self.first) // self.width)


def segments_of(window: Window, first: int, last: int, wanted: int) -> Segments:
    """About `wanted` segments for events with times from `first` to `last`, none shorter than a window."""
    assert window.within is not None
    assert window.slide is not None
    begin, end = (first - window.within) // window.slide + 1, last // window.slide
    windows = max(end - begin + 1, 1)
    width = max(-(-windows // wanted), -(-window.within // window.slide))
    return Segments(begin, width, -(-windows // width))


def regular_segments(window: Window, tasks: int) -> Segments:
    """Segments for events with unknown times, long enough to repeat few events; `tasks` of them at a time."""
    assert window.within is not None
    assert window.slide is not None
    return Segments(0, WINDOWS_LONG * -(-window.within // window.slide), tasks)


def spread_by_segment(df: DataFrame, job: Job, segments: Segments, partitions: int | None) -> DataFrame:
    """Every event once for each segment that needs it; those of one key and segment in one task."""
    plan = job.plan
    bounds = _segment_bounds(_ticks(df, plan.schema.time, plan.schema.axis), plan.window, segments)
    low, high = (F.coalesce(bound, F.lit(0)) for bound in bounds)  # an event without a time is for a task to refuse
    names = df.columns
    wide = df.select("*", low.alias(" low"), high.alias(" high")).filter(column(" low") <= column(" high"))
    parts = wide.select(*map(column, names), F.explode(F.sequence(column(" low"), column(" high"))).alias(SEGMENT))
    # Segments of one key go to tasks one after the other: hashing few segments would leave some tasks without any.
    place = column(SEGMENT)
    if plan.keys:
        place = place + F.hash(*key_columns(parts, plan.keys)).cast("bigint")
    tasks = partitions or segments.count
    return parts.repartitionById(tasks, F.pmod(place, F.lit(tasks)).cast("int"))


def _ticks(df: DataFrame, name: str, axis: TimeAxis) -> Column:
    """The time column as whole ticks."""
    time = column(name)
    if not axis.timestamp:
        return time.cast("bigint")
    if df.schema[name].dataType.typeName() == "timestamp":
        return F.unix_micros(time)
    return F.unix_micros(moment_of(time))


def _segment_bounds(ticks: Column, window: Window, segments: Segments) -> tuple[Column, Column]:
    """The first and last segment that has a window with a tick in it; first > last: no window has."""

    def floored(numbers: Column, by: int | None) -> Column:
        return F.call_function("div", numbers - F.pmod(numbers, F.lit(by)), F.lit(by))

    def number(tick: Column) -> Column:
        """The last window that starts at a tick or before it."""
        return floored(tick, window.slide)

    def segment(windows: Column) -> Column:
        return floored(windows - F.lit(segments.first), segments.width)

    assert window.within is not None
    low, high = number(ticks - F.lit(window.within)) + 1, number(ticks)
    return segment(low), F.when(low <= high, segment(high)).otherwise(segment(low) - 1)


# ------------------------------------------------------------------------------------------ inside a task


def cut_aggregates(segments: Segments, job: Job, batches: Batches) -> pa.Table | None:
    """The partial table of the windows that the segments of a task own."""
    stream = stream_of(job, batches)
    if stream is None:
        return None

    def owned(stream: Stream, keys: Keys, totals: Totals) -> Totals:
        segment = stream.vector(SEGMENT).values[keys.rows[totals.key]]
        return totals.take(np.flatnonzero(segments.owner(totals.start, job.plan.window) == segment))

    return task.partial(keyed_by(job.physical, SEGMENT), stream, numeric=job.numeric, keep=owned)


def cut_ranks(segments: Segments, job: Job, batches: Batches) -> Batches:
    """The best of the windows that the segments of a task own."""
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
        return matches.take(np.flatnonzero(segments.owner(matches.window_start, job.plan.window) == mine))

    yield from job.counted(task.rows(shown, limit=job.limit, keep=owned))
