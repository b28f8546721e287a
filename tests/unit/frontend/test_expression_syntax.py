"""Every form of a condition or value, and how tightly each binds."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from trendloom.frontend.tql.parser import parse_expression
from trendloom.frontend.tree import (
    Between,
    Binary,
    Call,
    DurationLiteral,
    Equivalence,
    Expression,
    In,
    Index,
    IsNull,
    Like,
    Literal,
    Logical,
    Name,
    Reference,
    Star,
    Unary,
)


def ref(variable: str, attribute: str | None = "x", index: Index = Index.EACH) -> Reference:
    return Reference(variable, index, attribute)


x, y, z = ref("a"), ref("b"), ref("c")
one, two = Literal(1), Literal(2)

FORMS = [
    ("7", Literal(7)),
    ("0.5", Literal(Decimal("0.5"))),
    ("0.50", Literal(Decimal("0.5"))),
    (".5", Literal(Decimal("0.5"))),
    ("1e3", Literal(Decimal("1000.0"))),
    ("2.5E-1", Literal(Decimal("0.25"))),
    ("1234567890123456789.01", Literal(Decimal("1234567890123456789.01"))),
    ("-5", Unary("-", Literal(5))),
    ("'it''s'", Literal("it's")),
    ("''", Literal("")),
    ("TRUE", Literal(True)),
    ("false", Literal(False)),
    ("5 min", DurationLiteral(Fraction(5), "min")),
    ("0.1 s", DurationLiteral(Fraction(1, 10), "s")),
    ("patient", Name("patient")),
    ("`the patient`", Name("the patient")),
    ("a.x + 1", Binary("+", x, one)),
    ("a.x - 1", Binary("-", x, one)),
    ("a.x-1", Binary("-", x, one)),
    ("a.x * 1", Binary("*", x, one)),
    ("a.x / 1", Binary("/", x, one)),
    ("a.x % 1", Binary("%", x, one)),
    ("a.x = 1", Binary("=", x, one)),
    ("a.x != 1", Binary("!=", x, one)),
    ("a.x <> 1", Binary("!=", x, one)),
    ("a.x < 1", Binary("<", x, one)),
    ("a.x <= 1", Binary("<=", x, one)),
    ("a.x > 1", Binary(">", x, one)),
    ("a.x >= 1", Binary(">=", x, one)),
    ("b.x - a.x < 5 min", Binary("<", Binary("-", y, x), DurationLiteral(Fraction(5), "min"))),
    ("b.x - a.x < INTERVAL '5' MINUTE", Binary("<", Binary("-", y, x), DurationLiteral(Fraction(5), "min"))),
    ("interval '1.5 hours'", DurationLiteral(Fraction(3, 2), "h")),
    ("interval 10 ms", DurationLiteral(Fraction(10), "ms")),
    ("interval.x", ref("interval", "x")),
    ("a.interval", ref("a", "interval")),
    ("a.x IN (1, 2)", In(x, (one, two))),
    ("a.x NOT IN (1)", Unary("not", In(x, (one,)))),
    ("a.x BETWEEN 1 AND 2", Between(x, one, two)),
    ("a.x not between 1 and 2", Unary("not", Between(x, one, two))),
    ("a.x IS NULL", IsNull(x)),
    ("a.x IS NOT NULL", IsNull(x, negated=True)),
    ("a.x LIKE 'a%'", Like(x, "a%")),
    ("a.x NOT LIKE 'a%'", Unary("not", Like(x, "a%"))),
    ("NOT a.x", Unary("not", x)),
    ("a.x AND b.x", Logical("and", (x, y))),
    ("a.x OR b.x OR c.x", Logical("or", (x, y, z))),
    ("[patient]", Equivalence(("patient",))),
    ("[sector, company]", Equivalence(("sector", "company"))),
    ("[limit, `odd one`]", Equivalence(("limit", "odd one"))),
    ("M.rate < NEXT(M).rate", Binary("<", ref("M", "rate"), ref("M", "rate", Index.NEXT))),
    ("next(B).x", ref("B", "x", Index.NEXT)),
    ("b[i].val", ref("b", "val", Index.CURRENT)),
    ("b[i-1].val", ref("b", "val", Index.PREVIOUS)),
    ("b[ I - 1 ].val", ref("b", "val", Index.PREVIOUS)),
    ("b[first].x", ref("b", "x", Index.FIRST)),
    ("b[LAST].x", ref("b", "x", Index.LAST)),
    ("max(b[..i-1].val)", Call("max", (ref("b", "val", Index.BEFORE),))),
    ("count(b[..i-1])", Call("count", (ref("b", None, Index.BEFORE),))),
    ("avg(b[].x)", Call("avg", (ref("b", "x", Index.ALL),))),
    ("count(b[])", Call("count", (ref("b", None, Index.ALL),))),
    ("duration(b)", Call("duration", (ref("b", None),))),
    ("COUNT(*)", Call("count", (Star(),))),
    ("COUNT(E)", Call("count", (ref("E", None),))),
    ("MIN(E.x)", Call("min", (ref("E"),))),
    ("sum(E)", Call("sum", (ref("E", None),))),
    ("abs(E)", Call("abs", (Name("E"),))),
    ("min(a.x, b.x)", Call("min", (x, y))),
    ("min(g, 1)", Call("min", (Name("g"), one))),
    ("COALESCE(a.x, b.x, 1)", Call("coalesce", (x, y, one))),
    ("now()", Call("now", ())),
    ("a.limit", ref("a", "limit")),
    ("a.`the price`", ref("a", "the price")),
    ("a . x", x),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expression"), FORMS, ids=[text for text, _ in FORMS])
def test_form(text: str, expression: Expression) -> None:
    # repr tells 1 from 1.0 and TRUE, which compare equal
    assert repr(parse_expression(text)) == repr(expression)


PRECEDENCE = [
    ("a.x OR b.x AND c.x", "a.x OR (b.x AND c.x)"),
    ("NOT a.x AND b.x", "(NOT a.x) AND b.x"),
    ("NOT a.x = 1", "NOT (a.x = 1)"),
    ("NOT NOT a.x IN (1)", "NOT (NOT (a.x IN (1)))"),
    ("a.x + 1 < b.x * 2", "(a.x + 1) < (b.x * 2)"),
    ("a.x - b.x - c.x", "(a.x - b.x) - c.x"),
    ("a.x / b.x * c.x", "(a.x / b.x) * c.x"),
    ("a.x + b.x % c.x", "a.x + (b.x % c.x)"),
    ("-a.x * b.x", "(-a.x) * b.x"),
    ("a.x - -b.x", "a.x - (-b.x)"),
    ("a.x BETWEEN 1 AND 2 AND b.x", "(a.x BETWEEN 1 AND 2) AND b.x"),
    ("a.x + 1 IS NULL", "(a.x + 1) IS NULL"),
    ("a.x IN (1) OR b.x IS NULL AND c.x LIKE 'u'", "(a.x IN (1)) OR ((b.x IS NULL) AND (c.x LIKE 'u'))"),
]


@pytest.mark.parametrize(("text", "bracketed"), PRECEDENCE)
def test_precedence(text: str, bracketed: str) -> None:
    assert parse_expression(text) == parse_expression(bracketed)


def test_written_brackets_keep_an_and_inside_an_and() -> None:
    assert parse_expression("(a.x AND b.x) AND c.x") == Logical("and", (Logical("and", (x, y)), z))


@pytest.mark.parametrize(
    ("words", "unit"),
    [
        ("us microsecond microseconds", "us"),
        ("ms millisecond milliseconds MS", "ms"),
        ("s second seconds S Seconds", "s"),
        ("min minute minutes MINUTES", "min"),
        ("h hour hours", "h"),
        ("d day days", "d"),
    ],
)
def test_units(words: str, unit: str) -> None:
    for word in words.split():
        assert parse_expression(f"3 {word}") == DurationLiteral(Fraction(3), unit)
        assert parse_expression(f"3{word}") == DurationLiteral(Fraction(3), unit)


def test_decimals_of_durations_are_exact() -> None:
    assert parse_expression("0.1 s") == DurationLiteral(Fraction(1, 10), "s")
    assert parse_expression("1e-3 s") == DurationLiteral(Fraction(1, 1000), "s")


def test_large_whole_numbers_stay_exact() -> None:
    assert parse_expression(str(10**40)) == Literal(10**40)


def test_comments_and_line_breaks() -> None:
    assert parse_expression("a.x -- the first\r\n\t= -- is\n1 -- one") == Binary("=", x, one)
