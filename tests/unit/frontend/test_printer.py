"""The canonical text: what it looks like, since it names the columns of results."""

from __future__ import annotations

from fractions import Fraction

import pytest

from trendloom.frontend.tql.parser import parse, parse_expression, parse_pattern
from trendloom.frontend.tql.printer import write, write_expression, write_pattern
from trendloom.frontend.tree import Binary, Event, Length, Literal, Logical, Query, Reference, Unary, Within
from trendloom.frontend.tree import Index as Which

a, b, c = (Reference(name, Which.EACH, "x") for name in "abc")

EXPRESSIONS = [
    ("count( * )", "COUNT(*)"),
    ("count(E)", "COUNT(E)"),
    ("Sum(S.price)", "SUM(S.price)"),
    ("AVG(b[].x)", "avg(b[].x)"),
    ("COUNT(b[])", "count(b[])"),
    ("MAX(b[ ..i-1 ].val)", "max(b[..i-1].val)"),
    ("MIN(a.x, b.x)", "min(a.x, b.x)"),
    ("ABS(a.x)", "abs(a.x)"),
    ("DURATION(b)", "duration(b)"),
    ("sum(S.price)/count(*)", "SUM(S.price) / COUNT(*)"),
    ("a.x-(b.x-c.x)", "a.x - (b.x - c.x)"),
    ("(a.x-b.x)-c.x", "a.x - b.x - c.x"),
    ("a.x*(b.x+1)", "a.x * (b.x + 1)"),
    ("-(-a.x)", "-(-a.x)"),
    ("a.x - -1", "a.x - -1"),
    ("-(a.x*2)", "-(a.x * 2)"),
    ("((a.x))", "a.x"),
    ("not a.x in(1,2)", "a.x NOT IN (1, 2)"),
    ("not(a.x between 1 and 2)", "a.x NOT BETWEEN 1 AND 2"),
    ("NOT a.x IS NULL", "NOT a.x IS NULL"),
    ("a.x is not null", "a.x IS NOT NULL"),
    ("a.x<>1", "a.x != 1"),
    ("(a.x = 1 and b.x = 2) and c.x = 3", "(a.x = 1 AND b.x = 2) AND c.x = 3"),
    ("(a.x = 1 and b.x = 2) or c.x = 3", "a.x = 1 AND b.x = 2 OR c.x = 3"),
    ("a.x = 1 and (b.x = 2 or c.x = 3)", "a.x = 1 AND (b.x = 2 OR c.x = 3)"),
    ("(a.x = 1) = true", "(a.x = 1) = TRUE"),
    ("b[I-1].x", "b[i-1].x"),
    ("next(b).x", "NEXT(b).x"),
    ("`a`.`x`", "a.x"),
    ("`seq`.`seq`", "`seq`.seq"),
    ("`a b`.`c``d`", "`a b`.`c``d`"),
    ("[ `limit` ,g]", "[limit, g]"),
    ("'it''s'", "'it''s'"),
    ("5 Minutes", "5 min"),
    ("0.250 h", "0.25 h"),
    ("INTERVAL '5' MINUTES", "5 min"),
    ("`interval` + 1", "interval + 1"),
    ("1e5", "100000.0"),
    (".5", "0.5"),
]


@pytest.mark.parametrize(("written", "canonical"), EXPRESSIONS)
def test_expression(written: str, canonical: str) -> None:
    assert write_expression(parse_expression(written)) == canonical
    assert write_expression(parse_expression(canonical)) == canonical


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("Stock+ S[]", "Stock S+"),
        ("(A)+", "A+"),
        ("(A+)?", "A+?"),
        ("!A", "NOT A"),
        ("(!A)+", "(NOT A)+"),
        ("!(A+)", "NOT A+"),
        ("A | B or C", "OR(A, B, C)"),
        ("(A | B) | C", "OR(OR(A, B), C)"),
        ("SEQ(A;B)", "SEQ(A, B)"),
        ("SEQ(A,B)+", "SEQ(A, B)+"),
        ("A{2,2}", "A{2}"),
        ("A{ 2 , }", "A{2,}"),
        ("A{0,2}", "A{0,2}"),
        ("(B b:b.x>1)*", "(B b: b.x > 1)*"),
        ("EXISTS x(A x)", "EXISTS x (A x)"),
        ("AND(SEQ(A; B) within 5 minutes, (C WITHIN 6))", "AND(SEQ(A, B) WITHIN 5 min, C WITHIN 6)"),
        ("EXISTS x ((A x within 5))", "EXISTS x (A x WITHIN 5)"),
        ("(A within 5)?", "(A WITHIN 5)?"),
        ("SEQ((A WITHIN 5) WITHIN 6)", "SEQ((A WITHIN 5) WITHIN 6)"),
        ("`A` `and`", "A `and`"),
    ],
)
def test_pattern(written: str, canonical: str) -> None:
    assert write_pattern(parse_pattern(written)) == canonical
    assert write_pattern(parse_pattern(canonical)) == canonical


def test_a_query_has_one_clause_per_line_and_no_defaults() -> None:
    text = (
        "CONFIDENCE >= .50 WITHIN 10 minutes SLIDE 30 SECONDS rank by merge(AVG, a.x, b.x) desc limit 3 overall "
        "having count(*)>1 group-by g return g, count(*) as n "
        "semantics contiguous where [k] and a.x<1 pattern SEQ(A a; B+ b[])"
    )
    assert write(parse(text)[0]) == "\n".join(
        [
            "RETURN g, COUNT(*) AS n",
            "PATTERN SEQ(A a, B b+)",
            "SEMANTICS contiguous",
            "WHERE [k] AND a.x < 1",
            "GROUP BY g",
            "HAVING COUNT(*) > 1",
            "WITHIN 10 min SLIDE 30 s",
            "RANK BY MERGE(avg, a.x, b.x) DESC LIMIT 3 OVERALL",
            "CONFIDENCE >= 0.5",
        ]
    )
    assert write(parse("RETURN TRENDS PATTERN A SEMANTICS skip-till-any-match")) == "PATTERN A"


def test_a_workload() -> None:
    assert write(parse("QUERY one: PATTERN A QUERY `2`: RETURN COMPLETE TRENDS PATTERN B")) == (
        "QUERY one:\n  PATTERN A\n\nQUERY `2`:\n  RETURN COMPLETE TRENDS\n  PATTERN B"
    )


def test_brackets_follow_the_tree_and_not_the_text() -> None:
    assert write_expression(Binary("*", Binary("+", a, b), c)) == "(a.x + b.x) * c.x"
    assert write_expression(Binary("-", a, Binary("+", b, c))) == "a.x - (b.x + c.x)"
    assert write_expression(Unary("-", Unary("-", Literal(1)))) == "-(-1)"
    assert write_expression(Unary("not", Logical("and", (a, b)))) == "NOT (a.x AND b.x)"
    assert write_expression(Binary("+", Logical("or", (a, b)), c)) == "(a.x OR b.x) + c.x"


def test_a_length_without_a_decimal_text_is_refused() -> None:
    with pytest.raises(ValueError, match="no finite decimal"):
        write(Query(pattern=Event("A"), within=Within(Length(Fraction(1, 6)))))
