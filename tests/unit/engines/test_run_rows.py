"""Rows per match: their order, limits, what a caller hears while they come, and values that do not fit."""

from __future__ import annotations

import pyarrow as pa
import pytest

import trendloom as tl
from trendloom.engines.answers import Watch, answers, table_of
from trendloom.errors import OptionError, ParseError, RunError
from trendloom.options import Options

EVENTS = pa.table(
    {
        "id": [f"e{number}" for number in range(8)],
        "type": list("ABABABAB"),
        "time": [0, 1, 2, 3, 4, 5, 6, 7],
        "k": [2, 1, 2, 2, 1, 1, 2, 1],
        "x": [1, 2, 3, 4, 5, 6, 7, 8],
    }
)


def ids(table: pa.Table) -> list[str]:
    return [" ".join(event["id"] for event in row["events"]) for row in table.to_pylist()]


class TestOrder:
    def test_first_then_last_event(self) -> None:
        assert ids(tl.run("PATTERN SEQ(A, B) WITHIN 4", EVENTS)) == [
            "e0 e1", "e0 e3", "e2 e3", "e2 e5", "e4 e5", "e4 e7", "e6 e7",
        ]  # fmt: skip

    @pytest.mark.parametrize("engine", ["local", "reference"])
    def test_window_then_partition(self, engine: str) -> None:
        rows = tl.run("PATTERN A WHERE [k] WITHIN 6 SLIDE 3", EVENTS, engine=engine).to_pylist()
        keys = [(row["window_start"], row["k"], row["events"][0]["time"]) for row in rows]
        assert keys == sorted(keys)
        assert len(keys) == 8

    def test_rows_of_the_input_may_come_in_any_order(self) -> None:
        backwards = EVENTS.take(list(range(7, -1, -1)))
        query = "PATTERN SEQ(A, B) WHERE [k]"
        assert tl.run(query, backwards).equals(tl.run(query, EVENTS))

    def test_too_many_to_sort_leave_as_they_are_found(self) -> None:
        told: list[str] = []
        query = "PATTERN SEQ(A, B+)"
        little = Options(memory_limit=400)
        found = table_of(answers(query, EVENTS, little, Watch(unsorted=lambda: told.append("unsorted"))))
        assert told == ["unsorted"]
        assert sorted(ids(found)) == sorted(ids(tl.run(query, EVENTS)))


class TestLimit:
    @pytest.mark.parametrize("limit", [1, 3, 100])
    @pytest.mark.parametrize("engine", ["local", "reference"])
    def test_no_more_than_asked_for(self, limit: int, engine: str) -> None:
        rows = tl.run("PATTERN SEQ(A, B)", EVENTS, limit=limit, engine=engine)
        assert rows.num_rows == min(limit, 10)

    def test_it_stops_the_search(self) -> None:
        many = pa.table({"type": ["A"] * 60, "time": range(60)})
        assert tl.run("PATTERN A+", many, limit=5).num_rows == 5

    def test_totals(self) -> None:
        assert tl.run("RETURN k, COUNT(*) PATTERN A GROUP BY k", EVENTS, limit=1).to_pylist() == [
            {"k": 1, "COUNT(*)": 1}
        ]

    def test_complete_trends_are_found_before_they_are_cut(self) -> None:
        assert ids(tl.run("RETURN COMPLETE TRENDS PATTERN A+", EVENTS, limit=1)) == ["e0 e2 e4 e6"]


def test_progress_is_told() -> None:
    counts: list[int] = []
    table_of(answers("PATTERN SEQ(A, B)", EVENTS, Options(), Watch(progress=counts.append)))
    assert counts == sorted(counts)
    assert counts[-1] == 10


def test_columns_are_known_where_there_is_no_row() -> None:
    query = "RETURN k, a.x / 2 AS half PATTERN SEQ(B a, X) WHERE [k] WITHIN 4 SLIDE 2"
    for engine in ("local", "reference"):
        found = tl.run(query, EVENTS, engine=engine)
        assert found.num_rows == 0
        assert [str(field.type) for field in found.schema] == ["int64", "int64", "int64", "double"]


class TestValues:
    BIG = pa.table({"type": ["A", "A"], "time": [1, 2], "x": [2**62, 2**62]})

    def test_a_sum_inside_a_match_must_fit(self) -> None:
        with pytest.raises(RunError, match=r"a value of 'sum\(a\[\].x\)' is beyond 64 bits"):
            tl.run("RETURN sum(a[].x) PATTERN A a{2}", self.BIG)
        assert tl.run("RETURN sum(a[].x) * 1.0 AS s PATTERN A a{2}", self.BIG)["s"].to_pylist() == [2.0**63]

    def test_so_must_arithmetic(self) -> None:
        with pytest.raises(RunError, match="a value of 'twice' is beyond 64 bits"):
            tl.run("RETURN a.x * 2 AS twice PATTERN A a", self.BIG)
        assert tl.run("RETURN a.x * 2.0 AS twice PATTERN A a", self.BIG)["twice"].to_pylist() == [2.0**63] * 2

    def test_in_a_condition_it_may_be_larger(self) -> None:
        assert tl.run("PATTERN A a{2} WHERE sum(a[].x) > 9223372036854775807", self.BIG).num_rows == 1

    def test_unbound_variables_are_null(self) -> None:
        found = tl.run("RETURN b.x, count(b[]), duration(b), sum(b[].x) PATTERN SEQ(A a, B b?)", EVENTS.slice(6, 1))
        assert found.to_pylist() == [{"b.x": None, "count(b[])": 0, "duration(b)": None, "sum(b[].x)": None}]


class TestWorkload:
    TEXT = "QUERY first: PATTERN A WITHIN 1 QUERY second: RETURN COUNT(*) PATTERN B"

    def test_rows_carry_the_name(self) -> None:
        found = tl.run(self.TEXT, EVENTS)
        assert found["query"].to_pylist() == ["first"] * 4 + ["second"]
        assert found["COUNT(*)"].to_pylist() == [None] * 4 + [4]

    def test_one_of_them(self) -> None:
        assert tl.run(self.TEXT, EVENTS, query="second").to_pylist() == [{"query": "second", "COUNT(*)": 4}]

    def test_everything_is_checked_before_anything_runs(self) -> None:
        ran: list[int] = []
        with pytest.raises(tl.errors.BindError):
            answers("QUERY a: PATTERN A QUERY b: PATTERN A a WHERE a.nix = 1", EVENTS, Options(), Watch(ran.append))
        assert ran == []


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"engine": "sparc"}, "there is no engine 'sparc'"),
            ({"numeric": "double"}, "there is no numeric 'double'"),
            ({"limit": 0}, "limit= must be at least 1"),
            ({"engine": "reference", "numeric": "log"}, "exact numbers only"),
            ({"query": "q"}, "there is no query 'q'"),
            ({"time_unit": "fortnight"}, "unknown time unit 'fortnight'"),
            ({"time_low": "time"}, "needs both bounds"),
        ],
    )
    def test_wrong_ones_are_told(self, options: dict[str, object], message: str) -> None:
        with pytest.raises(OptionError, match=message):
            tl.run("PATTERN A", EVENTS, **options)  # type: ignore[arg-type]

    def test_the_text_is_looked_at_first(self) -> None:
        with pytest.raises(ParseError):
            tl.run("PATTERN", "no such file.csv")


def test_a_limit_counts_complete_trends_not_matches() -> None:
    events = pa.table({"time": [1, 2, 2, 3], "type": ["A"] * 4, "id": [1, 2, 3, 4]})
    rows = tl.run("RETURN COMPLETE TRENDS PATTERN A+", events, limit=1)
    assert [[event["id"] for event in row["events"]] for row in rows.to_pylist()] == [[1, 2, 4]]
