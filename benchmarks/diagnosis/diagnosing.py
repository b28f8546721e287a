"""A diagnosis out of an archive on disk, and what it costs a live stream that runs many queries on the same machine.

The archive holds the stream of `explanation`: 10⁶ events of 15 types, 345 features over 30 s. Timed is all that a user
waits for: opening, reading, features, reason; in this process, as a command with its start, and with features by Spark.

For the live stream, files of events lie ready, and every few seconds a batch takes one; all its queries are windowed
averages by node. Meanwhile `trendloom diagnose` runs again and again in a process of its own, with pauses; batches
during which one ran are compared with those just before and after, because machines have slow minutes.
The command lowers its own priority: the machine has two cores, and the stream uses both.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import trendloom as tl
from benchmarks.diagnosis.explanation import (
    SICK,
    WINDOW,
    WINDOWS,
    measured_stream,
    names_the_cause,
    reason_of,
    table_of,
)
from benchmarks.harness.report import Report, Result, race
from trendloom.archive import ArchivedQuery, create_archive, write_events, write_results
from trendloom.diagnosis.diagnosis import Diagnosis
from trendloom.model.time import TimeAxis

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Array = np.ndarray[Any, Any]

ABNORMAL = (SICK[0] * WINDOW, SICK[1] * WINDOW)
REFERENCE = ((0, ABNORMAL[0]), (ABNORMAL[1], WINDOWS * WINDOW))
QUERY = ArchivedQuery(
    "watched", "RETURN COUNT(*) AS n PATTERN Nothing WITHIN 30 s", values=("n",), types=("T0",), kinds={"n": "integer"}
)
"""The chart that was marked; what it measures is no part of the events here."""


def measure_diagnosing(report: Report, *, quick: bool = False) -> None:
    """All of it; `quick`: fewer tries and batches."""
    measure_from_archive(report, 1_000_000, 1 if quick else 3)
    for queries, batches in ((200, 30 if quick else 80), (2_000, 12 if quick else 30)):
        measure_beside_stream(report, queries, batches)


# ------------------------------------------------------------------------------------------- from an archive


def archive_of(root: Path, count: int) -> dict[str, pa.Table]:
    """The stream of `explanation` in an archive, with the rows of a query; the events by type."""
    events = measured_stream(count)
    create_archive(root, axis=TimeAxis.timestamps())
    for name, table in events.items():
        write_events(root, name, table.append_column("type", pa.repeat(name, len(table))))
    at = pa.array((np.arange(WINDOWS) + 1) * WINDOW, pa.timestamp("us", "UTC"))
    write_results(root, "rows", QUERY, pa.table({"at": at, "n": np.arange(WINDOWS)}))
    return events


WAYS = ("in this process", "as a command", "on Spark")


def measure_from_archive(report: Report, count: int, tries: int, ways: tuple[str, ...] = WAYS) -> None:
    """In this process, as a command, and with features by Spark."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "archive"
        expected = reason_of(table_of(archive_of(root, count)))
        if "in this process" in ways:
            timing = race(tries, {"": lambda: diagnosed(root)})[""]
            report.add(_result(timing.best, "diagnosis out of an archive", count, timing.answer, expected))
        if "as a command" in ways:
            begin = time.perf_counter()
            done = subprocess.run(command(root), capture_output=True, text=True, check=True)
            seconds = time.perf_counter() - begin
            good = expected.sentence in done.stdout
            result = Result("diagnosis as a command, with its start", count, seconds, len(expected.kept), good)
            report.add(_goal(result))
        if "on Spark" in ways:
            timing = race(1, {"": lambda: diagnosed(root, engine="spark", master="local[2]")})[""]
            report.add(_result(timing.best, "diagnosis, features by Spark", count, timing.answer, expected))


def diagnosed(root: Path, **options: Any) -> Diagnosis:
    return tl.diagnose(root, abnormal=[ABNORMAL], reference=list(REFERENCE), **options)


def command(root: Path) -> list[str]:
    """The same as a command."""
    marked = [("--abnormal", ABNORMAL), *(("--reference", one) for one in REFERENCE)]
    words = [word for name, span in marked for word in (name, str(span[0]), str(span[1]))]
    return [sys.executable, "-m", "trendloom", "diagnose", "--archive", str(root), *words]


def _result(seconds: float, name: str, count: int, found: Diagnosis, expected: Diagnosis) -> Result:
    good = found.sentence == expected.sentence and names_the_cause(found)
    features = len(found.candidates)
    return _goal(Result(f"{name}, {features:,} features", count, seconds, len(found.kept), good))


def _goal(result: Result) -> Result:
    return result.with_goal("10 s, at most 30 s", result.seconds < 10).noting("rows: features kept")


# ------------------------------------------------------------------------------------- beside a live stream

EVERY = 5
"""Seconds between two batches."""
BATCH = 5_000
"""Events of a batch."""
METRICS, NODES = 20, 20
NEIGHBOURS = 4
"""Batches without a diagnosis that one with it is compared with."""
WARM_UP = 4
"""Batches that are not counted: compiling, and Java's own warming."""


def monitoring_queries(count: int) -> str:
    """Averages by node of twenty metrics, over windows of many lengths."""
    return "\n".join(
        f"QUERY q{number}: RETURN node, AVG(e.load) AS mean PATTERN Metric{number % METRICS} e WHERE [node] "
        f"GROUP BY node WITHIN {10 + number // METRICS} s"
        for number in range(count)
    )


def write_load(folder: Path, batches: int) -> None:
    """A file for each batch, in an order that the source keeps."""
    chance = np.random.default_rng(5)
    folder.mkdir(parents=True)
    for number in range(batches):
        times = np.sort(chance.integers(0, EVERY * 1_000_000, BATCH)) + number * EVERY * 1_000_000
        table = pa.table({
            "time": pa.array(times, pa.timestamp("us", "UTC")),
            "type": np.array([f"Metric{metric}" for metric in range(METRICS)])[chance.integers(0, METRICS, BATCH)],
            "node": chance.integers(0, NODES, BATCH),
            "load": chance.random(BATCH) * 2,
        })  # fmt: skip
        path = folder / f"{number:05d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (10**9 + number, 10**9 + number))


@dataclass
class RepeatedDiagnosis:
    """Diagnoses in a process of their own, one after the other with pauses, until they are stopped."""

    words: list[str]
    pause: float
    spans: list[tuple[float, float]] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.stop.wait(self.pause):
            begin = time.time()
            subprocess.run(self.words, capture_output=True, check=True)
            self.spans.append((begin, time.time()))

    def ran_during(self, begin: float, end: float) -> bool:
        return any(low < end and begin < high for low, high in self.spans)


def measure_beside_stream(report: Report, queries: int, batches: int) -> None:
    """By how much the batches of a stream take longer while a diagnosis runs."""
    from trendloom.spark import session

    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        archive_of(root / "archive", 1_000_000)
        write_load(root / "events", batches + WARM_UP)
        other = RepeatedDiagnosis(command(root / "archive"), pause=1.5 * EVERY)
        spark = session("local[2]", settings={"spark.sql.shuffle.partitions": "2"})
        times, rows = _streamed(spark, root, queries, other)
    seconds = np.array([seconds for _, seconds in times])
    beside = np.array([other.ran_during(begin, begin + seconds) for begin, seconds in times])
    with_one, without = seconds[beside].tolist(), seconds[~beside].tolist()
    rise = rise_beside(seconds, beside)
    took = median(high - low for low, high in other.spans)
    result = Result(f"live, {queries:,} queries, beside a diagnosis", BATCH, median(with_one), rows, rows > 0)
    apart = f"{median(without):.2f} s without ({len(without)}), {median(with_one):.2f} s with ({len(with_one)})"
    note = f"median batch {apart}: {rise:+.0%}; a diagnosis took {took:.1f} s"
    result = result.noting(note)
    report.add(result.with_goal("at most 10 % longer", rise <= 0.1) if queries == 200 else result)


def rise_beside(seconds: Array, beside: Array) -> float:
    """By what share batches with a diagnosis beside them take longer than the next ones without: the median of all."""
    others = np.flatnonzero(~beside)
    shares = []
    for batch in np.flatnonzero(beside):
        near = others[np.argsort(abs(others - batch), kind="stable")[:NEIGHBOURS]]
        shares.append(seconds[batch] / median(seconds[near].tolist()) - 1)
    return median(shares)


def _streamed(
    spark: SparkSession, root: Path, queries: int, other: RepeatedDiagnosis
) -> tuple[list[tuple[float, float]], int]:
    """When batches began and the seconds they took, and the number of rows."""
    from trendloom.spark import detect

    df = spark.readStream.schema("time timestamp, type string, node long, load double")
    events = df.option("maxFilesPerTrigger", 1).parquet(str(root / "events"))
    counted: list[int] = []
    state = str(root / "state")  # named, so that all queries travel together
    found = detect(
        events, monitoring_queries(queries), watermark="1 second", buckets=2, numeric="float", checkpoint=state
    )
    files = len(list((root / "events").iterdir()))
    stream = (
        found.writeStream.option("checkpointLocation", state)
        .trigger(processingTime=f"{EVERY} seconds")
        .foreachBatch(lambda batch, _: counted.append(len(batch.toArrow())))
        .start()
    )
    worker = threading.Thread(target=other.run, daemon=True)
    while len(counted) < WARM_UP and stream.isActive:
        time.sleep(0.2)
    worker.start()
    while len(counted) < files and stream.isActive:
        time.sleep(0.2)
    other.stop.set()
    worker.join()
    reports = [one for one in stream.recentProgress if one.numInputRows][WARM_UP:]
    stream.stop()
    times = [
        (datetime.fromisoformat(one.timestamp).timestamp(), one.durationMs["triggerExecution"] / 1000)
        for one in reports
    ]
    return times, sum(counted)
