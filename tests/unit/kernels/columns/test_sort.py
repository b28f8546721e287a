from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trendloom.kernels.columns.sort import FEW_KEYS, sort_by_key_and_time, sorted_times

TIMES = st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63), 0, 10**15]) | st.integers(-(2**63), 2**63 - 1)


def order(key: list[int] | None, time: list[int], keys: int) -> list[int]:
    codes = None if key is None else np.array(key, np.int64)
    found = sort_by_key_and_time(codes, np.array(time, np.int64), keys)
    listed = list(range(len(time))) if found is None else found.tolist()
    again, times = sorted_times(codes, np.array(time, np.int64), keys)
    assert listed == (list(range(len(time))) if again is None else again.tolist())
    assert times.tolist() == [time[row] for row in listed]
    return listed


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), TIMES), max_size=40), st.sampled_from([4, 5_000, FEW_KEYS + 1, 2**40]))
def test_rows_come_in_order_of_key_then_time_and_ties_keep_theirs(rows: list[tuple[int, int]], keys: int) -> None:
    key, time = [row[0] * (keys // 4) for row in rows], [row[1] for row in rows]
    assert order(key, time, keys) == sorted(range(len(rows)), key=lambda row: (key[row], time[row]))


@settings(max_examples=100, deadline=None)
@given(st.lists(TIMES, max_size=40))
def test_without_a_key_time_alone_decides(time: list[int]) -> None:
    assert order(None, time, 1) == sorted(range(len(time)), key=time.__getitem__)


@pytest.mark.parametrize(("low", "high"), [(0, 50_000), (-(2**63), 2**63 - 1), (10**15, 10**15 + 10**13)])
@pytest.mark.parametrize("keys", [1, 1_000, 100_000])
def test_many_rows_agree_with_lexsort(low: int, high: int, keys: int) -> None:
    random = np.random.default_rng(7)
    key, time = random.integers(0, keys, 50_000), random.integers(low, high, 50_000)
    expected = np.lexsort((time, key))
    assert np.array_equal(sort_by_key_and_time(key, time, keys), expected)
    order, times = sorted_times(key, time, keys)
    assert np.array_equal(order, expected)
    assert np.array_equal(times, time[expected])


def test_events_in_time_order_are_only_distributed_by_key() -> None:
    random = np.random.default_rng(8)
    key, time = random.integers(0, 300, 20_000), np.sort(random.integers(0, 9_000, 20_000))
    assert np.array_equal(sort_by_key_and_time(key, time, 300), np.argsort(key, kind="stable"))


def test_rows_in_order_need_no_order() -> None:
    assert sort_by_key_and_time(np.array([0, 0, 1]), np.array([1, 1, 0]), 2) is None
    assert sort_by_key_and_time(None, np.array([1, 2, 2]), 1) is None
    assert sort_by_key_and_time(None, np.zeros(0, np.int64), 0) is None
    assert sort_by_key_and_time(np.array([1, 0]), np.array([1, 1]), 2) is not None
