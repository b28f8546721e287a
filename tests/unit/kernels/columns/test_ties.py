"""Ties are put in order by further columns, and instants number what comes out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trendloom.expr.vectors import Vector, from_list
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.sort import order_ties, value_ranks
from trendloom.model.schema import Kind

Row = tuple[int, int, int | None, str | None]


def vectors(rows: list[Row]) -> list[Vector]:
    return [from_list([row[2] for row in rows], Kind.INT), from_list([row[3] for row in rows], Kind.STRING)]


def place(row: Row) -> tuple[object, ...]:
    return (row[0], row[1], row[2] is not None, row[2] or 0, row[3] is not None, row[3] or "")


SMALL = st.integers(0, 2)
ROWS = st.lists(st.tuples(SMALL, SMALL, st.none() | SMALL, st.none() | st.sampled_from(["", "a", "é", "𝄞"])))


@settings(deadline=None)
@given(ROWS)
def test_rows_come_in_order_and_instants_grow_with_them(rows: list[Row]) -> None:
    rows.sort(key=lambda row: row[:2])  # by key and time
    key, time = (np.array([row[at] for row in rows], np.int64) for at in (0, 1))
    found = order_ties(key, time, np.arange(len(rows)), vectors(rows))
    if found is None:
        assert len({row[:2] for row in rows}) == len(rows)
        return
    order, instants = found
    places = [place(rows[at]) for at in order]
    assert places == sorted(places)
    assert instants.dtype == np.int64
    numbers = {one: number for number, one in enumerate(sorted(set(places)), 1)}
    assert instants.tolist() == [numbers[one] for one in places]


def test_without_ties_the_columns_are_not_asked() -> None:
    assert order_ties(np.array([0, 0, 1]), np.array([1, 2, 2]), np.arange(3), []) is None


@pytest.mark.parametrize(
    ("kind", "values", "ranks"),
    [
        (Kind.INT, [2**70, None, -(2**70), 0], [3, 0, 1, 2]),
        (Kind.FLOAT, [0.5, -0.0, 0.0, None], [2, 1, 1, 0]),
        (Kind.BOOL, [True, False, None, True], [2, 1, 0, 2]),
        (Kind.NULL, [None, None], [0, 0]),
    ],
)
def test_values_of_every_kind_have_ranks(kind: Kind, values: list[object], ranks: list[int]) -> None:
    assert value_ranks([from_list(values, kind)]).tolist() == ranks


def test_a_block_without_an_order_has_its_times_for_instants() -> None:
    block = Block(np.array([0, 3]), np.array([1, 1, 2]), np.arange(3), {})
    assert block.instant is block.time
    assert block.tie_end.tolist() == [2, 2, 3]
    ordered = Block(np.array([0, 3]), np.array([1, 1, 2]), np.arange(3), {}, instants=np.array([1, 2, 3]))
    assert ordered.tie_end.tolist() == [1, 2, 3]
    assert ordered.only(np.array([True, False, True])).instant.tolist() == [1, 3]
