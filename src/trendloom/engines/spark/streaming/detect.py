"""Queries over the caller's own streaming DataFrame: bound, planned and checked at once, run when the stream starts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from trendloom.engines.spark.frames import Frame, describe
from trendloom.engines.spark.precheck import flows_of
from trendloom.engines.spark.streaming.checkpoint import agreed, travel_together, watermark_after
from trendloom.engines.spark.streaming.settings import StreamSettings, absolute
from trendloom.engines.spark.streaming.sources import MARKS
from trendloom.engines.spark.streaming.stream import result_schema, run
from trendloom.errors import QueryNote
from trendloom.frontend.tree import Query
from trendloom.logical.bind.workload import refuse_clashing_columns
from trendloom.options import Options, StreamOptions
from trendloom.planner.workload import PhysicalWorkload
from trendloom.runtime.planning import planned
from trendloom.runtime.warnings import report_warnings, warn_in_python
from trendloom.streaming.partition_groups import alone, names_together, partition_groups_of
from trendloom.streaming.statistics import Figures, figures_at, statistics_of_batches
from trendloom.streaming.streaming_query import StreamingQuery
from trendloom.streaming.workload_diff import news_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def detect_live(df: DataFrame, queries: tuple[Query, ...], options: Options, stream: StreamOptions) -> DataFrame:
    """The rows of a workload over a streaming DataFrame; see `trendloom.spark.detect`."""
    late_to, checkpoint, early = stream.late_to, stream.checkpoint, stream.early
    setting = StreamSettings(stream.watermark, stream.buckets, None if late_to is None else absolute(late_to))
    place = None if checkpoint is None else absolute(checkpoint)
    plan = plan_live(df, queries, options, Figures() if place is None else figures_at(place), early=early)
    report_warnings(plan.frame.warnings, plan.workload.bound, warn_in_python)
    rows, news = open_live(plan, setting, place)
    for note in news:
        warn_in_python(note)
    return rows


@dataclass(frozen=True, eq=False)
class LivePlan:
    """A workload planned over a stream, before any checkpoint is asked. `figures`: what was known of the events."""

    frame: Frame
    workload: PhysicalWorkload
    streaming_queries: tuple[StreamingQuery, ...]
    figures: Figures


def plan_live(
    df: DataFrame,
    queries: tuple[Query, ...],
    options: Options,
    figures: Figures,
    *,
    early: bool = False,
    search: bool = False,
) -> LivePlan:
    """Bind and plan queries; what cannot be served live, or together, is refused, and nothing is touched.

    `search`: what the queries share is searched for until there is nothing better.
    """
    limits = replace(options.limits, sharing_steps=None) if search else options.limits
    frame = without_marks(describe(df, options.columns()))
    workload = planned(queries, frame.schema, limits, lambda plan: statistics_of_batches(plan, figures))
    refuse_clashing_columns(workload.bound)
    streaming_queries = flows_of(workload.queries, frame.arrow, options.numeric, early=early)
    grouped = {number for group in workload.shared_groups for number in group.members if not early}
    streaming_queries = tuple(
        replace(streaming_query, together=number in grouped) for number, streaming_query in enumerate(streaming_queries)
    )
    result_schema(streaming_queries)
    return LivePlan(frame, workload, streaming_queries, figures)


def open_live(
    plan: LivePlan, setting: StreamSettings, checkpoint: str | None
) -> tuple[DataFrame, tuple[QueryNote, ...]]:
    """The rows of a planned workload, noted down in its checkpoint, and what there is to say of its queries."""
    frame, streaming_queries = plan.frame, plan.streaming_queries
    if checkpoint is None:
        return run(frame.df, alone(streaming_queries), frame.schema, setting, names_together(streaming_queries)), ()
    streaming_queries = agreed(checkpoint, streaming_queries, setting.buckets, setting.delay)
    known = partial(statistics_of_batches, figures=plan.figures)
    partition_groups = (
        partition_groups_of(streaming_queries, known) if travel_together(checkpoint) else alone(streaming_queries)
    )
    reached = watermark_after(checkpoint)
    news = news_of(streaming_queries, None if reached is None else reached * 1000)
    return run(frame.df, partition_groups, frame.schema, setting), tuple(news)


def without_marks(frame: Frame) -> Frame:
    """The frame whose events are known without the columns about what could not be read."""
    columns = tuple(one for one in frame.schema.columns if one.name not in MARKS)
    arrow = pa.schema([one for one in frame.arrow if one.name not in MARKS])
    return replace(frame, arrow=arrow, schema=replace(frame.schema, columns=columns))
