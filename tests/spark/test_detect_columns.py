"""What `detect` gives: a DataFrame, not yet computed, whose columns are typed before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from trendloom.errors import BindError, DataError
from trendloom.spark import detect


def columns_of(df: Any) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in df.schema.fields}


EVENT = "struct<id:string,type:string,time:bigint,x:bigint,g:string,var:string>"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("PATTERN SEQ(A a, B b)", {"events": f"array<{EVENT}>"}),
        ("PATTERN SEQ(A a, B b) WHERE [g]", {"g": "string", "events": f"array<{EVENT}>"}),
        (
            "PATTERN SEQ(A a, B b) WITHIN 4 SLIDE 2",
            {"window_start": "bigint", "window_end": "bigint", "events": f"array<{EVENT}>"},
        ),
        (
            "RETURN a.id, a.x / 2 AS half, count(b[]), b[last].g = 'u' AS same PATTERN SEQ(A a, B+ b[])",
            {"a.id": "string", "half": "double", "count(b[])": "bigint", "same": "boolean"},
        ),
        (
            "RETURN g, COUNT(*), SUM(A.x), AVG(A.x), MAX(A.id) PATTERN A+ GROUP BY g WITHIN 4",
            {
                "g": "string",
                "window_start": "bigint",
                "window_end": "bigint",
                "COUNT(*)": "decimal(38,0)",
                "SUM(A.x)": "decimal(38,0)",
                "AVG(A.x)": "double",
                "MAX(A.id)": "string",
            },
        ),
    ],
)
def test_columns_are_typed_and_rows_fit_them(events: Any, query: str, expected: dict[str, str]) -> None:
    result = detect(events, query)
    assert columns_of(result) == expected
    assert result.count() > 0


def test_nothing_runs_before_rows_are_asked_for(spark: Any, events: Any) -> None:
    from pyspark.sql import functions as F

    failing = events.withColumn("x", F.raise_error(F.lit("somebody computed this")).cast("bigint"))
    result = detect(failing, "PATTERN A a WHERE a.x > 1")
    with pytest.raises(Exception, match="somebody computed this"):
        result.collect()


def test_a_result_is_a_frame_like_any_other(events: Any) -> None:
    result = detect(events, "RETURN g, COUNT(*) AS matches PATTERN SEQ(A, B) GROUP BY g")
    assert [row["g"] for row in result.filter("matches > 0").orderBy("g").select("g").collect()] == ["u", "v"]


def test_rows_without_a_key_are_in_no_partition(spark: Any, ids: Any) -> None:
    df = spark.createDataFrame(
        [("a1", "A", 1, None), ("a2", "A", 2, "u"), ("b3", "B", 3, None), ("b4", "B", 4, "u")],
        "id string, type string, time int, g string",
    )
    assert ids(detect(df, "PATTERN SEQ(A, B) WHERE [g]")) == ["a2 b4"]


@pytest.mark.parametrize(
    "query",
    ["PATTERN A", "PATTERN A WHERE [g]", "RETURN COUNT(*) PATTERN A", "RETURN g, COUNT(*) PATTERN A GROUP BY g"],
)
def test_no_events_no_rows(events: Any, query: str) -> None:
    assert detect(events.limit(0), query).collect() == []


def test_names_with_dots_backticks_and_blanks(spark: Any) -> None:
    df = spark.createDataFrame(
        [("a1", "A", 1, "u"), ("b2", "B", 2, "u"), ("b3", "B", 3, "v")],
        "`the.id` string, `ty``pe` string, `the time` int, `g h` string",
    )
    query = "RETURN b.`the.id` AS `which.one` PATTERN SEQ(A a, B b) WHERE [`g h`] AND a.`the.id` != 'x'"
    rows = detect(df, query, time="the time", type="ty`pe").collect()
    assert [row.asDict() for row in rows] == [{"g h": "u", "which.one": "b2"}]
    totals = "RETURN `g h`, COUNT(*), MAX(B.`the.id`) PATTERN B WHERE [`the.id`] GROUP BY `g h`"
    found = detect(df, totals, time="the time", type="ty`pe").collect()
    assert {row["g h"]: row["MAX(B.`the.id`)"] for row in found} == {"u": "b2", "v": "b3"}


def test_nested_columns_are_carried_along(spark: Any) -> None:
    df = spark.createDataFrame(
        [("A", 1, [1, 2], {"k": 1}, ("s", 2.5))],
        "type string, time int, list array<int>, map map<string,int>, pair struct<name:string,value:double>",
    )
    (row,) = detect(df, "PATTERN A").collect()
    event = row["events"][0]
    assert (event["list"], event["map"], event["pair"]["value"]) == ([1, 2], {"k": 1}, 2.5)


def test_names_that_differ_in_case_only_are_refused(spark: Any, session_settings: Any) -> None:
    df = spark.createDataFrame([("A", 1, 1, 2)], "type string, time int, x int, y int").toDF("type", "time", "x", "X")
    with pytest.raises(DataError, match="'x' and 'X' are one to Spark"):
        detect(df, "PATTERN A")
    session_settings(caseSensitive="true")
    assert detect(df, "PATTERN A WHERE A.x = 1 AND A.X = 2").count() == 1


def test_columns_of_results_may_not_be_columns_of_events(spark: Any) -> None:
    df = spark.createDataFrame([("A", 1, 1)], "type string, time int, score int")
    with pytest.raises(DataError, match="'score'"):
        detect(df, "PATTERN A")


def test_a_missing_column_names_the_place(events: Any) -> None:
    with pytest.raises(BindError, match="A has no attribute 'prise'") as caught:
        detect(events, "PATTERN A a\nWHERE a.prise > 1")
    assert (caught.value.line, caught.value.column) == (2, 9)


def test_a_column_of_nulls_fits_everywhere(spark: Any) -> None:
    df = spark.createDataFrame([("A", 1, None), ("A", 2, None)], "type string, time int, x int")
    assert detect(df, "PATTERN A a WHERE a.x LIKE 'q%'").collect() == []
    assert detect(df, "PATTERN A a WHERE a.x IS NULL").count() == 2
