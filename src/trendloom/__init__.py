"""Trendloom finds, counts, ranks and explains patterns in event streams, on Apache Spark or in one process.

    import trendloom as tl
    rows = tl.run("PATTERN SEQ(A a, B+ b[], C c)", "events.parquet", engine="local")

Importing is light: engines, kernels and Spark are loaded when a query first needs them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from trendloom import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from os import PathLike

    import pyarrow as pa

    from trendloom.archive import Archive
    from trendloom.diagnosis.diagnosis import Diagnosis

__version__ = "0.1.0"


def run(
    text: str,
    events: object,
    *,
    engine: str | None = None,
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
    schema: str | None = None,
    time_zone: str | None = None,
    numeric: str = "exact",
    limit: int | None = None,
    query: str | None = None,
    master: str | None = None,
    memory_limit: str | int | None = None,
    max_trends: int = 1_000_000_000,
    threads: int | None = None,
) -> pa.Table:
    """Run a query, or a workload of queries, over events and return the rows.

    `events` is a path of Parquet, CSV or JSON lines (a file, a folder, a glob, a URI), a list of paths, a pyarrow
    Table, or a pandas, polars or Spark frame. Times may stand in the index of a pandas frame.
    `engine` is "local" (one process; the default), "spark" (the default for a DataFrame of Spark's), or "reference"
    (the definitions, for small streams).
    `order` names columns that order events of equal time.
    Imprecise time: columns `time_low` and `time_high`, or `time_error`: a duration ("7.5s"), one for each type
    ("Load=7.5s,Task=500ms"), or a column of them. `time_probability` names a column of lists, one number per point of
    an event's time; points lie `time_grain` apart.
    The other options are those of the command line; see `trendloom run --help`.
    """
    from trendloom.engines.answers import answers, table_of
    from trendloom.io.read import with_times_of_index
    from trendloom.options import Options, columns_named
    from trendloom.runtime.reading import is_spark_frame

    engine = engine or ("spark" if is_spark_frame(events) else "local")
    options = Options(
        engine, time, type, time_unit, time_low, time_high, numeric, limit, query, master, memory_limit, max_trends,
        columns_named(order), schema, time_zone, threads, time_error, time_probability, time_grain, time_points,
    )  # fmt: skip
    return table_of(answers(text, with_times_of_index(events, time, time_low), options))


def check(
    text: str,
    schema_or_events: object = None,
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
    schema: str | None = None,
    time_zone: str | None = None,
) -> list[errors.QueryWarning]:
    """Parse a query, and bind it where a schema or events are given. Returns warnings; raises `errors.QueryError`."""
    from trendloom.engines.introspection import check_text
    from trendloom.io.read import with_times_of_index
    from trendloom.options import Options, columns_named

    options = Options(
        time=time, type=type, time_unit=time_unit, time_low=time_low, time_high=time_high,
        time_error=time_error, time_probability=time_probability, time_grain=time_grain, time_points=time_points,
        order=columns_named(order), schema=schema, time_zone=time_zone,
    )  # fmt: skip
    return check_text(text, with_times_of_index(schema_or_events, time, time_low), options)


def explain(
    text: str,
    events: object = None,
    *,
    engine: str = "local",
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
    schema: str | None = None,
    time_zone: str | None = None,
    memory_limit: str | int | None = None,
    analyze: bool = False,
    picture: str | PathLike[str] | None = None,
) -> str:
    """The logical, optimized and physical plan of a query, and why each algorithm was chosen.

    `analyze` also runs the query over the events, in this process, and says what time and memory that took.
    `picture`, an .svg or .png file, is drawn of the pattern of a query, or of what the queries of a workload may share.
    """
    from trendloom.engines.introspection import explain_queries
    from trendloom.io.read import with_times_of_index
    from trendloom.options import Options, columns_named

    options = Options(
        engine, time=time, type=type, time_unit=time_unit, time_low=time_low, time_high=time_high,
        time_error=time_error, time_probability=time_probability, time_grain=time_grain, time_points=time_points,
        memory_limit=memory_limit, order=columns_named(order), schema=schema, time_zone=time_zone,
    )  # fmt: skip
    events = with_times_of_index(events, time, time_low)
    if picture is None:
        return explain_queries(text, events, options, analyze=analyze).text
    from trendloom.viz.canvas import check_picture
    from trendloom.viz.query import draw_explained

    target = check_picture(Path(picture))
    explained = explain_queries(text, events, options, analyze=analyze)
    draw_explained(explained.plans, explained.shared, target)
    return explained.text


def expand(
    text: str,
    row: object,
    events: object = None,
    *,
    time: str = "time",
    type: str = "type",
    time_unit: str | None = None,
    order: str | Sequence[str] | None = None,
    time_zone: str | None = None,
    query: str | None = None,
) -> Iterator[pa.RecordBatch]:
    """The matches that one row of RETURN COLLAPSED TRENDS stands for, in batches, found as they are read.

    `row` is a dict of `Table.to_pylist()`, or a table or batch of one row. Memory is bounded however many matches there
    are, and the caller may stop at any time. A query with NOT needs the `events` it was run over as well.
    """
    from trendloom.io.read import with_times_of_index
    from trendloom.options import Options, columns_named
    from trendloom.runtime.expand_collapsed import expand as expanded

    options = Options(
        time=time, type=type, time_unit=time_unit, query=query, order=columns_named(order), time_zone=time_zone
    )
    return expanded(text, row, with_times_of_index(events, time), options)


def diagnose(
    archive: str | PathLike[str] | Archive,
    *,
    query: str | None = None,
    partition: Mapping[str, object] | None = None,
    abnormal: Sequence[object],
    reference: Sequence[object] | None = None,
    related_by: str | Sequence[str] | None = None,
    windows: int | str | Sequence[int | str] = ("30 s",),
    functions: str | Sequence[str] | None = None,
    features: Mapping[str, Callable[..., object]] | None = None,
    engine: str = "local",
    time_zone: str | None = None,
    master: str | None = None,
    progress: Callable[[str, float], None] | None = None,
    save_as: str | None = None,
) -> Diagnosis:
    """Why a stretch of a query's chart is abnormal: a formula over features of the archived events, with their rewards.

    `archive`: a folder that `trendloom archive`, `trendloom stream` or `trendloom.spark.archive` wrote. `query` and
    `partition` ({attribute: value}) say whose chart was looked at. `abnormal`: [(from, to), ...], times as text,
    datetimes or whole numbers; an interval begins at `from` and ends before `to`. `reference`: the same for what is
    normal, ({attribute: value}, from, to) in another partition; if not given, the rest of the partition.
    Features that also separate such periods in related partitions, those that agree in the dimensions `related_by` (all
    if not given), are false positives. `windows`: the lengths over which features are made. `functions`: some of count,
    mean, min, max, deviation, change; `features`: {name: function} of your own, each of (values, starts, ends), one
    number per stretch of values. `engine`: "local" or "spark", where features are made. `progress` hears what is being
    done and the share that is behind. `save_as` keeps the reason in the archive as a monitor.
    """
    from trendloom.archive import Archive, open_archive
    from trendloom.diagnosis.request import DiagnosisRequest, marked_intervals, names_in, unheard, windows_in
    from trendloom.engines.diagnose import DiagnosisWatch, diagnose_archive

    request = DiagnosisRequest(
        query, dict(partition or {}), marked_intervals(abnormal, "abnormal"),
        marked_intervals(reference, "reference", elsewhere=True), names_in(related_by), windows_in(windows),
        names_in(functions), dict(features or {}), engine, time_zone, master,
    )  # fmt: skip
    opened = archive if isinstance(archive, Archive) else open_archive(Path(archive))
    return diagnose_archive(opened, request, watch=DiagnosisWatch(progress or unheard), save_as=save_as)


__all__ = ["__version__", "check", "diagnose", "errors", "expand", "explain", "run"]
