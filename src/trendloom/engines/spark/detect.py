"""A query over the caller's own DataFrame: bound and planned at once, run when the caller asks for rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from trendloom.engines.spark.allowed_paths import Path
from trendloom.engines.spark.prerequisites import require_spark
from trendloom.errors import OptionError, did_you_mean, option
from trendloom.frontend.tql.tree import Query
from trendloom.options import Options, columns_named
from trendloom.planner.limits import MOST_TRENDS
from trendloom.runtime.reading import is_spark_frame, queries_of
from trendloom.runtime.warnings import tell_warnings, warn_in_python

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BUCKETS = 8
"""Buckets of keys on a live stream: as many steps in every micro-batch, and as many tasks can share the work."""


def detect(
    df: Any,
    text: str,
    *,
    time: str = "time",
    type: str = "type",
    time_unit: str | None = None,
    time_low: str | None = None,
    time_high: str | None = None,
    time_error: str | None = None,
    time_probability: str | None = None,
    time_grain: str | None = None,
    time_points: int | None = None,
    order: str | Sequence[str] | None = None,
    time_zone: str | None = None,
    numeric: str = "exact",
    memory_limit: str | int | None = None,
    max_trends: int = MOST_TRENDS,
    query: str | None = None,
    partitions: int | None = None,
    path: str = "general",
    watermark: str | None = None,
    buckets: int = BUCKETS,
    late_to: str | None = None,
    checkpoint: str | None = None,
    early: bool = False,
) -> DataFrame:
    """The rows of a query over a batch or a streaming DataFrame, as a DataFrame of the same kind.

    `df` may also be what `trendloom.run` reads: a path, a pyarrow table, a pandas or polars frame. The session of this
    process then reads it (`session`), which starts once all that needs no Spark is found right.
    Nothing runs before you ask for its rows. `query` picks one of a workload. `order` names columns that order events
    of equal time. `time_zone`: that of local times (timestamp_ntz, text) and of times written in the query; UTC if not
    given, never the session's. Warnings about the query are Python warnings; what only a look at the events could tell
    (types that none of them has, whole numbers of time that hardly count seconds, equal times) is told by
    `trendloom.run`, not here. Imprecise time (`time_low` and `time_high`, or `time_error`, and what goes with them) is
    given as for `trendloom.run`. `memory_limit`, of each task, is for trends that are stored to find others faster.

    A text with several queries gives one DataFrame, in which every row carries the name of its query.

    Batch: more than `max_trends` rows per match in one task are refused. `partitions` is the number of tasks (default:
    Spark decides). `path` says how aggregates are spread over tasks: "general" moves all events by key; "auto" lets the
    engine choose, and for that may look at the times and keys at once, in a small job; "reduced" and "cut" ask for one
    way, if the query allows it. Ranked matches in windows without a key are always cut by windows; "general" does not
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
    options = Options(
        engine="spark", numeric=numeric, time=time, type=type, time_unit=time_unit, memory_limit=memory_limit,
        max_trends=max_trends, order=columns_named(order), time_zone=time_zone, time_low=time_low, time_high=time_high,
        time_error=time_error, time_probability=time_probability, time_grain=time_grain, time_points=time_points,
    )  # fmt: skip
    queries = queries_of(text, query)
    options = options.for_queries(queries)
    require_spark()
    if is_spark_frame(df) and df.isStreaming:
        from trendloom.engines.spark.streaming.detect import detect_live

        return detect_live(
            df, queries, options, watermark=watermark, buckets=buckets, late_to=late_to, checkpoint=checkpoint,
            early=early,
        )  # fmt: skip
    return _detect_batch(df, queries, options, partitions, _path(path))


def _detect_batch(
    events: object, queries: tuple[Query, ...], options: Options, partitions: int | None, path: Path | None
) -> DataFrame:
    from trendloom.engines.spark import batch
    from trendloom.engines.spark.answers import bind_all, framed, job_of
    from trendloom.engines.spark.workload_job import in_one_table, meetings_of, parcels
    from trendloom.logical.workload import refuse_clashing_columns
    from trendloom.runtime.planning import planned_together

    if len(queries) > 1 and path is not Path.GENERAL:
        names = ", ".join(str(one.name) for one in queries)
        raise OptionError(
            "several queries in one DataFrame take the path 'general'",
            hint=f"leave {option('path')} out, or choose one with {option('query')}: {names}",
        )
    frame = framed(queries, events, options)
    plans = bind_all(queries, frame)
    refuse_clashing_columns(plans)
    tell_warnings(frame.warnings, plans, warn_in_python)
    workload = planned_together(plans, options.limits)
    if not workload.several:
        (physical,) = workload.queries
        return batch.run(frame.df, physical, frame.arrow, numeric=options.numeric, partitions=partitions, path=path)
    partition_groups = meetings_of(workload, workload.key_sets, partial(job_of, frame, options.numeric))
    return in_one_table(parcels(frame.df, partition_groups, partitions), partition_groups, partitions)


def _path(name: str) -> Path | None:
    known = {"auto": None, "general": Path.GENERAL, "reduced": Path.REDUCED, "cut": Path.CUT}
    if name not in known:
        raise OptionError(f"there is no path '{name}'", hint=did_you_mean(name, known))
    return known[name]
