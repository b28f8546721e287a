"""What is refused by name where time is imprecise: what is wrong, where, and the way out."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from tests.unit.logical.test_bind_errors import KINDS, SCHEMA, check

from trendloom.frontend.tql.parser import parse_query
from trendloom.frontend.tql.printer import write
from trendloom.logical.bind import bind
from trendloom.logical.plan import Aggregation
from trendloom.model.imprecision import Imprecision
from trendloom.model.schema import Column, Kind, Schema

BOUNDS = Schema(
    tuple(Column(name, kind) for name, kind in (KINDS | {"lo": Kind.INT, "hi": Kind.INT}).items()),
    imprecision=Imprecision("lo", "hi"),
)
ERROR = replace(SCHEMA, imprecision=Imprecision(error=Fraction(3)))
NEXT = "SEMANTICS skip-till-next-match"


@pytest.mark.parametrize("schema", [BOUNDS, ERROR], ids=["bounds", "error"])
@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        ("PATTERN SEQ(A a, B b) ⟨SEMANTICS⟩ contiguous", "contiguous does not go with imprecise time", "skip-till-any"),
        ("PATTERN ⟨OR(A a, B b)⟩", "OR does not go with imprecise time", "a query for each"),
        ("PATTERN SEQ(A a, ⟨B b OR C c⟩)", "OR does not go with imprecise time", "a query for each"),
        ("PATTERN ⟨AND(A a, B b)⟩", "AND does not go with imprecise time", "a SEQ for each order"),
        ("PATTERN ⟨SEQ(A a, B b)+⟩", "a repetition of more than one component", "A+ a[]"),
        ("PATTERN SEQ(A a, ⟨SEQ(B b, C c)?⟩)", "a repetition of more than one component", "A+ a[]"),
        ("PATTERN ⟨SEQ(A a, B+ b[])+⟩", "a repetition inside a repetition", "A+ a[]"),
        ("PATTERN ⟨(A+ a[])+⟩", "a repetition inside a repetition", "A+ a[]"),
        ("PATTERN SEQ(A a, ⟨NOT SEQ(B b, C c)⟩, D d)", "NOT of anything but one event", "NOT B b"),
        ("PATTERN SEQ(A a, ⟨NOT B+⟩, D d)", "NOT of anything but one event", "NOT B b"),
        ("PATTERN SEQ(A a, ⟨NOT SEQ(B b, NOT C c)⟩, D d)", "NOT of anything but one event", "NOT B b"),
        ("PATTERN ⟨EXISTS b (SEQ(A a, B b))⟩", "EXISTS does not go with", "leave EXISTS out"),
        ("⟨RETURN⟩ COMPLETE TRENDS PATTERN A+ a[]", "RETURN COMPLETE TRENDS does not go with", "RETURN TRENDS"),
        ("⟨RETURN⟩ COLLAPSED TRENDS PATTERN A+ a[]", "RETURN COLLAPSED TRENDS does not go with", "RETURN TRENDS"),
        ("PATTERN A a ⟨RANK BY a.x LIMIT 3⟩", "RANK BY does not go with", "CONFIDENCE"),
        ("PATTERN ⟨AND(A a WITHIN 5, B b)⟩ RANK BY a.x LIMIT 3", "AND does not go with", "SEQ"),
        ("RETURN COUNT(*) PATTERN A a ⟨HAVING⟩ COUNT(*) > 2", "HAVING does not go with", "filter the rows"),
        ("RETURN COUNT(*), ⟨AVG(a.x)⟩ PATTERN A a", "AVG over all matches does not go with", "avg(a[].x)"),
        ("RETURN ⟨MIN(a.x)⟩ PATTERN A a", "MIN over all matches does not go with", "min(a[].x)"),
        ("RETURN ⟨MAX(a.x)⟩ + 1 AS m PATTERN A a", "MAX over all matches does not go with", "max(a[].x)"),
        ("PATTERN SEQ(A a, B b) WHERE a.x > 1 AND ⟨b.time⟩ > 3", "'b.time', the time of an event,", "WITHIN"),
        ("PATTERN SEQ(A a, (B b: b.x + ⟨a.time⟩ > 2))", "'a.time', the time of an event,", "WITHIN"),
        ("RETURN ⟨a.time⟩ PATTERN A a", "'a.time', the time of an event,", "WITHIN"),
        ("RETURN COUNT(*), SUM(⟨a.time⟩) PATTERN A a", "'a.time', the time of an event,", "WITHIN"),
        ("RETURN max(⟨a[].time⟩) AS m PATTERN A+ a[]", "'a[].time', the time of an event,", "WITHIN"),
        ("PATTERN A+ a[] WHERE ⟨duration(a)⟩ > 3", "'duration(a)' does not go with", "WITHIN"),
        ("PATTERN SEQ(A a, B b) WHERE ⟨[time]⟩", "a partition by 'time'", "another attribute"),
        ("RETURN COUNT(*) PATTERN A a ⟨GROUP BY⟩ time", "GROUP BY time", "another attribute"),
    ],
)
def test_what_does_not_go_with_imprecise_time(query: str, message: str, hint: str, schema: Schema) -> None:
    check(query, message, hint, schema)


def test_the_column_of_times_by_its_own_name() -> None:
    named = replace(ERROR, columns=(*ERROR.columns, Column("at", Kind.INT)), time="at")
    check("PATTERN A a WHERE ⟨a.at⟩ > 1", "'a.at', the time of an event,", "WITHIN", named)
    check("PATTERN A a WHERE ⟨a.time⟩ > 1", "'a.time', the time of an event,", "WITHIN", named)


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        (
            f"PATTERN SEQ(A a, NOT N n, B b) {NEXT} WHERE ⟨n.x = b.x⟩",
            "a NOT that depends on 'b', bound after",
            "before",
        ),
        (f"PATTERN SEQ(NOT N n, A a) {NEXT} WHERE ⟨n.x < a.x⟩", "a NOT that depends on 'a', bound after", "before"),
        (f"PATTERN SEQ(A a, NOT (N n: ⟨n.x = b.x⟩), B b?, C c) {NEXT}", "a NOT that depends on 'b'", "before"),
        (f"PATTERN SEQ(A+ a[], B b) {NEXT} WHERE ⟨count(a[]) > 2⟩", "a condition on all events of 'a'", "neighbours"),
        (f"PATTERN SEQ(A+ a[], B b) {NEXT} WHERE ⟨a[last].x > b.x⟩", "a condition on all events of 'a'", "neighbours"),
        (f"PATTERN SEQ(A+ a[], B b) {NEXT} WHERE ⟨a[first].x > b.x⟩", "a condition on all events of 'a'", "neighbours"),
    ],
)
def test_conditions_that_are_decided_late_under_next(query: str, message: str, hint: str) -> None:
    check(query, message, hint, ERROR)
    any_match = query.replace(NEXT, "").replace("⟨", "").replace("⟩", "")
    bind(parse_query(any_match), ERROR)


@pytest.mark.parametrize(
    "query",
    [
        f"PATTERN SEQ(A a, NOT N n, B b) {NEXT} WHERE n.x = a.x AND a.x < b.x",
        f"PATTERN SEQ(A+ a[], NOT N n, B b, NOT C c) {NEXT} WHERE n.x = a.x AND c.x = b.x AND a[i].x > a[i-1].x",
        f"PATTERN SEQ(A+ a[], B b) {NEXT} WHERE a[i].x > max(a[..i-1].x) AND NEXT(a).x > a.x WITHIN 5",
        "PATTERN SEQ(A{2,3} a[], B* b[], C c?, NOT D) WHERE [g] AND avg(a[].x) > 2 WITHIN 5 SLIDE 2 CONFIDENCE >= 0.5",
        "RETURN a.lo, b.hi - a.hi AS gap PATTERN SEQ(A a, SEQ(B b, C c)) WHERE a.hi < b.hi",
        "RETURN g, COUNT(*), COUNT(a), SUM(a.x) PATTERN SEQ(A a, B b) GROUP BY g WITHIN 5 CONFIDENCE >= 0.5",
    ],
)
def test_what_goes_with_imprecise_time(query: str) -> None:
    bind(parse_query(query), BOUNDS)


class TestColumns:
    SCHEMA = replace(BOUNDS, columns=(*BOUNDS.columns, Column("time_low", Kind.INT), Column("rank", Kind.INT)))

    def test_columns_of_matches(self) -> None:
        check("PATTERN A a ⟨WHERE⟩ [time_low]", "two columns named 'time_low'", "rename", self.SCHEMA)
        check("RETURN ⟨a.x AS time_high⟩ PATTERN A a", "two columns named 'time_high'", "AS", self.SCHEMA)
        check("RETURN ⟨a.x AS confidence⟩ PATTERN A a", "two columns named 'confidence'", "AS", self.SCHEMA)

    def test_aggregates_have_no_such_columns(self) -> None:
        bind(parse_query("RETURN COUNT(*) AS time_high PATTERN A a GROUP BY time_low"), self.SCHEMA)

    def test_expected_values_are_numbers_with_a_point(self) -> None:
        plan = bind(parse_query("RETURN COUNT(*), COUNT(a), SUM(a.x), SUM(a.x) / 2 AS h PATTERN A a"), BOUNDS)
        assert isinstance(plan.output, Aggregation)
        assert [value.kind for value in plan.output.values] == [Kind.FLOAT] * 4


CANNOT = "the probability of at least one match cannot be computed here: "
HINT = "expected number of matches"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("RETURN ⟨PROBABILITY(*)⟩ PATTERN SEQ(A a, A b)", "an event of type 'A' fits more than one place"),
        ("RETURN ⟨PROBABILITY(*)⟩ PATTERN SEQ(A{2} a[], B b)", "an event of type 'A' fits more than one place"),
        ("RETURN ⟨PROBABILITY(*)⟩ PATTERN SEQ(A a, NOT B b, C c)", "the pattern has a NOT"),
        (
            "RETURN ⟨PROBABILITY(*)⟩ PATTERN SEQ(A a, B b) WHERE a.x < b.x",
            "'a.x < b.x' is not a condition on one event",
        ),
        (
            "RETURN ⟨PROBABILITY(*)⟩ PATTERN SEQ(A+ a[], B b) WHERE count(a[]) > 1",
            "'count(a[]) > 1' is not a condition",
        ),
        ("RETURN ⟨PROBABILITY(*)⟩ PATTERN SEQ(A+ a[], B b) WHERE a[i].x > a[i-1].x", "is not a condition on one event"),
        ("RETURN ⟨PROBABILITY(*)⟩ PATTERN SEQ(A a?, B* b[])", "no component of the pattern must happen"),
        ("RETURN ⟨PROBABILITY(*)⟩ PATTERN A a WHERE [g]", "a group has several partitions"),
        ("RETURN COUNT(*), ⟨PROBABILITY(*)⟩ PATTERN A a CONFIDENCE >= 0.5", "CONFIDENCE leaves matches out"),
    ],
)
def test_where_the_probability_of_a_match_is_not_known(query: str, reason: str) -> None:
    check(query, CANNOT + reason if reason[0] not in "'i" else reason, HINT, BOUNDS)


@pytest.mark.parametrize(
    "query",
    [
        "RETURN PROBABILITY(*) PATTERN SEQ(A a, B+ b[], C c?) WHERE a.x > 1 AND b.x < 3 WITHIN 5 SLIDE 2",
        "RETURN g, COUNT(*), PROBABILITY(*) AS p PATTERN SEQ(A a, B b) WHERE [g] GROUP BY g",
        f"RETURN 1 - PROBABILITY(*) AS none PATTERN SEQ(A a, B b) {NEXT}",
    ],
)
def test_where_it_is(query: str) -> None:
    plan = bind(parse_query(query), BOUNDS)
    assert isinstance(plan.output, Aggregation)
    assert plan.output.values[-1].kind is Kind.FLOAT
    assert parse_query(write((plan.query,))) == plan.query


@pytest.mark.parametrize(
    ("query", "message", "hint", "schema"),
    [
        (
            "RETURN ⟨PROBABILITY(*)⟩ PATTERN A a",
            "PROBABILITY needs a stream with imprecise time",
            "time_error=",
            SCHEMA,
        ),
        ("RETURN ⟨PROBABILITY(a)⟩ PATTERN A a", "takes nothing but *", "PROBABILITY(*)", BOUNDS),
        ("RETURN ⟨probability()⟩ PATTERN A a", "takes nothing but *", "PROBABILITY(*)", BOUNDS),
        ("PATTERN A a WHERE ⟨PROBABILITY(*)⟩ > 0.5", "stands only in RETURN", "CONFIDENCE", BOUNDS),
    ],
)
def test_how_it_is_written(query: str, message: str, hint: str, schema: Schema) -> None:
    check(query, message, hint, schema)
