"""Aggregates on Spark local[2] from Parquet, path by path, beside the bare pipeline.

Three streams, all in order of time as logs are: many keys, where tasks can reduce what they hold before anything moves;
one hot key, where only cutting in time uses both cores; and the same with a predicate that matrices cannot express. The
baseline repartitions the same columns by key and drops every batch: nothing that moves all events can be faster.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

import trendloom as tl
from benchmarks.cases.events import keyed_events, same_rows, stream, with_text_types
from benchmarks.harness.report import Report, Timing, race
from trendloom.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PATHS = ("general", "reduced", "direct", "cut")
"""Names of `trendloom.engines.spark.plan_steps.Path`; those that a query does not allow are left out."""

KEYED = "RETURN key, COUNT(*) PATTERN SEQ(A+, B) WHERE [key] GROUP BY key WITHIN 100000 s SLIDE 100000 s"
HOT = "RETURN COUNT(*) PATTERN SEQ(A+, B) WITHIN 100 s SLIDE 100 s"
HOT_RISING = (
    "RETURN COUNT(*) PATTERN SEQ(S a, S b, S c) WHERE a.price < b.price AND b.price < c.price "
    "WITHIN 20000 s SLIDE 500 s"
)


@dataclass(frozen=True)
class Stage:
    """A query over a stream, and what its paths are measured by."""

    name: str
    query: str
    events: pa.Table
    goals: dict[str, float]  # by path: how many times the rate of the general one
    moved_by: str | None = None  # the key of the bare pipeline


def measure_spark(report: Report, *, quick: bool = False, paths: Sequence[str] = PATHS) -> None:
    """All stages, in one session."""
    from trendloom.spark import session

    events, tries = (300_000, 2) if quick else (5_000_000, 5)
    spark = session("local[2]")
    for stage in _stages(events):
        with tempfile.TemporaryDirectory() as folder:
            file = FilePath(folder) / "events.parquet"
            pq.write_table(stage.events, file, row_group_size=max(events // 10, 1))
            _measure_stage(report, spark, stage, file, paths, tries)
    spark.stop()


def _stages(events: int) -> Iterator[Stage]:
    times = {"reduced": 1.5, "direct": 1.5}
    yield Stage("1,000 keys", KEYED, keyed_events(events, 1_000).sort_by("time"), times, "key")
    hot = {"reduced": 1.6, "direct": 1.6, "cut": 1.6}
    yield Stage("one hot key", HOT, with_text_types(stream(events, {"A": 0.5, "B": 0.5})), hot)
    yield Stage("one hot key, rising", HOT_RISING, with_text_types(stream(events // 5, {"S": 1.0})), hot)


def _measure_stage(
    report: Report, spark: SparkSession, stage: Stage, file: FilePath, paths: Sequence[str], tries: int
) -> None:
    df = spark.read.parquet(str(file))
    jobs = {path: job for path in paths if (job := by_path(df, stage.query, path, file)) is not None}
    contenders = {path: partial(run_along, df, stage.query, path, file) for path in jobs}
    if stage.moved_by is not None:
        piped = df.repartition(stage.moved_by).mapInArrow(drop_batches, "id long")
        contenders = {"repartition and drop": partial(run_all, piped), **contenders}
    timings = race(tries, contenders)
    expected = tl.run(stage.query, stage.events)
    for path, timing in timings.items():
        good = path in jobs and same_rows(jobs[path].toArrow(), expected)
        _add(report, stage, path, timing, timings, len(expected), checked=good)


def _add(
    report: Report, stage: Stage, path: str, timing: Timing, timings: dict[str, Timing], rows: int, *, checked: bool
) -> None:
    events = len(stage.events)
    one = timing.result(f"spark local[2], {stage.name}, {path}", events, rows=rows, checked=checked)
    if path == "general" and "repartition and drop" in timings:
        one = one.against("repartition and drop", events / timings["repartition and drop"].best)
        one = one.with_goal("0.8 of it", (one.ratio or 0) >= 0.8)
    elif path in stage.goals and "general" in timings:
        one = one.against("general", events / timings["general"].best)
        one = one.with_goal(f"{stage.goals[path]} times", (one.ratio or 0) >= stage.goals[path])
    report.add(one)


def by_path(df: DataFrame, text: str, path: str, file: FilePath) -> DataFrame | None:
    """The rows of a query computed along one path; None where the query or the data do not allow it."""
    from trendloom.engines.spark import batch
    from trendloom.engines.spark.answers import bind_all, job_of
    from trendloom.engines.spark.frames import describe
    from trendloom.engines.spark.plan_steps import Path, obstacle
    from trendloom.options import Options
    from trendloom.runtime.planning import plan_query
    from trendloom.runtime.reading import queries_of

    frame = describe(df, Options(engine="spark").columns())
    (plan,) = bind_all(queries_of(text), frame)
    physical = plan_query(plan)
    if obstacle(physical, Path(path)) is not None:
        return None
    try:
        return batch.run(frame.df, job_of(frame, "exact", physical), path=Path(path), files=(file,))
    except OptionError:
        return None


def run_along(df: DataFrame, text: str, path: str, file: FilePath) -> None:
    """Plan and run: some paths look at the data before they start, and that belongs to their time."""
    job = by_path(df, text, path, file)
    assert job is not None
    run_all(job)


def drop_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Receive everything, give nothing: what the pipeline itself costs."""
    for _ in batches:
        pass
    yield from ()


def run_all(df: DataFrame) -> None:
    """Compute every row and keep none."""
    df.write.format("noop").mode("overwrite").save()
