"""Decimals on Spark: every path is exact, filters mean what tasks mean, and a sum that does not fit names its group."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.property.compare import rows_of

import trendloom as tl
from trendloom.engines.spark.columns import needed_rows
from trendloom.errors import DataError, OptionError, PlanError
from trendloom.frontend.tql.parser import parse_query
from trendloom.io.events import prepare
from trendloom.logical.bind import bind
from trendloom.optimizer import optimize
from trendloom.spark import detect

BIG = 1234567890123456789
MEASURES = "COUNT(*), SUM(A.x), MIN(A.x), MAX(A.x), AVG(A.x), SUM(A.w), MIN(A.w)"
QUERIES = {
    "by key": f"RETURN w, {MEASURES} PATTERN A+ WHERE [w] GROUP BY w WITHIN 8 SLIDE 4",
    "groups of keys": f"RETURN {MEASURES} PATTERN A+ WHERE [w] WITHIN 8 SLIDE 4",
    "small": "RETURN SUM(A.x), MAX(A.x), AVG(A.x) PATTERN SEQ(A, A) WHERE [w] HAVING SUM(A.x) > 0.1",
    "compared": "RETURN w, COUNT(*), SUM(A.x) PATTERN A+ WHERE [w] AND A.x + 0.1 <= NEXT(A).x GROUP BY w WITHIN 8",
    "two steps": "RETURN COUNT(*), SUM(a.x), MAX(a.w) PATTERN SEQ(A a+, A b) WHERE [w] AND sum(a[].x) = b.x",
}
ALLOWED = {"by key": ("cut",), "groups of keys": ("cut",), "small": ("reduced", "auto"), "compared": ("cut",)}


def events(rows: int = 40) -> pa.Table:
    """Tenths in x, keys in w that no double tells apart."""
    x = [None if n % 7 == 6 else Decimal(n % 4) / 10 for n in range(rows)]
    w = [None if n % 11 == 10 else BIG + Decimal(n % 3) / 100 for n in range(rows)]
    return pa.table({
        "time": list(range(rows)),
        "type": ["A"] * rows,
        "x": pa.array(x, pa.decimal128(9, 2)),
        "w": pa.array(w, pa.decimal128(38, 2)),
    })  # fmt: skip


@pytest.mark.parametrize("name", QUERIES)
def test_every_path_is_exact(name: str, spark: Any) -> None:
    table = events(12 if name == "two steps" else 40)
    expected = tl.run(QUERIES[name], table, engine="local")
    df = spark.createDataFrame(table).repartition(3)
    for path in ("general", *ALLOWED.get(name, ())):
        result = detect(df, QUERIES[name], path=path).toArrow()
        assert rows_of(result) == rows_of(expected), path
        assert result.schema.field(result.schema.names[-1]).type == expected.schema.field(result.schema.names[-1]).type


def test_tasks_that_read_their_own_files_are_exact(spark: Any, tmp_path: Path) -> None:
    pq.write_table(events(), tmp_path / "events.parquet", row_group_size=10)
    query = "RETURN SUM(A.x), MIN(A.x), AVG(A.x) PATTERN A+ WHERE A.x >= 0.2 WITHIN 8 SLIDE 4"
    found = tl.run(query, tmp_path / "events.parquet", engine="spark")
    assert rows_of(found) == rows_of(tl.run(query, events(), engine="reference"))


def test_wide_columns_do_not_become_matrices(spark: Any) -> None:
    df = spark.createDataFrame(events())
    with pytest.raises(OptionError, match="beyond 64 bits"):
        detect(df, "RETURN SUM(A.w) PATTERN A+", path="reduced")


def test_types_of_results(spark: Any) -> None:
    query = "RETURN SUM(A.x) AS s, MIN(A.x) AS m, SUM(A.x) * 0.25 AS q, AVG(A.w) AS v PATTERN A"
    types = dict(detect(spark.createDataFrame(events()), query).dtypes)
    assert types == {"s": "decimal(38,2)", "m": "decimal(9,2)", "q": "decimal(38,4)", "v": "double"}
    rows = dict(
        detect(spark.createDataFrame(events()), "PATTERN A a RETURN a.x, a.x + a.w AS s, max(a[].x) AS m").dtypes
    )
    assert rows == {"a.x": "decimal(9,2)", "s": "decimal(38,2)", "m": "decimal(9,2)"}


def test_a_sum_that_does_not_fit_names_group_and_window(spark: Any) -> None:
    rows = [("A", time, 1, Decimal("9" * 36)) for time in range(3)]
    df = spark.createDataFrame(rows, "type string, time int, k int, x decimal(38,2)")
    told = r"SUM\(A.x\) does not fit DECIMAL\(38,2\) in k = 1, the window that starts at 0"
    with pytest.raises(Exception, match=told):
        detect(df, "RETURN k, SUM(A.x) PATTERN A GROUP BY k WITHIN 10").collect()


def test_digits_beyond_those_of_spark_are_refused(spark: Any) -> None:
    df = spark.createDataFrame([("A", 1, Decimal("0.5"))], "type string, time int, x decimal(38,30)")
    with pytest.raises(PlanError, match="Spark's decimals end at 38 digits"):
        detect(df, "RETURN SUM(A.x) * 0.123456789 AS s PATTERN A")


@pytest.mark.parametrize("kind", [pa.decimal32(5, 2), pa.decimal64(12, 2), pa.decimal256(50, 2), pa.decimal128(5, -2)])
def test_every_decimal_of_arrow_reaches_spark(kind: pa.DataType, spark: Any) -> None:
    values = pa.array([Decimal(100), Decimal(300), None], kind)
    table = pa.table({"time": [1, 2, 3], "type": ["A"] * 3, "x": values})
    found = tl.run("RETURN SUM(A.x) AS s PATTERN A WHERE A.x > 100.5", table, engine="spark")
    assert found.to_pylist() == [{"s": 300}]
    if kind.precision > 38:
        wide = table.set_column(2, "x", pa.array([Decimal("9" * 48), None, None], kind))
        with pytest.raises(DataError, match="decimals of 38 digits"):
            tl.run("PATTERN A a WHERE a.x > 0.5", wide, engine="spark")


FILTERS = {
    "a.x = 0.2": True,
    "a.x >= 0.20": True,
    "a.x < 1": True,
    "a.x != 0.3": True,
    f"a.w = {BIG}.01": True,
    f"a.w > {BIG}": True,
    "a.x < 0.205": False,  # Spark would convert the column
    "a.x < 99999999999": False,
    "a.x < a.w": False,
    "a.x / 2 < 0.1": False,
}


@pytest.mark.parametrize("condition", FILTERS)
def test_filters_mean_what_tasks_mean(condition: str, spark: Any) -> None:
    table = events(12)
    df = spark.createDataFrame(table)
    plan = optimize(bind(parse_query(f"PATTERN A a WHERE {condition} RETURN a.time"), prepare(table).schema))
    test = needed_rows(plan, df.schema)
    assert test is not None
    expected = tl.run(f"PATTERN A a WHERE {condition} RETURN a.time", table, engine="reference")["a.time"].to_pylist()
    kept = sorted(row["time"] for row in df.filter(test).collect())
    assert kept == (sorted(expected) if FILTERS[condition] else list(range(12)))


def test_a_live_stream_of_decimals(spark: Any, tmp_path: Path) -> None:
    source = tmp_path / "events"
    source.mkdir()
    table = events(24)
    last = pa.Table.from_pylist([{"time": 1_000, "type": "B"}], schema=table.schema)
    for number, part in enumerate([*(table.slice(start, 8) for start in (0, 8, 16)), last]):
        path = source / f"{number}.parquet"
        pq.write_table(part, path)
        os.utime(path, (number, number))  # Spark takes the oldest file first
    query = "RETURN w, COUNT(*), SUM(A.x), MAX(A.w) PATTERN A+ WHERE [w] AND A.x < NEXT(A).x GROUP BY w WITHIN 8"
    columns = spark.createDataFrame(table).schema
    df = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).parquet(str(source))
    running = (
        detect(df, query, watermark="0 seconds")
        .writeStream.format("memory")
        .queryName("decimals")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    running.awaitTermination()
    found = spark.table("decimals").toArrow()
    assert rows_of(found) == rows_of(tl.run(query, table, engine="local"))
