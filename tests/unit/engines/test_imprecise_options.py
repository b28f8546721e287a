"""Imprecise time through the doors: the same answer from every kind of file, and refusals before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trendloom as tl
from trendloom.errors import BindError, DataError, OptionError

TABLE = pa.table(
    {
        "time": [2, 3, 6],
        "type": ["A", "B", "B"],
        "id": ["a1", "b1", "b2"],
        "off": [1.0, 1.0, 0.0],
        "p": [[0.25, 0.5, 0.25], None, None],
        "other": [1, 2, 3],
    }
)
VALUES = "RETURN b.id AS b PATTERN SEQ(A a, B b)"


@pytest.fixture(params=["local", "reference"])
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """How `TABLE` is read, by each engine."""
    return {"time_error": "off", "time_probability": "p", "engine": request.param}


@pytest.mark.parametrize("query", ["PATTERN SEQ(A a, B b)", VALUES, "RETURN COUNT(*) AS n PATTERN SEQ(A a, B b)"])
def test_parquet_gives_what_a_table_gives(query: str, tmp_path: Path, options: dict[str, Any]) -> None:
    pq.write_table(TABLE, tmp_path / "events.parquet")
    rows = tl.run(query, TABLE, **options)
    assert rows.num_rows
    assert tl.run(query, tmp_path / "events.parquet", **options).to_pylist() == rows.to_pylist()


def test_rows_of_values(options: dict[str, Any]) -> None:
    assert tl.run(VALUES, TABLE, **options).to_pylist() == [
        {"b": "b1", "confidence": pytest.approx((0.25 * 3 + 0.5 * 2 + 0.25) / 3), "time_low": 1, "time_high": 4},
        {"b": "b2", "confidence": 1.0, "time_low": 1, "time_high": 6},
    ]


def test_expected_values_are_doubles(options: dict[str, Any]) -> None:
    query = "RETURN COUNT(*) AS n, SUM(b.other) AS s, PROBABILITY(*) AS p PATTERN SEQ(A a, B b)"
    rows = tl.run(query, TABLE, **options)
    assert rows.schema.types == [pa.float64()] * 3
    assert rows.to_pylist() == [pytest.approx({"n": 5 / 3, "s": 13 / 3, "p": 1.0})]


def test_windows_have_the_type_of_the_bounds() -> None:
    table = pa.table({"lo": pa.array([1], pa.int32()), "hi": pa.array([2], pa.int32()), "type": ["A"]})
    query = "RETURN COUNT(*) AS n PATTERN A a WITHIN 2"
    rows = tl.run(query, table, time_low="lo", time_high="hi", engine="reference")
    assert rows.schema.field("window_start").type == pa.int32()
    assert rows.to_pylist() == [
        {"window_start": 0, "window_end": 2, "n": 0.5},
        {"window_start": 2, "window_end": 4, "n": 0.5},
    ]


@pytest.mark.parametrize("events", [None, TABLE], ids=["no events", "events"])
@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        ("PATTERN A a WHERE a.time > 3", {"time_error": "1 s"}, "'a.time', the time of an event"),
        ("PATTERN OR(A a, B b)", {"time_error": "off"}, "OR does not go with imprecise time"),
        ("RETURN PROBABILITY(*) PATTERN SEQ(A a, A b)", {"time_error": "5"}, "more than one place"),
    ],
)
def test_check_refuses_before_anything_runs(events: object, query: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(BindError, match=message):
        tl.check(query, events, **options)


def test_check_without_events_assumes_imprecise_time_where_a_query_needs_it() -> None:
    tl.check("RETURN PROBABILITY(*) PATTERN SEQ(A a, B b)")
    tl.check("PATTERN SEQ(A a, B b) CONFIDENCE >= 0.5", time_error="5", time_probability="p")
    with pytest.raises(BindError, match=r"'a\.time', the time of an event"):
        tl.check("PATTERN SEQ(A a, B b) WHERE a.time > 3 CONFIDENCE >= 0.5")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_error": "1", "numeric": "log"}, "no logarithms"),
        ({"time_low": "lo"}, "both bounds"),
        ({"time_error": "1 parsec"}, "unknown unit 'parsec'"),
        ({"time_grain": "1s"}, "nothing says that times are imprecise"),
    ],
)
def test_options_are_refused_before_events_are_read(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        tl.run("PATTERN A", "nowhere.parquet", **options)


def test_wrong_intervals_are_refused_by_check_too() -> None:
    with pytest.raises(DataError, match="more than 2 points"):
        tl.check("PATTERN A", TABLE, time_error="off", time_points=2)


def test_a_workload_has_expected_and_listed_matches(options: dict[str, Any]) -> None:
    text = f"QUERY one: {VALUES} QUERY two: RETURN COUNT(*) AS n PATTERN A a"
    rows = tl.run(text, TABLE, **options)
    assert [row["query"] for row in rows.to_pylist()] == ["one", "one", "two"]
