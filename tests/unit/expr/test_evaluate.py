from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import (
    Arithmetic,
    Attribute,
    Comparison,
    Constant,
    Expr,
    Function,
    Inverse,
    Junction,
    Negate,
    NullTest,
    Which,
    Wildcard,
)
from trendloom.expr.vectors import Vector, from_list
from trendloom.model.schema import Kind

INT, FLOAT, STRING, BOOL = Kind.INT, Kind.FLOAT, Kind.STRING, Kind.BOOL


def column(name: str, kind: Kind) -> Attribute:
    return Attribute("a", Which.EACH, name, kind)


def values(expr: Expr, **columns: list[Any]) -> list[Any]:
    return evaluate(expr, lambda leaf: from_list(columns[leaf.column], leaf.kind)).to_list()  # type: ignore[union-attr, arg-type, index]


def calculated(operator: Any, left: list[Any], right: list[Any], kinds: tuple[Kind, Kind, Kind]) -> list[Any]:
    return values(Arithmetic(operator, column("x", kinds[0]), column("y", kinds[1]), kinds[2]), x=left, y=right)


def compared(operator: Any, left: list[Any], right: list[Any], kind: Kind, other: Kind | None = None) -> list[Any]:
    return values(Comparison(operator, column("x", kind), column("y", other or kind)), x=left, y=right)


def applied(name: str, kind: Kind, *arguments: list[Any], result: Kind) -> list[Any]:
    names = [f"x{place}" for place in range(len(arguments))]
    expr = Function(name, tuple(column(one, kind) for one in names), result)
    return values(expr, **dict(zip(names, arguments, strict=True)))


# ------------------------------------------------------------------------------------------------ arithmetic


def test_integers_never_overflow() -> None:
    most = 2**63 - 1
    assert calculated("+", [most, 1], [1, 1], (INT, INT, INT)) == [most + 1, 2]
    assert calculated("-", [-(2**63)], [1], (INT, INT, INT)) == [-(2**63) - 1]
    assert calculated("*", [most, -3], [most, 2], (INT, INT, INT)) == [most * most, -6]
    assert values(Negate(column("x", INT), INT), x=[-(2**63), 5]) == [2**63, -5]
    assert applied("abs", INT, [-(2**63), 5, None], result=INT) == [2**63, 5, None]


def test_wide_results_that_fit_come_back_to_int64() -> None:
    wide = Arithmetic("+", column("x", INT), Constant(2**63, INT), INT)
    back = evaluate(Arithmetic("-", wide, Constant(2**63, INT), INT), lambda _: from_list([7, None], INT))
    assert back.values.dtype == "int64"
    assert back.to_list() == [7, None]


def test_division_is_real_and_by_zero_unknown() -> None:
    assert calculated("/", [7, 1, None, 0], [2, 0, 1, 5], (INT, INT, FLOAT)) == [3.5, None, None, 0.0]
    assert calculated("/", [1.0, -1.0], [0.0, -0.0], (FLOAT, FLOAT, FLOAT)) == [None, None]


def test_division_of_large_integers_rounds_once() -> None:
    left, right = 2**63 - 1, 3**39
    assert calculated("/", [left], [right], (INT, INT, FLOAT)) == [left / right]
    assert calculated("/", [10**400], [10**399], (INT, INT, FLOAT)) == [10.0]
    assert calculated("/", [10**400], [1], (INT, INT, FLOAT)) == [None]


def test_remainder_has_the_divisors_sign() -> None:
    assert calculated("%", [7, -7, 7, -7, 7], [3, 3, -3, -3, 0], (INT, INT, INT)) == [1, 2, -2, -1, None]
    assert calculated("%", [-(2**63)], [-1], (INT, INT, INT)) == [0]
    assert calculated("%", [5.5, -5.5, 1.0], [2.0, 2.0, 0.0], (FLOAT, FLOAT, FLOAT)) == [1.5, 0.5, None]


def test_results_that_are_no_numbers_are_null() -> None:
    assert calculated("-", [math.inf, math.inf], [math.inf, 1.0], (FLOAT, FLOAT, FLOAT)) == [None, math.inf]
    assert calculated("*", [1e300, math.inf], [1e300, 2.0], (FLOAT, FLOAT, FLOAT)) == [None, math.inf]


def test_times_and_durations_are_calculated_in_ticks() -> None:
    time, duration = Kind.TIME, Kind.DURATION
    assert calculated("-", [50, None], [20, 1], (time, time, duration)) == [30, None]
    assert calculated("+", [50], [20], (time, duration, time)) == [70]
    assert calculated("/", [50], [20], (duration, duration, FLOAT)) == [2.5]


# ------------------------------------------------------------------------------------------------ comparison


def test_integers_and_numbers_are_compared_exactly() -> None:
    near = [2**53 + 1, 2**53 + 1, 2**63 - 1, -(2**63), 5, 5, 5, -5]
    real = [2.0**53, math.inf, 2.0**63, -(2.0**63), 5.0, 4.5, 5.5, -5.5]
    assert compared("=", near, real, INT, FLOAT) == [False, False, False, True, True, False, False, False]
    assert compared("<", near, real, INT, FLOAT) == [False, True, True, False, False, False, True, False]
    assert compared(">=", real, near, FLOAT, INT) == [False, True, True, True, True, False, True, False]
    assert compared("=", [2**64], [2.0**64], INT, FLOAT) == [True]


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
def test_strings_are_compared_across_dictionaries(operator: str) -> None:
    left, right = ["a", "b", "", "é", None], ["b", "b", "a", "z", "x"]
    python = {"=": "==", "!=": "!="}.get(operator, operator)
    expected = [None if x is None else eval(f"{x!r} {python} {y!r}") for x, y in zip(left, right, strict=True)]
    assert compared(operator, left, right, STRING) == expected


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize("text", ["", "a", "b", "bb", "zz"])
def test_strings_are_compared_with_constants(operator: Any, text: str) -> None:
    texts = ["b", "a", "d", None]
    python = {"=": "==", "!=": "!="}.get(operator, operator)
    right = Comparison(operator, column("x", STRING), Constant(text, STRING))
    left = Comparison(operator, Constant(text, STRING), column("x", STRING))
    assert values(right, x=texts) == [*(eval(f"{x!r} {python} {text!r}") for x in texts[:3]), None]
    assert values(left, x=texts) == [*(eval(f"{text!r} {python} {x!r}") for x in texts[:3]), None]


def test_null_columns_fit_everywhere() -> None:
    nulls = column("n", Kind.NULL)
    assert values(Comparison("=", nulls, column("x", STRING)), n=[None], x=["a"]) == [None]
    assert values(Arithmetic("+", nulls, column("x", INT), INT), n=[None], x=[1]) == [None]
    assert values(Wildcard(nulls, "%"), n=[None]) == [None]
    assert values(Function("coalesce", (nulls, column("x", STRING)), STRING), n=[None], x=["a"]) == ["a"]


# ----------------------------------------------------------------------------------------------------- logic

TRUTH = [True, False, None]


def test_and_or_not_follow_sql() -> None:
    left, right = [x for x in TRUTH for _ in TRUTH], TRUTH * 3
    both = (column("x", BOOL), column("y", BOOL))
    assert values(Junction("and", both), x=left, y=right) == [True, False, None, False, False, False, None, False, None]
    assert values(Junction("or", both), x=left, y=right) == [True, True, True, True, False, None, True, None, None]
    assert values(Inverse(column("x", BOOL)), x=TRUTH) == [False, True, None]


def test_constants_join_with_columns() -> None:
    expr = Junction("or", (Constant(False, BOOL), column("x", BOOL), Constant(None, BOOL)))
    assert values(expr, x=TRUTH) == [True, None, None]


def test_null_tests_are_never_unknown() -> None:
    assert values(NullTest(column("x", FLOAT), False), x=[1.0, None]) == [False, True]
    assert values(NullTest(column("x", FLOAT), True), x=[1.0, None]) == [True, False]
    assert values(NullTest(column("x", FLOAT), True), x=[1.0]) == [True]


# ------------------------------------------------------------------------------------------------- functions


def test_rounding_to_integers() -> None:
    numbers = [0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994, 1e300, math.inf, None]
    assert applied("round", FLOAT, numbers, result=INT) == [1, -1, 2, 3, -3, 0, int(1e300), None, None]
    assert applied("floor", FLOAT, [1.5, -1.5, -math.inf], result=INT) == [1, -2, None]
    assert applied("ceil", FLOAT, [1.5, -1.5, 2.0**63], result=INT) == [2, -1, 2**63]
    assert applied("round", INT, [2**70, None], result=INT) == [2**70, None]


def rounded(numbers: list[Any], digits: int) -> list[Any]:
    return values(Function("round", (column("x", FLOAT), Constant(digits, INT)), FLOAT), x=numbers)


def test_rounding_to_digits_sees_the_exact_value() -> None:
    # 2.675 is stored a little below, 0.125 exactly.
    assert rounded([2.675, 0.125, -0.125, 1234.5678, 1e22, math.inf, None], 2) == [
        *(2.67, 0.13, -0.13, 1234.57, 1e22),
        *(None, None),
    ]
    assert rounded([1e-5, 0.1], 30) == [1e-5, 0.1]
    assert rounded([149.0, 150.0], -2) == [100.0, 200.0]


def test_functions_without_a_value_are_null() -> None:
    assert applied("sqrt", FLOAT, [4.0, -1.0, None], result=FLOAT) == [2.0, None, None]
    assert applied("ln", FLOAT, [1.0, 0.0, -1.0], result=FLOAT) == [0.0, None, None]
    assert applied("exp", FLOAT, [0.0, 1000.0, -1000.0], result=FLOAT) == [1.0, None, 0.0]
    assert applied("ln", INT, [10**400], result=FLOAT) == [math.log(10**400)]


def test_functions_of_strings_work_on_the_dictionary() -> None:
    texts = ["B", "b", None, "Éa", ""]
    assert applied("lower", STRING, texts, result=STRING) == ["b", "b", None, "éa", ""]
    assert applied("upper", STRING, texts, result=STRING) == ["B", "B", None, "ÉA", ""]
    assert applied("length", STRING, texts, result=INT) == [1, 1, None, 2, 0]
    lowered = Comparison("=", Function("lower", (column("x", STRING),), STRING), Constant("b", STRING))
    assert values(lowered, x=texts) == [True, True, None, False, False]


def test_like_knows_two_wildcards_and_no_escapes() -> None:
    texts = ["abc", "a.c", "ab", "a\nc", None, ""]
    assert values(Wildcard(column("x", STRING), "a_c"), x=texts) == [True, True, False, True, None, False]
    assert values(Wildcard(column("x", STRING), "a.%"), x=texts) == [False, True, False, False, None, False]
    assert values(Wildcard(column("x", STRING), "%"), x=texts) == [True, True, True, True, None, True]


def test_coalesce_least_and_greatest() -> None:
    one, two = [1, None, 3, None], [2, 5, None, None]
    assert applied("coalesce", INT, one, two, result=INT) == [1, 5, 3, None]
    assert applied("least", INT, one, two, result=INT) == [1, None, None, None]
    assert applied("greatest", INT, one, two, result=INT) == [2, None, None, None]
    assert applied("greatest", STRING, ["a", "d"], ["b", "c"], result=STRING) == ["b", "d"]
    mixed = Function("least", (column("x", INT), column("y", FLOAT)), FLOAT)
    assert values(mixed, x=[1, 4], y=[1.5, 2.5]) == [1.0, 2.5]


def test_an_expression_without_columns_has_length_one() -> None:
    assert values(Arithmetic("+", Constant(1, INT), Constant(2, INT), INT)) == [3]


def test_empty_columns_give_empty_results() -> None:
    assert compared("<", [], [], STRING) == []
    assert calculated("/", [], [], (INT, INT, FLOAT)) == []
    assert values(Comparison("=", column("x", STRING), Constant("a", STRING)), x=[]) == []


def test_decimals_without_digits_after_the_point_stay_decimals_when_rounded() -> None:
    """Else whatever they are combined with would be rounded to doubles."""
    whole = Vector(Kind.DECIMAL, np.array([7, 149]), None, scale=0)
    found = evaluate(Function("round", (column("x", Kind.DECIMAL), Constant(-2, INT)), Kind.DECIMAL), lambda _: whole)
    assert (found.values.dtype, found.values.tolist(), found.scale) == (np.int64, [0, 100], 0)
