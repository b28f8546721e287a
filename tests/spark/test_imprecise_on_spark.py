"""Imprecise times on Spark: batches of random queries in one job, a live stream with restarts, errors inside tasks."""

from __future__ import annotations

import datetime
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from tests.property.amounts import first_cases
from tests.property.compare import canonical
from tests.property.strategies_imprecise import ImpreciseCase, ImpreciseKnobs, imprecise_cases
from tests.spark.streams import write_batch

import trendloom as tl
from trendloom.engines.spark.streaming.stream import clock_of
from trendloom.errors import BindError, DataError, PlanError
from trendloom.io.intervals import intervals_of
from trendloom.options import Options
from trendloom.runtime.reading import schema_of_columns
from trendloom.spark import detect

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

BOUNDS = {"time_low": "low", "time_high": "high", "time_probability": "p", "time_unit": "s"}
QUERIES = 6


def counted(table: pa.Table) -> Counter[str]:
    """Rows as they are compared; doubles up to nine digits."""
    return Counter(str(canonical(row)) for row in table.to_pylist())


def cases_with_rows(outputs: tuple[str, ...], seed: int) -> list[ImpreciseCase]:
    def keep(case: ImpreciseCase) -> ImpreciseCase | None:
        try:
            apart = "WITHIN" in case.query and "time_grain" not in case.options  # matches are of one case each
            return case if apart and len(tl.run(case.query, case.table(), **BOUNDS)) else None
        except (BindError, PlanError):
            return None

    knobs = ImpreciseKnobs(outputs=outputs, forms=("probabilities",), most_worlds=10**6, most_events=8)
    return first_cases(imprecise_cases(knobs), keep, QUERIES, seed=seed, most=400)


def in_one_stream(cases: list[ImpreciseCase]) -> pa.Table:
    """The events of all cases, far from each other."""
    rows: list[dict[str, Any]] = []
    for number, case in enumerate(cases):
        moved = [
            {**row, "id": len(rows) + at, "low": row["low"] + 1000 * number, "high": row["high"] + 1000 * number}
            for at, row in enumerate(case.events)
        ]
        rows += moved
    return cases[0].table(tuple(rows))


def workload_of(cases: list[ImpreciseCase]) -> str:
    return "\n".join(f"QUERY q{number}:\n{case.query}" for number, case in enumerate(cases))


@pytest.mark.parametrize("outputs", [("trends",), ("totals",)], ids=["matches", "totals"])
def test_a_batch_gives_the_rows_of_the_local_engine(spark: Any, outputs: tuple[str, ...]) -> None:
    cases = cases_with_rows(outputs, seed=5)
    assert len(cases) == QUERIES
    table, text = in_one_stream(cases), workload_of(cases)
    df = spark.createDataFrame(table).repartition(3)
    found = detect(df, text, partitions=2, **BOUNDS).toArrow()
    expected = tl.run(text, table, **BOUNDS)
    assert counted(found.select(expected.column_names)) == counted(expected)
    assert len(expected) >= QUERIES


def test_rows_come_in_the_order_of_the_local_engine(spark: Any, tmp_path: Path) -> None:
    rows = [{"id": n, "type": "AB"[n % 2], "time": 3 * n, "error": n % 3, "k": n // 4} for n in range(24)]
    events = str(tmp_path / "events.parquet")
    pq.write_table(pa.Table.from_pylist(rows), events)
    query = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 8"
    how = {"time_error": "error", "time_unit": "s"}
    found = tl.run(query, events, engine="spark", **how)
    assert found.to_pylist() == tl.run(query, events, **how).to_pylist()
    assert "repartition by k" in tl.explain(query, events, engine="spark", **how)


def test_a_live_stream_gives_what_a_batch_gives(spark: Any, tmp_path: Path) -> None:
    """The watermark goes by the lower bound, here the time less its error; a stop and a start do not show.

    When the last events come the watermark is at 1037: one may have happened at 1036, and is late, though its time is
    1040; another cannot have happened before 1037.
    """
    rows = [
        {"id": n, "type": "ABC"[n * n % 3], "time": 1000 + 2 * n - n % 3, "error": float(n % 4) / 2, "k": n % 2}
        for n in range(40)
    ]
    how = {"time_error": "error", "time_unit": "s"}
    text = """
        QUERY any: PATTERN SEQ(A a, B b) WHERE [k] WITHIN 9
        QUERY next: PATTERN SEQ(A a, NOT C c, B+ b[]) SEMANTICS skip-till-next-match WHERE [k] WITHIN 12
        QUERY total: RETURN k, COUNT(*) PATTERN SEQ(A a, B b) WHERE [k] GROUP BY k WITHIN 10 SLIDE 5
    """
    schema = pa.Table.from_pylist(rows[:1]).schema
    in_time, late = ({"id": n, "type": "A", "time": 1040, "error": n - 94.0, "k": 0} for n in (97, 98))
    batches = [rows[:9], rows[9:22], rows[22:23], [*rows[23:], in_time, late]]
    parts = [pa.Table.from_pylist(some, schema) for some in batches]
    parts.append(pa.Table.from_pylist([{"id": 99, "type": "Z", "time": 10**6, "error": 0.0, "k": 0}], schema))
    folder, state, out, missed = tmp_path / "in", str(tmp_path / "state"), tmp_path / "out", tmp_path / "late"
    ddl = "id long, type string, time long, error double, k long"
    for number, part in enumerate(parts):
        write_batch(folder, number, part)
        if number in (1, len(parts) - 1):  # the stream is stopped in between
            source = spark.readStream.schema(ddl).option("maxFilesPerTrigger", 1).parquet(str(folder))
            found = detect(source, text, watermark="5 seconds", buckets=2, checkpoint=state, late_to=str(missed), **how)
            sink = found.writeStream.format("parquet").option("path", str(out)).option("checkpointLocation", state)
            sink.trigger(availableNow=True).start().awaitTermination()
    everything = pa.concat_tables(parts)
    expected = tl.run(text, everything.filter(pc.field("id") != 98), **how)
    found = spark.read.parquet(str(out)).toArrow()
    assert counted(found.select(expected.column_names)) == counted(expected)
    assert {"any", "next", "total"} == set(expected["query"].to_pylist())
    assert counted(expected) != counted(tl.run(text, everything, **how))
    told = pq.read_table(missed).to_pylist()
    assert sorted((row["query"], row["id"]) for row in told) == [("any", 98), ("next", 98), ("total", 98)]


NOON = datetime.datetime(2024, 1, 31, 12, tzinfo=datetime.UTC)
WHOLE = {"time": [10, 20], "n": [3, 0], "f": [1.5, 0.0], "d": [Decimal("1.25"), Decimal(0)], "low": [7, 20]}
MOMENTS = {
    "time": [NOON, NOON],
    "n": [3, 0],
    "f": [0.1, 0.0],
    "d": [Decimal("7.5"), Decimal(0)],
    "i": [datetime.timedelta(seconds=1.5), datetime.timedelta(0)],
}


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        *[(WHOLE, {"time_error": error}) for error in ("3", "1.5 s", "A=2s,B=1s", "B=1.5s,4", "n", "f", "d")],
        (WHOLE, {"time_low": "low", "time_high": "time"}),
        (WHOLE, {"time_error": "2 min", "time_unit": "min"}),
        *[
            (MOMENTS, {"time_error": error, "time_grain": "1ms"})
            for error in ("7.5s", "A=2s,B=1ms", "n", "f", "d", "i")
        ],
    ],
    ids=lambda given: "" if "time" in given else str(given),
)
def test_the_clock_is_the_earliest_time_and_never_ahead_of_it(
    spark: Any, columns: dict[str, Any], options: dict[str, str]
) -> None:
    table = pa.table({**columns, "type": ["A", "B"]})
    how = Options(time_points=10**8, **{"time_unit": "s", **options})  # type: ignore[arg-type]
    schema = schema_of_columns(table.schema, how)
    df = spark.createDataFrame(table)
    clocks = [row[0] for row in df.select(F.unix_micros(clock_of(df, schema))).collect()]
    earliest = intervals_of(table, replace(schema, imprecision=replace(schema.imprecision, grain=1))).low
    behind = [int(low * schema.axis.tick) - clock for low, clock in zip(earliest.tolist(), clocks, strict=True)]
    assert all(0 <= ticks <= 1 for ticks in behind)


def test_what_is_wrong_with_times_is_said_by_tasks(spark: Any, tmp_path: Path) -> None:
    events = str(tmp_path / "events.parquet")
    pq.write_table(pa.table({"type": ["A", "B"], "low": [1, 5], "high": [3, 4]}), events)
    how = {"time_low": "low", "time_high": "high", "time_unit": "s"}
    with pytest.raises(DataError, match="an event ends before it begins"):
        tl.run("PATTERN SEQ(A a, B b)", events, engine="spark", **how)
    with pytest.raises(Exception, match="an event ends before it begins"):
        detect(spark.read.parquet(events), "PATTERN SEQ(A a, B b)", **how).toArrow()
