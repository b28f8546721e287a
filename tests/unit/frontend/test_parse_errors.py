"""Texts that are not queries: what the error says, where it points, and the way out it offers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trendloom.errors import OptionError, ParseError
from trendloom.frontend.tql.parser import parse, parse_expression, parse_pattern, parse_query

# text, part of the message, line, column, part of the hint
ERRORS: list[tuple[str, str, int, int, str | None]] = [
    # nothing, or no query
    ("", "holds no query", 1, 1, "PATTERN SEQ(A a, B b)"),
    ("  \n\t", "holds no query", 1, 1, "PATTERN"),
    ("-- a comment only", "holds no query", 1, 1, "PATTERN"),
    ("hello world", "not a query: it starts with 'hello'", 1, 1, "RETURN, PATTERN"),
    ("5", "not a query", 1, 1, "QUERY name:"),
    ("SEQ(A, B)", "does not start with 'SEQ'", 1, 1, "write PATTERN before a pattern"),
    # clauses
    ("RETURN COUNT(*)", "The query has no PATTERN clause", 1, 1, "PATTERN SEQ"),
    ("QUERY q:\n WITHIN 5", "Query 'q' has no PATTERN clause", 1, 1, "PATTERN SEQ"),
    ("PATERN SEQ(A, B)", "Unknown clause 'PATERN'", 1, 1, "did you mean PATTERN?"),
    ("PATTERN A WHER a.x > 1", "Unknown clause 'WHER'", 1, 11, "did you mean WHERE?"),
    ("PATTERN SEQ(A, B) WEHRE a.x > 1", "Unknown clause 'WEHRE'", 1, 19, "did you mean WHERE?"),
    ("PATTERN A+ WITHN 10", "Unknown clause 'WITHN'", 1, 12, "did you mean WITHIN?"),
    ("PATTERN A+ WITHN", "Unknown clause 'WITHN'", 1, 12, "did you mean WITHIN?"),
    ("PATTERN A WHERE A.x > 5 WITHN 10", "Unknown clause 'WITHN'", 1, 25, "did you mean WITHIN?"),
    ("PATTERN A SEMANTIC contiguous", "Unknown clause 'SEMANTIC'", 1, 11, "did you mean SEMANTICS?"),
    ("PATTERN A GROUPBY g", "Unknown clause 'GROUPBY'", 1, 11, "did you mean GROUP BY?"),
    ("PATTERN A WITHIN 5 SLID 1", "Unknown clause 'SLID'", 1, 20, "did you mean SLIDE?"),
    ("PATTERN A PATTERN B", "A second PATTERN clause", 1, 11, "SEQ(p, q)"),
    ("PATTERN A WHERE A.x = 1\nWHERE A.y = 2", "A second WHERE clause", 2, 1, "AND"),
    ("PATTERN A WITHIN 1 WITHIN 2", "A second WITHIN clause", 1, 20, "remove one"),
    ("PATTERN A GROUP g", "GROUP is followed by BY", 1, 11, "GROUP BY"),
    ("PATTERN A SLIDE 5", "SLIDE without WITHIN", 1, 11, "WITHIN 10 min SLIDE 1 min"),
    ("PATTERN A LIMIT 5", "LIMIT without RANK BY", 1, 11, "RANK BY a.x DESC LIMIT 5; any 5 rows: limit=5"),
    ("PATTERN A RANK BY A.x", "RANK BY needs a LIMIT", 1, 22, "LIMIT 10"),
    ("PATTERN A RANK BY A.x WITHIN 5", "RANK BY needs a LIMIT", 1, 23, "LIMIT 10"),
    ("PATTERN A RANK BY A.x LIMIT 0", "LIMIT is at least 1", 1, 29, "LIMIT 10"),
    ("PATTERN A RANK BY A.x LIMIT -3", "LIMIT is at least 1", 1, 29, "LIMIT 10"),
    ("PATTERN A RANK BY A.x LIMIT 1.5", "LIMIT is a whole number", 1, 29, "LIMIT 10"),
    ("PATTERN A RANK BY A.x LIMIT 1000001", "LIMIT is at most 1,000,000", 1, 29, "sort the rows"),
    ("PATTERN A RANK BY A.x LIMIT all", "Expected a whole number, found 'all'", 1, 29, None),
    ("PATTERN A RANK BY A.x OVERALL LIMIT 3", "OVERALL stands behind LIMIT", 1, 23, "LIMIT 10 OVERALL"),
    ("PATTERN A RANK BY A.x LIMIT OVERALL 3", "OVERALL stands behind LIMIT", 1, 29, "LIMIT 10 OVERALL"),
    ("PATTERN AND(A a, B b WITHIN 5 SLIDE 2)", "The WITHIN of an operand has no SLIDE", 1, 31, "WITHIN clause"),
    ("PATTERN AND(A a, B b WITHIN)", "Expected a length such as 10 min, found ')'", 1, 28, None),
    ("PATTERN SEQ(A a, B b WITHIN 5", "This '(' is never closed", 1, 12, "a ')' is missing"),
    ("PATTERN A RANK BY MERGE(median, A.x) LIMIT 1", "MERGE starts with avg, min, max or sum", 1, 19, "MERGE(avg"),
    ("PATTERN A RANK BY MERGE(avg) LIMIT 1", "MERGE has no preference", 1, 19, "MERGE(avg"),
    ("PATTERN A RANK BY MERGE(avg, A.x) LIMIT 1", "MERGE needs two preferences", 1, 19, "RANK BY A.x"),
    ("PATTERN A CONFIDENCE > 0.5", "followed by '>=', not '>'", 1, 22, "CONFIDENCE >= 0.8"),
    ("PATTERN A CONFIDENCE >= 2", "from 0 to 1", 1, 25, "CONFIDENCE >= 0.8"),
    ("PATTERN A SEMANTICS any", "Unknown semantics 'any'", 1, 21, "'skip-till-any-match'"),
    ("PATTERN A SEMANTICS skip-til-next-match", "Unknown semantics", 1, 21, "'skip-till-next-match'"),
    ("PATTERN A SEMANTICS strict", "Unknown semantics 'strict'", 1, 21, "contiguous"),
    ("PATTERN A SEMANTICS 5", "Expected one of skip-till-any-match", 1, 21, None),
    # workloads
    ("QUERY a: PATTERN A\nQUERY a: PATTERN B", "named 'a': here, and in line 1, column 7", 2, 7, "its own name"),
    ("QUERY a PATTERN A", "Expected ':', found 'PATTERN'", 1, 9, None),
    ("QUERY a:", "expected another clause", 1, 9, None),
    ("PATTERN A QUERY b: PATTERN B", "the first one has no name", 1, 11, "QUERY name:"),
    # durations
    ("PATTERN A WITHIN 0", "Durations are positive, this one is zero", 1, 18, "10 min"),
    ("PATTERN A WITHIN 5 SLIDE 0 min", "Durations are positive", 1, 26, "10 min"),
    ("PATTERN A WITHIN -5 min", "Durations are positive, this one is negative", 1, 18, "minus"),
    ("PATTERN A WITHIN 5 mintes", "'mintes' is not a unit of time", 1, 20, "did you mean 'minutes'?"),
    ("PATTERN A WITHIN 5 parsecs", "'parsecs' is not a unit of time", 1, 20, "us, ms, s, min, h, d"),
    ("PATTERN A WHERE A.x < 5 houres", "'houres' is not a unit of time", 1, 25, "did you mean 'hours'?"),
    ("PATTERN A WITHIN", "expected a length such as 10 min after 'WITHIN'", 1, 17, None),
    ("PATTERN A WITHIN 1 h 30 min", "Expected SLIDE or another clause, found '30'", 1, 22, None),
    ("PATTERN A WITHIN 1e999999999", "out of range", 1, 18, None),
    ("PATTERN A WHERE A.x = 1e999", "out of range", 1, 23, None),
    ("PATTERN A WITHIN INTERVAL '0' DAY", "Durations are positive, this one is zero", 1, 18, "10 min"),
    ("PATTERN A WITHIN INTERVAL '1 day 2 hours'", "is not a duration", 1, 18, "INTERVAL '10' MINUTE, or simply 10 min"),
    ("PATTERN A WITHIN INTERVAL '10'", "is not a duration", 1, 18, "one number and one unit"),
    ("PATTERN A WITHIN INTERVAL '5 min' min", "is not a duration", 1, 18, "one number and one unit"),
    ("PATTERN A WITHIN INTERVAL '5' parsec", "'parsec' is not a unit of time", 1, 31, "us, ms, s, min, h, d"),
    ("PATTERN A WITHIN INTERVAL ''", "is not a duration", 1, 18, "one number and one unit"),
    # patterns
    ("PATTERN SEQ(A+ B, C)", "'A+ B': after a repetition, a variable is written B[]", 1, 16, "comma between A+ and B"),
    ("PATTERN A{2} B", "'A{2} B'", 1, 14, "A{2} B[]"),
    ("PATTERN Stock S[]", "has no repetition", 1, 9, "Stock+ S[]"),
    ("PATTERN (SEQ(A, B))+ s[]", "'s[]' must follow a plain type", 1, 22, "Type+ s[]"),
    ("PATTERN A a+ b[]", "'b[]' must follow a plain type", 1, 14, "Type+ b[]"),
    ("PATTERN SEQ(A a B b)", "found 'B'", 1, 17, "a comma between 'a' and 'B'?"),
    ("PATTERN SEQ(A a SEQ(B, C))", "found 'SEQ'", 1, 17, "a comma between 'a' and 'SEQ'?"),
    ("PATTERN SEQ(A a !B)", "found '!'", 1, 17, "a comma between 'a' and '!'?"),
    ("PATTERN A, B", "Unexpected ',' after a pattern", 1, 10, "SEQ(p, q)"),
    ("PATTERN A a b", "found 'b'", 1, 13, "SEQ(p, q)"),
    ("PATTERN A AND B", "AND does not stand between patterns", 1, 11, "AND(p, q)"),
    ("PATTERN SEQ(A AND B, C)", "AND does not stand between patterns", 1, 15, "AND(p, q)"),
    ("PATTERN OR(A)", "OR needs two parts or more", 1, 9, "OR(p, q)"),
    ("PATTERN SEQ(A, AND(B))", "AND needs two parts or more", 1, 16, "AND(p, q)"),
    ("PATTERN SEQ()", "Expected a pattern, found ')'", 1, 13, None),
    ("PATTERN SEQ(A, )", "Expected a pattern, found ')'", 1, 16, None),
    ("PATTERN A{2,1}", "ends before it begins", 1, 11, "{1,2}"),
    ("PATTERN A{0}", "repeated zero times", 1, 9, "'?'"),
    ("PATTERN A{0,0}", "repeated zero times", 1, 9, "'?'"),
    ("PATTERN A{,2}", "Expected a number, found ','", 1, 11, "{0,n}"),
    ("PATTERN A{1.5}", "A repetition is a whole number", 1, 11, None),
    ("PATTERN (A+: A.x > 1)", "A condition follows one type", 1, 12, "(Type variable: condition)"),
    ("PATTERN SEQ(A limit, B)", "'limit' is a reserved word", 1, 15, "`limit`"),
    ("PATTERN SEQ(Group, B)", "'Group' is a reserved word", 1, 13, "`Group`"),
    ("PATTERN EXISTS in (A)", "'in' is a reserved word", 1, 16, "`in`"),
    ("PATTERN A WHERE next.x > 1", "Expected '(', found '.'", 1, 21, None),
    ("PATTERN A WHERE within.x > 1", "found the keyword within", 1, 17, "`within`"),
    ("PATTERN WHERE A.x > 1", "Expected a pattern, found the keyword WHERE", 1, 9, "`WHERE`"),
    # brackets, quotes, characters
    ("PATTERN SEQ(A, B WHERE A.x > 1", "This '(' is never closed", 1, 12, "')' is missing"),
    ("PATTERN SEQ(A,\n  (B WHERE A.x IN (1, 2)", "This '(' is never closed", 2, 3, "')' is missing"),
    ("PATTERN A WHERE [k", "This '[' is never closed", 1, 17, "']' is missing"),
    ("PATTERN A{2", "This '{' is never closed", 1, 10, "'}' is missing"),
    ("PATTERN SEQ(A, B))", "This ')' closes nothing", 1, 18, "remove it"),
    ("PATTERN SEQ(A, B]", "'(' (line 1, column 12) is closed by ']'", 1, 17, "expected ')'"),
    ("PATTERN A WHERE A.x = 'abc", "This string is never closed", 1, 23, "single quote"),
    ("PATTERN A WHERE A.x = 'u\n AND A.y = 'v'", "This string runs over the end of its line", 1, 23, "quote missing"),
    ("PATTERN `A", "This name is never closed", 1, 9, "backquote"),
    ("PATTERN ``", "A name in backquotes is not empty", 1, 9, "backquote"),
    ("PATTERN A WHERE A.x # 3", "Unexpected character '#'", 1, 21, "--"),
    ('PATTERN A WHERE A.x = "u"', "Strings stand in single quotes", 1, 23, "write 'u'"),
    ("PATTERN A WHERE A.x = 1 && A.y = 2", "'&&' does not join conditions", 1, 25, "AND"),
    ("PATTERN A WHERE A.x ≤ 1", "Unexpected character '≤'", 1, 21, "<="),
    ("PATTERN My$Type", "Unexpected character '$'", 1, 11, "backquotes"),
    # conditions
    ("PATTERN A WHERE", "expected a condition after 'WHERE'", 1, 16, None),
    ("PATTERN A WHERE A.x >", "expected a condition after '>'", 1, 22, None),
    ("PATTERN A WHERE A.", "expected the name of a column after '.'", 1, 19, None),
    ("PATTERN A WHERE A.x == 1", "'==' is not an operator", 1, 21, "'='"),
    ("PATTERN A WHERE 1 < A.x < 2", "Comparisons do not chain", 1, 25, "a < b AND b < c"),
    ("PATTERN A WHERE A.x = 1, A.y = 2", "Unexpected ',' after a condition", 1, 24, "AND"),
    ("PATTERN A WHERE A.x = 1 | A.y = 2", "'|' does not join conditions", 1, 25, "OR"),
    ("PATTERN A WHERE A.x > 5 b.y < 3", "found 'b'", 1, 25, "AND"),
    ("PATTERN A WHERE A.x > A.y b.y < 3", "found 'b'", 1, 27, "AND"),
    ("PATTERN A WHERE A.x = NULL", "NULL is not a value", 1, 23, "IS NULL"),
    ("PATTERN A WHERE A.x IN ()", "Expected a condition, found ')'", 1, 25, None),
    ("PATTERN A WHERE A.x IN (1 2)", "found '2'", 1, 27, "a comma between '1' and '2'?"),
    ("PATTERN A WHERE A.x BETWEEN 1", "expected AND", 1, 30, None),
    ("PATTERN A WHERE A.x LIKE A.y", "Expected a string in single quotes, found 'A'", 1, 26, None),
    ("PATTERN A WHERE NEXT(A.x) > 1", "NEXT takes a variable only", 1, 23, "NEXT(A).attribute"),
    ("PATTERN A WHERE NEXT(A) > 1", "'NEXT(A)' is an event, not a value", 1, 17, "NEXT(A).x"),
    ("PATTERN A WHERE A[i] > 1", "'A[i]' is an event, not a value", 1, 17, "A[i].x"),
    ("PATTERN A WHERE A[1].x > 1", "'[1]' says no event", 1, 19, "[first]"),
    ("PATTERN A WHERE A[i+1].x > 1", "'[i+1]' says no event", 1, 19, "[i-1]"),
    ("PATTERN A RETURN A.x AS", "expected the name of a column after 'AS'", 1, 24, None),
    # places in odd texts
    ("PATTERN A\r\n\tWITHIN 0", "Durations are positive", 2, 9, None),
    ("PATTERN A\r\r\n  WITHIN 0", "Durations are positive", 3, 10, None),
    ("PATTERN SEQ(A,\n\n   B C D)", "found 'D'", 3, 8, "a comma between 'C' and 'D'?"),
]


@pytest.mark.parametrize(("text", "message", "line", "column", "hint"), ERRORS, ids=[repr(row[0]) for row in ERRORS])
def test_error(text: str, message: str, line: int, column: int, hint: str | None) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    error = caught.value
    assert message in error.message
    assert (error.line, error.column) == (line, column)
    assert hint is None or hint in (error.hint or "")
    assert error.text == text


def test_an_error_is_drawn() -> None:
    with pytest.raises(ParseError) as caught:
        parse("PATTERN A\n  WITHIN 5 mintes")
    assert str(caught.value) == (
        "'mintes' is not a unit of time  (line 2, column 12)\n"
        "  WITHIN 5 mintes\n"
        "           ^^^^^^\n"
        "hint: did you mean 'minutes'?"
    )


def test_one_query_means_one() -> None:
    with pytest.raises(ParseError, match="Expected one query, found 2") as caught:
        parse_query("QUERY a: PATTERN A\nQUERY b: PATTERN B")
    assert caught.value.line == 2
    assert caught.value.hint == "choose one of a, b"


def test_a_pattern_or_expression_alone() -> None:
    with pytest.raises(ParseError, match="Expected a pattern"):
        parse_pattern("5")
    with pytest.raises(ParseError, match="expected a value"):
        parse_expression("1 +")


def test_deep_nesting_is_an_error_and_not_a_crash() -> None:
    with pytest.raises(ParseError, match="nested too deeply"):
        parse("PATTERN A WHERE " + "-(" * 20_000 + "1" + ")" * 20_000)


@pytest.mark.parametrize(
    "word",
    ["return", "Pattern", "SEQ", "not", "OR", "exists", "next", "in", "between", "is", "null", "like", "true", "asc"],
)
def test_reserved_words_are_names_in_backquotes_after_dots_and_in_lists(word: str) -> None:
    parse(f"PATTERN SEQ(A `{word}`) WHERE [{word}] AND `{word}`.{word} = 1 GROUP BY {word}")
    with pytest.raises(ParseError):
        parse(f"PATTERN SEQ(A {word})")


@pytest.mark.parametrize(
    ("given", "hint"),
    [(None, None), (b"PATTERN A", None), (["PATTERN A"], "QUERY first:"), (Path("q.tql"), "read_text()")],
)
def test_what_is_no_text_at_all(given: Any, hint: str | None) -> None:
    with pytest.raises(OptionError, match=f"must be text, not of type {type(given).__name__}") as caught:
        parse_query(given)
    assert (caught.value.hint is None) if hint is None else hint in (caught.value.hint or "")
