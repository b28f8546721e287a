"""Rows of several queries in one table: NULL where a query lacks a column, and no value loses a digit."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trendloom as tl
from trendloom.engines.spark.tasks import aligned, joint_schema
from trendloom.errors import OptionError
from trendloom.io.write import is_exact_text
from trendloom.runtime.result_columns import joint_schema_of, one_table, with_columns

WIDE = 2**53 + 1


def joint(*kinds: pa.DataType, most_digits: int | None = None) -> pa.DataType:
    return joint_schema_of([pa.schema({"v": kind}) for kind in kinds], most_digits).field("v").type


@pytest.mark.parametrize(
    ("kinds", "wanted"),
    [
        ((pa.int32(), pa.int64()), pa.int64()),
        ((pa.uint8(), pa.uint64()), pa.uint64()),
        ((pa.uint32(), pa.int8()), pa.int64()),
        ((pa.uint64(), pa.int64()), pa.decimal128(20, 0)),
        ((pa.int64(), pa.decimal128(38, 0)), pa.decimal128(38, 0)),
        ((pa.decimal128(10, 2), pa.decimal128(10, 4)), pa.decimal128(12, 4)),
        ((pa.decimal128(38, 0), pa.decimal128(38, 2)), pa.decimal256(40, 2)),
        ((pa.decimal256(76, 0), pa.decimal128(38, 20)), pa.string()),
        ((pa.float32(), pa.float64()), pa.float64()),
        ((pa.timestamp("us"), pa.timestamp("ns")), pa.timestamp("ns")),
        ((pa.timestamp("us", "UTC"), pa.timestamp("s", "Europe/Berlin")), pa.timestamp("us", "UTC")),
        ((pa.null(), pa.int64()), pa.int64()),
        ((pa.null(), pa.null()), pa.null()),
        ((pa.dictionary(pa.int32(), pa.string()), pa.string()), pa.string()),
        ((pa.dictionary(pa.int32(), pa.string()),) * 2, pa.dictionary(pa.int32(), pa.string())),
    ],
)
def test_a_type_that_holds_all_values_exactly(kinds: tuple[pa.DataType, ...], wanted: pa.DataType) -> None:
    assert joint(*kinds) == joint(*reversed(kinds)) == wanted


@pytest.mark.parametrize(
    "kinds",
    [(pa.timestamp("us"), pa.timestamp("us", "UTC")), (pa.int64(), pa.string()), (pa.bool_(), pa.int64())],
)
def test_what_no_type_holds_is_refused(kinds: tuple[pa.DataType, ...]) -> None:
    with pytest.raises(OptionError, match="cannot share one table of results: 'v' is of the types"):
        joint(*kinds)


def test_decimals_on_spark_have_so_many_digits() -> None:
    with pytest.raises(OptionError, match=r"decimal128\(38, 0\), decimal128\(38, 2\)"):
        joint(pa.decimal128(38, 0), pa.decimal128(38, 2), most_digits=38)
    assert joint(pa.int64(), pa.decimal128(38, 0), most_digits=38) == pa.decimal128(38, 0)


def test_no_digit_is_lost() -> None:
    long = Decimal("7" * 70)
    tables = [
        pa.table({"v": [WIDE]}),
        pa.table({"v": pa.array([long], pa.decimal256(76, 0))}),
        pa.table({"v": pa.array([Decimal("0.25"), None], pa.decimal128(38, 20))}),
    ]
    found = one_table(tables)
    assert is_exact_text(found.schema.field("v"))
    assert found["v"].to_pylist()[:2] == [str(WIDE), str(long)]
    assert Decimal(found["v"][2].as_py()) == Decimal("0.25")
    assert found["v"][3].as_py() is None


def test_a_time_that_the_finest_unit_does_not_reach_is_refused() -> None:
    far = pa.table({"v": pa.array([10**17], pa.timestamp("us"))})
    with pytest.raises(OptionError, match="cannot share one table"):
        with_columns(far, pa.schema({"v": pa.timestamp("ns")}))


def test_rows_of_one_query_among_the_columns_of_all_on_spark() -> None:
    one, two = pa.table({"v": pa.array([1], pa.int32())}), pa.table({"v": [WIDE], "w": ["x"]})
    joint = joint_schema([one.schema, two.schema], named=True)
    parts = [*aligned(one, "one", joint), *aligned(two, "two", joint)]
    rows = pa.Table.from_batches(parts).to_pylist()
    assert rows == [{"query": "one", "v": 1, "w": None}, {"query": "two", "v": WIDE, "w": "x"}]
    (alone,) = aligned(one, None, joint_schema([one.schema], named=False))
    assert alone.to_pylist() == [{"v": 1}]


EVENTS = pa.table({"time": range(400), "type": ["A", "B"] * 200, "g": ["u", "u", "v", "v"] * 100, "x": [WIDE, 2] * 200})
WORKLOAD = """QUERY pairs: RETURN a.x, b.time AS until PATTERN SEQ(A a, B b) WHERE [g] WITHIN 2
QUERY counts: RETURN g, COUNT(*) AS n PATTERN A GROUP BY g WITHIN 100
QUERY many: RETURN COUNT(*) AS n PATTERN A+"""


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_the_union_has_null_where_a_query_lacks_a_column(engine: str) -> None:
    events = EVENTS.slice(0, 12) if engine == "reference" else EVENTS
    found = tl.run(WORKLOAD, events, engine=engine)
    assert found.column_names == ["query", "g", "a.x", "until", "window_start", "window_end", "n"]
    rows = found.to_pylist()
    assert all(row["n"] is None and row["window_start"] is None and row["a.x"] == WIDE for row in rows if row["until"])
    counts = [row for row in rows if row["query"] == "counts"]
    assert all(row["a.x"] is None and row["n"] is not None for row in counts)
    (many,) = [row for row in rows if row["query"] == "many"]
    assert (int(many["n"]), many["g"]) == (2 ** (len(events) // 2) - 1, None)
    alone = {name: tl.run(WORKLOAD, events, engine=engine, query=name) for name in ("pairs", "counts", "many")}
    assert len(found) == sum(map(len, alone.values()))
    if engine == "local":
        assert found.schema.field("n").type == pa.decimal256(76, 0)


def test_files_of_a_workload(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from trendloom.cli.main import app

    pq.write_table(EVENTS, tmp_path / "events.parquet")
    (tmp_path / "all.tql").write_text(WORKLOAD)
    given = ["run", str(tmp_path / "all.tql"), "--events", str(tmp_path / "events.parquet"), "--engine", "local"]
    rows = tl.run(WORKLOAD, EVENTS)
    for format in ("parquet", "csv", "jsonl"):
        result = CliRunner().invoke(app, [*given, "--output", str(tmp_path / f"rows.{format}")])
        assert result.exit_code == 0, result.output
    assert pq.read_table(tmp_path / "rows.parquet").to_pylist() == rows.to_pylist()
    header, *lines = (tmp_path / "rows.csv").read_text().splitlines()
    assert header == ",".join(rows.column_names)
    assert lines[-1] == f"many,,,,,,{2**200 - 1}"
    last = json.loads((tmp_path / "rows.jsonl").read_text().splitlines()[-1])
    assert last == {"query": "many", "n": 2**200 - 1}
