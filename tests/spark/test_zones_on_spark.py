"""Times written in queries mean the same on every engine, whatever the zone of the session and of the column."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trendloom as tl
from trendloom.errors import OptionError
from trendloom.spark import detect

PARIS = "Europe/Paris"
SESSIONS = ["UTC", "Asia/Tokyo"]
LOCAL = [
    dt.datetime(2024, 3, 31, 1, 59, 59),
    dt.datetime(2024, 3, 31, 2, 30),  # Paris has no such time
    dt.datetime(2024, 7, 1),
    dt.datetime(2024, 10, 27, 2, 30),  # Paris has it twice
    dt.datetime(2050, 7, 1, 12, 0, 0, 250_000),
]
NAIVE = pa.array(LOCAL, pa.timestamp("us"))
TEXT = pa.array([f"{one}{'' if number % 2 else '+02:00'}" for number, one in enumerate(LOCAL)])
COLUMNS = {
    "naive": NAIVE,
    "utc": NAIVE.cast(pa.timestamp("us", "UTC")),
    "zoned": NAIVE.cast(pa.timestamp("us", "America/New_York")),
    "text": pa.array([str(one) for one in LOCAL]),
    "mixed text": TEXT,
    "dates": NAIVE.cast(pa.date32()),
}
QUERY = """
PATTERN A a
WHERE   a.time >= '2024-03-31 03:00' AND a.time != '2024-07-01' AND a.time < '2050-07-01T12:00:01'
        AND (a.other > '2024-06-30 22:00' OR a.day = '2024-03-31')
RETURN  a.id, a.time, a.other
"""


def stream(kind: str) -> pa.Table:
    others = {"other": NAIVE, "day": NAIVE.cast(pa.date32())}
    return pa.table({"time": COLUMNS[kind], "type": ["A"] * len(LOCAL), "id": range(len(LOCAL)), **others})


@pytest.mark.parametrize("zone", [None, PARIS])
@pytest.mark.parametrize("kind", COLUMNS)
def test_every_engine_finds_the_same(
    spark: Any, session_settings: Any, tmp_path: Path, kind: str, zone: str | None
) -> None:
    table = stream(kind)
    pq.write_table(table, tmp_path / "events.parquet")
    expected = tl.run(QUERY, table, engine="reference", time_zone=zone)
    assert 0 < len(expected) < len(LOCAL)
    assert tl.run(QUERY, table, engine="local", time_zone=zone).equals(expected)
    session_settings(session__timeZone="Asia/Tokyo")
    for events in (table, tmp_path / "events.parquet"):
        found = tl.run(QUERY, events, engine="spark", time_zone=zone)
        if "text" in kind and events is not table and zone is None:  # whether all of it names a zone, nobody has seen
            found = found.cast(expected.schema)
        assert found.equals(expected), events


@pytest.mark.parametrize("session", SESSIONS)
@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "string"])
def test_frames_of_a_caller(spark: Any, session_settings: Any, session: str, kind: str) -> None:
    """2024-07-01 12:00 in UTC, or as clocks in Paris show it, against a time of a query, which is in Paris, too."""
    session_settings(session__timeZone="UTC")
    df = spark.createDataFrame([("A", "2024-07-01 12:00:00")], "type string, time string")
    df = df.withColumn("time", df.time.cast(kind)).localCheckpoint()
    session_settings(session__timeZone=session)
    shown = "14:00" if kind == "timestamp" else "12:00"
    query = f"PATTERN A a WHERE a.time = '2024-07-01 {shown}' RETURN a.time AS t"
    result = detect(df, query, time_zone=PARIS)
    assert result.schema["t"].dataType.simpleString() == "timestamp"
    (moment,) = result.toArrow()["t"].to_pylist()
    assert moment == dt.datetime(2024, 7, 1, 12 if kind == "timestamp" else 10, tzinfo=dt.UTC)
    assert detect(df, "PATTERN A a WHERE a.time = '2024-07-01 12:00'").count() == 1  # without a zone: UTC


@pytest.mark.parametrize("query", ["RETURN MAX(A.time) PATTERN A WITHIN 1 d", "PATTERN A WITHIN 1 d SLIDE 1 d"])
def test_results_have_the_zone_of_the_events(spark: Any, query: str) -> None:
    table = stream("zoned")
    found = tl.run(query, table, engine="spark")
    assert found.schema.field("window_start").type.tz == "America/New_York"
    assert found.equals(tl.run(query, table))


def test_an_unknown_zone_is_refused_before_anything_is_read(spark: Any) -> None:
    with pytest.raises(OptionError, match="there is no time zone 'Paris'"):
        tl.run("PATTERN A", "no such file.parquet", engine="spark", time_zone="Paris")
