"""Queries, archives and monitors over the caller's own DataFrame: checked at once, run when its rows are needed."""

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
from trendloom.engines.spark.session import require_spark
from trendloom.errors import OptionError
from trendloom.options import (
    ArchiveArguments,
    DetectArguments,
    Options,
    StreamOptions,
    WatchArguments,
    columns_named,
    keyword_options,
    keywords_at,
)
from trendloom.runtime.reading import for_queries, is_spark_frame, queries_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@keyword_options(DetectArguments, Options, StreamOptions)
def detect(df: Any, text: str, **options: Unpack[DetectArguments]) -> DataFrame:
    """The rows of a query over a batch or a streaming DataFrame, as a DataFrame of the same kind.

    `df` may also be what `trendloom.run` reads: a path, a pyarrow table, a pandas or polars frame. The session of this
    process then reads it (`session`), which starts once all that needs no Spark is found right.
    Nothing runs before you ask for its rows, but for a small job that looks at times and keys where the choice of the
    `path` depends on them. `query` picks one of a workload. `order` names columns that order events
    of equal time. `time_zone`: that of local times (timestamp_ntz, text) and of times written in the query; UTC if not
    given, never the session's. Warnings about the query are Python warnings; what only a look at the events could tell
    (types that none of them has, whole numbers of time that hardly count seconds, equal times) is reported by
    `trendloom.run`, not here. Imprecise time (`time_low` and `time_high`, or `time_error`, and what goes with them) is
    given as for `trendloom.run`. `memory_limit`, of each task, is for trends that are stored to find others faster.

    A text with several queries gives one DataFrame, in which every row carries the name of its query.

    Batch: more than `max_trends` rows per match in one task are refused. `partitions` is the number of tasks (default:
    Spark decides). `path` says how aggregates are spread over tasks: "auto" (the default for one query) lets the
    engine choose, as `trendloom.run` does, and for that may look at the times and keys at once, in a small job;
    "general" (for several queries) moves all events by key and looks at nothing; "reduced" and "cut" ask for one way,
    if the query allows it. Ranked matches in windows without a key are always cut by windows; "general" does not
    look at the data for that.

    Streaming: `watermark` says how long to wait for events that come late, e.g. "10 seconds". Rows are given out once
    they are certain (output mode append). Later events are counted (see the metrics of the query's progress) and
    written to the Parquet folder `late_to`, if there is one. Keys are spread over `buckets`; their number belongs to
    the checkpoint.
    `checkpoint`: the folder that the stream will be started with; a workload that does not fit it is refused, and a
    query that is new there begins after all events seen so far, and says from when its answers are whole.
    `early`: windows that are still open give rows, too, whenever events arrive for them (output mode update). Of ranked
    matches a row replaces the one before of its window, partition and rank.
    """
    chosen, stream = keywords_at("detect()", options, Options, StreamOptions)
    chosen = replace(chosen, engine="spark")
    queries = queries_of(text, chosen.query)
    chosen = for_queries(chosen, queries)
    require_spark()
    if is_spark_frame(df) and df.isStreaming:
        from trendloom.engines.spark.streaming.stream import detect_live

        return detect_live(df, queries, chosen, stream)
    from trendloom.engines.spark.answers import detect_batch

    return detect_batch(df, queries, chosen)


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
    from trendloom.engines.spark.archive import archive_on_spark

    (chosen,) = keywords_at("archive()", options, Options)
    root = local_root(folder)
    request = ArchiveRequest(
        root, queries, commit or f"batch-{uuid4().hex[:12]}", chunk=chunk, keep=keep,
        dimensions=columns_named(dimensions),
    )  # fmt: skip
    archive_on_spark(request, df, replace(chosen, engine="spark"))
    return open_archive(Path(root))


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
    from trendloom.engines.spark.monitors import live_alerts
    from trendloom.engines.spark.streaming.stream import absolute, no_watermark

    chosen, stream = keywords_at("watch()", options, Options, StreamOptions)
    opened = archive if isinstance(archive, Archive) else open_archive(Path(archive))
    names = [monitors] if isinstance(monitors, str) else list(monitors)
    if not names:
        raise OptionError("there is no monitor to watch", hint="name one that the archive keeps")
    if df.isStreaming and stream.watermark is None:
        raise no_watermark()
    found, _ = live_alerts(
        df,
        [find_monitor(opened, name) for name in dict.fromkeys(names)],
        opened.axis,
        replace(chosen, engine="spark", time_unit=chosen.time_unit or opened.unit),
        watermark=stream.watermark if df.isStreaming else None,
        checkpoint=None if stream.checkpoint is None else absolute(stream.checkpoint),
    )
    return found
