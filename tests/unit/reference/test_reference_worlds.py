"""Imprecise time by its definition: numbers that were counted by hand, and one point each is precise time."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from tests.unit.reference.conftest import read_stream, schema_of

from trendloom.errors import DataError
from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind import bind
from trendloom.model.imprecision import Imprecision
from trendloom.model.schema import Column, Kind, Schema
from trendloom.model.time import TimeAxis
from trendloom.reference.evaluate import evaluate
from trendloom.reference.stream import Row
from trendloom.reference.worlds import points_of

NEXT = "SEMANTICS skip-till-next-match"


def found(rows: list[Row]) -> list[tuple[Fraction | None, int | None, int | None]]:
    return [(row.confidence, row.time_low, row.time_high) for row in rows]


class TestMatches:
    STREAM = "a1~5 c3~5 b3~5 c4~8"

    def test_confidence_under_any_and_next(self, ask):
        query = "PATTERN SEQ(A a, B b, C c) SEMANTICS skip-till-{}-match WITHIN 4"
        assert found(ask(query.format("any"), self.STREAM).rows) == [(Fraction(1, 9), 1, 5), (Fraction(3, 25), 1, 7)]
        assert found(ask(query.format("next"), self.STREAM).rows) == [(Fraction(8, 75), 1, 5), (Fraction(1, 9), 1, 7)]

    def test_confidence_filters(self, ask):
        query = "PATTERN SEQ(A a, B b, C c) WITHIN 4 CONFIDENCE >= {}"
        assert ask(query.format("0.12"), self.STREAM).trends == ["a1~5 b3~5 c4~8"]
        assert ask(query.format("0.1200000000000000000001"), self.STREAM).trends == []

    def test_positions_tell_signatures_apart(self, ask):
        answer = ask("PATTERN SEQ(A+ a[], A+ b[])", "a1~1 a2~2 a3~3")
        assert [row.confidence for row in answer.rows] == [1] * 5
        assert answer.variables == ["a b", "a a b", "a b b", "a b", "a b"]

    def test_orders_are_signatures(self, ask):
        rows = ask("PATTERN SEQ(A a, A b)", "a1~2 a1~2p").rows
        assert [row.confidence for row in rows] == [Fraction(1, 4), Fraction(1, 4)]

    def test_the_time_range_covers_the_worlds_that_match(self, ask):
        (row,) = ask("PATTERN SEQ(A a, B b) WITHIN 4", "a1~10 b8~8").rows
        assert (row.confidence, row.time_low, row.time_high) == (Fraction(3, 10), 5, 8)

    def test_nothing_between(self, ask):
        (row,) = ask("PATTERN SEQ(A a, NOT N n, B b)", "a1~1 n1~4 b3~3").rows
        assert row.confidence == Fraction(3, 4)  # n at 2 is the only time between, ties are not

    def test_windows_of_each_world(self, ask):
        rows = ask("PATTERN A WITHIN 2 SLIDE 2", "a1~2").rows
        assert [(row.window, row.confidence) for row in rows] == [((0, 2), Fraction(1, 2)), ((2, 4), Fraction(1, 2))]

    def test_events_of_other_types_make_no_worlds(self, ask):
        assert len(ask("PATTERN A", "a1~2 " + " ".join(["z1~99"] * 9)).rows) == 1

    def test_too_many_worlds(self, ask):
        with pytest.raises(DataError, match="worlds"):
            ask("PATTERN A+", " ".join(["a1~99"] * 4))

    def test_bounds_must_make_sense(self, ask):
        with pytest.raises(DataError, match="row 0"):
            ask("PATTERN A", "a5~4")


PRECISE = [
    "PATTERN SEQ(A+ a[], B b)",
    "PATTERN SEQ(A+ a[], A b, B c?)",
    f"PATTERN SEQ(A+ a[], NOT C c, B b) {NEXT} WHERE a[i].x >= a[i-1].x",
    "PATTERN SEQ(A a, NOT C c, B b) WHERE c.x > b.x WITHIN 4",
    "RETURN a.x + b.x AS s PATTERN SEQ(A a, B b) WHERE [k] WITHIN 4 SLIDE 3",
    "PATTERN SEQ(NOT C, A{1,2} a[], B* b[], NOT C d) WITHIN 5",
    "RETURN k, COUNT(*), COUNT(b), SUM(a.x), SUM(b.x) PATTERN SEQ(A+ a[], B b) GROUP BY k WITHIN 4 SLIDE 2",
    "RETURN COUNT(*), SUM(a.x) / COUNT(a) AS m PATTERN SEQ(A+ a[], B b) WHERE [k]",
]
STREAM = "a1(x=1,k=1) a2(x=3,k=1) b2(x=2,k=2) c3(x=5,k=1) a3(x=2,k=2) b4(x=4,k=1)" + (
    " a4p(x=2,k=1) b5(k=2) c5(x=1,k=2) b6(x=1,k=1)"
)


@pytest.mark.parametrize("query", PRECISE)
def test_one_point_each_is_precise_time(query: str) -> None:
    events = read_stream(STREAM)
    schema = schema_of(events)
    precise = evaluate(bind(parse_query(query), schema), events)
    imprecise = evaluate(bind(parse_query(query), replace(schema, imprecision=Imprecision())), events)
    assert precise
    assert [replace(row, confidence=None, time_low=None, time_high=None) for row in imprecise] == precise
    assert {row.confidence for row in imprecise} <= {1, None}


class TestPoints:
    COLUMNS = tuple(
        Column(name, kind)
        for name, kind in {
            "time": Kind.INT, "type": Kind.STRING, "off": Kind.FLOAT, "long": Kind.DURATION, "p": Kind.OTHER,
        }.items()
    )  # fmt: skip

    def points(self, how: Imprecision, axis: TimeAxis | None = None, **row: Any) -> dict[int, Fraction]:
        schema = Schema(self.COLUMNS, axis=axis or TimeAxis.integer(), imprecision=how)
        return dict(points_of(0, {"time": 10, "type": "A", **row}, schema))

    def test_equally_likely(self) -> None:
        assert self.points(Imprecision(error=Fraction(1))) == dict.fromkeys((9, 10, 11), Fraction(1, 3))

    def test_floored_to_the_grain(self) -> None:
        assert list(self.points(Imprecision(error=Fraction(13), grain=5))) == [-5, 0, 5, 10, 15, 20]
        assert list(self.points(Imprecision(grain=4))) == [8]

    def test_by_type(self) -> None:
        how = Imprecision(by_type=(("A", Fraction(5, 2)), ("B", Fraction(1))))
        assert list(self.points(how)) == [7, 8, 9, 10, 11, 12]
        assert list(self.points(how, type="B")) == [9, 10, 11]
        assert list(self.points(how, type="C")) == [10]

    def test_in_a_column(self) -> None:
        assert list(self.points(Imprecision(error_column="off"), off=0.5)) == [9, 10]
        tenths = self.points(Imprecision(error_column="off", grain=50_000), TimeAxis.timestamps(), time=10**6, off=0.1)
        assert list(tenths) == [900_000, 950_000, 10**6, 1_050_000, 1_100_000]
        assert list(self.points(Imprecision(error_column="long"), long=2 * 10**6)) == [8, 9, 10, 11, 12]

    def test_probabilities_are_divided_by_their_sum_and_zeros_left_out(self) -> None:
        how = Imprecision(error=Fraction(1), probability="p")
        assert self.points(how, p=[0.25, 0, 0.25]) == {9: Fraction(1, 2), 11: Fraction(1, 2)}
        assert self.points(how, p=None) == dict.fromkeys((9, 10, 11), Fraction(1, 3))
        shares = self.points(how, p=[0.1, 0.2, 0.7])
        assert shares[9] == Fraction(0.1) / (Fraction(0.1) + Fraction(0.2) + Fraction(0.7))

    @pytest.mark.parametrize("row", [{"p": [1.0]}, {"p": [2, -1, 0]}, {"time": None}])
    def test_what_cannot_be(self, row: dict[str, Any]) -> None:
        with pytest.raises(DataError, match="row 0"):
            self.points(Imprecision(error=Fraction(1), probability="p"), **row)

    def test_given_probabilities_decide(self) -> None:
        schema = Schema(self.COLUMNS, imprecision=Imprecision(error=Fraction(1), probability="p"))
        rows = [{"time": 1, "type": "A", "p": [0.5, 0.25, 0.25]}, {"time": 2, "type": "B", "p": [0.25, 0, 0.75]}]
        (row,) = evaluate(bind(parse_query("PATTERN SEQ(A a, B b)"), schema), rows)
        assert row.confidence == Fraction(1, 4) * Fraction(1, 2) + Fraction(3, 4)
        assert (row.time_low, row.time_high) == (0, 3)


class TestExpected:
    QUERY = "RETURN COUNT(*), COUNT(a), SUM(a.x), SUM(b.y) PATTERN SEQ(A+ a[], B b)"

    def test_each_match_counts_as_much_as_it_is_likely(self, ask):
        # a then b: 3/4, (1, 2), (1, 3), (2, 3); the second a is at 1 for sure: with b 1, before the first a 1/2
        (row,) = ask(self.QUERY, "a1~2(x=4) a1~1p(x=10) b2~3(y=None)").rows
        both = Fraction(1, 4)  # second, then first at 2, then b at 3
        assert row.values == (
            Fraction(3, 4) + 1 + both,
            Fraction(3, 4) + 1 + 2 * both,
            4 * (Fraction(3, 4) + both) + 10 * (1 + both),
            None,
        )

    def test_the_likely_ones_only(self, ask):
        (row,) = ask(self.QUERY + " CONFIDENCE >= 0.5", "a1~2(x=4) a1~1p(x=10) b2~3(y=None)").rows
        assert row.values[:2] == (Fraction(7, 4), Fraction(7, 4))
        assert ask(self.QUERY + " CONFIDENCE >= 0.5", "a1~4(x=4) b1~2(y=1)").rows == []

    def test_groups_and_windows(self, ask):
        query = "RETURN COUNT(*) PATTERN SEQ(A a, B b) WHERE [k, j] GROUP BY k WITHIN 4"
        rows = ask(query, "a1~2(k=1,j=1) b3~4(k=1,j=1) a1~1(k=1,j=2) b2~2(k=1,j=2) b2~3(k=2,j=1) a3~4(k=2,j=1)").rows
        assert [(row.partition, row.window, row.values) for row in rows] == [((1,), (0, 4), (Fraction(3, 2),))]

    def test_sums_are_exact(self, ask):
        (row,) = ask("RETURN SUM(a.x) PATTERN A a", "a1~2(x=0.1) a1~2p(x=0.2)").rows
        assert row.values == (Fraction(0.1) + Fraction(0.2),)

    def test_infinities(self, ask):
        query = "RETURN SUM(a.x) PATTERN A a"
        assert ask(query, "a1~2(x=1e999) a1~2p(x=0.2)").value == float("inf")
        assert ask(query, "a1~2(x=1e999) a1~2p(x=-1e999)").value is None


class TestProbability:
    QUERY = "RETURN PROBABILITY(*), COUNT(*) PATTERN SEQ(A a, B b)"

    @pytest.mark.parametrize("semantics", ["", NEXT])
    def test_of_at_least_one_match(self, ask, semantics):
        # b at 2 of 1..2 follows an a at 1: either a is at 1 of 1..2 with probability 3/4
        (row,) = ask(f"{self.QUERY} {semantics}", "a1~2 a1~2p b1~2").rows
        assert row.values == (Fraction(3, 8), Fraction(1, 2))

    def test_per_group_and_window(self, ask):
        query = "RETURN PROBABILITY(*) PATTERN SEQ(A a, B b) WHERE [k] GROUP BY k WITHIN 2 SLIDE 2"
        rows = ask(query, "a0~1(k=1) b1~2(k=1) a2~2(k=2) b3~3(k=2)").rows
        assert [(row.partition, row.window, row.values) for row in rows] == [
            ((1,), (0, 2), (Fraction(1, 4),)),
            ((2,), (2, 4), (Fraction(1),)),
        ]

    def test_with_repeated_and_optional_parts(self, ask):
        some = ask("RETURN PROBABILITY(*) PATTERN SEQ(A+ a[], C c?, B b)", "a1~2 a1~2p b1~2 c1~1").value
        assert some == Fraction(3, 8)
