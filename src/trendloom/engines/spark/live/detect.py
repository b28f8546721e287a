"""Queries over the caller's own streaming DataFrame: bound, planned and checked at once, run when the stream starts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from trendloom.engines.live.bundles import alone, bundles_of, names_together
from trendloom.engines.live.flow import flow_of
from trendloom.engines.looking.statistics.from_batches import Figures, figures_at, statistics_of_batches
from trendloom.engines.options import Options
from trendloom.engines.planning import planned
from trendloom.engines.spark.frames import Frame, describe
from trendloom.engines.spark.live.files import MARKS
from trendloom.engines.spark.live.manifest import agreed, travel_together
from trendloom.engines.spark.live.setting import Setting, absolute
from trendloom.engines.spark.live.stream import run
from trendloom.engines.telling import tell_warnings, warn_in_python
from trendloom.lang.tree import Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def detect_live(
    df: DataFrame,
    queries: tuple[Query, ...],
    options: Options,
    *,
    watermark: str | None,
    buckets: int,
    late_to: str | None,
    checkpoint: str | None,
    early: bool,
) -> DataFrame:
    """The rows of a workload over a streaming DataFrame; see `trendloom.spark.detect`."""
    setting = Setting(watermark, buckets, None if late_to is None else absolute(late_to))
    frame = without_marks(describe(df, options.columns()))
    earlier = Figures() if checkpoint is None else figures_at(absolute(checkpoint))
    workload = planned(queries, frame.schema, options.limits, lambda plan: statistics_of_batches(plan, earlier))
    tell_warnings(frame.warnings, workload.bound, warn_in_python)
    flows = tuple(flow_of(one, frame.arrow, options.numeric, early=early) for one in workload.queries)
    if checkpoint is None:
        return run(frame.df, alone(flows), frame.schema, setting, names_together(flows))
    flows = agreed(absolute(checkpoint), flows, buckets)
    bundles = bundles_of(flows) if travel_together(absolute(checkpoint)) else alone(flows)
    return run(frame.df, bundles, frame.schema, setting)


def without_marks(frame: Frame) -> Frame:
    """The frame whose events are known without the columns that tell of what could not be read."""
    columns = tuple(one for one in frame.schema.columns if one.name not in MARKS)
    arrow = pa.schema([one for one in frame.arrow if one.name not in MARKS])
    return replace(frame, arrow=arrow, schema=replace(frame.schema, columns=columns))
