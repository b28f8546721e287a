"""Windows in kernels: which windows hold a stretch of time, and how far a match may reach."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trendloom.errors import DataError
from trendloom.kernels.columns.block import Block, check_range, horizons, windows_of
from trendloom.kernels.matching.windows import surroundings
from trendloom.model.time import Window

lengths = st.integers(1, 7)
times = st.integers(-12, 12)


def block_of(*keys: list[int]) -> Block:
    """A block of events with these times, key by key."""
    flat = np.array([time for key in keys for time in sorted(key)], np.int64)
    return Block(np.cumsum([0, *map(len, keys)]), flat, np.arange(len(flat)), {})


def holding(first: int, last: int, window: Window) -> list[int]:
    """The starts of all windows that hold [first, last], by trying them."""
    assert window.within is not None
    assert window.slide is not None
    starts = [number * window.slide for number in range(-50, 50)]
    return [start for start in starts if start <= first and last < start + window.within]


@given(st.lists(st.tuples(times, st.integers(0, 9)), max_size=6), lengths, lengths)
def test_windows_of_a_stretch(stretches: list[tuple[int, int]], within: int, slide: int) -> None:
    window = Window(within, slide)
    first = np.array([time for time, _ in stretches], np.int64)
    last = np.array([time + length for time, length in stretches], np.int64)
    which, start = windows_of(first, last, window)
    expected = [
        (number, found)
        for number in range(len(stretches))
        for found in holding(int(first[number]), int(last[number]), window)
    ]
    assert list(zip(which.tolist(), start.tolist(), strict=True)) == expected


@given(st.lists(st.lists(times, max_size=5), min_size=1, max_size=3), lengths, lengths)
def test_horizon_ends_where_no_window_holds_both(keys: list[list[int]], within: int, slide: int) -> None:
    block, window = block_of(*keys), Window(within, slide)
    horizon = horizons(block, window)
    assert horizon is not None
    for i in range(len(block)):
        for j in range(i, int(block.key_starts[block.key[i] + 1])):
            together = bool(holding(int(block.time[i]), int(block.time[j]), window))
            assert together == (j < horizon[i])


@given(st.lists(st.lists(times, max_size=5), min_size=1, max_size=3), lengths)
def test_horizon_of_a_bound(keys: list[list[int]], within: int) -> None:
    block = block_of(*keys)
    horizon = horizons(block, Window(within))
    assert horizon is not None
    for i in range(len(block)):
        for j in range(i, int(block.key_starts[block.key[i] + 1])):
            assert (block.time[j] - block.time[i] < within) == (j < horizon[i])


def test_no_window_no_horizon() -> None:
    assert horizons(block_of([1, 2]), Window()) is None


@pytest.mark.parametrize(
    ("window", "start", "seen"),
    [
        (Window(), None, [0, 2, 4, 6, 8]),
        (Window(5), None, [2, 4, 6, 8]),  # from last − 5 to first + 5, both exclusive
        (Window(6, 2), 2, [2, 4, 6]),
    ],
)
def test_what_leading_and_trailing_nots_look_at(window: Window, start: int | None, seen: list[int]) -> None:
    block = block_of([0, 2, 4, 6, 8], [3, 4])
    starts = None if start is None else np.array([start])
    low, high = surroundings(block, np.array([2]), np.array([3]), starts, window)
    assert block.time[low[0] : high[0]].tolist() == seen


def test_times_that_no_window_can_hold_are_refused() -> None:
    check_range(np.array([0, 2**61]), Window(10, 10))
    with pytest.raises(DataError, match=r"beyond 2\^62"):
        check_range(np.array([0, 2**62]), Window(10, 10))
    with pytest.raises(DataError, match=r"beyond 2\^62"):
        check_range(np.array([-(2**63)]), Window(1))
