"""Trendloom finds, counts, ranks and explains patterns in event streams, on Apache Spark or in one process.

    import trendloom as tl
    rows = tl.run("PATTERN SEQ(A a, B+ b[], C c)", "events.parquet", engine="local")

Importing is light: engines, kernels and Spark are loaded when a query first needs them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from trendloom import errors
from trendloom.options import (
    CheckArguments,
    ExpandArguments,
    ExplainArguments,
    Options,
    RunArguments,
    keyword_options,
    keywords_at,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from os import PathLike

    import pyarrow as pa

    from trendloom.archive import Archive
    from trendloom.diagnosis.diagnosis import Diagnosis

__version__ = "0.1.0"


@keyword_options(RunArguments, Options)
def run(text: str, events: object, **options: Unpack[RunArguments]) -> pa.Table:
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
    from trendloom.runtime.reading import is_spark_frame

    if options.get("engine") is None:
        options["engine"] = "spark" if is_spark_frame(events) else "local"
    (chosen,) = keywords_at("run()", options, Options)
    return table_of(answers(text, with_times_of_index(events, chosen.time, chosen.time_low), chosen))


@keyword_options(CheckArguments, Options)
def check(text: str, schema_or_events: object = None, **options: Unpack[CheckArguments]) -> list[errors.QueryWarning]:
    """Parse a query, and bind it where a schema or events are given. Returns warnings; raises `errors.QueryError`."""
    from trendloom.engines.introspection import check_text
    from trendloom.io.read import with_times_of_index

    (chosen,) = keywords_at("check()", options, Options)
    return check_text(text, with_times_of_index(schema_or_events, chosen.time, chosen.time_low), chosen)


@keyword_options(ExplainArguments, Options)
def explain(
    text: str,
    events: object = None,
    *,
    analyze: bool = False,
    picture: str | PathLike[str] | None = None,
    **options: Unpack[ExplainArguments],
) -> str:
    """The logical, optimized and physical plan of a query, and why each algorithm was chosen.

    `analyze` also runs the query over the events, in this process, and says what time and memory that took.
    `picture`, an .svg or .png file, is drawn of the pattern of a query, or of what the queries of a workload may share.
    """
    from trendloom.engines.introspection import explain_queries
    from trendloom.io.read import with_times_of_index

    (chosen,) = keywords_at("explain()", options, Options)
    events = with_times_of_index(events, chosen.time, chosen.time_low)
    if picture is None:
        return explain_queries(text, events, chosen, analyze=analyze).text
    from trendloom.viz.canvas import check_picture
    from trendloom.viz.query import draw_explained

    target = check_picture(Path(picture))
    explained = explain_queries(text, events, chosen, analyze=analyze)
    draw_explained(explained.plans, explained.shared, target)
    return explained.text


@keyword_options(ExpandArguments, Options)
def expand(
    text: str, row: object, events: object = None, **options: Unpack[ExpandArguments]
) -> Iterator[pa.RecordBatch]:
    """The matches that one row of RETURN COLLAPSED TRENDS stands for, in batches, found as they are read.

    `row` is a dict of `Table.to_pylist()`, or a table or batch of one row. Memory is bounded however many matches there
    are, and the caller may stop at any time. A query with NOT needs the `events` it was run over as well.
    """
    from trendloom.io.read import with_times_of_index
    from trendloom.runtime.expand_collapsed import expand as expanded

    (chosen,) = keywords_at("expand()", options, Options)
    return expanded(text, row, with_times_of_index(events, chosen.time), chosen)


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
    number per stretch of values. `engine`: "local" or "spark", where features are made. `progress` is called with a
    description of the current step and the share that is done. `save_as` keeps the reason in the archive as a monitor.
    """
    from trendloom.archive import Archive, open_archive
    from trendloom.diagnosis.request import DiagnosisRequest, ignore_progress, marked_intervals, names_in, windows_in
    from trendloom.engines.diagnose import DiagnosisWatch, diagnose_archive

    request = DiagnosisRequest(
        query, dict(partition or {}), marked_intervals(abnormal, "abnormal"),
        marked_intervals(reference, "reference", elsewhere=True), names_in(related_by), windows_in(windows),
        names_in(functions), dict(features or {}), engine, time_zone, master,
    )  # fmt: skip
    opened = archive if isinstance(archive, Archive) else open_archive(Path(archive))
    return diagnose_archive(opened, request, watch=DiagnosisWatch(progress or ignore_progress), save_as=save_as)


__all__ = ["__version__", "check", "diagnose", "errors", "expand", "explain", "run"]
