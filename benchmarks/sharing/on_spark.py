"""A thousand queries in one Spark job and in one live stream, over a small stream: seconds of each phase.

Every row is compared with that of the local engine, which answers the same workload in one call.
"""

from __future__ import annotations

import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.cases.events import same_rows
from benchmarks.cases.sharing import e_commerce, sharing_workload
from benchmarks.engines.live import is_part, write_batches
from benchmarks.harness.report import Report, Result
from benchmarks.sharing.contenders import Contest, quietly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES, EVENTS, BATCHES = 1_000, 50_000, 4
FEW_QUERIES, FEW_EVENTS = 30, 12_000
LENGTH, FAMILIES = 4, 50
"""Short patterns, of which some match in a window of few events."""


def measure_sharing_on_spark(
    report: Report, *, quick: bool = False, queries: int | None = None, events: int | None = None
) -> None:
    """One job, then one stream, both in one session."""
    from trendloom.spark import session

    count, events = queries or (FEW_QUERIES if quick else QUERIES), events or (FEW_EVENTS if quick else EVENTS)
    contest = thousand_queries(count, events)
    begin = time.perf_counter()
    contest.plan()
    planning = time.perf_counter() - begin
    expected = quietly(contest.shared)()
    whole = time.perf_counter() - begin - planning
    note = f"parse and plan {planning:.2f} s"
    report.add(Result(f"local, {count:,} queries", events, whole, len(expected), None).noting(note))
    spark = session("local[2]", settings={"spark.sql.shuffle.partitions": "2"})
    for name, measure in {"in one Spark job": measure_job, "in one live stream": measure_stream}.items():
        begin = time.perf_counter()
        name = f"spark local[2], {count:,} queries {name}"
        try:
            found = measure(name, spark, contest, expected).with_goal("runs", True)
        except Exception as error:  # whatever stands in the way is what is reported
            seconds, why = time.perf_counter() - begin, _why(error)
            found = Result(name, events, seconds, 0, False).noting(why).with_goal("runs", False)
        report.add(found)
    spark.stop()


def _why(error: Exception) -> str:
    """The first two lines: of an error in Java the second one names it."""
    return " ".join(str(error).splitlines()[:2])[:200]


def thousand_queries(count: int, events: int) -> Contest:
    """Families of queries with a common beginning, in tumbling windows of a sixth of the stream."""
    stream = e_commerce(events // 6, 6.0, rate=200)
    words = sharing_workload(stream, count, LENGTH, overlap=0.5, families=min(FAMILIES, count), windows_open=1)
    return Contest(stream, words)


def measure_job(name: str, spark: SparkSession, contest: Contest, expected: pa.Table) -> Result:
    """From Parquet to a table of all rows, as one job; first what it takes to plan it."""
    from trendloom.spark import detect

    events = len(contest.stream)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "events.parquet")
        pq.write_table(contest.table, file, row_group_size=max(events // 4, 1))
        seconds = [time.perf_counter()]
        job = quietly(lambda: detect(spark.read.parquet(file), contest.workload.text(), partitions=2))()
        seconds.append(time.perf_counter())
        found = quietly(job.toArrow)()
        seconds.append(time.perf_counter())
        again = quietly(job.toArrow)()
        seconds.append(time.perf_counter())
    planning, first, second = (after - before for before, after in pairwise(seconds))
    good = same_rows(found, expected) and len(again) == len(expected)
    note = f"planning {planning:.1f} s, the job {first:.1f} s and again {second:.1f} s"
    return Result(name, events, planning + first, len(found), good).noting(note)


def measure_stream(name: str, spark: SparkSession, contest: Contest, expected: pa.Table) -> Result:
    """Micro-batches of files that lie ready; the last windows stay open."""
    from trendloom.spark import detect

    events = len(contest.stream)
    columns = f"time long, type string, {contest.stream.key} long, {contest.stream.value} double"
    rows: list[pa.Table] = []
    with tempfile.TemporaryDirectory() as folder:
        source, begin = Path(folder) / "events", time.perf_counter()
        write_batches(source, contest.table, BATCHES)
        df = spark.readStream.schema(columns).option("maxFilesPerTrigger", 2).parquet(str(source))
        found = quietly(lambda: detect(df, contest.workload.text(), watermark="1 second", buckets=2))()
        planning = time.perf_counter() - begin
        stream = (
            found.writeStream.option("checkpointLocation", f"{folder}/checkpoint")
            .foreachBatch(lambda batch, _: rows.append(batch.toArrow()))
            .start()
        )
        stream.processAllAvailable()
        reports = [one for one in stream.recentProgress if one.numInputRows]
        stream.stop()
    seconds = [one.durationMs["triggerExecution"] / 1000 for one in reports]
    table = pa.concat_tables(rows)
    listed = ", ".join(f"{one:.1f}" for one in seconds)
    note = f"planning {planning:.1f} s, batches of {events // BATCHES:,}: {listed} s"
    return Result(name, events, sum(seconds), len(table), is_part(table, expected)).noting(note)
