"""Fenwick trees of cells, one and two ranks deep, against adding up one by one."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from numba import njit

from trendloom.kernels.columns.fenwick import (
    NOTHING,
    Cells,
    InnerTrees,
    arrange,
    empty_cells,
    erase,
    erase_nested,
    gather,
    gather_nested,
    inner_begins,
    insert,
    insert_nested,
    merge,
    merge_lane,
    nested_cells,
    wipe,
)
from trendloom.kernels.columns.numbers import Doubles, zeros
from trendloom.kernels.columns.sort import sort_words

LANES = 2


def cells(count: int) -> Cells:
    return empty_cells(zeros(Doubles, 1, 1), count, LANES, 2, 1)


def amounts(dice: random.Random, count: int) -> Cells:
    found = cells(count)
    assert isinstance(found.numbers, Doubles)
    found.numbers.value[:] = np.array([[dice.randint(1, 9) for _ in range(LANES)] for _ in range(2 * count)])
    found.least[:] = np.array([dice.randint(-50, 50) for _ in range(count * LANES)]).reshape(count, LANES, 1)
    return found


def expected(values: Cells, chosen: list[int]) -> tuple[list[Any], list[Any]]:
    assert isinstance(values.numbers, Doubles)
    numbers = values.numbers.value.reshape(-1, 2, LANES)[chosen].sum(axis=0)
    return numbers.tolist(), values.least[chosen].min(axis=0, initial=NOTHING).tolist()


def held(some: Cells, cell: int) -> tuple[list[Any], list[Any]]:
    assert isinstance(some.numbers, Doubles)
    return some.numbers.value[2 * cell : 2 * cell + 2].tolist(), some.least[cell].tolist()


@njit
def put(nodes: Any, begin: Any, count: Any, place: Any, values: Any, cell: Any) -> None:
    insert(nodes, begin, count, place, values, cell)


@njit
def ask(values: Any, cell: Any, nodes: Any, begin: Any, prefix: Any) -> None:
    gather(values, cell, nodes, begin, prefix)


@njit
def take_out(nodes: Any, begin: Any, count: Any, place: Any) -> None:
    erase(nodes, begin, count, place)


@njit
def put_nested(nodes: Any, inner: Any, count: Any, first: Any, second: Any, values: Any, cell: Any) -> None:
    insert_nested(nodes, 3, inner, count, first, second, values, cell)


@njit
def ask_nested(values: Any, cell: Any, nodes: Any, inner: Any, first: Any, second: Any) -> None:
    gather_nested(values, cell, nodes, 3, inner, first, second)


@njit
def take_out_nested(nodes: Any, inner: Any, count: Any, first: Any, second: Any) -> None:
    erase_nested(nodes, 3, inner, count, first, second)


@njit
def write_down(inner: Any, outer: Any, count: Any, filled: Any) -> None:
    arrange(inner, 3, outer, count, filled)


@njit
def in_order(words: Any, count: Any, spare: Any) -> None:
    sort_words(words, count, spare)


@njit
def join(a: Any, i: Any, b: Any, j: Any, lane: Any) -> None:
    if lane < 0:
        merge(a, i, b, j)
    else:
        merge_lane(a, i, b, j, lane)


@njit
def empty(a: Any, i: Any) -> None:
    wipe(a, i)


@pytest.mark.parametrize("places", [1, 2, 7, 8, 33])
def test_a_prefix_is_everything_inserted_below_it(places: int) -> None:
    dice = random.Random(places)
    values, nodes, result = amounts(dice, places), cells(places + 5), cells(1)
    order = dice.sample(range(places), places)
    for count, place in enumerate(order):
        put(nodes, 5, places, place, values, place)
        prefix = dice.randint(0, places)
        empty(result, 0)
        ask(result, 0, nodes, 5, prefix)
        assert held(result, 0) == expected(values, [p for p in order[: count + 1] if p < prefix])
    assert held(nodes, 0) == expected(values, [])  # neighbours in memory are left alone


def test_erasing_what_was_inserted_leaves_nothing() -> None:
    values, nodes = amounts(random.Random(1), 20), cells(20)
    for place in (3, 7, 11):
        put(nodes, 0, 20, place, values, place)
    for place in (3, 7, 11):
        take_out(nodes, 0, 20, place)
    assert [held(nodes, cell) for cell in range(20)] == [expected(values, [])] * 20


@pytest.mark.parametrize("places", [1, 2, 5, 16, 29])
def test_two_bounds_at_once(places: int) -> None:
    dice = random.Random(places)
    second = dice.sample(range(places), places)  # of the place with first rank f
    outer = np.array([second.index(rank) for rank in range(places)])
    begins, filled = inner_begins(places), np.zeros(places, np.int64)
    inner = InnerTrees(np.zeros(3 + begins[places], np.int64), begins)
    write_down(inner, outer, places, filled)
    values, nodes, result = amounts(dice, places), cells(len(inner.ranks)), cells(1)
    order = dice.sample(range(places), places)
    for count, place in enumerate(order):
        put_nested(nodes, inner, places, place, second[place], values, place)
        below, beneath = dice.randint(0, places), dice.randint(0, places)
        empty(result, 0)
        ask_nested(result, 0, nodes, inner, below, beneath)
        inside = [p for p in order[: count + 1] if p < below and second[p] < beneath]
        assert held(result, 0) == expected(values, inside)
    for place in order:
        take_out_nested(nodes, inner, places, place, second[place])
    assert {str(held(nodes, cell)) for cell in range(len(inner.ranks))} == {str(expected(values, []))}
    assert not filled.any()


@pytest.mark.parametrize("places", [0, 1, 2, 3, 8, 100, 1000])
def test_nested_trees_take_as_many_cells_as_their_inner_trees_hold(places: int) -> None:
    assert nested_cells(places) == inner_begins(places)[-1]


def test_merging_one_lane_leaves_the_others() -> None:
    values, result = amounts(random.Random(3), 1), cells(1)
    join(result, 0, values, 0, 1)
    numbers, least = expected(values, [0])
    assert held(result, 0) == ([[0.0, row[1]] for row in numbers], [[int(NOTHING)], least[1]])
    join(result, 0, values, 0, -1)
    assert held(result, 0) == ([[row[0], 2 * row[1]] for row in numbers], least)


@pytest.mark.parametrize("count", [0, 1, 2, 15, 16, 17, 31, 33, 64, 65, 100, 1000])
@pytest.mark.parametrize("shape", ["random", "rising", "falling", "organ pipe"])
def test_words_are_sorted_whatever_their_order(count: int, shape: str) -> None:
    rising = np.arange(count, dtype=np.int64)
    given = {
        "random": np.random.default_rng(count).integers(-9, 10**12, count),
        "rising": rising,
        "falling": rising[::-1].copy(),
        "organ pipe": np.minimum(rising, count - rising),
    }[shape]
    words = np.concatenate([given, [7]])
    in_order(words, count, np.zeros(count, np.int64))
    assert words.tolist() == [*sorted(given.tolist()), 7]
