"""Live streams on Spark itself: workloads of random queries, files that arrive one by one, restarts, late events.

A stream costs seconds however short it is, so one stream runs a workload with a query of every kind. The events come in
bursts that lie far apart, which keeps the matches few; rows are compared with those of the local engine over the events
that were in time for the query.
"""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.property.amounts import first_cases
from tests.property.compare import rows_of
from tests.property.live_cases import KINDS, RANKED, LiveCase, live_cases, ranked_live_cases
from tests.property.strategies import ARROW, to_table
from tests.property.strategies_order import Order

import trendloom as tl
from trendloom.errors import BindError, PlanError
from trendloom.spark import detect

DDL = "id long, type string, time long, x long, y double, g string, k long"
GAP = 1_000
"""Seconds between bursts: more than any window."""

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def case_of(kind: str, number: int) -> LiveCase:
    """A random case of a kind whose query binds and has rows; the same in every run."""

    def with_rows(case: LiveCase) -> LiveCase | None:
        try:
            found = tl.run(case.query, pa.concat_tables(case.tables()))
            return case if any(case.batches) and len(found) and fits_stream(case, found) else None
        except (BindError, PlanError):
            return None

    cases = ranked_live_cases(RANKED[kind]) if kind in RANKED else live_cases(kind)
    (found,) = first_cases(cases, with_rows, 1, seed=number, most=60)
    return found


def fits_stream(case: LiveCase, rows: pa.Table) -> bool:
    """Ranks need windows that end, and the scores of a workload one type."""
    return "RANK BY" not in case.query or ("SLIDE" in case.query and pa.types.is_integer(rows["score"].type))


def workload(number: int) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """A query of every kind, and the bursts of all of them in order of arrival."""
    cases = {f"q{at}": case_of(kind, number + at) for at, kind in enumerate([*KINDS, *RANKED])}
    rows: list[dict[str, Any]] = []
    for burst, case in enumerate(cases.values()):
        for row in itertools.chain.from_iterable(case.batches):
            rows.append({**row, "id": len(rows), "time": row["time"] + (burst + 1) * GAP})
    chance = random.Random(number)
    for _ in range(len(rows) // 4):  # some come late, a few of them too late
        at = chance.randrange(len(rows) - 1)
        rows.insert(min(at + chance.choice([2, 9, 40]), len(rows)), rows.pop(at))
    return {name: case.query for name, case in cases.items()}, rows


def write_file(folder: Path, number: int, rows: list[dict[str, Any]]) -> None:
    """A file that the source takes after all with a lower number."""
    path = folder / f"{number:04d}.parquet"
    pq.write_table(to_table(rows), path)
    os.utime(path, (10**9 + number, 10**9 + number))


@pytest.mark.parametrize(
    ("number", "buckets", "stops", "watermark", "order", "together"),
    [
        (1, 1, [3], "3 seconds", (), False),
        (2, 3, [1, 4], "3 seconds", ("g", "x"), True),
        (3, 8, [], f"{20 * GAP} seconds", (), True),
    ],
)
def test_a_workload_gives_what_its_queries_give_alone(
    spark: SparkSession, tmp_path: Path, number: int, buckets: int, stops: list[int], watermark: str, order: Order,
    together: bool,
) -> None:  # fmt: skip
    """With a short watermark some events are late, and are written to the side table; with a long one there is none.

    Queries travel together where the checkpoint is known beforehand, else each has parcels and state of its own.
    """
    queries, rows = workload(number)
    text = "\n".join(f"QUERY {name}:\n{query}" for name, query in queries.items())
    source, late_to = tmp_path / "source", tmp_path / "late" if watermark == "3 seconds" else None
    source.mkdir()
    found: dict[int, pa.Table] = {}
    parts = [rows[at : at + 40] for at in range(0, len(rows), 40)]
    parts.append([{**rows[0], "id": -1, "type": "end", "time": 100 * GAP}])
    at = 0
    for stop in [*stops, len(parts)]:
        for part in parts[at:stop]:
            write_file(source, at, part)
            at += 1
        df = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(str(source))
        out = detect(
            df, text, watermark=watermark, buckets=buckets, late_to=late_to and str(late_to), order=order,
            checkpoint=str(tmp_path / "checkpoint") if together else None,
        )  # fmt: skip
        running = (
            out.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .foreachBatch(lambda batch, epoch: found.update({epoch: batch.toArrow()}))
            .start()
        )
        running.processAllAvailable()
        running.stop()
    late = pq.read_table(late_to) if late_to is not None else None
    assert late is None or len(late) > len(queries)
    check(queries, [row for part in parts for row in part], pa.concat_tables(found.values()), late, order)


def check(
    queries: dict[str, str], rows: list[dict[str, Any]], found: pa.Table, late: pa.Table | None, order: Order
) -> None:
    """Every query's rows are those of the local engine over the events that were in time for it."""
    told = found.to_pylist()
    for name, query in queries.items():
        missed = set() if late is None else {row["id"] for row in late.to_pylist() if row["query"] == name}
        in_time = to_table([row for row in rows if row["id"] not in missed])
        expected = tl.run(query, in_time, engine="local", order=order)
        mine = [{key: row[key] for key in expected.column_names} for row in told if row["query"] == name]
        assert rows_of(mine) == rows_of(expected), query
    assert {row["query"] for row in told} <= set(queries)
    assert len(told) > len(queries)


def test_late_events_are_counted_and_written_once(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    row = {"type": "A", "x": 1, "y": 0.5, "g": "u", "k": 1}
    write_file(source, 0, [{**row, "id": 0, "time": 100}])
    write_file(source, 1, [{**row, "id": 1, "time": 50}, {**row, "id": 2, "time": 97}, {**row, "id": 3, "time": None}])
    df = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(str(source))
    out = detect(df, "RETURN a.id PATTERN A a WITHIN 10", watermark="3 seconds", late_to=str(tmp_path / "late"))
    running = out.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    running.processAllAvailable()
    counted = [progress.observedMetrics["trendloom_events"] for progress in running.recentProgress]
    running.stop()
    assert sum(one["late"] for one in counted) == 1
    assert sum(one["untimed"] for one in counted) == 1
    assert sum(one["kept"] for one in counted) == 2
    late = pq.read_table(tmp_path / "late")
    assert sorted(late["id"].to_pylist()) == [1, 3]
    assert set(ARROW.names) <= set(late.column_names)


def test_early_rows(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    row = {"type": "A", "x": 1, "y": 0.5, "g": "u", "k": 1}
    for number, (time, x) in enumerate([(1, 5), (2, 7), (3, 6), (4, 9)]):
        write_file(source, number, [{**row, "id": number, "time": time, "x": x}])
    df = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(str(source))
    text = """QUERY counts: RETURN g, COUNT(*) AS n PATTERN A+ GROUP BY g WITHIN 1000
              QUERY board: RETURN a.x PATTERN A a WHERE [g] RANK BY a.x DESC LIMIT 2 WITHIN 1000 SLIDE 1000"""
    out = detect(df, text, watermark="3 seconds", early=True)
    found: dict[int, list[Any]] = {}
    running = (
        out.writeStream.outputMode("update")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .foreachBatch(lambda batch, epoch: found.update({epoch: batch.toArrow().to_pylist()}))
        .start()
    )
    running.processAllAvailable()
    running.stop()
    rows = [row for epoch in sorted(found) for row in found[epoch]]
    assert [row["n"] for row in rows if row["query"] == "counts"] == [1, 3, 7, 15]
    board = [(row["rank"], row["a.x"]) for row in rows if row["query"] == "board"]
    assert board == [(1, 5), (1, 7), (2, 5), (1, 7), (2, 6), (1, 9), (2, 7)]


def test_events_without_a_time_stop_the_stream_where_nothing_takes_them(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    write_file(source, 0, [{"id": 0, "type": "A", "time": None, "x": 1, "y": 0.5, "g": "u", "k": 1}])
    df = spark.readStream.schema(DDL).parquet(str(source))
    out = detect(df, "PATTERN A a WITHIN 10", watermark="3 seconds")
    running = out.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    with pytest.raises(Exception, match="1 events have no time"):
        running.processAllAvailable()
