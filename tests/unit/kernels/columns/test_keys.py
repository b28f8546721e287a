from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trendloom.expr.vectors import Vector, from_list, nothing
from trendloom.kernels.columns.keys import Keys, encode_keys, one_key
from trendloom.model.schema import Kind

VALUES: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.INT: st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63), 2**64, -(2**70)]),
    Kind.FLOAT: st.sampled_from([0.0, -0.0, 1.5, -1.5, float("inf"), float("-inf"), 1e-310, -1e300]),
    Kind.STRING: st.sampled_from(["", "a", "A", "é", "b"]),
    Kind.BOOL: st.booleans(),
    Kind.TIME: st.integers(-(2**63), 2**63 - 1),
}


def check(keys: Keys, columns: list[list[Any]], rows: int) -> None:
    tuples = [tuple(column[row] for column in columns) for row in range(rows)]
    whole = [row for row in tuples if None not in row]
    distinct = sorted(set(whole))
    assert keys.count == len(distinct)
    assert keys.codes.tolist() == [-1 if None in row else distinct.index(row) for row in tuples]
    assert keys.rows.tolist() == [tuples.index(row) for row in distinct]
    if keys.valid is None:
        assert len(whole) == rows
    else:
        assert keys.valid.tolist() == [None not in row for row in tuples]


@settings(max_examples=200, deadline=None)
@given(st.data(), st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3), st.integers(0, 20))
def test_codes_are_ranks_of_the_combined_values(data: st.DataObject, kinds: list[Kind], rows: int) -> None:
    columns = [data.draw(st.lists(VALUES[kind] | st.none(), min_size=rows, max_size=rows)) for kind in kinds]
    check(encode_keys([from_list(column, kind) for column, kind in zip(columns, kinds, strict=True)]), columns, rows)


@pytest.mark.parametrize("distinct", [1_000, 30_000])
def test_sparse_integers_are_ranked_like_dense_ones(distinct: int) -> None:
    random = np.random.default_rng(3)
    values = random.integers(-(2**63), 2**63 - 1, distinct)[random.integers(0, distinct, 60_000)]
    keys = encode_keys([Vector(Kind.INT, values)])
    expected, codes = np.unique(values, return_inverse=True)
    assert np.array_equal(keys.codes, codes)
    assert np.array_equal(values[keys.rows], expected)


def test_whole_doubles_do_not_collide_in_the_hash_table() -> None:
    values = np.arange(50_000, dtype=np.float64)[::-1].copy()
    assert np.array_equal(encode_keys([Vector(Kind.FLOAT, values)]).codes, np.arange(50_000)[::-1])


def test_a_column_that_is_all_null_leaves_no_key() -> None:
    keys = encode_keys([from_list([1, 2], Kind.INT), nothing(Kind.NULL, 2)])
    assert (keys.count, keys.codes.tolist(), keys.rows.tolist()) == (0, [-1, -1], [])


def test_no_key_columns_are_one_key() -> None:
    assert (one_key(3).count, one_key(3).codes.tolist(), one_key(3).rows.tolist()) == (1, [0, 0, 0], [0])
    assert one_key(0).count == 0
