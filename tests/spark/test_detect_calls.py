"""How `detect` and `session` are called: workloads, warnings, options, sessions of one's own."""

from __future__ import annotations

import warnings
from typing import Any

import pyarrow as pa
import pytest
from tests.refused_pattern import PASSED_IN_MANY_WAYS, TOLD

import trendloom as tl
from trendloom.errors import BindError, OptionError, ParseError, PlanError
from trendloom.spark import detect, session

WORKLOAD = "QUERY first: PATTERN A QUERY second: PATTERN SEQ(A, B)"


def test_one_query_of_a_workload_can_be_chosen(events: Any, ids: Any) -> None:
    assert ids(detect(events, WORKLOAD, query="second")) == ["a1 b2", "a1 b4", "a3 b4"]


def test_an_unknown_query_is_told(events: Any) -> None:
    with pytest.raises(OptionError, match="there is no query 'secund'") as caught:
        detect(events, WORKLOAD, query="secund")
    assert "did you mean 'second'?" in str(caught.value)


def test_run_gives_all_queries_of_a_workload(spark: Any) -> None:
    table = pa.table({"type": ["A", "B"], "time": [1, 2]})
    found = tl.run(WORKLOAD, table, engine="spark")
    assert found["query"].to_pylist() == ["first", "second"]


def test_warnings_are_python_warnings(events: Any) -> None:
    with pytest.warns(UserWarning, match="ambiguous pattern"):
        detect(events, "PATTERN SEQ(A+, A+)")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        detect(events, "PATTERN SEQ(A+, B+)")


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        ("PATTERN A WITHIN 1 h", {}, "needs a watermark"),
        ("PATTERN A WITHIN 1 h", {"watermark": "soon"}, "'soon' is not a delay"),
        ("PATTERN A WITHIN 1 h", {"watermark": "1 second", "buckets": 0}, "at least one bucket"),
        ("PATTERN A", {"watermark": "1 second"}, "a live stream has no end"),
        ("PATTERN A WITHIN 1 h", {"watermark": "1 second", "early": True}, "cannot be given out early"),
        (
            "QUERY p: RETURN a.time AS v PATTERN A a WITHIN 1 h QUERY q: RETURN a.type AS v PATTERN A a WITHIN 1 h",
            {"watermark": "1 second"},
            "cannot share one table",
        ),
    ],
)
def test_what_a_live_stream_cannot_do_is_told_at_once(
    spark: Any, query: str, options: dict[str, Any], message: str
) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("timestamp AS time", "'A' AS type")
    with pytest.raises((BindError, OptionError, PlanError), match=message):
        detect(stream, query, **options)


def test_a_live_result_has_the_columns_of_all_queries(spark: Any) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("timestamp AS time", "'A' AS type", "value AS x")
    text = "QUERY p: RETURN a.x PATTERN A a WITHIN 1 h  QUERY q: RETURN COUNT(*) PATTERN A+ WITHIN 1 h"
    found = detect(stream, text, watermark="1 second")
    assert found.isStreaming
    assert found.columns == ["query", "a.x", "window_start", "window_end", "COUNT(*)"]


def test_bad_text_is_told_at_once(events: Any) -> None:
    with pytest.raises(ParseError):
        detect(events, "PATTERN SEQ(A,")


def test_missing_features_are_told_at_once(events: Any) -> None:
    with pytest.raises(PlanError, match=TOLD):
        detect(events, PASSED_IN_MANY_WAYS)


def test_unknown_numeric_is_told(events: Any) -> None:
    with pytest.raises(OptionError, match="there is no numeric 'exakt'"):
        detect(events, "PATTERN A", numeric="exakt")


def test_an_existing_session_keeps_its_settings(spark: Any, session_settings: Any) -> None:
    session_settings(session__timeZone="Asia/Kolkata", shuffle__partitions="3")
    assert session("local[1]") is spark
    assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Kolkata"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "3"


@pytest.mark.parametrize("limit", [1, 2])
def test_limit(spark: Any, limit: int) -> None:
    table = pa.table({"type": ["A", "A", "A"], "time": [1, 2, 3], "k": [1, 2, 3]})
    assert tl.run("PATTERN A WHERE [k]", table, engine="spark", limit=limit).num_rows == limit
    assert tl.run("RETURN k, COUNT(*) PATTERN A GROUP BY k", table, engine="spark", limit=limit).num_rows == limit


def test_rows_are_ordered_like_the_local_engines(spark: Any) -> None:
    table = pa.table({"id": range(8), "type": list("ABABABAB"), "time": range(8), "k": [2, 1, 2, 2, 1, 1, 2, 1]})
    query = "PATTERN SEQ(A, B) WHERE [k] WITHIN 6 SLIDE 2"
    assert tl.run(query, table, engine="spark").to_pylist() == tl.run(query, table, engine="local").to_pylist()
