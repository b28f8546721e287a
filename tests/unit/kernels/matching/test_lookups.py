"""Events by their values: what is found is what a search through all events finds."""

from __future__ import annotations

import numpy as np
import pytest

from trendloom.expr.nodes import Arithmetic, Attribute, Constant, Which
from trendloom.expr.vectors import Vector
from trendloom.kernels.columns.block import Block
from trendloom.kernels.matching.lookups import lookup_of
from trendloom.model.schema import Kind

MINE = Attribute("b", Which.EACH, "x", Kind.INT)
THEIRS = Attribute("a", Which.EACH, "y", Kind.INT)
NEVER = 10**9


def block_of(x: list[int | None], y: list[int | None]) -> Block:
    def vector(values: list[int | None]) -> Vector:
        known = np.array([value is not None for value in values], np.bool_)
        return Vector(Kind.INT, np.array([value or 0 for value in values], np.int64), known)

    size = len(x)
    return Block(np.array([0, size]), np.arange(size), np.arange(size), {"x": vector(x), "y": vector(y)})


@pytest.mark.parametrize("seed", range(20))
def test_as_a_search_through_all(seed: int) -> None:
    random = np.random.default_rng(seed)
    size = int(random.integers(0, 30))
    x, y = ([None if value > 4 else int(value) for value in random.integers(0, 6, size)] for _ in range(2))
    members = np.flatnonzero(random.random(size) < 0.6)
    found = lookup_of(MINE, THEIRS, members, block_of(x, y))
    asking = random.integers(0, max(size, 1), 40) if size else np.zeros(0, np.int64)
    low, high = (random.integers(0, size + 1, len(asking)) for _ in range(2))
    begin, end = found.between(asking, low, high)
    soonest = found.soonest(asking, low, NEVER)
    for row, event in enumerate(asking):
        fits = [m for m in members if y[event] is not None and x[m] == y[event]]
        assert list(found.events[begin[row] : end[row]]) == [m for m in fits if low[row] <= m < high[row]]
        assert soonest[row] == min((m for m in fits if m >= low[row]), default=NEVER)


def test_values_that_are_computed_are_compared() -> None:
    plus_one = Arithmetic("+", MINE, Constant(1, Kind.INT), Kind.INT)
    found = lookup_of(plus_one, THEIRS, np.arange(3), block_of([1, 2, None], [2, 3, 9]))
    begin, end = found.between(np.arange(3), np.zeros(3, np.int64), np.full(3, 3))
    assert [list(found.events[b:e]) for b, e in zip(begin, end, strict=True)] == [[0], [1], []]


def test_a_stream_without_candidates() -> None:
    found = lookup_of(MINE, THEIRS, np.zeros(0, np.int64), block_of([1], [1]))
    assert found.soonest(np.array([0]), np.array([0]), NEVER).tolist() == [NEVER]
    begin, end = found.between(np.array([0]), np.array([0]), np.array([1]))
    assert (end - begin).tolist() == [0]
