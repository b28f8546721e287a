"""Files on Spark: the same events as on the local engine, whoever reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.engines.event_files import QUERY, ROWS, TABLE, packed, save

import trendloom as tl
from trendloom.engines.spark.frames import remote_parquet
from trendloom.errors import DataError, OptionError

COUNT = "RETURN COUNT(*) AS n PATTERN SEQ(A a, B b) WHERE [id] GROUP BY id"


def on_spark(text: str, source: object, **options: Any) -> list[dict[str, Any]]:
    return tl.run(text, source, engine="spark", **options).to_pylist()


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_several_files_are_one_stream(kind: str, spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "a [b] {c}"  # to Spark a path is a glob
    parts = [TABLE.slice(0, 1), TABLE.slice(1, 2).select(["id", "time", "type"]), TABLE.slice(3)]
    files = [save(part, folder / f"{number}.{kind}") for number, part in enumerate(parts)]
    assert on_spark(QUERY, files) == ROWS
    assert on_spark(QUERY, str(tmp_path / "*" / f"*.{kind}")) == ROWS


def test_tasks_read_the_row_groups_of_several_files(spark: Any, tmp_path: Path) -> None:
    for number in range(4):
        save(TABLE.slice(number, 1), tmp_path / str(number % 2) / f"{number}.parquet")
    found = on_spark(COUNT, [tmp_path / "0", f"file://{tmp_path}/1"])
    assert {row["id"]: int(row["n"]) for row in found} == {"007": 1, "7": 1}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_keys_of_folders_have_the_same_types_as_elsewhere(kind: str, spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "a [b]"
    for year in ("2023", "2024"):
        for shop in ("007", "7"):
            part = pa.table({"time": [1, 2], "type": ["A", "B"], "shop": ["x", "x"]})
            save(part.set_column(2, "till", pa.array([1, 1])), folder / f"y={year}" / f"shop={shop}" / f"e.{kind}")
    query = "PATTERN SEQ(A a, B b) WHERE [shop, y]"
    expected = tl.run(query, folder)
    found = tl.run(query, folder, engine="spark")
    assert found.to_pylist() == expected.to_pylist()
    assert [row["shop"] for row in expected.to_pylist()] == ["007", "007", "7", "7"]
    globbed = on_spark(
        "PATTERN SEQ(A a, B b) WHERE [shop]", str(tmp_path / "*" / "y=2024" / "shop=*"), schema="shop int"
    )
    assert sorted({row["shop"] for row in globbed}) == [7]


@pytest.mark.parametrize("name", packed())
def test_columns_however_they_are_packed(name: str, spark: Any) -> None:
    source = packed()[name]
    query = "PATTERN SEQ(A a, B b) WHERE [key] RETURN a.time AS first, b.key AS k"
    assert on_spark(query, source) == [{"key": "x", "first": 1, "k": "x"}]


def test_files_of_file_systems_that_spark_knows(spark: Any, tmp_path: Path) -> None:
    for number in range(4):
        save(TABLE.slice(number, 1), tmp_path / "e" / f"{number}.parquet")
    spark._jsc.hadoopConfiguration().set("fs.viewfs.mounttable.house.link./events", f"file://{tmp_path}/e")
    assert on_spark(QUERY, "viewfs://house/events") == ROWS
    assert on_spark(QUERY, ["viewfs://house/events/[01].parquet", "viewfs://house/events/[23].parquet"]) == ROWS
    with pytest.raises(DataError, match=r"viewfs://house/none cannot be read by Spark") as caught:
        on_spark(QUERY, "viewfs://house/none")
    assert "\n" not in caught.value.message
    pq.write_table(pa.table({"time": ["x"], "type": ["A"], "id": ["7"]}), tmp_path / "e" / "4.parquet")
    with pytest.raises(DataError, match="cannot be read by Spark"):
        on_spark(QUERY, "viewfs://house/events")
    with pytest.raises(OptionError, match="has types of its own"):
        on_spark(QUERY, "viewfs://house/events", schema="id int")


def test_what_is_for_spark_alone() -> None:
    assert remote_parquet("s3a://bucket/events", None) is not None
    assert remote_parquet(["s3a://bucket/e.parquet", "hdfs://h/e/*.parquet"], None) is not None
    for source in (
        "e.parquet",
        "s3://bucket/e.csv.gz",
        "https://x/e.parquet",
        TABLE,
        ["s3a://b/e.parquet", "e.parquet"],
    ):
        assert remote_parquet(source, None) is None
