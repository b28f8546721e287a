"""What is wrong with a workload is one error, before anything runs, that names all queries and where they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.refused_pattern import PASSED_IN_MANY_WAYS, TOLD

import trendloom as tl
from trendloom.engines import answers as engine_answers
from trendloom.engines.spark.answers import checked
from trendloom.engines.spark.streaming.stream import check_live
from trendloom.errors import BindError, ParseError, PlanError, QueryError
from trendloom.options import Options
from trendloom.runtime.reading import queries_of

EVENTS = pa.table(
    {"time": [1, 2, 3], "type": ["A", "B", "A"], "x": [1, 2, 3], "f": [0.5, 1.5, 2.5], "s": ["p", "q", "r"]}
)
UNBOUND = """QUERY good: PATTERN A
QUERY price: RETURN a.prise PATTERN A a
QUERY kinds: PATTERN A a WHERE a.f > 's'"""
CLASH = """QUERY one: RETURN a.x AS v PATTERN A a
QUERY two: RETURN COUNT(*) AS n PATTERN A
QUERY three: RETURN a.f AS v PATTERN A a"""


def refusal(text: str, **options: Any) -> QueryError:
    with pytest.raises(QueryError) as caught:
        tl.run(text, EVENTS, **options)
    return caught.value


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_all_queries_that_do_not_bind_are_named(engine: str) -> None:
    error = refusal(UNBOUND, engine=engine)
    assert isinstance(error, BindError)
    assert error.message == "2 of 3 queries are refused: price, kinds"
    assert (error.line, error.column) == (2, 23)
    assert [(part.line, part.message.partition(":")[0]) for part in error.parts] == [
        (2, "query price"),
        (3, "query kinds"),
    ]
    assert "RETURN a.prise PATTERN A a\n" + " " * 24 + "^^^^^\n" in str(error)


def test_checking_and_explaining_name_them_too() -> None:
    for look in (tl.check, tl.explain):
        with pytest.raises(BindError, match="2 of 3 queries are refused: price, kinds"):
            look(UNBOUND, EVENTS)
    with pytest.raises(BindError, match="2 of 2 queries are refused: p, q"):
        tl.check("QUERY p: PATTERN NOT A QUERY q: PATTERN A a WHERE b.x > 1")


def test_one_wrong_query_of_several_is_named_and_one_alone_is_as_ever() -> None:
    text = "QUERY good: PATTERN A QUERY bad: PATTERN A a WHERE a.y > 1"
    assert refusal(text).message == "query bad: A has no attribute 'y'"
    assert refusal(text, query="bad").message == "A has no attribute 'y'"


def test_what_no_algorithm_runs_is_told_beside_what_does_not_bind() -> None:
    many_ways = PASSED_IN_MANY_WAYS
    assert isinstance(refusal(f"QUERY p: {many_ways} QUERY q: {many_ways}"), PlanError)
    error = refusal(f"QUERY p: {many_ways} QUERY q: PATTERN A QUERY r: PATTERN NOT A")
    assert isinstance(error, BindError)
    assert error.message == "2 of 3 queries are refused: p, r"
    assert TOLD in str(error)


def test_of_many_wrong_queries_all_are_named_and_some_are_shown() -> None:
    error = refusal("\n".join(f"QUERY q{number}: RETURN a.y PATTERN A a" for number in range(30)))
    assert error.message.endswith("q28, q29")
    assert str(error).count("has no attribute") == 12
    assert "... and 18 more" in str(error)


def test_queries_of_one_name_are_told_with_their_places() -> None:
    with pytest.raises(ParseError) as caught:
        queries_of("QUERY p: PATTERN A\nQUERY q: PATTERN A\nQUERY p: PATTERN B\nQUERY p: PATTERN B\nQUERY q: PATTERN B")
    assert [part.line for part in caught.value.parts] == [3, 5]
    assert "3 queries are named 'p': here, and in line 1, column 7 and in line 4, column 7" in str(caught.value)
    assert "Two queries are named 'q': here, and in line 2, column 7" in str(caught.value)


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_columns_of_one_name_and_different_kinds_are_refused_before_anything_runs(engine: str) -> None:
    found = engine_answers.answers(CLASH, EVENTS, Options(engine=engine))
    with pytest.raises(BindError, match="cannot share one table of results: 'v' is of different kinds") as caught:
        engine_answers.table_of(found)
    assert [part.message for part in caught.value.parts] == [
        "query one: column 'v' is an integer",
        "query three: column 'v' is a number",
    ]
    assert [(part.line, part.column) for part in caught.value.parts] == [(1, 19), (3, 21)]
    rows = [sum(batch.num_rows for batch in answer.batches) for answer in found]
    assert rows == [2, 1, 2]  # nothing was taken from them


def test_an_alias_clashes_with_a_key_of_another_query() -> None:
    error = refusal("QUERY p: RETURN s, COUNT(*) PATTERN A GROUP BY s QUERY q: RETURN a.x AS s PATTERN A a")
    assert "query p: column 's' is a string" in str(error)
    assert "query q: column 's' is an integer" in str(error)


class TestBeforeSparkStarts:
    def test_a_batch(self, tmp_path: Path) -> None:
        pq.write_table(EVENTS, tmp_path / "events.parquet")
        for source in (EVENTS, tmp_path / "events.parquet"):
            with pytest.raises(BindError, match="2 of 3 queries are refused: price, kinds"):
                checked(queries_of(UNBOUND), source, Options(engine="spark"))

    def test_a_live_stream(self) -> None:
        with pytest.raises(BindError, match="2 of 3 queries are refused: price, kinds"):
            check_live(queries_of(UNBOUND), EVENTS.schema, Options(engine="spark"))
        endless = "QUERY p: PATTERN A  QUERY q: PATTERN A WITHIN 1  QUERY r: PATTERN SEQ(A, B)"
        with pytest.raises(PlanError, match="2 of 3 queries are refused: p, r"):
            check_live(queries_of(endless), EVENTS.schema, Options(engine="spark"))
        bounded = "\n".join(f"{line} WITHIN 10" for line in CLASH.splitlines())
        with pytest.raises(BindError, match="'v' is of different kinds"):
            check_live(queries_of(bounded), EVENTS.schema, Options(engine="spark"))


def test_scores_of_different_kinds_cannot_be_renamed() -> None:
    with pytest.raises(BindError, match="'score' is of different kinds") as caught:
        tl.run("QUERY p: PATTERN A a RANK BY a.x LIMIT 1 QUERY q: PATTERN A a RANK BY a.f LIMIT 1", EVENTS)
    assert "RANK BY 1.0 * (...)" in str(caught.value.hint)
