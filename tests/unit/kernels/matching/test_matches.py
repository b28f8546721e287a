"""Matches as flat arrays: some of them, all together, and those that no other contains."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trendloom.errors import RunError
from trendloom.kernels.contract.matches import Matches, join
from trendloom.kernels.trends.by_comparison import complete_only

lists = st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=5, unique=True).map(sorted), max_size=12)


def matches_of(found: list[list[int]], windows: list[int] | None = None) -> Matches:
    flat = [event for match in found for event in match]
    return Matches(
        np.cumsum([0, *map(len, found)]),
        np.array(flat, np.int64),
        np.array([event % 3 for event in flat], np.int32),
        None if windows is None else np.array(windows, np.int64),
    )


def listed(matches: Matches) -> list[list[int]]:
    return [matches.events[a:b].tolist() for a, b in zip(matches.offsets[:-1], matches.offsets[1:], strict=True)]


@given(lists, st.data())
def test_take(found: list[list[int]], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(found) - 1), max_size=8)) if found else []
    taken = matches_of(found, list(range(len(found)))).take(np.array(rows, np.int64))
    assert listed(taken) == [found[row] for row in rows]
    assert taken.window_start is not None
    assert taken.window_start.tolist() == rows
    assert (taken.positions == taken.events % 3).all()


@given(lists)
def test_first_last_and_match(found: list[list[int]]) -> None:
    matches = matches_of(found)
    assert matches.first.tolist() == [match[0] for match in found]
    assert matches.last.tolist() == [match[-1] for match in found]
    assert matches.match.tolist() == [number for number, match in enumerate(found) for _ in match]


@given(st.lists(lists, max_size=4), st.booleans())
def test_join(chunks: list[list[list[int]]], windowed: bool) -> None:
    given_chunks = [matches_of(chunk, [7] * len(chunk) if windowed else None) for chunk in chunks]
    joined = join(given_chunks)
    assert listed(joined) == [match for chunk in chunks for match in chunk]
    if windowed and chunks:
        assert joined.window_start is not None
        assert joined.window_start.tolist() == [7] * len(joined)


def test_nothing_joined_is_nothing() -> None:
    assert len(join([])) == 0


@given(lists, st.data())
def test_complete_matches_are_those_no_other_contains(found: list[list[int]], data: st.DataObject) -> None:
    group = data.draw(st.lists(st.integers(0, 2), min_size=len(found), max_size=len(found)))
    kept = listed(complete_only(matches_of(found), np.array(group, np.int64), most=100))
    expected = [
        match
        for number, match in enumerate(found)
        if not any(set(match) < set(other) for at, other in enumerate(found) if group[at] == group[number])
    ]
    assert kept == expected


def test_too_many_to_compare() -> None:
    with pytest.raises(RunError, match="4 matches in one window and partition"):
        complete_only(matches_of([[0], [1], [2], [3]]), np.zeros(4, np.int64), most=3)
