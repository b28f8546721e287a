"""Writing a tree and reading it back gives the same tree, for every tree that a text can have."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property import strategies_trees as trees

from trendloom.errors import ParseError
from trendloom.frontend import tree
from trendloom.frontend.tql.parser import parse, parse_expression, parse_pattern
from trendloom.frontend.tql.printer import write, write_expression, write_pattern

generous = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@generous
@given(trees.expressions)
def test_expressions(expression: tree.Expression) -> None:
    text = write_expression(expression)
    # repr tells 1 from 1.0 and TRUE, which compare equal
    assert repr(parse_expression(text)) == repr(expression)
    assert write_expression(parse_expression(text)) == text


@generous
@given(trees.patterns)
def test_patterns(pattern: tree.Pattern) -> None:
    assert repr(parse_pattern(write_pattern(pattern))) == repr(pattern)


@generous
@given(trees.queries(st.none()))
def test_queries(query: tree.Query) -> None:
    assert parse(write(query)) == (query,)


@settings(generous, max_examples=50)
@given(trees.workloads)
def test_workloads(queries: tuple[tree.Query, ...]) -> None:
    assert parse(write(queries)) == queries


@generous
@given(trees.expressions)
def test_line_breaks_and_tabs_mean_nothing(expression: tree.Expression) -> None:
    brackets = f"(\r\n\t{write_expression(expression)}\r\n) -- the end\r\n"
    assert parse_expression(brackets) == expression


SCRAPS = """PATTERN WHERE SEQ ( ) [ ] { } , ; : . .. + * ? ! | - = < >= NOT AND OR IN BETWEEN IS NULL LIKE NEXT A a.x
    WITHIN SLIDE 5 min 0.5 RETURN COUNT(*) AS GROUP BY g RANK LIMIT OVERALL QUERY q: EXISTS 'it' ' ` `n` # TRENDS"""
scraps = st.sampled_from(SCRAPS.split()) | st.text(max_size=3)


def refusal(text: str) -> ParseError | None:
    try:
        parse(text)
    except ParseError as error:
        return error
    return None


@settings(generous, max_examples=300)
@given(st.lists(scraps, max_size=12).map(" ".join))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    error = refusal(text)
    if error is None:
        return
    assert error.text == text
    assert error.span is not None
    assert 1 <= error.span.line <= max(1, len(text.splitlines()))
    assert error.span.column >= 1
    for terminal in ("LPAR", "RPAR", "LSQB", "COMMA", "QUOTED", "ANY_NAME", "$END", "__ANON", "MARK"):
        assert terminal not in error.message
    assert error.message in str(error)
