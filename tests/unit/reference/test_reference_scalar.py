"""Expressions: three-valued logic, arithmetic that is exact or NULL, functions."""

from __future__ import annotations

import math

import pytest

from trendloom.expr.nodes import (
    Arithmetic,
    Attribute,
    Comparison,
    Constant,
    Function,
    Inverse,
    Junction,
    Negate,
    NullTest,
    Which,
    Wildcard,
)
from trendloom.model.schema import Kind
from trendloom.reference.scalar import evaluate


def constant(value):
    return Constant(value, Kind.NULL)


def value_of(expr):
    return evaluate(expr, lambda leaf: None)


def calculate(left, operator, right):
    return value_of(Arithmetic(operator, constant(left), constant(right), Kind.FLOAT))


def compare(left, operator, right):
    return value_of(Comparison(operator, constant(left), constant(right)))


def call(name, *arguments):
    return value_of(Function(name, tuple(constant(argument) for argument in arguments), Kind.FLOAT))


@pytest.mark.parametrize(
    ("operator", "operands", "truth"),
    [
        ("and", (True, True), True),
        ("and", (True, None), None),
        ("and", (None, False), False),
        ("or", (False, False), False),
        ("or", (False, None), None),
        ("or", (None, True), True),
    ],
)
def test_junctions(operator, operands, truth):
    assert value_of(Junction(operator, tuple(constant(operand) for operand in operands))) is truth


def test_not_unknown_is_unknown():
    assert value_of(Inverse(constant(None))) is None
    assert value_of(Inverse(constant(True))) is False


def test_null_tests_are_never_unknown():
    assert value_of(NullTest(constant(None), negated=False)) is True
    assert value_of(NullTest(constant(None), negated=True)) is False
    assert value_of(NullTest(constant(1), negated=True)) is True


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
def test_comparison_with_null_is_unknown(operator):
    assert compare(1, operator, None) is None
    assert compare(None, operator, None) is None


@pytest.mark.parametrize(
    ("left", "operator", "right", "truth"),
    [
        (1, "=", 1.0, True),
        (2**53 + 1, ">", float(2**53), True),
        ("B", "<", "a", True),
        (1, "!=", 2, True),
        (2, "<=", 2, True),
        (2, ">", 2, False),
        (3, ">=", 2, True),
        (math.inf, ">", 10**400, True),
        (False, "<", True, True),
    ],
)
def test_comparisons(left, operator, right, truth):
    assert compare(left, operator, right) is truth


@pytest.mark.parametrize(
    ("left", "operator", "right", "result"),
    [
        (2**70, "+", 1, 2**70 + 1),
        (7, "/", 2, 3.5),
        (6, "/", 2, 3.0),
        (1, "/", 0, None),
        (1.0, "%", 0.0, None),
        (-7, "%", 3, 2),
        (7, "%", -3, -2),
        (1e308, "*", 10.0, None),
        (math.inf, "-", math.inf, None),
        (math.inf, "*", 2, math.inf),
        (10**400, "/", 1, None),
        (10**400, "+", 0.5, None),
        (None, "+", 1, None),
    ],
)
def test_arithmetic(left, operator, right, result):
    found = calculate(left, operator, right)
    assert found == result
    assert type(found) is type(result)


def test_negation():
    assert value_of(Negate(constant(3), Kind.INT)) == -3
    assert value_of(Negate(constant(None), Kind.INT)) is None


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("abs", (-3,), 3),
        ("sqrt", (9,), 3.0),
        ("sqrt", (-1,), None),
        ("ln", (0,), None),
        ("exp", (0,), 1.0),
        ("exp", (1000,), None),
        ("floor", (-1.5,), -2),
        ("ceil", (-1.5,), -1),
        ("floor", (math.inf,), None),
        ("round", (2.5,), 3),
        ("round", (-2.5,), -3),
        ("round", (0.49999999999999994,), 0),
        ("round", (1.25, 1), 1.3),
        ("round", (-1.25, 1), -1.3),
        ("round", (15, -1), 20.0),
        ("lower", ("Ä",), "ä"),
        ("upper", ("aß",), "ASS"),
        ("length", ("añ",), 2),
        ("length", (None,), None),
        ("coalesce", (None, 2, 3), 2),
        ("coalesce", (None, None), None),
        ("least", (2, 1.5), 1.5),
        ("greatest", (2, None), None),
    ],
)
def test_functions(name, arguments, result):
    found = call(name, *arguments)
    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize(
    ("text", "pattern", "truth"),
    [
        ("abc", "a%", True),
        ("abc", "_b_", True),
        ("abc", "b%", False),
        ("a.c", "a.c", True),
        ("abc", "a.c", False),
        ("A", "a", False),
        ("a\nb", "a%b", True),
        ("", "%", True),
        (None, "%", None),
    ],
)
def test_like(text, pattern, truth):
    assert value_of(Wildcard(constant(text), pattern)) is truth


def test_leaves_are_asked_for():
    leaf = Attribute("a", Which.EACH, "x", Kind.INT)
    assert evaluate(Arithmetic("+", leaf, constant(1), Kind.INT), {leaf: 4}.__getitem__) == 5
