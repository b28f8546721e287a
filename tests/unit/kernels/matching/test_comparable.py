"""Both sides of a comparison as integers: their order must be that of the values, exactly."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trendloom.expr.nodes import Attribute, Which
from trendloom.expr.vectors import from_list
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.pattern_spec import Pair
from trendloom.kernels.matching.gap_thresholds import comparable
from trendloom.model.schema import Kind

OPERATORS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def check(left: list[Any], right: list[Any], kinds: tuple[Kind, Kind]) -> None:
    """Every value of one side against every value of the other."""
    size = max(len(left), len(right))
    left, right = [*left, *[None] * (size - len(left))], [*right, *[None] * (size - len(right))]
    columns = {"l": from_list(left, kinds[0]), "r": from_list(right, kinds[1])}
    block = Block(np.array([0, size]), np.arange(size), np.arange(size), columns)
    sides = [Attribute("a", Which.EACH, name, kind) for name, kind in zip("lr", kinds, strict=True)]
    lefts, rights, known = comparable((Pair(sides[0], "<", sides[1], frozenset()),), block)
    assert lefts.dtype == rights.dtype == np.int64
    for i in range(size):
        assert known[0, 0, i] == (left[i] is not None)
        assert known[1, 0, i] == (right[i] is not None)
        for j in range(size):
            if left[i] is not None and right[j] is not None:
                for compare in OPERATORS:
                    assert compare(lefts[0, i], rights[0, j]) == compare(left[i], right[j]), (left[i], right[j])


integers = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
near_2_53 = st.integers(2**53 - 2, 2**53 + 4).flatmap(lambda n: st.sampled_from([n, -n]))
doubles = st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0, float(2**53), -float(2**53)])


def some(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.none() | values, min_size=1, max_size=6)


@given(some(integers), some(integers))
def test_integers(left: list[Any], right: list[Any]) -> None:
    check(left, right, (Kind.INT, Kind.INT))


@given(some(doubles), some(doubles))
def test_doubles(left: list[Any], right: list[Any]) -> None:
    check(left, right, (Kind.FLOAT, Kind.FLOAT))


@given(some(integers | near_2_53), some(doubles | near_2_53.map(float)))
def test_integers_with_doubles(left: list[Any], right: list[Any]) -> None:
    check(left, right, (Kind.INT, Kind.FLOAT))
    check(right, left, (Kind.FLOAT, Kind.INT))


@given(some(st.text(max_size=3)), some(st.text(max_size=3)))
def test_strings(left: list[Any], right: list[Any]) -> None:
    check(left, right, (Kind.STRING, Kind.STRING))


@given(some(st.booleans()), some(st.booleans()))
def test_booleans(left: list[Any], right: list[Any]) -> None:
    check(left, right, (Kind.BOOL, Kind.BOOL))


@given(some(st.integers(-(2**70), 2**70)), some(integers))
def test_integers_beyond_64_bits(left: list[Any], right: list[Any]) -> None:
    check(left, right, (Kind.INT, Kind.INT))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([2**53 + 1], [float(2**53)]),
        ([-(2**53) - 1], [-float(2**53)]),
        ([2**63 - 1], [float(2**63)]),
        ([0], [-0.0]),
        ([1], [float("inf")]),
    ],
)
def test_where_doubles_are_not_exact(left: list[Any], right: list[Any]) -> None:
    check(left, right, (Kind.INT, Kind.FLOAT))


def test_a_column_of_nothing() -> None:
    columns = {"l": from_list([None, None], Kind.NULL), "r": from_list([1, 2], Kind.INT)}
    block = Block(np.array([0, 2]), np.arange(2), np.arange(2), columns)
    sides = [Attribute("a", Which.EACH, "l", Kind.NULL), Attribute("a", Which.EACH, "r", Kind.INT)]
    *_, known = comparable((Pair(sides[0], "=", sides[1], frozenset()),), block)
    assert not known[0].any()
