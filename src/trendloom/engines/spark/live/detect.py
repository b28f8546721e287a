"""Queries over the caller's own streaming DataFrame: bound, planned and checked at once, run when the stream starts."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

from trendloom.engines.live.flow import flow_of
from trendloom.engines.spark.frames import describe
from trendloom.engines.spark.live.manifest import check_manifest
from trendloom.engines.spark.live.stream import Setting, run
from trendloom.engines.workload import Options
from trendloom.errors import OptionError
from trendloom.lang.tree import Query
from trendloom.physical.plan import plan_physically
from trendloom.plan.bind import bind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DELAY = re.compile(r"\s*\d+(\.\d+)?\s+(microsecond|millisecond|second|minute|hour|day|week)s?\s*", re.IGNORECASE)


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
    if watermark is None:
        raise OptionError(
            "a live stream needs a watermark: how long to wait for events that come late",
            hint='watermark="10 seconds", or "0 seconds" where events come in order',
        )
    if DELAY.fullmatch(watermark) is None:
        raise OptionError(f"'{watermark}' is no delay", hint='a number and a unit, e.g. "10 seconds" or "2 minutes"')
    if buckets < 1:
        raise OptionError("there must be at least one bucket")
    frame = describe(df, options.columns())
    plans = [bind(query, frame.schema) for query in queries]
    for warning in (warning for plan in plans for warning in plan.warnings):
        warnings.warn(str(warning), stacklevel=4)
    flows = tuple(flow_of(plan_physically(plan), frame.arrow, options.numeric, early=early) for plan in plans)
    if checkpoint is not None:
        check_manifest(checkpoint, flows, buckets)
    return run(frame.df, flows, frame.schema, Setting(watermark, buckets, late_to))
