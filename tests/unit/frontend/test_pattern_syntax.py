"""Every form of a pattern in the language's table, and how tightly each binds."""

from __future__ import annotations

from fractions import Fraction

import pytest

from trendloom.frontend.tql.parser import parse_pattern
from trendloom.frontend.tree import (
    And,
    Binary,
    Event,
    Exists,
    Index,
    Length,
    Literal,
    Not,
    OperandWithin,
    Or,
    Pattern,
    Reference,
    Repeat,
    Seq,
)

A, B, C = Event("A"), Event("B"), Event("C")
FIVE = Length(Fraction(5))


def plus(pattern: Pattern) -> Repeat:
    return Repeat(pattern, 1, None, "+")


def maybe(pattern: Pattern) -> Repeat:
    return Repeat(pattern, 0, 1, "?")


FORMS = [
    ("Stock", Event("Stock")),
    ("Stock s", Event("Stock", "s")),
    ("SEQ(A)", Seq((A,))),
    ("SEQ(A, B, C)", Seq((A, B, C))),
    ("SEQ(A; B, C)", Seq((A, B, C))),
    ("seq ( A , B )", Seq((A, B))),
    ("A+", plus(A)),
    ("A*", Repeat(A, 0, None, "*")),
    ("A?", maybe(A)),
    ("A{3}", Repeat(A, 3, 3, "{}")),
    ("A{2, 4}", Repeat(A, 2, 4, "{}")),
    ("A{0,1}", Repeat(A, 0, 1, "{}")),
    ("A{2,}", Repeat(A, 2, None, "{}")),
    ("A{0,}", Repeat(A, 0, None, "{}")),
    ("(SEQ(A+, B))+", plus(Seq((plus(A), B)))),
    ("SEQ(A+, B)+", plus(Seq((plus(A), B)))),
    ("Stock S+", plus(Event("Stock", "S"))),
    ("Stock+ S[]", plus(Event("Stock", "S"))),
    ("Stock + S [ ]", plus(Event("Stock", "S"))),
    ("Stock+? S[]", maybe(plus(Event("Stock", "S")))),
    ("Stock{2,3} S[]", Repeat(Event("Stock", "S"), 2, 3, "{}")),
    ("NOT A", Not(A)),
    ("!A", Not(A)),
    ("~A", Not(A)),
    ("NOT NOT A", Not(Not(A))),
    ("OR(A, B)", Or((A, B))),
    ("A OR B", Or((A, B))),
    ("A | B", Or((A, B))),
    ("A or B | C", Or((A, B, C))),
    ("OR(OR(A, B), C)", Or((Or((A, B)), C))),
    ("(A OR B) OR C", Or((Or((A, B)), C))),
    ("AND(A, B, C)", And((A, B, C))),
    ("EXISTS x (A x)", Exists("x", Event("A", "x"))),
    ("(A WITHIN 5)", OperandWithin(A, FIVE)),
    ("AND(SEQ(A, B) WITHIN 5, B)", And((OperandWithin(Seq((A, B)), FIVE), B))),
    ("OR(A; NOT B within 5)", Or((A, OperandWithin(Not(B), FIVE)))),
    ("SEQ(A, A OR B WITHIN 5)", Seq((A, OperandWithin(Or((A, B)), FIVE)))),
    ("EXISTS x (A x WITHIN 5)", Exists("x", OperandWithin(Event("A", "x"), FIVE))),
    ("(A WITHIN 5)+", Repeat(OperandWithin(A, FIVE), 1, None, "+")),
    ("EXISTS x (SEQ(A x, B))", Exists("x", Seq((Event("A", "x"), B)))),
    ("(A)", A),
    ("((A))+", plus(A)),
    (
        "(B b: b.id = a.id)",
        Event("B", "b", Binary("=", Reference("b", Index.EACH, "id"), Reference("a", Index.EACH, "id"))),
    ),
    ("(B: B.x > 1)", Event("B", None, Binary(">", Reference("B", Index.EACH, "x"), Literal(1)))),
]


@pytest.mark.parametrize(("text", "pattern"), FORMS, ids=[text for text, _ in FORMS])
def test_form(text: str, pattern: Pattern) -> None:
    assert parse_pattern(text) == pattern


PRECEDENCE = [
    ("A+?", "(A+)?"),
    ("NOT A+", "NOT (A+)"),
    ("!A OR B", "(NOT A) OR B"),
    ("A OR B+", "A OR (B+)"),
    ("SEQ(A OR B, C)", "SEQ((A OR B), C)"),
    ("SEQ(!A | B; C)", "SEQ(((NOT A) OR B), C)"),
    ("EXISTS x (A x)+", "(EXISTS x (A x))+"),
    ("(B b: b.x > 1)+", "((B b: b.x > 1))+"),
]


@pytest.mark.parametrize(("text", "bracketed"), PRECEDENCE)
def test_postfix_binds_tighter_than_not_than_or_than_comma(text: str, bracketed: str) -> None:
    assert parse_pattern(text) == parse_pattern(bracketed)


def test_brackets_change_what_is_repeated() -> None:
    assert parse_pattern("(NOT A)+") == plus(Not(A))
    assert parse_pattern("NOT A+") == Not(plus(A))


def test_the_same_type_may_appear_twice() -> None:
    assert parse_pattern("SEQ(A x, A y, A)") == Seq((Event("A", "x"), Event("A", "y"), A))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Größe", "Größe"),
        ("_a1", "_a1"),
        ("`my type`", "my type"),
        ("`back``quote`", "back`quote"),
        ("`SEQ`", "SEQ"),
        ("Sequence", "Sequence"),
        ("orders", "orders"),
        ("i", "i"),
        ("first", "first"),
        ("merge", "merge"),
        ("min", "min"),
        ("count", "count"),
    ],
)
def test_names(text: str, name: str) -> None:
    assert parse_pattern(text) == Event(name)
    assert parse_pattern(f"T {text}") == Event("T", name)
