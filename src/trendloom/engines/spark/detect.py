"""A query over the caller's own DataFrame: bound and planned at once, run when the caller asks for rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from trendloom.engines.spark.allowed_paths import Path, requested_path
from trendloom.engines.spark.prerequisites import require_spark
from trendloom.errors import OptionError, option
from trendloom.frontend.tree import Query
from trendloom.options import DetectArguments, Options, StreamOptions, keyword_options, keywords_at
from trendloom.runtime.reading import for_queries, is_spark_frame, queries_of
from trendloom.runtime.warnings import report_warnings, warn_in_python

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
    (types that none of them has, whole numbers of time that hardly count seconds, equal times) is told by
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
        from trendloom.engines.spark.streaming.detect import detect_live

        return detect_live(df, queries, chosen, stream)
    return _detect_batch(df, queries, chosen)


def _detect_batch(events: object, queries: tuple[Query, ...], options: Options) -> DataFrame:
    from trendloom.engines.spark import batch
    from trendloom.engines.spark.answers import bind_all, framed, job_of
    from trendloom.engines.spark.error_transport import in_our_words
    from trendloom.engines.spark.workload_job import in_one_table, meetings_of, parcels
    from trendloom.logical.bind.workload import refuse_clashing_columns
    from trendloom.runtime.planning import planned_together

    if len(queries) > 1 and options.path not in (None, Path.GENERAL.value):
        names = ", ".join(str(one.name) for one in queries)
        raise OptionError(
            "several queries in one DataFrame take the path 'general'",
            hint=f"leave {option('path')} out, or choose one with {option('query')}: {names}",
        )
    frame = framed(queries, events, options)
    plans = bind_all(queries, frame)
    refuse_clashing_columns(plans)
    report_warnings(frame.warnings, plans, warn_in_python)
    workload = planned_together(plans, options.limits)
    if not workload.several:
        job = job_of(frame, options.numeric, workload.queries[0])
        path = requested_path(options)
        with in_our_words():  # choosing a path may look at the events
            return batch.run(frame.df, job, partitions=options.partitions, path=path, files=frame.files)
    partition_groups = meetings_of(workload, workload.key_sets, partial(job_of, frame, options.numeric))
    return in_one_table(parcels(frame.df, partition_groups, options.partitions), partition_groups, options.partitions)
