"""Clauses, workloads and the places that the parser remembers."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import pytest

from trendloom.errors import Span
from trendloom.frontend.tql.parser import parse, parse_expression, parse_query
from trendloom.frontend.tql.printer import write
from trendloom.frontend.tree import (
    Binary,
    Call,
    Event,
    Expression,
    Index,
    Item,
    Length,
    Literal,
    Logical,
    Merge,
    Name,
    Query,
    RankBy,
    Reference,
    Repeat,
    Seq,
    Star,
    Within,
)
from trendloom.model.selection import Semantics, Trends

EXAMPLES = """
QUERY check_kites:
  RETURN COMPLETE TRENDS  PATTERN Check C+
  WHERE C.status = 'uncovered' AND C.destination = NEXT(C).source
  WITHIN 1 day SLIDE 10 minutes

QUERY heart_rate:
  RETURN patient, MIN(M.rate), MAX(M.rate)  PATTERN Measurement M+  SEMANTICS contiguous
  WHERE [patient] AND M.rate < NEXT(M).rate AND M.activity = 'passive'
  GROUP BY patient  WITHIN 10 minutes SLIDE 30 seconds

QUERY trips:
  RETURN COUNT(*)  PATTERN SEQ(OakSt, MainSt, StateSt)  WHERE [vehicle]  WITHIN 10 min SLIDE 1 min
  HAVING COUNT(*) > 100

QUERY load_imbalance:
  PATTERN SEQ(ReducerStart a, LoadStd+ b[], ReducerEnd c)
  WHERE [task_id] AND b[i].val >= b[i-1].val  WITHIN 10 minutes  RETURN a.task_id, count(b[])

QUERY shoplifting:
  PATTERN SEQ(Shelf a, !(CheckOut b), Exit c)  WHERE [tag_id]  WITHIN 12 hours  RETURN c.location, c.tag_id

QUERY unsafe_tool:
  PATTERN SEQ(Recycle r, (Washing w: w.id = r.id),
              !SEQ((Sharpening s: s.id = o.id), (Disinfection d: d.id = s.id), (Checking c: c.id = s.id)),
              (Operating o: o.id = w.id AND o.ins_type = 'surgery'))
  WITHIN 1 hour

QUERY big_spenders:
  PATTERN SEQ(BrandA a, BrandB b, BrandC c)  WHERE [ccid]  WITHIN 10 hours SLIDE 5 hours
  RANK BY a.exp + b.exp + c.exp DESC LIMIT 10
"""


def expression(text: str) -> Expression:
    return parse_expression(text)


def _length(amount: int, unit: str) -> Length:
    return Length(Fraction(amount), unit)


@pytest.fixture(scope="module")
def examples() -> dict[str | None, Query]:
    return {query.name: query for query in parse(EXAMPLES)}


def test_example_check_kites(examples: dict[str, Query]) -> None:
    assert examples["check_kites"] == Query(
        pattern=Repeat(Event("Check", "C"), 1, None, "+"),
        returns=Trends.COMPLETE,
        where=expression("C.status = 'uncovered' AND C.destination = NEXT(C).source"),
        within=Within(Length(Fraction(1), "d"), Length(Fraction(10), "min")),
        name="check_kites",
    )


def test_example_heart_rate(examples: dict[str, Query]) -> None:
    query = examples["heart_rate"]
    assert query.semantics is Semantics.CONTIGUOUS
    assert query.returns == (
        Item(Name("patient")),
        Item(Call("min", (Reference("M", Index.EACH, "rate"),))),
        Item(Call("max", (Reference("M", Index.EACH, "rate"),))),
    )
    assert query.group_by == ("patient",)
    assert isinstance(query.where, Logical)
    assert len(query.where.operands) == 3


def test_example_trips(examples: dict[str, Query]) -> None:
    count = Call("count", (Star(),))
    assert examples["trips"].returns == (Item(count),)
    assert examples["trips"].having == Binary(">", count, Literal(100))


def test_example_load_imbalance(examples: dict[str, Query]) -> None:
    kleene = Repeat(Event("LoadStd", "b"), 1, None, "+")
    assert examples["load_imbalance"].pattern == Seq((Event("ReducerStart", "a"), kleene, Event("ReducerEnd", "c")))


def test_example_unsafe_tool(examples: dict[str, Query]) -> None:
    pattern = examples["unsafe_tool"].pattern
    assert isinstance(pattern, Seq)
    assert pattern.parts[1] == Event("Washing", "w", expression("w.id = r.id"))
    assert pattern.parts[3] == Event("Operating", "o", expression("o.id = w.id AND o.ins_type = 'surgery'"))


def test_example_big_spenders(examples: dict[str, Query]) -> None:
    assert examples["big_spenders"].rank_by == RankBy(expression("a.exp + b.exp + c.exp"), True, 10)


def test_a_workload_keeps_the_order_and_the_whole_text() -> None:
    queries = parse(EXAMPLES)
    assert [query.name for query in queries] == [
        "check_kites", "heart_rate", "trips", "load_imbalance", "shoplifting", "unsafe_tool", "big_spenders",
    ]  # fmt: skip
    assert all(query.text == EXAMPLES for query in queries)


def test_defaults() -> None:
    assert parse("PATTERN A") == (Query(pattern=Event("A")),)
    query = parse_query("PATTERN A")
    assert (query.returns, query.semantics, query.name) == (Trends.ALL, Semantics.ANY, None)


def test_clauses_in_any_order() -> None:
    clauses = [
        "RETURN g, COUNT(*)",
        "PATTERN A+",
        "WHERE A.x > 1",
        "GROUP BY g",
        "HAVING COUNT(*) > 1",
        "WITHIN 5 SLIDE 2",
    ]
    assert parse(" ".join(clauses)) == parse("\n".join(reversed(clauses)))


@pytest.mark.parametrize(
    ("clause", "returns"),
    [
        ("RETURN TRENDS", Trends.ALL),
        ("return complete trends", Trends.COMPLETE),
        ("RETURN COLLAPSED TRENDS", Trends.COLLAPSED),
        ("RETURN a.x, avg(b[].y) AS m", (Item(expression("a.x")), Item(expression("avg(b[].y)"), "m"))),
        ("RETURN COUNT(*) AS limit", (Item(expression("COUNT(*)"), "limit"),)),
        ("RETURN SUM(A.x) / COUNT(*) AS `per match`", (Item(expression("SUM(A.x) / COUNT(*)"), "per match"),)),
    ],
)
def test_return(clause: str, returns: object) -> None:
    assert parse_query(f"PATTERN A {clause}").returns == returns


@pytest.mark.parametrize("end", [";", " ; ", ";;", "; -- the end"])
def test_a_query_may_end_with_a_semicolon(end: str) -> None:
    assert parse(f"PATTERN SEQ(A; B) WHERE A.x > 1{end}") == parse("PATTERN SEQ(A, B) WHERE A.x > 1")
    assert parse(f"QUERY a: PATTERN A{end}\nQUERY b: PATTERN B{end}") == parse("QUERY a: PATTERN A QUERY b: PATTERN B")


@pytest.mark.parametrize("word", ["collapsed", "complete", "trends", "limit", "QUERY", "pattern", "group", "interval"])
def test_a_query_may_have_any_word_for_a_name(word: str) -> None:
    (query,) = parse(f"QUERY {word}: PATTERN A")
    assert query.name == word
    assert write(query) == f"QUERY {word}:\n  PATTERN A"


@pytest.mark.parametrize("written", ["skip-till-any-match", "skip-till-next-match", "contiguous", "Contiguous"])
def test_semantics(written: str) -> None:
    assert parse_query(f"PATTERN A SEMANTICS {written}").semantics is Semantics(written.lower())


@pytest.mark.parametrize("written", ["GROUP BY", "GROUP-BY", "group   by", "Group\n  By"])
def test_group_by_spellings(written: str) -> None:
    assert parse_query(f"PATTERN A {written} g, limit, `odd one`").group_by == ("g", "limit", "odd one")


@pytest.mark.parametrize(
    ("clause", "within"),
    [
        ("WITHIN 10", Within(Length(Fraction(10)))),
        ("WITHIN 0.5 h", Within(Length(Fraction(1, 2), "h"))),
        ("WITHIN 10 minutes SLIDE 1 minute", Within(Length(Fraction(10), "min"), Length(Fraction(1), "min"))),
        ("within 10 slide 2.5", Within(Length(Fraction(10)), Length(Fraction(5, 2)))),
        ("WITHIN INTERVAL '1' DAY", Within(Length(Fraction(1), "d"))),
        ("WITHIN interval '90 minutes' SLIDE INTERVAL 30 SECOND", Within(_length(90, "min"), _length(30, "s"))),
        ("WITHIN INTERVAL ' 0.5' hours", Within(Length(Fraction(1, 2), "h"))),
    ],
)
def test_within(clause: str, within: Within) -> None:
    assert parse_query(f"PATTERN A {clause}").within == within


@pytest.mark.parametrize(
    ("clause", "rank"),
    [
        ("RANK BY A.x LIMIT 3", RankBy(expression("A.x"), False, 3)),
        ("RANK BY A.x ASC LIMIT 3", RankBy(expression("A.x"), False, 3)),
        ("rank by A.x desc limit 3", RankBy(expression("A.x"), True, 3)),
        ("RANK BY MERGE(avg, a.x, 1) LIMIT 2", RankBy(Merge("avg", (expression("a.x"), Literal(1))), False, 2)),
        ("RANK BY merge(MAX, a.x, a.y) DESC LIMIT 2",
         RankBy(Merge("max", (expression("a.x"), expression("a.y"))), True, 2)),
        ("RANK BY A.x LIMIT 3 OVERALL", RankBy(expression("A.x"), False, 3, overall=True)),
        ("rank by A.x desc limit 3 overall", RankBy(expression("A.x"), True, 3, overall=True)),
    ],
)  # fmt: skip
def test_rank_by(clause: str, rank: RankBy) -> None:
    assert parse_query(f"PATTERN A {clause}").rank_by == rank


def test_confidence_is_exact() -> None:
    assert parse_query("PATTERN A CONFIDENCE >= 0.1").confidence == Fraction(1, 10)


def test_the_place_of_each_clause() -> None:
    query = parse_query("PATTERN A\r\n\tWITHIN 5 SLIDE 1\r\nGROUP  BY g")
    assert query.spans == (
        ("PATTERN", Span(1, 1, 7)),
        ("WITHIN", Span(2, 2, 6)),
        ("SLIDE", Span(2, 11, 5)),
        ("GROUP BY", Span(3, 1, 9)),
    )
    assert query.clause("GROUP BY") == Span(3, 1, 9)
    assert query.clause("WHERE") is None


def test_the_place_of_a_node() -> None:
    query = parse_query("PATTERN SEQ(A a,\n  B b)\nWHERE a.x >\n  b.xyz")
    assert query.pattern.span == Span(1, 9, 8)
    assert isinstance(query.pattern, Seq)
    assert query.pattern.parts[1].span == Span(2, 3, 3)
    assert isinstance(query.where, Binary)
    assert query.where.right.span == Span(4, 3, 5)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("t.prise", Span(1, 3, 5)),
        ("  NEXT(t).prise", Span(1, 11, 5)),
        ("b[i-1].prise", Span(1, 8, 5)),
        ("b[..i-1].prise", Span(1, 10, 5)),
        ("b . -- why\n  `a b`", Span(2, 3, 5)),
        ("b[]", None),
    ],
)
def test_the_place_of_an_attribute(text: str, span: Span | None) -> None:
    reference = parse_expression(text)
    assert isinstance(reference, Reference)
    assert reference.attribute_span == span


def test_a_byte_order_mark_is_ignored() -> None:
    assert parse("\ufeffPATTERN A") == parse("PATTERN A")


def test_importing_the_parser_does_not_load_lark() -> None:
    script = (
        "import sys, trendloom.frontend.tql.parser, trendloom.frontend.tql.printer; sys.exit('lark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
