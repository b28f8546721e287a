"""Rows per match, from a table or a file to rows: the local engine, and Spark beside the bare pipeline."""

from __future__ import annotations

import tempfile

import pyarrow as pa
import pyarrow.parquet as pq

import trendloom as tl
from benchmarks.cases.events import RUN_TRENDS, RUN_VALUES, expected_runs, random_events, same_rows
from benchmarks.engines.on_spark import drop_batches, run_all
from benchmarks.harness.report import Report, Result, best_of

KEYS = 1_000


def measure_rows(report: Report, *, quick: bool = False) -> None:
    """SEQ(A, B+, C) under skip-till-next-match, on the local engine and on Spark."""
    count, tries = (1_000_000, 3) if quick else (5_000_000, 7)
    events = random_events(count, KEYS)
    expected = expected_runs(events)
    run_local(report, events, expected, tries)
    run_spark(report, events, expected, tries)


def run_local(report: Report, events: pa.Table, expected: pa.Table, tries: int) -> None:
    """SEQ(A, B+, C) under skip-till-next-match on the local engine, and how its cost grows with the events."""
    tl.run(RUN_VALUES, events.slice(0, 1_000))  # compile
    first = 0.0
    for share in (0.1, 0.2, 0.5):
        part = random_events(int(len(events) * share), KEYS)
        measured = measure_local(f"local, values, {share:.0%} of the events", part, expected_runs(part), tries)
        first = first or measured.rate
        report.add(measured.against("the first rate", first))
    measured = measure_local("local, values, unsorted Arrow table", events, expected, tries)
    report.add(measured.against("the first rate", first).with_goal("5 M events/s", measured.rate >= 5e6))
    seconds, found = best_of(1, lambda: tl.run(RUN_TRENDS, events))
    trends = Result("local, RETURN TRENDS", len(events), seconds, len(found), len(found) == len(expected))
    report.add(trends.against("values", measured.rate))


def measure_local(name: str, events: pa.Table, expected: pa.Table, tries: int) -> Result:
    seconds, found = best_of(tries, lambda: tl.run(RUN_VALUES, events))
    return Result(name, len(events), seconds, len(found), same_rows(found, expected))


def run_spark(report: Report, events: pa.Table, expected: pa.Table, tries: int) -> None:
    """The same query on Spark from Parquet, beside the bare pipeline: repartition, then drop every batch."""
    from trendloom.spark import detect, session

    spark = session("local[2]")
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(events, f"{folder}/events.parquet", row_group_size=500_000)
        df = spark.read.parquet(f"{folder}/events.parquet")
        piped = df.repartition("key").mapInArrow(drop_batches, "id long")
        values, trends = detect(df, RUN_VALUES), detect(df, RUN_TRENDS)
        for job in (piped, values, trends):  # start workers, load and compile
            run_all(job)
        bare, _ = best_of(tries, lambda: run_all(piped))
        seconds, _ = best_of(tries, lambda: run_all(values))
        long, _ = best_of(1, lambda: run_all(trends))
        good = same_rows(values.toArrow(), expected)
        counted = trends.count() == len(expected)
    spark.stop()
    base = Result("spark local[2], repartition and drop", len(events), bare, 0, None)
    report.add(base)
    measured = Result("spark local[2], values, from Parquet", len(events), seconds, len(expected), good)
    report.add(measured.against("repartition and drop", base.rate).with_goal("0.7 of it", bare / seconds >= 0.7))
    measured = Result("spark local[2], RETURN TRENDS", len(events), long, len(expected), counted)
    report.add(measured.against("repartition and drop", base.rate))
