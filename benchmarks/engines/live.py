"""Live streams: events per second through Spark Structured Streaming, warmed, and how long a row takes to appear.

SEQ(A, B+, C), contiguous per key and under skip-till-next-match, and trend counts with 100 overlapping windows. Files
of events lie ready; a batch takes a million. The rate is that of the median batch after the first few, whole: planning,
reading, shuffle, state, rows and Spark's notes in the checkpoint. Contiguous runs stand beside Flink's MATCH_RECOGNIZE
on the same events, with the same answer (`benchmarks.peers.flink`). For latency a feeder writes 10,000 events a second
with the time of the clock, and each row is looked at when it reaches the sink.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import trendloom as tl
from benchmarks.cases.events import same_rows
from benchmarks.harness.report import Report, Result
from benchmarks.peers.flink.run import flink_matches
from benchmarks.peers.flink.workload import events_for_flink, expected_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITHIN = 600
RUNS = f"""
    RETURN a.id AS first_id, c.id AS last_id, count(b[]) AS count_b
    PATTERN SEQ(A a, B+ b[], C c) SEMANTICS {{semantics}} WHERE [key] WITHIN {WITHIN} seconds
"""
COUNTS = "RETURN key, COUNT(*) AS n PATTERN SEQ(A, B+, C) WHERE [key] GROUP BY key WITHIN 1000 seconds SLIDE 10 seconds"
COLUMNS = "id long, time timestamp, type string, key long"
WARM_UP = 2
"""Batches that are not counted: compiling, and Java's own warming."""


@dataclass(frozen=True)
class Played:
    """Milliseconds of the batches that were counted, and all rows."""

    milliseconds: list[int]
    rows: pa.Table


def measure_live(report: Report, *, quick: bool = False) -> None:
    """All of it; `quick` has smaller batches, and no Flink."""
    from trendloom.spark import session

    size, batches = (100_000, 4) if quick else (1_000_000, 8)
    spark = session("local[2]", settings={"spark.sql.shuffle.partitions": "2"})
    for keys in (1_000, 10_000):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            events = events_for_flink(size * batches, keys)
            write_batches(folder / "events", events, batches)
            flink = None if quick else flink_rate(folder, events, keys)
            for semantics in ("contiguous", "skip-till-next-match"):
                query = RUNS.format(semantics=semantics)
                result = measured(spark, folder, f"live, {semantics}, {keys:,} keys", query, events, batches)
                if semantics == "contiguous" and flink is not None:
                    result = result.against("Flink's MATCH_RECOGNIZE", flink)
                    report.add(result.with_goal("5 × Flink", (result.ratio or 0) >= 5))
                else:
                    report.add(result.with_goal("500 k events/s", result.rate >= 5e5))
            if keys == 1_000:
                name = "live, trend counts, 100 overlapping windows"
                result = measured(spark, folder, name, COUNTS, events, batches, numeric="float")
                report.add(result.with_goal("500 k events/s", result.rate >= 5e5))
    report.add(latency(spark, seconds=10 if quick else 40))


def flink_rate(folder: Path, events: pa.Table, keys: int) -> float:
    """Flink's events per second on the same events, its answer compared with that of NumPy."""
    path = folder / "all.parquet"
    pq.write_table(events, path)
    run = flink_matches(path, keys, WITHIN, folder / "flink.parquet")
    if not same_rows(pq.read_table(run.rows), expected_rows(events, WITHIN)):
        raise AssertionError("Flink's rows are not those of NumPy")
    return max(run.steady, run.undisturbed)


def measured(
    spark: SparkSession, folder: Path, name: str, query: str, events: pa.Table, batches: int, numeric: str = "exact"
) -> Result:
    """The rate of a query, and whether its rows are those of a batch over the events that were certain in the end."""
    found = played(spark, folder / "events", query, numeric)
    expected = tl.run(query, events, engine="local", numeric=numeric)
    size = len(events) // batches
    seconds = median(found.milliseconds) / 1000
    note = f"batches of {size:,}, median {seconds:.2f} s, best {min(found.milliseconds) / 1000:.2f} s"
    good = is_part(found.rows, expected)
    return Result(name, size, seconds, len(found.rows), good).noting(note)


def is_part(found: pa.Table, expected: pa.Table) -> bool:
    """Whether all rows found are expected, none comes twice, and only the end of the stream is missing."""
    names = [name for name in expected.column_names if not pa.types.is_floating(expected.schema.field(name).type)]
    mine = found.select(names).cast(expected.select(names).schema)
    both = pa.concat_tables([mine, expected.select(names)]).group_by(names).aggregate([([], "count_all")])
    twice = int((both["count_all"].to_numpy() == 2).sum())
    return twice == len(found) and len(expected) - len(found) <= 0.3 * len(expected)


def write_batches(folder: Path, events: pa.Table, batches: int) -> None:
    """Two files for every batch, in an order that the source keeps."""
    folder.mkdir(parents=True)
    size = len(events) // (2 * batches)
    for number in range(2 * batches):
        path = folder / f"{number:04d}.parquet"
        pq.write_table(events.slice(number * size, size), path)
        os.utime(path, (10**9 + number // 2, 10**9 + number // 2))


def played(spark: SparkSession, source: Path, query: str, numeric: str) -> Played:
    """Run a stream over files that are there."""
    from trendloom.spark import detect

    df = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 2).parquet(str(source))
    rows: dict[int, pa.Table] = {}
    with tempfile.TemporaryDirectory() as checkpoint:
        found = detect(df, query, watermark="1 second", buckets=2, numeric=numeric)
        stream = (
            found.writeStream.option("checkpointLocation", checkpoint)
            .foreachBatch(lambda batch, number: rows.update({number: batch.toArrow()}))
            .start()
        )
        stream.processAllAvailable()
        reports = [report for report in stream.recentProgress if report.numInputRows]
        stream.stop()
    times = [report.durationMs["triggerExecution"] for report in reports]
    return Played(times[WARM_UP:], pa.concat_tables(rows.values()))


# ------------------------------------------------------------------------------------------------- latency


def latency(spark: SparkSession, *, seconds: int, rate: int = 10_000) -> Result:
    """From the time of a match's last event to the moment its row is in the sink; a file of events every second."""
    from trendloom.spark import detect

    query = """RETURN c.time AS at PATTERN SEQ(A a, B+ b[], C c) SEMANTICS contiguous WHERE [key] WITHIN 1 minute"""
    waited: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "events"
        source.mkdir()
        stop = threading.Event()
        feeder = threading.Thread(target=feed, args=(source, rate, stop), daemon=True)
        feeder.start()
        df = spark.readStream.schema(COLUMNS).parquet(str(source))
        stream = (
            detect(df, query, watermark="0 seconds", buckets=2)
            .writeStream.option("checkpointLocation", f"{name}/checkpoint")
            .foreachBatch(lambda batch, _: waited.extend(since(batch.toArrow())))
            .start()
        )
        stream.awaitTermination(seconds + 10)
        stop.set()
        feeder.join()
        stream.processAllAvailable()
        stream.stop()
    late = [one for one in waited[len(waited) // 4 :] if one >= 0]
    note = (
        f"median {median(late):.2f} s, 95 % within {np.quantile(late, 0.95):.2f} s, a file of {rate:,} events a second"
    )
    return Result("live, from event to row", rate * seconds, seconds, len(late), bool(late)).noting(note)


def since(rows: pa.Table) -> list[float]:
    """Seconds from the time in each row to now."""
    now = time.time()
    return [now - at.timestamp() for at in rows["at"].to_pylist()]


def feed(folder: Path, rate: int, stop: threading.Event) -> None:
    """Every second a file with the events of that second."""
    random: Any = np.random.default_rng(1)
    number = 0
    while not stop.wait(1.0):
        at = np.sort(int(time.time() * 1e6) - random.choice(1_000_000, rate, replace=False))
        table = pa.table({
            "id": np.arange(rate) + number * rate,
            "time": pa.array(at, pa.timestamp("us", tz="UTC")),
            "type": np.array(list("ABCD"))[random.integers(0, 4, rate)],
            "key": random.integers(0, 1_000, rate),
        })  # fmt: skip
        pq.write_table(table, folder / f".{number:06d}")
        (folder / f".{number:06d}").rename(folder / f"{number:06d}.parquet")
        number += 1
