"""An archive written by Spark holds what one written in this process holds: events, rows, partitions, queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from trendloom.archive import Archive, open_archive
from trendloom.archive.requests import ArchiveRequest
from trendloom.engines.local.archive import archive_locally
from trendloom.errors import BindError, OptionError
from trendloom.options import Options
from trendloom.spark import archive

WORKLOAD = """
QUERY pairs: PATTERN SEQ(A a, `B/b` b) SEMANTICS skip-till-next-match WHERE [k] WITHIN 20 s
QUERY sums: RETURN k, COUNT(*), SUM(A.x) AS x PATTERN SEQ(A+, `B/b`) WHERE [k] GROUP BY k WITHIN 20 s SLIDE 10 s
QUERY totals: RETURN COUNT(*) AS x PATTERN SEQ(A+, `B/b`) WHERE [k] WITHIN 20 s SLIDE 20 s
"""
"""Rows per match; groups; groups of several partitions. The columns x are of two kinds, which no table could hold."""

COUNT = 300


def events(times: pa.Array) -> pa.Table:
    numbers = range(COUNT)
    return pa.table(
        {
            "time": times,
            "type": [("A", "B/b", "C")[number * 7 % 11 % 3] for number in numbers],
            "k": [number % 5 for number in numbers],
            "x": [None if number % 3 == 0 else number / 4 for number in numbers],
            "rack": [f"r{number % 5 // 2}" for number in numbers],
            "user": [f"u{number % 7}" for number in numbers],
        }
    )


SECONDS = pa.array(list(range(COUNT)))
MOMENTS = pa.array([1_700_000_000_000_000 + number * 1_000_000 for number in range(COUNT)], pa.timestamp("us", "UTC"))


def contents(found: Archive) -> dict[str, Any]:
    """Everything, in an order that does not depend on who wrote it."""
    names = found.queries()
    return {
        "settings": found.settings,
        "types": found.types(),
        "queries": names,
        **{f"events {name}": found.events(name).to_pylist() for name in found.types()},
        **{f"rows {name}": sorted(map(str, found.results(name).to_pylist())) for name in names},
        **{f"partitions {name}": found.partitions(name).to_pylist() for name in names},
    }


@pytest.mark.parametrize("times", [SECONDS, MOMENTS], ids=["seconds", "moments"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_both_engines_write_the_same(spark: Any, tmp_path: Path, times: pa.Array) -> None:
    table = events(times)
    request = ArchiveRequest(tmp_path / "local", WORKLOAD, "day", chunk="1 min", dimensions=("k",))
    archive_locally(request, table, Options())
    local = contents(open_archive(tmp_path / "local"))
    found = archive(
        spark.createDataFrame(table), WORKLOAD, tmp_path / "spark", commit="day", chunk="1 min", dimensions="k"
    )
    assert contents(found) == local
    assert len(local["rows pairs"]) > 20
    assert {row["rack"] for row in local["partitions sums"]} == {"r0", "r1", "r2"}
    if times is SECONDS:  # the same again replaces itself
        again = archive(spark.createDataFrame(table), WORKLOAD, tmp_path / "spark", commit="day", chunk="1 min")
        assert contents(again)["types"] == local["types"]
        on_disk = {str(path.relative_to(tmp_path / "spark")) for path in (tmp_path / "spark").rglob("*.parquet")}
        assert on_disk == {file.path for file in again.files}


def test_files_are_for_every_reader(spark: Any, tmp_path: Path) -> None:
    found = archive(spark.createDataFrame(events(MOMENTS)), "", tmp_path / "a", chunk="2 min")
    paths = [str(found.root / file.path) for file in found.files if file.of == "B/b"]
    read = spark.read.option("basePath", str(found.root / "events")).parquet(*paths)
    assert read.count() == found.types()["B/b"].rows
    assert {row[0] for row in read.select("type").distinct().collect()} == {"B/b"}


def test_what_cannot_be_archived_is_refused_before_anything_is_written(spark: Any, tmp_path: Path) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("timestamp AS time", "'A' AS type")
    with pytest.raises(OptionError, match="a streaming DataFrame has no last event"):
        archive(stream, "", tmp_path / "a")
    with pytest.raises(BindError, match="add a time to RETURN"):
        archive(spark.createDataFrame(events(SECONDS)), "RETURN a.x PATTERN A a", tmp_path / "a")
    with pytest.raises(OptionError, match="not an address"):
        archive(spark.createDataFrame(events(SECONDS)), "", "s3://bucket/a")
    assert not (tmp_path / "a").exists()
