"""What people bring to Spark and what they get back: frames of any kind, times of any unit, errors in plain words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trendloom as tl
from trendloom.engines.spark import batch
from trendloom.engines.spark.answers import job_of
from trendloom.engines.spark.frames import open_frame
from trendloom.engines.spark.plan_steps import Path as Way
from trendloom.errors import DataError, OptionError
from trendloom.logical.bind import bind
from trendloom.options import Options
from trendloom.runtime.planning import plan_query
from trendloom.runtime.reading import queries_of
from trendloom.spark import detect

PAIRS = "RETURN a.time AS t, b.z AS z PATTERN SEQ(A a, B b)"
TIMES = pd.to_datetime(
    ["1969-12-31T23:59:59.999999", "2024-01-01T00:00:00.000001", "2024-01-01T00:00:02", "2024-01-01T00:00:03"],
    format="ISO8601",
).astype("datetime64[ns]")


@pytest.fixture
def pandas_parquet(tmp_path: Path) -> Path:
    """What `df.to_parquet()` makes of times: nanoseconds, with and without a zone, some missing."""
    zoned = TIMES.tz_localize("Europe/Berlin").where([True, True, True, False])
    frame = pd.DataFrame({"time": TIMES, "type": list("AABB"), "z": zoned})
    frame.to_parquet(tmp_path / "events.parquet")
    assert pq.read_schema(tmp_path / "events.parquet").field("time").type == pa.timestamp("ns")
    return tmp_path / "events.parquet"


def moments(table: pa.Table) -> list[list[str]]:
    """Rows as text, zoned times in UTC, in order."""
    columns = [column.cast(pa.timestamp("us", column.type.tz)) for column in table.columns]
    rows = pa.table([column.cast(pa.int64()) for column in columns], names=table.column_names)
    return sorted([str(value) for value in row.values()] for row in rows.to_pylist())


# ----------------------------------------------------------------------------------------- nanoseconds


def test_parquet_of_pandas_is_read_as_the_local_engine_reads_it(spark: Any, pandas_parquet: Path) -> None:
    found, wanted = (tl.run(PAIRS, pandas_parquet, engine=engine) for engine in ("spark", "local"))
    assert found["t"].type.tz is None
    assert found["z"].type.tz is not None
    assert moments(found) == moments(wanted)
    assert len(found) == 4
    assert spark.conf.get("spark.sql.legacy.parquet.nanosAsLong") == "false"


@pytest.mark.parametrize("way", [Way.GENERAL, Way.REDUCED, Way.DIRECT])
def test_nanoseconds_on_every_path(spark: Any, tmp_path: Path, way: Way) -> None:
    times = pd.date_range("2024-01-01", periods=300, freq="s").astype("datetime64[ns]")
    frame = pd.DataFrame({"time": times, "type": ["A", "B"] * 150, "k": [1, 2, 3] * 100})
    frame.to_parquet(tmp_path / "events.parquet", row_group_size=50)
    text = "RETURN COUNT(*) PATTERN SEQ(A+, B) WHERE [k] WITHIN 20 s SLIDE 10 s"
    opened = open_frame(spark, tmp_path / "events.parquet", Options(engine="spark"))
    (query,) = queries_of(text)
    physical = plan_query(bind(query, opened.schema))
    found = batch.run(opened.df, job_of(opened, "exact", physical), path=way, files=opened.files).toArrow()
    wanted = tl.run(text, frame)
    assert sorted(map(str, found["COUNT(*)"].to_pylist())) == sorted(map(str, wanted["COUNT(*)"].to_pylist()))


@pytest.mark.parametrize("odd", ["time", "z"])
def test_nanoseconds_that_are_not_whole_microseconds(spark: Any, tmp_path: Path, odd: str) -> None:
    columns = {name: pa.array([1000, 2001 if name == odd else 2000], pa.timestamp("ns")) for name in ("time", "z")}
    pq.write_table(pa.table({**columns, "type": ["A", "B"]}), tmp_path / "odd.parquet")
    with pytest.raises(DataError, match=f"column '{odd}' has times that are not whole microseconds: 2001 ns") as raised:
        tl.run(PAIRS, tmp_path / "odd.parquet", engine="spark")
    assert "round the times to microseconds first" in str(raised.value)


def test_nanoseconds_inside_a_struct_are_refused(spark: Any, tmp_path: Path) -> None:
    inside = pa.array([{"t": 1}], pa.struct([("t", pa.timestamp("ns"))]))
    pq.write_table(pa.table({"time": [1], "type": ["A"], "s": inside}), tmp_path / "nested.parquet")
    with pytest.raises(DataError, match="column 's' has times in nanoseconds inside lists or structs"):
        tl.run("PATTERN A", tmp_path / "nested.parquet", engine="spark")


# ---------------------------------------------------------------------------------------- frames of all kinds


def test_run_collects_the_rows_of_a_spark_frame(events: Any) -> None:
    table = events.toArrow()
    query = "PATTERN SEQ(A a, B b) WHERE [g]"
    assert tl.run(query, events).to_pylist() == tl.run(query, table).to_pylist()
    assert tl.check("PATTERN SEQ(A a, B b) WHERE [g]", events) == []
    with pytest.raises(OptionError, match="the local engine does not read a DataFrame of Spark's") as raised:
        tl.run(query, events, engine="local")
    assert 'engine="spark"' in str(raised.value)


def test_a_streaming_frame_cannot_be_collected(spark: Any) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("timestamp AS time", "'A' AS type")
    with pytest.raises(OptionError, match="a streaming DataFrame has no last row") as raised:
        tl.run("PATTERN A", stream)
    assert "trendloom.spark.detect" in str(raised.value)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "csv", "parquet"])
def test_detect_takes_what_run_takes(spark: Any, tmp_path: Path, kind: str) -> None:
    table = pa.table({"type": ["A", "B"], "time": [1, 2], "x": [3, 4]})
    pq.write_table(table, tmp_path / "events.parquet")
    (tmp_path / "events.csv").write_text("type,time,x\nA,1,3\nB,2,4\n")
    frames = {"pandas": pd.DataFrame(table.to_pydict()), "polars": pl.DataFrame(table.to_pydict()), "arrow": table}
    source = frames.get(kind, tmp_path / f"events.{kind}")
    (row,) = detect(source, "RETURN a.x AS a, b.x AS b PATTERN SEQ(A a, B b)").collect()
    assert (row["a"], row["b"]) == (3, 4)


def test_detect_says_what_it_cannot_read(spark: Any) -> None:
    with pytest.raises(DataError, match="does not exist"):
        detect("nowhere.parquet", "PATTERN A")
    with pytest.raises(DataError, match="cannot read events from a int"):
        detect(7, "PATTERN A")


# ------------------------------------------------------------------------------------------- plain errors


def test_an_error_in_a_task_is_plain_text_at_the_action(spark: Any) -> None:
    df = spark.createDataFrame([(1, "A"), (None, "A")], "time long, type string")
    with pytest.raises(Exception, match="have no time") as raised:
        detect(df, "PATTERN A").collect()
    first, second, *_ = str(raised.value).splitlines()
    assert first == "[USER_RAISED_EXCEPTION] trendloom.errors.DataError: 1 of 2 events in a task have no time"
    assert second == "hint: remove them, or give them a time"
    assert not any(word in str(raised.value) for word in ("Traceback", "{", "tasks.py", "\tat "))
    with pytest.raises(DataError, match=r"^1 of 2 events have no time"):
        tl.run("PATTERN A", df)


def test_what_spark_itself_cannot_do_is_one_sentence(spark: Any) -> None:
    df = spark.range(3).selectExpr("id AS time", "'A' AS type", "raise_error('no such luck') AS x")
    with pytest.raises(tl.errors.RunError, match="Spark could not do it: no such luck") as raised:
        tl.run("PATTERN A a WHERE a.x = 'b'", df)
    assert "\n" not in str(raised.value)


def test_the_command_shows_nothing_of_sparks_own(tmp_path: Path) -> None:
    """A process of its own, because what is printed while Java starts is the point."""
    pq.write_table(pa.table({"time": [1, None], "type": ["A", "A"]}), tmp_path / "spark.parquet")
    (tmp_path / "query.tql").write_text("PATTERN A")
    command = [
        sys.executable,
        "-m",
        "trendloom",
        "run",
        "query.tql",
        "-e",
        "spark.parquet",
        "-q",
        "--master",
        "local[1]",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: 1 of 2 events have no time: column 'time' is NULL or cannot be read as a time",
        "hint: drop these rows or fill in their time first",
    ]
