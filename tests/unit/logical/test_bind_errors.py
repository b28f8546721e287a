"""Everything the binder refuses: what is wrong, where (marked by ⟨⟩ in the query), and the way out."""

from __future__ import annotations

import re

import pytest

from trendloom.errors import BindError
from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind import bind
from trendloom.model.schema import Column, Kind, Schema
from trendloom.model.time import TimeAxis

KINDS = {
    "id": Kind.STRING,
    "type": Kind.STRING,
    "time": Kind.INT,
    "price": Kind.FLOAT,
    "x": Kind.INT,
    "g": Kind.STRING,
    "f": Kind.BOOL,
    "list": Kind.OTHER,
    "none": Kind.NULL,
    "moment": Kind.TIME,
}
SCHEMA = Schema(tuple(Column(name, kind) for name, kind in KINDS.items()))
TIMESTAMPS = Schema(
    tuple(Column(name, Kind.TIME if name == "time" else kind) for name, kind in KINDS.items()),
    axis=TimeAxis.timestamps(),
)
LISTED = Schema(SCHEMA.columns, types=frozenset({"Trade", "Quote"}))


def refused(marked: str, schema: Schema = SCHEMA) -> BindError:
    """The error of a query, which must point at the marked place."""
    place = re.search("⟨(.*?)⟩", marked, re.DOTALL)
    assert place is not None
    text = marked.replace("⟨", "").replace("⟩", "")
    with pytest.raises(BindError) as caught:
        bind(parse_query(text), schema)
    error = caught.value
    before = marked[: place.start()]
    assert (error.line, error.column) == (before.count("\n") + 1, len(before) - before.rfind("\n"))
    assert error.span is not None
    assert error.span.length == len(place.group(1))
    assert error.text == text
    return error


def check(marked: str, message: str, hint: str | None, schema: Schema = SCHEMA) -> None:
    error = refused(marked, schema)
    assert message in error.message
    assert (hint is None) == (error.hint is None)
    assert hint is None or hint in str(error.hint)


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        ("PATTERN ⟨NOT A⟩", "NOT stands outside a SEQ", "SEQ(A, NOT B, C)"),
        ("PATTERN (⟨NOT A⟩)+", "NOT stands outside a SEQ", "SEQ(A, NOT B, C)"),
        ("PATTERN OR(A, ⟨NOT B⟩)", "NOT stands outside a SEQ", "SEQ(A, NOT B, C)"),
        ("PATTERN SEQ(A, NOT ⟨SEQ(NOT B)⟩)", "nothing but NOT", "a component that must happen"),
        ("PATTERN ⟨SEQ(NOT A, NOT B)⟩", "nothing but NOT", "a component that must happen"),
        ("PATTERN AND(SEQ(A, ⟨NOT B⟩), C)", "must stand between two components", "is allowed"),
        ("PATTERN AND(SEQ(⟨NOT B⟩, A), C)", "must stand between two components", "is allowed"),
        ("PATTERN SEQ(A a, ⟨A a⟩)", "variable 'a' appears twice", "a name of its own"),
        ("PATTERN SEQ(⟨A B⟩, B)", "also the name of a type", "name the other component too"),
        ("PATTERN ⟨A⟩{3000}", "more than 2000 positions", "use +"),
        ("PATTERN ⟨EXISTS z (SEQ(A a, B b))⟩", "EXISTS names 'z'", "there is 'a', 'b'"),
        ("PATTERN ⟨AND(A, B)⟩ SEMANTICS contiguous", "AND means nothing under contiguous", "skip-till-any-match"),
        ("⟨RETURN⟩ COMPLETE TRENDS PATTERN A SEMANTICS contiguous", "needs skip-till-any-match", "RETURN TRENDS"),
        ("⟨RETURN⟩ COLLAPSED TRENDS PATTERN A SEMANTICS skip-till-next-match", "needs skip-till-any-match", "TRENDS"),
    ],
)
def test_pattern(query: str, message: str, hint: str | None) -> None:
    check(query, message, hint)


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        ("PATTERN A a WHERE ⟨z.x⟩ > 1", "unknown variable 'z'", "there is 'a'"),
        ("PATTERN A a\nWHERE a.x > 1 AND a.⟨prise⟩ > 1", "A has no attribute 'prise'", "did you mean 'price'?"),
        ("PATTERN A a WHERE ⟨x⟩ > 1", "does not say of which variable", "write a.x"),
        ("PATTERN A a WHERE ⟨a⟩", "is a variable, not a value", "a.time"),
        ("PATTERN A a WHERE ⟨[q]⟩", "no attribute 'q'", "there is"),
        ("PATTERN A a WHERE ⟨[list]⟩", "cannot partition the stream", None),
        ("PATTERN A a WHERE a.x = 1 OR ⟨[g]⟩", "a conjunct of its own", "WHERE [key] AND"),
        ("PATTERN A a WHERE NOT ⟨[g]⟩", "a conjunct of its own", "WHERE [key] AND"),
        ("PATTERN A a ⟨GROUP BY⟩ q", "no attribute 'q'", "there is"),
        ("PATTERN A a ⟨GROUP BY⟩ g, g", "names an attribute twice", None),
        ("PATTERN SEQ(A a, (B b: b.x = ⟨n.x⟩), NOT C n)", "'n' is a variable of a NOT", "to WHERE"),
        ("PATTERN SEQ(A a, NOT B b, C c, NOT D d, E e) WHERE ⟨b.x = d.x⟩", "variables of two NOTs", "for each"),
        ("PATTERN SEQ(A a, NOT B b) RETURN ⟨b.x⟩", "'b' is a variable of a NOT", "leave it out"),
    ],
)
def test_names(query: str, message: str, hint: str | None) -> None:
    check(query, message, hint)


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        ("PATTERN A a WHERE ⟨a.x⟩", "a condition is expected here, not an integer", "compare it"),
        ("PATTERN A a WHERE NOT ⟨a.g⟩", "a condition is expected here, not a string", "compare it"),
        ("PATTERN A a WHERE ⟨a.x = 'q'⟩", "cannot compare an integer with a string", "single quotes"),
        ("PATTERN A a WHERE a.x IN (1, ⟨'q'⟩)", "cannot compare an integer with a string", "single quotes"),
        ("PATTERN A a WHERE ⟨a.g BETWEEN 1 AND 2⟩", "cannot compare a string with an integer", "single quotes"),
        ("PATTERN A a WHERE ⟨a.f < TRUE⟩", "cannot compare a boolean with a boolean by '<'", "= and !="),
        ("PATTERN A a WHERE ⟨a.list = a.list⟩", "cannot compare", "of one kind"),
        ("PATTERN A a WHERE ⟨a.x + a.g⟩ > 1", "'+' does not go between an integer and a string", None),
        ("PATTERN A a WHERE ⟨-a.g⟩ = 'q'", "'-' does not go before a string", None),
        ("PATTERN A a WHERE ⟨a.x⟩ LIKE 'q'", "LIKE takes a string, not an integer", None),
        ("PATTERN A a WHERE ⟨abs(a.g)⟩ > 1", "abs takes a number, not a string", None),
        ("PATTERN A a WHERE lower(⟨a.x⟩) = 'q'", "lower takes a string, not an integer", None),
        ("PATTERN A a WHERE ⟨abs(a.x, 1)⟩ > 1", "abs takes 1 argument, not 2", None),
        ("PATTERN A a WHERE round(a.price, ⟨a.x⟩) > 1", "the digits of round", None),
        ("PATTERN A a WHERE ⟨coalesce(a.x, a.g)⟩ = 1", "of different kinds: integer, string", None),
        ("PATTERN A a WHERE ⟨flor(a.x)⟩ > 1", "unknown function 'flor'", "did you mean 'floor'?"),
        ("PATTERN A a WHERE ⟨duration(a.x)⟩ > 1", "duration takes a variable", None),
        ("PATTERN A a WHERE a.moment > ⟨'soon'⟩", "'soon' is not a time", "2024-01-31 12:00:00"),
        ("PATTERN A a WHERE ⟨a.moment > 5⟩", "cannot compare a time with an integer", "as a string"),
        ("PATTERN A a WHERE ⟨a.moment + a.moment⟩ > 5", "'+' does not go between a time and a time", None),
    ],
)
def test_kinds(query: str, message: str, hint: str | None) -> None:
    check(query, message, hint)


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        ("PATTERN SEQ(A a, B b) WHERE ⟨NEXT(a).x < NEXT(b).x⟩", "NEXT takes one variable inside", "split"),
        ("PATTERN SEQ(A a, B b, C c) WHERE ⟨a.x + b.x < NEXT(c).x⟩", "at most one outside", "split"),
        ("PATTERN SEQ(A+ a[], B+ b[]) WHERE ⟨a[i].x < b[i].x⟩", "[i] counts one variable", "split"),
        ("PATTERN A+ a[] WHERE ⟨a[i].x < NEXT(a).x⟩", "NEXT and [i]", None),
        ("PATTERN A a WHERE ⟨a[].x⟩ > 1", "stands for many events", "count, min, max, sum or avg"),
        ("PATTERN A+ a[] WHERE ⟨sum(a[first].x)⟩ > 1", "takes many events, this is one", "a[]"),
        ("PATTERN A a WHERE ⟨COUNT(*)⟩ > 1", "an aggregate over all matches", "count(b[])"),
        ("PATTERN A a WHERE ⟨sum(a.x)⟩ > 1", "an aggregate over all matches", "sum(a[]"),
    ],
)
def test_events_that_a_condition_speaks_of(query: str, message: str, hint: str | None) -> None:
    check(query, message, hint)


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        ("RETURN ⟨a.x⟩ PATTERN A+ a[]", "can bind several events", "a[first]"),
        ("RETURN ⟨a[i].x⟩ PATTERN A+ a[]", "stands only in conditions", None),
        ("RETURN ⟨NEXT(a).x⟩ PATTERN A+ a[]", "stands only in conditions", None),
        ("RETURN ⟨sum(a[..i-1].x)⟩ PATTERN A+ a[]", "stands only in conditions", None),
        ("RETURN ⟨a.x⟩ PATTERN EXISTS a (SEQ(A a, B b))", "bound by EXISTS", "leave EXISTS out"),
        ("RETURN ⟨g⟩ PATTERN A a", "neither a grouping nor a partition attribute", "GROUP BY g"),
        ("RETURN ⟨g⟩, COUNT(*) PATTERN A a", "neither a grouping nor a partition attribute", "GROUP BY g"),
        ("RETURN ⟨g⟩, COUNT(*) PATTERN A a WHERE [g]", "must be in GROUP BY", "add GROUP BY g"),
        ("RETURN ⟨a.x⟩, COUNT(*) PATTERN A a", "is of one match and stands beside aggregates", "use []"),
        ("RETURN COUNT(*), ⟨COUNT(*)⟩ PATTERN A", "two columns named 'COUNT(*)'", "AS"),
        ("RETURN ⟨COUNT(*) AS score⟩ PATTERN A", "'score'", "AS"),
        ("RETURN ⟨COUNT(*) AS g⟩ PATTERN A GROUP BY g", "two columns named 'g'", "AS"),
        ("RETURN ⟨SUM(A)⟩ PATTERN A", "sum needs an attribute", "A.x"),
        ("RETURN ⟨SUM(A.g)⟩ PATTERN A", "sum takes numbers, not a string", None),
        ("RETURN ⟨MIN(A.f)⟩ PATTERN A", "min does not go over a boolean", None),
        ("RETURN ⟨MAX(*)⟩ PATTERN A", "max(*) means nothing", "only COUNT takes *"),
        ("RETURN SUM(⟨Z.x⟩) PATTERN A", "unknown variable 'Z'", "there is 'A'"),
        ("RETURN ⟨sum(3)⟩ PATTERN A", "takes the events of a variable", "sum(b[].x)"),
        ("PATTERN A a ⟨HAVING⟩ COUNT(*) > 1", "HAVING needs aggregates", "WHERE"),
        ("RETURN a.x PATTERN A a ⟨HAVING⟩ COUNT(*) > 1", "HAVING needs aggregates", "WHERE"),
        ("RETURN COUNT(*) PATTERN A a HAVING COUNT(*) > 1 AND ⟨a.x > 3⟩", "'a.x > 3' is of one match", "MAX(a.x)"),
        ("PATTERN A ⟨CONFIDENCE⟩ >= 0.5", "needs a stream with imprecise time", "time_low= and time_high="),
    ],
)
def test_results(query: str, message: str, hint: str | None) -> None:
    check(query, message, hint)


class TestDurations:
    def test_they_must_be_whole_ticks(self) -> None:
        check("PATTERN A WITHIN ⟨0.5 s⟩", "0.5 s is not a whole number", 'time_unit="ms"')
        check("PATTERN A WITHIN 5 s SLIDE ⟨1 ms⟩", "1 ms is not a whole number", 'time_unit="ms"')
        check("PATTERN A a WHERE a.time < ⟨5 ms⟩", "5 ms is not a whole number", 'time_unit="ms"')

    def test_a_plain_number_needs_an_integer_time(self) -> None:
        check("PATTERN A WITHIN ⟨5⟩", "a plain number is not a duration", "5 s", TIMESTAMPS)

    def test_differences_of_times_are_durations(self) -> None:
        query = "PATTERN SEQ(A a, B b) WHERE ⟨b.time - a.time < 5⟩"
        check(query, "cannot compare a duration with an integer", "with its unit", TIMESTAMPS)


def test_types_that_are_not_listed() -> None:
    check("PATTERN SEQ(Trade, ⟨Qoute q⟩)", "unknown event type 'Qoute'", "did you mean 'Quote'?", LISTED)
    check("PATTERN SEQ(Trade, NOT ⟨Qoute⟩)", "unknown event type 'Qoute'", "did you mean 'Quote'?", LISTED)


def test_the_message_draws_the_place() -> None:
    assert str(refused("PATTERN Trade t\nWHERE t.⟨prise⟩ > 10")) == (
        "Trade has no attribute 'prise'  (line 2, column 9)\n"
        "  WHERE t.prise > 10\n"
        "          ^^^^^\n"
        "hint: did you mean 'price'?"
    )
