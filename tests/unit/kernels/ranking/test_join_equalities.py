"""Keys of joins are equal where a comparison of the two sides is true, and nowhere else unless it is tested again."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from trendloom.expr.nodes import Attribute, Comparison, Expr, Fold, Which
from trendloom.expr.operators import compare
from trendloom.expr.vectors import Vector, from_list, is_true
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.pattern_spec import Rule
from trendloom.kernels.ranking.join_keys import equalities_of, key_columns
from trendloom.kernels.ranking.join_operands import JoinBranch, JoinOperand
from trendloom.model.schema import Kind


def operand(*names: str) -> JoinOperand:
    nothing = Fold("+", (), Kind.INT)
    branch = JoinBranch(tuple(range(len(names))), names, Attribute(names[0], Which.EACH, "w", Kind.INT), nothing, False)
    return JoinOperand((branch,))


def attribute(variable: str, column: str, kind: Kind = Kind.INT) -> Expr:
    return Attribute(variable, Which.EACH, column, kind)


def equal(one: Expr, other: Expr) -> Rule:
    return Rule(Comparison("=", one, other), None)


TEXTS = from_list(["u", "v", None, "u"], Kind.STRING)
OTHER_TEXTS = from_list(["v", "w", "u", None], Kind.STRING)
INTEGERS = from_list([1, 2**53 + 1, None, 0], Kind.INT)
DOUBLES = from_list([0.0, 2.0**53, 1.0, -0.0], Kind.FLOAT)
DECIMALS = from_list([Decimal("1.00"), Decimal("0.00"), Decimal("0.10"), None], Kind.DECIMAL, 2)
HUGE = from_list([2**70, 1, 2**70 + 1, None], Kind.INT)


@pytest.mark.parametrize(
    ("left", "right", "exact"),
    [
        (TEXTS, OTHER_TEXTS, True), (INTEGERS, INTEGERS, True), (DOUBLES, DOUBLES, True), (DECIMALS, DECIMALS, True),
        (INTEGERS, DECIMALS, True), (INTEGERS, DOUBLES, False), (DECIMALS, DOUBLES, False), (HUGE, INTEGERS, True),
    ],
)  # fmt: skip
def test_keys_agree_with_comparisons(left: Vector, right: Vector, exact: bool) -> None:
    block = Block(np.array([0, 4]), np.arange(4), np.arange(4), {"l": left, "r": right})
    operands = operand("a"), operand("c")
    rule = equal(attribute("a", "l", left.kind), attribute("c", "r", right.kind))
    columns, said = key_columns(equalities_of([rule], operands), operands, block)
    assert said == (frozenset({rule}) if exact else frozenset())
    of_a, of_c = (function(np.arange(4).reshape(-1, 1)) for function in columns.functions())
    for one in range(4):
        expected = is_true(compare("=", left.take(np.full(4, one)), right))
        same = (of_a[one] == of_c).all(axis=1)
        assert (same == expected).all() if exact else (same >= expected).all()


def names(found: Any) -> list[list[str]]:
    return [[f"{side.variable}.{side.column}" for side in one.sides] for one in found]


def test_a_class_needs_a_side_in_every_operand() -> None:
    operands = operand("a", "b"), operand("c"), operand("d")
    first, second = equal(attribute("a", "x"), attribute("c", "x")), equal(attribute("d", "y"), attribute("c", "x"))
    assert equalities_of([first], operands) == ()
    found = equalities_of([first, second], operands)
    assert names(found) == [["a.x", "c.x", "d.y"]]
    assert set(found[0].rules) == {first, second}


def test_a_class_with_two_sides_in_an_operand_does_not_say_it_all() -> None:
    operands = operand("a", "b"), operand("c")
    rules = [equal(attribute("a", "x"), attribute("c", "x")), equal(attribute("b", "x"), attribute("c", "x"))]
    (found,) = equalities_of(rules, operands)
    assert found.rules == ()


def test_other_conditions_are_no_keys() -> None:
    operands = operand("a"), operand("c")
    less = Rule(Comparison("<", attribute("a", "x"), attribute("c", "x")), None)
    several = JoinOperand((*operand("c").branches, *operand("d").branches))
    assert equalities_of([less], operands) == ()
    assert equalities_of([equal(attribute("a", "x"), attribute("c", "x"))], (operands[0], several)) == ()
