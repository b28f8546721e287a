from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trendloom.kernels.columns.segments import (
    count_where,
    extreme_where,
    first_where,
    indices_with_bit,
    last_where,
    sum_float,
    sum_int64,
    tie_ends,
)

INTEGERS = st.integers(-5, 5) | st.sampled_from([2**63 - 1, -(2**63), 2**62])
DOUBLES = st.floats(-1e12, 1e12) | st.sampled_from([1e16, -1e16, 1.0, 1e-16])


def segments(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[list[tuple[Any, bool]]]]:
    return st.lists(st.lists(st.tuples(values, st.booleans()), max_size=8), max_size=6)


def flat(lists: list[list[tuple[Any, bool]]], dtype: type) -> tuple[Any, Any, Any]:
    entries = [entry for one in lists for entry in one]
    offsets = np.cumsum([0] + [len(one) for one in lists]).astype(np.int64)
    values = np.array([value for value, _ in entries], dtype)
    return offsets, values, np.array([flag for _, flag in entries], np.bool_)


def chosen(lists: list[list[tuple[Any, bool]]]) -> list[list[Any]]:
    return [[value for value, flag in one if flag] for one in lists]


@settings(max_examples=100, deadline=None)
@given(segments(st.just(0)))
def test_counts_firsts_and_lasts(lists: list[list[tuple[int, bool]]]) -> None:
    offsets, _, flags = flat(lists, np.int64)
    places = [[int(offsets[s]) + e for e, (_, flag) in enumerate(one) if flag] for s, one in enumerate(lists)]
    assert count_where(offsets, flags).tolist() == [len(one) for one in places]
    assert first_where(offsets, flags).tolist() == [one[0] if one else -1 for one in places]
    assert last_where(offsets, flags).tolist() == [one[-1] if one else -1 for one in places]


@settings(max_examples=200, deadline=None)
@given(segments(INTEGERS))
def test_integer_sums_are_exact_or_flagged(lists: list[list[tuple[int, bool]]]) -> None:
    offsets, values, flags = flat(lists, np.int64)
    sums, overflowed = sum_int64(offsets, values, flags)
    exact = [sum(one) for one in chosen(lists)]
    assert overflowed.tolist() == [not -(2**63) <= total < 2**63 for total in exact]
    assert [s for s, bad in zip(sums.tolist(), overflowed, strict=True) if not bad] == [
        s for s, bad in zip(exact, overflowed, strict=True) if not bad
    ]


@settings(max_examples=200, deadline=None)
@given(segments(DOUBLES))
def test_float_sums_lose_nothing_to_cancellation(lists: list[list[tuple[float, bool]]]) -> None:
    offsets, values, flags = flat(lists, np.float64)
    for found, one in zip(sum_float(offsets, values, flags), chosen(lists), strict=True):
        scale = max((abs(value) for value in one), default=0.0)
        assert math.isclose(found, math.fsum(one), rel_tol=1e-15, abs_tol=scale * 1e-29)


def test_the_textbook_cancellation_and_the_infinities() -> None:
    values = np.array([1.0, 1e100, 1.0, -1e100, math.inf, 1.0, math.inf, -math.inf])
    sums = sum_float(np.array([0, 4, 6, 8]), values, np.ones(8, np.bool_))
    assert sums[:2].tolist() == [2.0, math.inf]
    assert math.isnan(sums[2])


def check_extremes(lists: list[list[tuple[Any, bool]]], dtype: type) -> None:
    offsets, values, flags = flat(lists, dtype)
    for greatest, pick in ((False, min), (True, max)):
        found = extreme_where(offsets, values, flags, greatest)
        assert found.tolist() == [pick(one) if one else 0 for one in chosen(lists)]


@settings(max_examples=100, deadline=None)
@given(segments(INTEGERS), segments(DOUBLES))
def test_least_and_greatest_of_the_flagged(whole: Any, real: Any) -> None:
    check_extremes(whole, np.int64)
    check_extremes(real, np.float64)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(0, 4), max_size=6), max_size=5))
def test_ties_end_at_the_next_time_of_the_same_key(keys: list[list[int]]) -> None:
    times = [sorted(one) for one in keys]
    starts = np.cumsum([0] + [len(one) for one in times]).astype(np.int64)
    expected = [int(starts[key]) + sum(other <= time for other in one) for key, one in enumerate(times) for time in one]
    flat_times = np.array([time for one in times for time in one], np.int64)
    assert tie_ends(starts, flat_times).tolist() == expected


@pytest.mark.parametrize("word", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_indices_with_a_bit_are_those_of_numpy(word: type) -> None:
    words = np.random.default_rng(3).integers(0, np.iinfo(word).max, 500, dtype=word, endpoint=True)
    for bit in (0, np.iinfo(word).bits - 1):
        expected = np.flatnonzero(words & word(1 << bit))
        assert indices_with_bit(words, bit).tolist() == expected.tolist()
