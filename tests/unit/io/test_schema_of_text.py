"""A schema in words says what columns of text files are: Spark's words, without Spark."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trendloom.errors import DataError, OptionError
from trendloom.io.convert import parse_schema
from trendloom.io.read import open_events, read

NUMBERS = {"a": pa.int16(), "b": pa.int8(), "c": pa.float32(), "d": pa.float64()}


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("time timestamp, id string", {"time": pa.timestamp("us", "UTC"), "id": pa.string()}),
        ("a INT, b Integer,c long , d bigint", {"a": pa.int32(), "b": pa.int32(), "c": pa.int64(), "d": pa.int64()}),
        ("a short, b byte, c float, d double", NUMBERS),
        ("a decimal(10,2), b decimal", {"a": pa.decimal128(10, 2), "b": pa.decimal128(10, 0)}),
        ("`a, b` string, `x``y` date", {"a, b": pa.string(), "x`y": pa.date32()}),
        ("a: boolean, b timestamp_ntz NOT NULL", {"a": pa.bool_(), "b": pa.timestamp("us")}),
        ("größe double COMMENT 'in m, rounded', b int,", {"größe": pa.float64(), "b": pa.int32()}),
    ],
)
def test_columns_and_types(text: str, columns: dict[str, pa.DataType]) -> None:
    assert parse_schema(text) == columns


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no column"),
        ("time", "cannot be read from 'time' on"),
        ("time timestamp; x int", "cannot be read from"),
        ("a int, a string", "names column 'a' twice"),
        ("a strng", "there is no type 'strng'"),
        ("a decimal(50,2)", "there is no type decimal(50,2)"),
        ("a decimal(2,3)", "there is no type decimal(2,3)"),
        ("a int(5)", "takes no numbers in brackets"),
    ],
)
def test_what_is_no_schema(text: str, said: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_schema(text)
    assert said in caught.value.message
    assert caught.value.hint


def test_the_words_mean_what_they_mean_to_spark(spark: object) -> None:
    from pyspark.sql.pandas.types import from_arrow_schema

    from trendloom.engines.spark.streaming.sources import struct_of

    text = (
        "a string, b int, c integer, d long, e bigint, f short, g byte, h float, i double, j decimal(10,2), k boolean, "
        "l date, m timestamp, n timestamp_ntz, `o p` tinyint, q smallint, r decimal, s: dec(5), t numeric(3,1), u real"
    )
    ours = from_arrow_schema(pa.schema(list(parse_schema(text).items())), prefer_timestamp_ntz=True)
    assert ours == struct_of(text)


ROW = {
    "time": datetime.datetime(2024, 1, 1, 9, tzinfo=datetime.UTC),
    "id": "7",
    "price": Decimal("1.50"),
    "n": 7,
    "ok": True,
    "free": 3,
}


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_named_columns_are_converted_and_the_others_recognised(kind: str, tmp_path: Path) -> None:
    lines = {
        "csv": "time,id,price,n,ok,free\n2024-01-01T10:00+01:00,7,1.5,+007,TRUE,3\n",
        "jsonl": '{"time": "2024-01-01T10:00+01:00", "id": 7, "price": 1.50, "n": "7", "ok": true, "free": 3}\n',
    }
    (tmp_path / f"e.{kind}").write_text(lines[kind])
    schema = "time timestamp, id string, price decimal(10,2), n byte, ok boolean"
    table = read(tmp_path / f"e.{kind}", schema=schema)
    assert table.to_pylist() == [ROW]
    assert table.schema.field("n").type == pa.int8()


def test_json_numbers_named_as_text_stay_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text('{"a": 1.50, "b": {"c": [1.0, true]}}\n{"a": "x", "b": null}\n')
    assert read(tmp_path, schema="a string, b string").to_pylist() == [
        {"a": "1.50", "b": '{"c": [1.0, true]}'},
        {"a": "x", "b": None},
    ]


def test_times_without_a_zone_are_of_the_time_zone(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("t\n2024-07-01 12:00\n2024-07-01T12:00Z\n")
    for schema in ("t timestamp", None):
        found = open_events(tmp_path, schema=schema, time_zone="Europe/Paris").read()["t"]
        assert found.cast(pa.timestamp("us", "UTC")).cast(pa.string()).to_pylist() == [
            "2024-07-01 10:00:00.000000Z",
            "2024-07-01 12:00:00.000000Z",
        ]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("a int", "'x' in row 2, column 'a', is not a whole number of 32 bits"),
        ("c byte", "'300' in row 3, column 'c', is not a whole number of 8 bits"),
        ("b decimal(3,1)", "'0.25' in row 2, column 'b', is not a number of 3 digits, 1 of them behind the point"),
        ("b decimal(2,0)", "'0.25' in row 2, column 'b'"),
        ("a boolean", "'1' in row 1, column 'a', is not true or false"),
        ("a double", "'x' in row 2, column 'a', is not a number"),
        ("b timestamp", "'1' in row 1, column 'b', is not a time"),
        ("a date", "'1' in row 1, column 'a', is not a date"),
    ],
)
def test_values_that_do_not_fit_are_named_with_file_and_row(schema: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("a,b,c\n1,1,1\nx,0.25,2\n3,3,300\n")
    with pytest.raises(DataError) as caught:
        read(tmp_path / "e.csv", schema=schema)
    assert f"{tmp_path}/e.csv: {said}" in caught.value.message
    assert "schema=" in str(caught.value.hint)


def test_decimals_that_are_too_long_do_not_wrap_around(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("a\n" + "1" * 50 + "\n")
    with pytest.raises(DataError, match="in row 1, column 'a', is not a number of 38 digits"):
        read(tmp_path / "e.csv", schema="a decimal(38,0)")


@pytest.mark.parametrize("name", ["e.csv", "e.jsonl"])
def test_a_column_that_is_not_there(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("amount,b\n1,2\n" if name == "e.csv" else '{"amount": 1, "b": null}\n')
    with pytest.raises(DataError, match="has no column 'amuont', which the schema names") as caught:
        read(tmp_path / name, schema="amuont int")
    assert caught.value.hint == "did you mean 'amount'?"
    assert read(tmp_path / name, schema="b string")["b"].type == pa.string()


def test_an_empty_file_of_json_lines_has_the_columns_of_the_schema(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text("")
    assert read(tmp_path, schema="time long, type string").schema.names == ["time", "type"]


def test_parquet_and_frames_have_types_of_their_own(tmp_path: Path) -> None:
    table = pa.table({"time": [1]})
    pq.write_table(table, tmp_path / "e.parquet")
    for source in (tmp_path, table):
        with pytest.raises(OptionError, match="has types of its own"):
            read(source, schema="time timestamp")
