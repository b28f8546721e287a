"""Times on Spark: integers of any width, timestamps with and without a zone, dates, text; always UTC for us."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trendloom as tl
from trendloom.errors import BindError, DataError
from trendloom.spark import detect

NOON = dt.datetime(2024, 1, 31, 12)
TEXT = [("a1", "A", "2024-01-31T12:00:00Z"), ("b2", "B", "2024-01-31T12:00:05Z"), ("b3", "B", "2024-01-31T12:01:00Z")]
WINDOWS = "PATTERN SEQ(A a, B b) WITHIN 10 s SLIDE 5 s"
ZONES = ["UTC", "America/New_York", "Asia/Kolkata"]


@pytest.fixture
def text(spark: Any) -> Any:
    return spark.createDataFrame(TEXT, "id string, type string, time string")


@pytest.mark.parametrize("zone", ZONES)
def test_timestamps_with_a_zone(text: Any, session_settings: Any, zone: str) -> None:
    from pyspark.sql import functions as F

    session_settings(session__timeZone=zone)
    result = detect(text.withColumn("time", F.to_timestamp("time")), WINDOWS)
    assert result.schema["window_start"].dataType.simpleString() == "timestamp"
    (row,) = result.toArrow().to_pylist()
    assert row["window_start"] == NOON.replace(tzinfo=dt.UTC)
    assert row["events"][1]["time"] == NOON.replace(second=5, tzinfo=dt.UTC)


@pytest.mark.parametrize("zone", ZONES)
def test_timestamps_without_a_zone(text: Any, session_settings: Any, zone: str) -> None:
    from pyspark.sql import functions as F

    session_settings(session__timeZone=zone)
    result = detect(text.withColumn("time", F.to_timestamp_ntz("time")), WINDOWS)
    assert result.schema["window_start"].dataType.simpleString() == "timestamp_ntz"
    (row,) = result.collect()
    assert (row["window_start"], row["window_end"]) == (NOON, NOON.replace(second=10))


@pytest.mark.parametrize("zone", ZONES)
def test_text_is_utc_whatever_the_session_says(spark: Any, session_settings: Any, ids: Any, zone: str) -> None:
    session_settings(session__timeZone=zone)
    rows = [
        ("a1", "A", "2024-03-10T02:30:00"),  # an hour that New York skips
        ("b2", "B", "2024-03-10 03:00:00.25"),
        ("b3", "B", "2024-03-10T04:40:00+02:00"),
        ("b4", "B", "2024-03-10"),
    ]
    df = spark.createDataFrame(rows, "id string, type string, time string")
    result = detect(df, "PATTERN SEQ(A, B)")
    assert ids(result) == ["a1 b2", "a1 b3"]
    times = {event["id"]: event["time"] for row in result.collect() for event in row["events"]}
    assert times["b3"] == dt.datetime(2024, 3, 10, 2, 40)


def test_dates(spark: Any) -> None:
    df = spark.createDataFrame([("A", "2024-01-31"), ("B", "2024-02-01")], "type string, time string")
    df = df.selectExpr("type", "to_date(time) AS time")
    assert detect(df, "PATTERN SEQ(A, B) WITHIN 1 d").collect() == []
    assert detect(df, "PATTERN SEQ(A, B) WITHIN 25 h").count() == 1


@pytest.mark.parametrize("kind", ["tinyint", "smallint", "int", "bigint"])
def test_windows_have_the_type_of_the_time_column(events: Any, kind: str) -> None:
    df = events.withColumn("time", events.time.cast(kind))
    result = detect(df, "RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 10")
    assert result.schema["window_start"].dataType.simpleString() == kind
    assert [(row["window_start"], int(row["COUNT(*)"])) for row in result.collect()] == [(0, 3)]


def test_times_in_a_query_are_compared_in_utc(text: Any, session_settings: Any) -> None:
    from pyspark.sql import functions as F

    session_settings(session__timeZone="America/New_York")
    df = text.withColumn("time", F.to_timestamp("time"))
    assert detect(df, "PATTERN B b WHERE b.time = '2024-01-31 12:00:05'").count() == 1
    assert detect(df, "PATTERN SEQ(A a, B b) WHERE b.time - a.time >= 1 min").count() == 1


def test_tables_keep_times_without_a_zone(spark: Any, session_settings: Any) -> None:
    session_settings(session__timeZone="America/New_York")
    table = pa.table({"type": ["A", "B"], "time": pa.array([NOON, NOON.replace(second=5)], pa.timestamp("us"))})
    assert tl.run(WINDOWS, table, engine="spark").equals(tl.run(WINDOWS, table, engine="local"))


class TestMissing:
    QUERY = "PATTERN SEQ(A, B)"

    @pytest.fixture
    def table(self) -> pa.Table:
        return pa.table({"type": ["A", "B", "C"], "time": pa.array([1, 2, None], pa.int64())})

    def test_run_refuses_before_it_starts(self, spark: Any, table: pa.Table) -> None:
        with pytest.raises(DataError, match="1 of 3 events have no time"):
            tl.run(self.QUERY, table, engine="spark")

    def test_run_refuses_parquet(self, spark: Any, table: pa.Table, tmp_path: Path) -> None:
        pq.write_table(table, tmp_path / "events.parquet")
        with pytest.raises(DataError, match="1 of 3 events have no time"):
            tl.run(self.QUERY, tmp_path / "events.parquet", engine="spark")

    def test_a_frame_tells_when_its_rows_are_asked_for(self, spark: Any) -> None:
        df = spark.createDataFrame([("A", 1), ("B", 2), ("C", None)], "type string, time int")
        result = detect(df, self.QUERY)  # the C would be filtered out, but a missing time is never overlooked
        with pytest.raises(Exception, match="events in a task have no time"):
            result.collect()

    def test_text_that_is_no_time(self, spark: Any, tmp_path: Path) -> None:
        pq.write_table(pa.table({"type": ["A", "B"], "time": ["2024-01-31", "soon"]}), tmp_path / "events.parquet")
        with pytest.raises(DataError, match="1 of 2 events have no time"):
            tl.run(self.QUERY, tmp_path / "events.parquet", engine="spark")


def test_text_in_parquet(spark: Any, tmp_path: Path) -> None:
    ids, types, times = (list(column) for column in zip(*TEXT, strict=True))
    pq.write_table(pa.table({"id": ids, "type": types, "time": times}), tmp_path / "e.parquet")
    (row,) = tl.run(WINDOWS, tmp_path / "e.parquet", engine="spark").to_pylist()
    assert [event["id"] for event in row["events"]] == ["a1", "b2"]


def test_no_plain_numbers_for_timestamps(text: Any) -> None:
    with pytest.raises(BindError, match="a plain number is not a duration"):
        detect(text, "PATTERN SEQ(A, B) WITHIN 10")


def test_an_integer_time_counts_the_unit_said(events: Any) -> None:
    assert detect(events, "PATTERN SEQ(A, B) WITHIN 2 ms", time_unit="ms").count() == 2
    with pytest.raises(BindError, match="not a whole number"):
        detect(events, "PATTERN SEQ(A, B) WITHIN 2 ms")
