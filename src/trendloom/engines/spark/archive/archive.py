"""A DataFrame into an archive: the caller's own events, and the rows of queries over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack
from uuid import uuid4

from trendloom.archive.archive import Archive, open_archive
from trendloom.archive.catalog import local_root
from trendloom.archive.requests import ArchiveRequest
from trendloom.diagnosis.monitors import find_monitor
from trendloom.engines.spark.prerequisites import require_spark
from trendloom.engines.spark.streaming.settings import absolute
from trendloom.errors import OptionError, option
from trendloom.options import (
    ArchiveArguments,
    Options,
    StreamOptions,
    WatchArguments,
    columns_named,
    keyword_options,
    keywords_at,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@keyword_options(ArchiveArguments, Options)
def archive(
    df: Any,
    queries: str,
    folder: str | PathLike[str],
    *,
    commit: str | None = None,
    chunk: str = "1 hour",
    keep: str | None = None,
    dimensions: str | Sequence[str] | None = None,
    **options: Unpack[ArchiveArguments],
) -> Archive:
    """Put events, and the rows of queries over them, into an archive; gives the archive as it is then.

    `df` is a batch DataFrame, or what `trendloom.run` reads. `queries` is their text; "" archives events alone. The
    folder is one that all tasks can write to. `commit` names what comes in: the same name again replaces it; without
    one it is new every time. `chunk`: the stretch of time that a file holds. `keep`: what is older than that, counted
    from the newest event, is dropped. `dimensions`: columns beside texts that may distinguish partitions.
    The other options are those of `detect`.
    """
    require_spark()
    from trendloom.engines.spark.archive.batch import archive_on_spark

    (chosen,) = keywords_at("archive()", options, Options)
    root = local_root(folder)
    request = ArchiveRequest(
        root, queries, commit or f"batch-{uuid4().hex[:12]}", chunk=chunk, keep=keep,
        dimensions=columns_named(dimensions),
    )  # fmt: skip
    archive_on_spark(request, df, replace(chosen, engine="spark"))
    return open_archive(Path(root))


# Monitors over the caller's own DataFrame: a batch of events, or a stream of them.


@keyword_options(WatchArguments, Options, StreamOptions)
def watch(
    df: DataFrame,
    archive: str | PathLike[str] | Archive,
    monitors: str | Sequence[str],
    **options: Unpack[WatchArguments],
) -> DataFrame:
    """The alerts of monitors that an archive keeps, over a batch or a streaming DataFrame of the same kind.

    A row for each window in which a monitor's formula holds: `monitor`, `window_start`, `window_end`, and its features.
    Streaming: `watermark` says how long to wait for events that come late, e.g. "10 seconds"; each alert comes once, in
    output mode append, when it is certain. `checkpoint`: the folder that the stream will be started with, so that other
    formulas on it are refused. Whole numbers of time count what they count in the archive, unless `time_unit` says so.
    """
    require_spark()
    from trendloom.engines.spark.diagnosis.live_monitors import live_alerts

    chosen, stream = keywords_at("watch()", options, Options, StreamOptions)
    opened = archive if isinstance(archive, Archive) else open_archive(Path(archive))
    names = [monitors] if isinstance(monitors, str) else list(monitors)
    if not names:
        raise OptionError("there is no monitor to watch", hint="name one that the archive keeps")
    if df.isStreaming and stream.watermark is None:
        raise OptionError(
            "a live stream needs a watermark: how long to wait for events that come late",
            hint=f'{option("watermark", "10 seconds")}, or "0 seconds" where events come in order',
        )
    found, _ = live_alerts(
        df,
        [find_monitor(opened, name) for name in dict.fromkeys(names)],
        opened.axis,
        replace(chosen, engine="spark", time_unit=chosen.time_unit or opened.unit),
        watermark=stream.watermark if df.isStreaming else None,
        checkpoint=None if stream.checkpoint is None else absolute(stream.checkpoint),
    )
    return found
