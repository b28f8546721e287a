"""Complete trends of many partitions on Spark, by the number of cores: tasks have nothing to wait for but their keys.

Rows go to a sink that drops them, so that what is measured is finding trends, building Arrow batches of them and
handing them to Spark.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.cases.trends import KITES, check_kites
from benchmarks.engines.on_spark import run_all
from benchmarks.harness.report import Report, Result, best_of

REGIONS = 64
QUERY = KITES.replace("WHERE", "WHERE [region] AND")


def measure_trends_on_spark(report: Report, *, quick: bool = False) -> None:
    """The same job with one core and with two."""
    from trendloom.spark import detect, session

    depth, tries = (8, 1) if quick else (10, 3)
    table = check_kites(depth, 3, 3, regions=REGIONS)
    expected = REGIONS * 3**depth
    first: Result | None = None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "events.parquet"
        pq.write_table(table, file)
        for cores in (1, 2):
            spark = session(f"local[{cores}]")
            rows = detect(spark.read.parquet(str(file)), QUERY, partitions=16)
            trends = rows.count()  # starts workers, loads and compiles
            seconds, _ = best_of(tries, lambda rows=rows: run_all(rows))
            spark.stop()
            name = f"complete trends on spark local[{cores}], {REGIONS} partitions"
            one = Result(name, len(table), seconds, trends, trends == expected)
            one = one.noting(f"{trends * depth / seconds / 1e6:.3g} M trend events/s")
            if first is not None:
                one = one.against("one core", first.rate).with_goal("1.5× one core", one.rate >= 1.5 * first.rate)
            report.add(one)
            first = first or one
