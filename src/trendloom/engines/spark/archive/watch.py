"""Monitors over the caller's own DataFrame: a batch of events, or a stream of them."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from trendloom.archive import Archive, open_archive
from trendloom.diagnosis.monitors import find_monitor
from trendloom.engines.spark.prerequisites import require_spark
from trendloom.engines.spark.streaming.settings import absolute
from trendloom.errors import OptionError, option
from trendloom.options import Options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def watch(
    df: DataFrame,
    archive: str | PathLike[str] | Archive,
    monitors: str | Sequence[str],
    *,
    time: str = "time",
    type: str = "type",
    time_unit: str | None = None,
    time_zone: str | None = None,
    watermark: str | None = None,
    checkpoint: str | None = None,
) -> DataFrame:
    """The alerts of monitors that an archive keeps, over a batch or a streaming DataFrame of the same kind.

    A row for each window in which a monitor's formula holds: `monitor`, `window_start`, `window_end`, and its features.
    Streaming: `watermark` says how long to wait for events that come late, e.g. "10 seconds"; each alert comes once, in
    output mode append, when it is certain. `checkpoint`: the folder that the stream will be started with, so that other
    formulas on it are refused. Whole numbers of time count what they count in the archive, unless `time_unit` says so.
    """
    require_spark()
    from trendloom.engines.spark.archive.live_monitors import live_alerts

    opened = archive if isinstance(archive, Archive) else open_archive(Path(archive))
    names = [monitors] if isinstance(monitors, str) else list(monitors)
    if not names:
        raise OptionError("there is no monitor to watch", hint="name one that the archive keeps")
    if df.isStreaming and watermark is None:
        raise OptionError(
            "a live stream needs a watermark: how long to wait for events that come late",
            hint=f'{option("watermark", "10 seconds")}, or "0 seconds" where events come in order',
        )
    options = Options("spark", time, type, time_unit or opened.unit, time_zone=time_zone)
    found, _ = live_alerts(
        df,
        [find_monitor(opened, name) for name in dict.fromkeys(names)],
        opened.axis,
        options,
        watermark=watermark if df.isStreaming else None,
        checkpoint=None if checkpoint is None else absolute(checkpoint),
    )
    return found
