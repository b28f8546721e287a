"""Copying as memory: the right entries, and a refusal where memory is not what it seems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from trendloom.kernels.columns.segments import copy_entries, first_at_least, gather_segments, grown


@njit
def copied(into: Any, at: int, source: Any, begin: int, count: int) -> None:
    copy_entries(into, at, source, begin, count)


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.float64])
def test_entries_go_where_they_belong(kind: type) -> None:
    into, source = np.zeros(8, kind), np.arange(10, 20).astype(kind)
    copied(into, 2, source, 5, 3)
    assert into.tolist() == [0, 0, 15, 16, 17, 0, 0, 0]
    copied(into, 8, source, 10, 0)
    assert into.tolist() == [0, 0, 15, 16, 17, 0, 0, 0]


def test_other_memory_is_refused() -> None:
    with pytest.raises((TypingError, TypeError)):
        copied(np.zeros(4, np.int32), 0, np.zeros(4, np.int64), 0, 4)
    with pytest.raises((TypingError, TypeError)):
        copied(np.zeros(4, np.int64), 0, np.zeros(8, np.int64)[::2], 0, 4)


def test_grown_arrays_keep_their_entries() -> None:
    larger = grown(np.array([3, 1, 2], np.int32))
    assert larger.dtype == np.int32
    assert len(larger) == 6
    assert larger[:3].tolist() == [3, 1, 2]


def test_segments_are_gathered_in_any_order() -> None:
    offsets, values = np.array([0, 2, 2, 5]), np.array([7, 8, 1, 2, 3], np.int32)
    rows = np.array([2, 1, 0, 2])
    into = np.array([0, 3, 3, 5, 8])
    assert gather_segments(offsets, values, rows, into).tolist() == [1, 2, 3, 7, 8, 1, 2, 3]


def test_first_at_least_stays_in_its_range() -> None:
    values = np.array([1, 3, 5, 0, 4, 9])
    low, high = np.array([0, 0, 0, 3, 3, 3]), np.array([3, 3, 3, 6, 6, 3])
    assert first_at_least(low, high, values, np.array([3, 4, 9, 1, 10, 0])).tolist() == [1, 2, 3, 4, 6, 3]
