"""A workload of plain queries with one key set, beside the same queries one after another, each by a call of its own.

All of them count trends of the same stream, with thresholds and windows of their own. On Spark the session is warm:
reading, moving and adding up are compared, not the start of Java. How the time grows with the number of queries says
what a further query costs.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import trendloom as tl
from benchmarks.cases.counts import in_one_text, plain_queries
from benchmarks.cases.events import same_rows
from benchmarks.harness.report import Curve, Report, Timing, race
from trendloom.engines.precompile import usual_events

QUERIES = 20
SIZES = (1, 5, 20)
GOALS = {"local": 4.0, "spark": 5.0}


def measure_many_queries(report: Report, *, quick: bool = False) -> None:
    """On the local engine and on Spark, out of one Parquet file."""
    events, tries = (200_000, 2) if quick else (1_000_000, 3)
    table = usual_events(events)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "events.parquet")
        pq.write_table(table, file, row_group_size=max(events // 8, 1))
        _measure(report, "local", file, events, tries, {"engine": "local"})
        from trendloom.spark import session

        spark = session("local[2]")
        _measure(report, "spark", file, events, tries, {"engine": "spark", "master": "local[2]"})
        spark.stop()


def _measure(report: Report, name: str, file: str, events: int, tries: int, options: dict[str, Any]) -> None:
    queries = plain_queries(QUERIES)
    contenders = {
        "one after another": partial(_one_by_one, queries, file, options),
        **{f"{size} at once": partial(_at_once, size, file, options) for size in SIZES},
    }
    timings = race(tries, contenders)
    whole: Timing = timings[f"{QUERIES} at once"]
    apart: Timing = timings["one after another"]
    good = all(
        same_rows(
            apart.answer[query], whole.answer.filter(pa.compute.equal(whole.answer["query"], query)).drop("query")
        )
        for query in queries
    )
    report.add(
        apart.result(f"{name}, {QUERIES} queries one after another", events, rows=len(whole.answer), checked=good)
    )
    goal = GOALS[name]
    one = whole.result(f"{name}, {QUERIES} queries in one workload", events, rows=len(whole.answer), checked=good)
    one = one.against("one after another", events / apart.best)
    report.add(one.with_goal(f"{goal:g} times", (one.ratio or 0) >= goal))
    seconds = tuple(timings[f"{size} at once"].best for size in SIZES)
    report.curves.append(Curve(f"queries of a workload on {name}", "seconds by queries", SIZES, seconds))


def _one_by_one(queries: dict[str, str], file: str, options: dict[str, Any]) -> dict[str, pa.Table]:
    return {name: tl.run(query, file, **options) for name, query in queries.items()}


def _at_once(count: int, file: str, options: dict[str, Any]) -> pa.Table:
    found = tl.run(in_one_text(plain_queries(count)), file, **options)
    return found if "query" in found.column_names else found.add_column(0, "query", [["q0"] * len(found)])
