"""Events are distributed by key in any number of slices, and come out as a stable sort by key and time has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trendloom.expr import arrays
from trendloom.expr.arrays import in_slices, slices_of, taken
from trendloom.expr.vectors import from_list
from trendloom.kernels.columns.keys import NARROW, encode_keys
from trendloom.kernels.columns.sort import distribute
from trendloom.model.schema import Kind

KEYS = 4
EVENTS = st.lists(st.tuples(st.integers(-1, KEYS - 1), st.integers(-3, 9), st.booleans()), max_size=30)


@pytest.fixture(autouse=True, scope="module")
def small() -> Any:
    """Slices of one row; what threads share is written once, so never put back."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "LEAST_SLICE", 1)
        patch.setenv("TRENDLOOM_COMPILE", "never")
        yield


@settings(max_examples=100, deadline=None)
@given(EVENTS, st.booleans(), st.booleans(), st.sampled_from([1, 2, 3]))
def test_distributed_events_are_sorted(
    events: list[tuple[int, int, bool]], in_time: bool, choosy: bool, threads: int
) -> None:
    events = sorted(events, key=lambda one: one[1]) if in_time else events
    codes, times = (np.array([one[at] for one in events], np.int64) for at in (0, 1))
    kept = np.array([one[2] for one in events], np.bool_) if choosy and events else None
    found = distribute(codes, times, kept, KEYS, threads)
    if found is None:
        assert threads == 1 or len(events) < 2
        return
    wanted = np.flatnonzero(codes >= 0 if kept is None else (codes >= 0) & kept)
    order = wanted[np.lexsort((times[wanted], codes[wanted]))]
    rows = np.arange(len(events)) if found.rows is None else found.rows
    assert rows.tolist() == order.tolist()
    assert found.times.tolist() == times[order].tolist()
    assert found.sizes.tolist() == np.bincount(codes[order], minlength=KEYS).tolist()


def test_events_in_order_stay_where_they_are() -> None:
    codes, times = np.array([0, 0, 1, 1, 2]), np.array([1, 2, 1, 1, 5])
    found = distribute(codes[:2], times[:2], None, 1, 2)
    assert found is not None
    assert found.rows is None


WIDE = st.integers(-3, 3) | st.sampled_from([2**62, -(2**62), 3 * NARROW, 2**70])
VALUES: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.INT: st.integers(-3, 3) | st.none(),
    Kind.TIME: WIDE.filter(lambda value: value < 2**63) | st.none(),
    Kind.DECIMAL: WIDE | st.none(),
    Kind.FLOAT: st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("-inf")]) | st.none(),
    Kind.STRING: st.sampled_from(["", "a", "é"]) | st.none(),
}


@settings(max_examples=100, deadline=None)
@given(st.data(), st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=2), st.integers(1, 20))
def test_threads_number_keys_as_one_does(data: st.DataObject, kinds: list[Kind], rows: int) -> None:
    columns = [from_list(data.draw(st.lists(VALUES[kind], min_size=rows, max_size=rows)), kind) for kind in kinds]
    one = encode_keys(columns, 1)
    for threads in (2, 3):
        more = encode_keys(columns, threads)
        assert (more.codes.tolist(), more.count, more.rows.tolist()) == (
            one.codes.tolist(),
            one.count,
            one.rows.tolist(),
        )


def test_slices_cover_all_rows_once() -> None:
    assert slices_of(0, 3) == [(0, 0)]
    assert slices_of(2, 3) == [(0, 1), (1, 2)]
    assert in_slices(lambda low, high: list(range(low, high)), 7, 3) == [[0, 1], [2, 3], [4, 5, 6]]


def test_rows_are_taken_in_slices() -> None:
    values = np.array([5, 6, 7])
    assert taken(values, np.array([2, 0, 0, 1]), 3).tolist() == [7, 5, 5, 6]
    assert taken(values.astype(object), np.array([2, 0]), 3).tolist() == [7, 5]
    assert taken(values, np.zeros(0, np.int64), 3).tolist() == []
