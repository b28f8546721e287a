"""What people from SQL, MATCH_RECOGNIZE, Esper, Flink and KSQL write by habit: each hint says what to write here."""

from __future__ import annotations

import pytest

from trendloom.errors import Door, ParseError, at_door
from trendloom.frontend.tql.foreign_syntax import as_written_here, components, definitions
from trendloom.frontend.tql.parser import parse

SEQ = "PATTERN SEQ(A a, B+ b[])"

# text, part of the message, column, the hint
HABITS: list[tuple[str, str, int, str]] = [
    # SQL
    (f"{SEQ} PARTITION BY card", "no PARTITION BY", 26, "write WHERE [card]"),
    ("PARTITION BY card PATTERN A", "no PARTITION BY", 1, "write WHERE [card]"),
    ("PATTERN A PARTITION BY a.card, city", "no PARTITION BY", 11, "write WHERE [card, city]"),
    ("PATTERN A+ a[] PARTITION BY card", "no PARTITION BY", 16, "write WHERE [card]"),
    ("PATTERN A a WHERE a.x > 1 PARTITION BY card", "no PARTITION BY", 27, "write WHERE [card] AND ..."),
    (f"{SEQ} WITHIN 5 min PARTITION BY card", "no PARTITION BY", 39, "write WHERE [card]"),
    (f"{SEQ} ORDER BY time", "no ORDER BY", 26, 'leave it out; time="time" names the column of the time'),
    (
        "PATTERN A a ORDER BY a.x DESC LIMIT 5", "no ORDER BY", 13,
        "leave it out and sort the rows of the result; the best alone: RANK BY a.x DESC LIMIT 5",
    ),
    ("PATTERN A a WHERE a.x > 1 ORDER BY a.x", "no ORDER BY", 27,
     "leave it out and sort the rows of the result; the best alone: RANK BY a.x LIMIT 10"),
    ("SELECT COUNT(*) PATTERN A", "no SELECT", 1, "write RETURN COUNT(*)"),
    ("SELECT * FROM events", "no SELECT", 1,
     "write RETURN TRENDS; there is no FROM: events are given beside the query"),
    ("RETURN COUNT(*) FROM events PATTERN A", "no FROM", 17,
     'leave it out: events are given beside the query, events="FILE"'),
    ("PATTERN A FROM events", "no FROM", 11, 'leave it out: events are given beside the query, events="FILE"'),
    ("PATTERN A WHERE A.x IN (SELECT x FROM t)", "no queries inside", 25, "list the values: IN ('a', 'b')"),
    ("PATTERN A RETURN DISTINCT A.x", "no DISTINCT", 18, "leave it out, and remove equal rows from the result"),
    ("PATTERN A RETURN *", "no RETURN *", 11,
     "write RETURN TRENDS, which gives every match with all columns of its events"),
    ("PATTERN A a RETURN a.time, a.*", "'a.*' is not a value", 30,
     "name the columns: a.time, a.x; or RETURN TRENDS, which gives every match with all columns of its events"),
    ("PATTERN A a RETURN a.card card", "named with AS", 27, "write AS card"),
    ("PATTERN A RETURN COUNT(*) GROUP BY A.card", "takes attributes", 36, "write GROUP BY card"),
    ("PATTERN A RETURN COUNT(*) GROUP BY city, A.card", "takes attributes", 42, "write GROUP BY card"),
    ("PATTERN A GROUP BY upper(g)", "attributes alone", 25, "add a column to the input, then GROUP BY its name"),
    ("PATTERN A a WHERE [a.card]", "lists attributes", 21, "write [card]"),
    ("PATTERN A a WHERE [card AND city]", "lists attributes", 25, "write [card, city]"),
    ("PATTERN A WHERE A.x > 1 AND WITHIN 10 min", "not a condition", 25, "leave out AND: write WITHIN 10 min"),
    ("PATTERN SEQ(A, B) AND WITHIN 10 min", "a clause, not a condition", 19, "leave out AND: write WITHIN 10 min"),
    ("PATTERN A WHERE WITHIN 10 min", "a clause, not a condition", 11, "leave out WHERE: write WITHIN 10 min"),
    ("PATTERN A WITHIN 10 min AND A.x > 1", "Conditions stand in WHERE", 25, "write WHERE A.x > 1"),
    ("PATTERN SEQ(A, NOT EXISTS (B b), C)", "NOT EXISTS (...) is written NOT", 16, "write NOT B b"),
    ("PATTERN SEQ(A a, B b) WHERE NOT EXISTS (C c)", "stands in PATTERN", 29, "write PATTERN SEQ(A a, NOT C c, B b)"),
    ("PATTERN SEQ(A a, B b) WHERE EXISTS (C c)", "stands in PATTERN", 29, "write PATTERN SEQ(A a, C c)"),
    ("PATTERN SEQ(A, EXISTS (B b))", "names the variable", 16, "write B b, or to hide it EXISTS b (B b)"),
    ("PATTERN A WHERE A.x = 1 || A.y = 2", "'||' does not join", 25, "conditions are joined with OR"),
    ("PATTERN A WHERE !(A.x = 1)", "'!' stands before patterns", 17, "write NOT before a condition"),
    ("PATTERN A WHERE A.\"my card\" = 1", "Names stand without quotes", 19, "write `my card`"),
    ('PATTERN SEQ("A" a, B b)', "Names stand without quotes", 13, "write A"),
    ("PATTERN A WHERE A.x IS NOT 'u'", "IS NOT is followed by NULL", 28, "write != 'u'"),
    ("PATTERN A WHERE A.x IN ['u', 'v']", "round brackets", 24, "write IN ('u', 'v')"),
    ("PATTERN A WHERE A.x BETWEEN (1, 5)", "written with AND", 31, "write BETWEEN 1 AND 5"),
    ("PATTERN A WHERE A.x > 1,000", "Numbers have no comma", 24, "write 1000"),
    ("PATTERN A WHERE A.time > TIMESTAMP '2020-01-01'", "plain text", 26, "write '2020-01-01'"),
    ("PATTERN A WHERE A.x ILIKE 'X%'", "no ILIKE", 21, "write lower(a.x) LIKE 'x%'"),
    ("PATTERN A WHERE CAST(A.x AS double) > 1", "no CAST", 17,
     "write A.x: numbers of all kinds compare with each other"),
    ("PATTERN A WHERE A.x::int > 1", "no cast by '::'", 20,
     "leave out ::int: numbers of all kinds compare with each other"),
    ("PATTERN A WHERE CASE WHEN A.x > 1 THEN 1 END = 1", "no CASE", 17,
     "write the cases as conditions: a.x > 1 AND ... OR a.x <= 1 AND ..."),
    ("/* a comment */ PATTERN A", "'/*' does not open a comment", 1, "a comment starts with -- and ends with its line"),
    ("PATTERN A; PATTERN B", "another one follows", 12,
     "name each of them: QUERY one: PATTERN ... QUERY two: PATTERN ..."),
    ("PATTERN A; B", "A semicolon ends a query", 10, "patterns one after another: SEQ(p, q)"),
    # MATCH_RECOGNIZE, Flink
    ("PATTERN B+ b[] WHERE b.x > PREV(b).x", "no PREV", 28, "write b[i-1].x, and b[i] for the event after it"),
    ("PATTERN B+ b[] WHERE LAST(b).x > 1", "no LAST", 22, "write b[last].x"),
    ("PATTERN B+ b[] WHERE b.x > LAG(b.x) OVER (ORDER BY b.time)", "no OVER", 37,
     "leave it out: b[i] and b[i-1] are an event and the one before it, NEXT(b) is the one after it"),
    (f"{SEQ} DEFINE b AS b.x > 5", "no DEFINE", 26, "write WHERE b.x > 5"),
    (f"{SEQ} DEFINE a AS a.x > 1, b AS b.x > PREV(b.x)", "no DEFINE", 26, "write WHERE a.x > 1 AND b[i].x > b[i-1].x"),
    (f"{SEQ} MEASURES a.x AS x, LAST(b.y) AS y", "no MEASURES", 26, "write RETURN a.x AS x, b[last].y AS y"),
    (f"{SEQ} ONE ROW PER MATCH", "one row already", 26, "leave out ONE ROW PER MATCH"),
    (f"{SEQ} ALL ROWS PER MATCH", "one row", 26,
     "leave it out: RETURN TRENDS lists all events of a match in the column events"),
    (f"{SEQ} AFTER MATCH SKIP PAST LAST ROW", "no AFTER MATCH", 26,
     "leave it out; SEMANTICS skip-till-next-match and SEMANTICS contiguous find fewer matches"),
    ("PATTERN SEQ(A AS a, B AS b)", "without AS", 15, "write A a"),
    # Esper
    ("PATTERN every a=A -> b=B", "no EVERY", 9,
     "write PATTERN SEQ(A a, B b); SEMANTICS says which events may be stepped over"),
    ("PATTERN EVERY SEQ(A, B)", "no EVERY", 9, "leave it out; SEMANTICS says which events may be stepped over"),
    ("PATTERN a=A -> b=B", "stand in SEQ", 10, "write PATTERN SEQ(A a, B b)"),
    ("PATTERN A a -> B b WHERE a.x > 1", "stand in SEQ", 13, "write PATTERN SEQ(A a, B b)"),
    # windows elsewhere
    ("PATTERN A WITHIN 10 min EVERY 5 min", "no EVERY", 25, "write SLIDE 5 min"),
    ("PATTERN A WITHIN 10 min HOP 5 min", "no HOP", 25, "write SLIDE 5 min"),
    ("PATTERN A+ WINDOW HOPPING (SIZE 10 MINUTES, ADVANCE BY 5 MINUTES)", "no WINDOW", 12,
     "write WITHIN 10 MINUTES SLIDE 5 MINUTES"),
    ("PATTERN A WITHIN '10 minutes'", "without quotes", 18, "write 10 minutes"),
    ("PATTERN A WITHIN (10 minutes)", "without brackets", 18, "write 10 minutes"),
    ("PATTERN A WITHIN 1 week", "'week' is not a unit", 20, "write days: 7 d"),
    ("PATTERN A WITHIN INTERVAL '1' MONTH", "'MONTH' is not a unit", 31, "months differ in length; write days: 30 d"),
    ("PATTERN A WITHIN 10 m", "'m' is not a unit", 21, "did you mean 'min' or 'ms'?"),
    ("PATTERN A WITHIN 1h30m", "'h30m' is not a unit", 19, "a duration is one number and one unit: 90 min"),
    # names of queries, semantics
    ("QUERY one PATTERN A", "Expected ':'", 11, "write QUERY one: PATTERN"),
    ("QUERY my-query: PATTERN A", "Expected ':'", 9, "an odd name: QUERY `my-query`:"),
    ("PATTERN A SKIP TILL NEXT MATCH", "said by SEMANTICS", 11, "write SEMANTICS skip-till-next-match"),
    ("PATTERN A SEMANTICS skip till any match", "said by SEMANTICS", 21, "write SEMANTICS skip-till-any-match"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "column", "hint"), HABITS, ids=[row[0] for row in HABITS])
def test_the_hint_is_what_to_write(text: str, message: str, column: int, hint: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (1, column)
    assert caught.value.hint == hint


def test_match_recognize_is_told_as_a_whole() -> None:
    query = "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k PATTERN (A B) DEFINE A AS A.x > 1)"
    with pytest.raises(ParseError, match="MATCH_RECOGNIZE is a query by itself") as caught:
        parse(query)
    for word in ("PATTERN SEQ(A a, B+ b[])", "PARTITION BY is [key]", "DEFINE is WHERE", "MEASURES is RETURN"):
        assert word in str(caught.value.hint)


def test_options_are_those_of_the_door() -> None:
    with at_door(Door.COMMAND), pytest.raises(ParseError) as caught:
        parse("PATTERN A LIMIT 5")
    assert caught.value.hint == "the best 5: RANK BY a.x DESC LIMIT 5; any 5 rows: --limit 5"


@pytest.mark.parametrize("word", ["Every", "define", "From", "Select", "Window", "partition", "one", "distinct", "hop"])
def test_no_word_of_others_is_reserved(word: str) -> None:
    (query,) = parse(f"QUERY {word}: PATTERN SEQ({word} a, B {word}) WHERE {word}.x > a.{word} AND [{word}]")
    assert query.name == word


@pytest.mark.parametrize(
    ("elsewhere", "here"),
    [
        ("LAST(b.x) - FIRST(b.x)", "b[last].x - b[first].x"),
        ("b.x > PREV(b.x, 1) AND a.x > 1", "b[i].x > b[i-1].x AND a.x > 1"),
        ("b.x < NEXT(b.x)", "b.x < NEXT(b).x"),
        ("FINAL LAST(b.x)", "b[last].x"),
        ("nothing of the kind", "nothing of the kind"),
    ],
)
def test_translation(elsewhere: str, here: str) -> None:
    assert as_written_here(elsewhere) == here


def test_what_cannot_be_translated_is_left_alone() -> None:
    assert definitions("") == []
    assert definitions("a AS a.x > 1 OR a.y > 2, b AS b.x > 1") == ["(a.x > 1 OR a.y > 2)", "b.x > 1"]
    assert components(()) is None
