"""A fold is a leaf, and everything that looks at expressions looks into its parts."""

from __future__ import annotations

from decimal import Decimal

from trendloom.expr.nodes import (
    Arithmetic,
    Attribute,
    Constant,
    Expr,
    Fold,
    Part,
    Which,
    children,
    columns,
    renamed,
    variables,
    with_attributes,
)
from trendloom.expr.quantifiers import shape_of
from trendloom.frontend.tql.parser import parse_query
from trendloom.logical.bind import bind
from trendloom.logical.bind.types import digits_after_point
from trendloom.model.schema import Column, Kind, Schema
from trendloom.optimizer import optimize

SCHEMA = Schema((Column("time", Kind.INT), Column("type", Kind.STRING), Column("x", Kind.DECIMAL, 2, 9)))


def x_of(variable: str) -> Attribute:
    return Attribute(variable, Which.EACH, "x", Kind.DECIMAL)


def fold(operator: str) -> Fold:
    parts = (Part("a", x_of("a")), Part("b", Constant(1, Kind.INT), counts=True))
    return Fold(operator, parts, Kind.DECIMAL)  # type: ignore[arg-type]


AROUND: Expr = Arithmetic("+", fold("+"), Constant(Decimal("0.125"), Kind.DECIMAL), Kind.DECIMAL)


def test_what_it_reads() -> None:
    assert children(fold("+")) == ()
    assert variables(AROUND) == {"a", "b"}
    assert columns(AROUND) == {"x"}
    assert shape_of(AROUND).whole == {"a", "b"}
    assert shape_of(AROUND).each == frozenset()


def test_rewriting_reaches_its_parts() -> None:
    other = renamed(fold("+"), str.upper)
    assert isinstance(other, Fold)
    assert [part.variable for part in other.parts] == ["A", "B"]
    assert other.parts[0].expr == x_of("A")
    replaced = with_attributes(AROUND, lambda one: Constant(None, one.kind))
    assert columns(replaced) == frozenset()
    assert variables(replaced) == {"a", "b"}


def test_digits_after_the_point() -> None:
    assert digits_after_point(AROUND, SCHEMA) == 3
    twice = Fold("*", (Part("a", x_of("a")), Part("b", x_of("b"))), Kind.DECIMAL)
    assert digits_after_point(twice, SCHEMA) == 4
    assert digits_after_point(fold("least"), SCHEMA) == 2


def test_windows_of_operands_follow_the_positions_of_a_rewritten_pattern() -> None:
    query = """PATTERN SEQ(A+ a[], SEQ(B b, C c) WITHIN 5)  WHERE count(a[]) >= 3
               RANK BY MERGE(sum, sum(a[].x), b.x + c.x) LIMIT 2"""
    plan = bind(parse_query(query), SCHEMA)
    assert [one.positions for one in plan.operand_windows] == [(1, 2)]
    assert [one.positions for one in optimize(plan).operand_windows] == [(3, 4)]
