"""What is probably not meant is told on Spark as elsewhere, by the one look at the events that runs anyway."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trendloom as tl
from trendloom.errors import DataError
from trendloom.spark import detect

MILLISECONDS = 1_522_627_200_000
EVENTS = pa.table({"time": [1, 1, 1, 2, 2], "type": ["A", "B", "B", "A", "B"], "k": [1, 1, 1, 1, 2]})


def told(call: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UserWarning)
        call()
    return [str(one.message) for one in found if one.filename == __file__]


def written(tmp_path: Path, table: pa.Table) -> Path:
    pq.write_table(table, tmp_path / "events.parquet")
    return tmp_path / "events.parquet"


@pytest.mark.parametrize(
    ("times", "name"),
    [
        ([MILLISECONDS, 7, MILLISECONDS + 5], "milliseconds"),
        ([20240131, 20240201, 20240202], "dates"),
        ([1, 2, 3], None),
    ],
)
def test_times_that_hardly_count_seconds(spark: Any, tmp_path: Path, times: list[int], name: str | None) -> None:
    table = pa.table({"time": pa.array(times, pa.int64()), "type": ["A"] * 3})
    path, query = written(tmp_path, table), "RETURN COUNT(*) PATTERN A"
    here = told(lambda: tl.run(query, path))
    assert [name in one for one in here if name] == ([True] if name else [])
    assert told(lambda: tl.run(query, path, engine="spark")) == here
    assert told(lambda: tl.run(query, path, engine="spark", time_unit="s")) == []


def test_types_that_no_event_has(spark: Any, tmp_path: Path) -> None:
    (warning,) = told(lambda: tl.run("PATTERN Bee b", written(tmp_path, EVENTS), engine="spark"))
    assert warning.startswith("the events have no type 'Bee'")


def test_equal_times(spark: Any) -> None:
    """Counted by the tasks, so told when they are done."""
    query = "PATTERN SEQ(A a, B b) WHERE [k]"
    (warning,) = told(lambda: tl.run(query, EVENTS, engine="spark"))
    assert warning.startswith("3 of 5 events have the same time as another of equal k")
    assert told(lambda: tl.run(query, EVENTS)) == [warning]


class TestNoTypeColumn:
    QUERY = "PATTERN SEQ(Tick a, Tick b) WHERE a.k < b.k"

    def test_run(self, spark: Any, tmp_path: Path) -> None:
        table = EVENTS.drop_columns("type")
        found: list[pa.Table] = []
        for events in (table, written(tmp_path, table)):
            notes = told(lambda events=events: found.append(tl.run(self.QUERY, events, engine="spark")))
            assert notes[0].startswith("the events have no column 'type'")
        with pytest.warns(UserWarning, match="no column 'type'"):
            expected = tl.run(self.QUERY, table)
        assert all(rows.equals(expected) for rows in found)

    def test_detect(self, spark: Any) -> None:
        df = spark.createDataFrame([(1, 1), (2, 2)], "time int, k int")
        rows: list[Any] = []
        (note,) = told(lambda: rows.extend(detect(df, self.QUERY).collect()))
        assert note.startswith("the events have no column 'type'")
        assert [event["type"] for event in rows[0]["events"]] == ["Tick", "Tick"]
        with pytest.raises(DataError, match="names several types"):
            detect(df, "PATTERN SEQ(A, B)")

    def test_types_in_another_column_are_not_overlooked(self, spark: Any, tmp_path: Path) -> None:
        path = written(tmp_path, EVENTS.rename_columns(["time", "kind", "k"]))
        with pytest.raises(DataError, match="but column 'kind' holds 'A'"):
            tl.run("PATTERN A a", path, engine="spark")
