"""Preferences as folds: what each event of a match adds to the score, and what stands around the fold."""

from __future__ import annotations

import pytest

from trendloom.expr.nodes import Fold, walk
from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind import bind
from trendloom.logical.display import show_expression
from trendloom.logical.plan import Ranking
from trendloom.model.schema import Column, Kind, Schema
from trendloom.model.time import TimeAxis

KINDS = {"time": Kind.INT, "type": Kind.STRING, "x": Kind.INT, "y": Kind.FLOAT, "d": Kind.DECIMAL, "k": Kind.INT}
COLUMNS = tuple(Column(name, kind, scale=2 * (name == "d"), digits=9) for name, kind in KINDS.items())
SCHEMA = Schema(COLUMNS)
STAMPED = Schema((Column("time", Kind.TIME), *COLUMNS[1:]), axis=TimeAxis.timestamps())


def ranking_of(preference: str, schema: Schema = SCHEMA, *, pattern: str = "SEQ(A a, B+ b[], C c)") -> Ranking:
    ranking = bind(parse_query(f"PATTERN {pattern} RANK BY {preference} LIMIT 3"), schema).ranking
    assert ranking is not None
    return ranking


def shown(preference: str, schema: Schema = SCHEMA, *, pattern: str = "SEQ(A a, B+ b[], C c)") -> tuple[str, str]:
    """The operators of the folds, and the whole preference."""
    (expr,) = ranking_of(preference, schema, pattern=pattern).preferences
    operators = [node.operator for node in walk(expr) if isinstance(node, Fold)]
    return " ".join(operators), show_expression(expr, schema.axis)


@pytest.mark.parametrize(
    ("preference", "operator", "text"),
    [
        ("a.x", "+", "a.x"),
        ("a.x + sum(b[].x) - 2 * c.x", "+", "a.x + b.x + -(2 * c.x)"),
        ("c.x + a.x", "+", "a.x + c.x"),
        ("count(b[])", "+", "count(b[])"),
        ("3 * count(b[]) + a.x", "+", "a.x + ((3 * 1) * count(b[]))"),
        ("5 * sum(b[].x)", "+", "(5 * b.x)"),
        ("-(a.x + c.x)", "+", "-a.x + -c.x"),
        ("a.x + c.x + a.y", "+", "(a.x + a.y) + c.x"),
        ("a.x + c.x + 5", "+", "(a.x + c.x) + 5"),
        ("(a.x + c.x) / 2", "+", "(a.x + c.x) / 2"),
        ("(a.x + c.x) / 2 + sum(b[].x)", "+", "(a.x + (2 * b.x) + c.x) / 2"),
        ("sqrt(a.x * a.x + c.x * c.x)", "+", "sqrt((a.x * a.x) + (c.x * c.x))"),
        ("coalesce(a.x, 0) + c.x", "+", "coalesce(a.x, 0) + c.x"),
        ("min(b[].x)", "least", "least(b.x)"),
        ("max(a.x, max(b[].x), max(c.x, 3))", "greatest", "greatest(greatest(a.x, b.x, c.x), 3)"),
        ("max(a.x, max(b[].x), 3)", "greatest", "greatest(greatest(a.x, b.x), 3)"),
        ("min(a.x, c.y)", "least", "least(a.x, c.y)"),
        ("a.x * a.x * c.x * c.x", "*", "(a.x * a.x) * (c.x * c.x)"),
    ],
)
def test_what_events_add(preference: str, operator: str, text: str) -> None:
    assert shown(preference) == (operator, text)


@pytest.mark.parametrize(
    "preference",
    ["a.x * c.x", "a.x * c.x + 3", "avg(b[].x)", "a.x + min(b[].x)", "max(a.x, min(b[].x))", "sum(b[].x) + sum(b[].y)",
     "sum(b[].x) + count(b[])", "a.x + b[last].x", "count(b[].x)", "a.y + (c.time - a.time)", "a.x / c.x", "1"],
)  # fmt: skip
def test_what_is_not_a_fold_stays_as_it_is(preference: str) -> None:
    assert shown(preference)[0] == ""


def test_a_product_needs_factors_that_are_not_negative() -> None:
    both = "SEQ((A a: a.x >= 0), C c) WHERE 0 < c.x"
    assert shown("a.x * c.x", pattern=both)[0] == "*"
    assert shown("2 * a.x * c.x * 3", pattern=both) == ("*", "((2 * a.x) * c.x) * 3")
    assert shown("a.x * c.x", pattern="SEQ(A a, C c) WHERE a.x BETWEEN 0 AND 9 AND c.x > 1")[0] == "*"
    assert shown("a.x * c.x", pattern="SEQ(A a, C c) WHERE a.x >= 0 AND c.x >= -1")[0] == ""
    assert shown("a.x * c.x", pattern="SEQ(A a, C c) WHERE a.x >= 0 OR c.x >= 0")[0] == ""


def test_coalesce_of_what_may_be_missing_is_not_a_value_of_an_event() -> None:
    assert shown("coalesce(a.x, 0) + c.x", pattern="SEQ(A a?, C c)")[0] == ""


@pytest.mark.parametrize(
    ("preference", "text"),
    [
        ("c.time - a.time", "(-a.time + c.time) / 1 s"),
        ("2 * (c.time - a.time)", "((2 * -a.time) + (2 * c.time)) / 1000000"),
        ("c.time - a.time + a.x", "((-a.time + (1000000 * a.x)) + c.time) / 1000000"),
        ("duration(b)", "duration(b) / 1 s"),
        ("c.time - a.time + a.y", "((c.time - a.time) / 1 s) + a.y"),
    ],
)
def test_differences_of_times_are_seconds_added_in_ticks(preference: str, text: str) -> None:
    assert shown(preference, STAMPED)[1] == text


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        ("s", "-a.time + c.time"),
        ("ms", "(-a.time + c.time) / 1000"),
        ("h", "(3600 * -a.time) + (3600 * c.time)"),
    ],
)
def test_integer_times_count_seconds_too(unit: str, text: str) -> None:
    assert shown("c.time - a.time", Schema(COLUMNS, axis=TimeAxis.integer(unit)))[1] == text


@pytest.mark.parametrize(
    ("preference", "kind", "scale"),
    [
        ("a.x + c.x", Kind.INT, 0),
        ("a.d + c.x", Kind.DECIMAL, 2),
        ("0.125 * a.d + c.x", Kind.DECIMAL, 5),
        ("a.d + c.y", Kind.FLOAT, 0),
        ("MERGE(sum, a.x, c.d)", Kind.DECIMAL, 2),
        ("MERGE(avg, a.x, c.x)", Kind.FLOAT, 0),
        ("MERGE(max, a.x, c.y)", Kind.FLOAT, 0),
    ],
)
def test_the_kind_of_the_score(preference: str, kind: Kind, scale: int) -> None:
    ranking = ranking_of(preference, pattern="AND(A a, C c)")
    assert (ranking.kind, ranking.scale) == (kind, scale)
