"""The best paths through strata are those that a search of all paths finds, in every window and under every span."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trendloom.kernels.columns.segments import tie_ends
from trendloom.kernels.ranking import strata as strata_kernels
from trendloom.kernels.ranking.graph import GREATEST, SUM, Strata
from trendloom.kernels.ranking.strata import ENOUGH_TO_GUESS, BestPaths, best_paths, best_spans

Array = np.ndarray[Any, Any]
Path = tuple[int, ...]
DEEP = "TRENDLOOM_EXAMPLES" in os.environ
"""Then kernels are compiled, and cannot be watched."""


class Events(NamedTuple):
    """Some keys with their times, and the strata of their events."""

    key_starts: Array
    time: Array
    strata: Strata


def events_of(keys: list[list[int]], strata: list[dict[int, float]], dtype: str) -> Events:
    """Events at the times of each key; for each position the weights of the events that fit it."""
    key_starts = np.cumsum([0, *(len(times) for times in keys)]).astype(np.int64)
    time = np.array([time for times in keys for time in sorted(times)], np.int64)
    begin = np.cumsum([0, *(len(one) for one in strata)]).astype(np.int64)
    event = np.array([event for one in strata for event in sorted(one)], np.int32)
    weight = np.array([one[event] for one in strata for event in sorted(one)], dtype)
    return Events(key_starts, time, Strata(begin, event, weight, tie_ends(key_starts, time)))


def random_events(seed: int, positions: int, dtype: str, levels: int) -> Events:
    """A few keys with ties; weights of some levels, many of them equal."""
    random = np.random.default_rng(seed)
    most = [0, 40, 24, 15, 11][positions]
    keys = [random.integers(0, most, random.integers(0, most)).tolist() for _ in range(random.integers(1, 4))]
    share = random.choice([0.3, 0.7, 1.0])
    count = sum(map(len, keys))
    fits = [np.flatnonzero(random.random(count) < share) for _ in range(positions)]
    scale = 1 if dtype == "int64" else random.choice([0.1, 0.25, 1e16])
    strata = [{int(e): scale * int(random.integers(-levels, levels + 1)) for e in some} for some in fits]
    return events_of(keys, strata, dtype)


def all_paths(strata: Strata, low: int, high: int, fold: int) -> list[tuple[Any, Path]]:
    """Every path of the events from low to high - 1 and its score, best first."""
    found: list[tuple[Any, Path]] = [(None, ())]
    for t in range(len(strata.begin) - 1):
        entries = range(strata.begin[t], strata.begin[t + 1])
        found = [
            (strata.weight[entry] if not path else folded(fold, score, strata.weight[entry]), (*path, event))
            for score, path in found
            for entry in entries
            if low <= (event := int(strata.event[entry])) < high and (not path or strata.tie_end[path[-1]] <= event)
        ]
    return sorted(found)


def folded(fold: int, score: Any, weight: Any) -> Any:
    return score + weight if fold == SUM else max(score, weight)


def assert_best(found: BestPaths, at: int, expected: list[tuple[Any, Path]], k: int) -> None:
    """The scores are those of the k best, the rows are different paths with their scores, and `more` is right."""
    rows = slice(found.offsets[at], found.offsets[at + 1])
    scores, paths = found.scores[rows].tolist(), [tuple(row) for row in found.events[rows].tolist()]
    assert scores == [score for score, _ in expected[:k]]
    assert len(set(paths)) == len(paths)
    by_path = {path: score for score, path in expected}
    assert [by_path[path] for path in paths] == scores
    assert found.more[at] == (len(expected) > k and expected[k][0] == expected[k - 1][0])


def windows_of(events: Events, length: int, step: int) -> tuple[Array, Array]:
    """The windows of some length at multiples of a step that hold events, key by key."""
    low, high = [], []
    for begin, end in zip(events.key_starts[:-1], events.key_starts[1:], strict=True):
        time = events.time[begin:end]
        for start in range(-length, int(time[-1]) + 1 if len(time) else 0, step):
            first, last = (int(begin + np.searchsorted(time, at)) for at in (start, start + length))
            if first < last:
                low.append(first)
                high.append(last)
    return np.array(low, np.int64), np.array(high, np.int64)


def horizons_of(events: Events, length: int) -> Array:
    """For each event the first one of its key that is not within some time of it."""
    found = np.empty(len(events.time), np.int64)
    for begin, end in zip(events.key_starts[:-1], events.key_starts[1:], strict=True):
        time = events.time[begin:end]
        found[begin:end] = begin + np.searchsorted(time, time + length)
    return found


CASE = {
    "seed": st.integers(0, 2**32),
    "positions": st.integers(1, 4),
    "dtype": st.sampled_from(["int64", "float64"]),
    "levels": st.sampled_from([0, 2, 20, 10**6]),
    "length": st.integers(1, 25),
    "k": st.sampled_from([1, 2, 3, 10, 100, 5000]),
    "fold": st.sampled_from([SUM, GREATEST]),
}


@settings(deadline=None, max_examples=600)
@given(**CASE, step=st.integers(1, 25))
@example(seed=0, positions=1, dtype="int64", levels=0, length=1, k=1, fold=SUM, step=1)
def test_windows(seed: int, positions: int, dtype: str, levels: int, length: int, k: int, fold: int, step: int) -> None:
    events = random_events(seed, positions, dtype, levels)
    low, high = windows_of(events, length, min(step, length))
    found = best_paths(events.strata, low, high, k, fold)
    assert len(found.offsets) == len(low) + 1
    for at in range(len(low)):
        assert_best(found, at, all_paths(events.strata, low[at], high[at], fold), k)


@settings(deadline=None, max_examples=600)
@given(**CASE)
def test_spans(seed: int, positions: int, dtype: str, levels: int, length: int, k: int, fold: int) -> None:
    events = random_events(seed, positions, dtype, levels)
    horizon, starts = horizons_of(events, length), events.key_starts
    found = best_spans(events.strata, starts, horizon, k, fold)
    for key in range(len(starts) - 1):
        paths = all_paths(events.strata, starts[key], starts[key + 1], fold)
        within = [(score, path) for score, path in paths if path[-1] < horizon[path[0]]]
        assert_best(found, key, within, k)


def many(count: int, weight: Array, ties: int = 1) -> Events:
    """One key of events that all fit each of three positions, some at the same time."""
    keys = [list(np.arange(count) // ties)]
    return events_of(keys, [dict(enumerate(weight[t].tolist())) for t in range(3)], str(weight.dtype))


def best_by_table(strata: Strata, low: int, high: int, k: int) -> list[Any]:
    """The k best scores of a window by a bounded list per event, which is exact: sums are monotone."""
    lists: dict[int, list[Any]] = {}
    for t in range(len(strata.begin) - 1):
        now = {}
        for entry in range(strata.begin[t], strata.begin[t + 1]):
            event = int(strata.event[entry])
            if low <= event < high:
                weight = strata.weight[entry]
                before = [score for e, some in lists.items() if strata.tie_end[e] <= event for score in some]
                now[event] = sorted(score + weight for score in before)[:k] if t else [weight]
        lists = now
    return sorted(score for some in lists.values() for score in some)[:k]


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize("levels", [3, 10**9])
def test_long_windows(dtype: str, levels: int) -> None:
    """Ranges that span several levels of a table; doubles that differ in their last bits alone."""
    random = np.random.default_rng(11)
    weight = random.integers(0, levels, (3, 300))
    events = many(300, weight if dtype == "int64" else weight * 0.1, ties=2)
    low = np.arange(0, 100, 20)
    found = best_paths(events.strata, low, low + 200, 7, SUM)
    for at, begin in enumerate(low):
        expected = best_by_table(events.strata, begin, begin + 200, 7)
        assert found.scores[found.offsets[at] : found.offsets[at + 1]].tolist() == expected


SHAPES: dict[str, Any] = {
    "even": lambda random, at: random.random(len(at)),
    "rising": lambda random, at: at * 0.01 + random.random(len(at)),
    "falling": lambda random, at: -at * 0.01 + random.random(len(at)),
    "tenths": lambda random, at: random.integers(0, 40, len(at)) * 0.1,
    "integers": lambda random, at: random.integers(-30, 30, len(at)),
    "mostly the least": lambda random, at: np.maximum(random.integers(-9, 3, len(at)), 0),
    "tied, then even": lambda random, at: np.where(at < 200, at % 20 != 0, 1.0) * random.random(len(at)),
    "jumps": lambda random, at: random.random(len(at)) + 1e9 * (at > 200),
}


@pytest.mark.interpreted
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("window", "step"), [(150, 150), (150, 15), (60, 7)])
def test_promising_events_of_windows(shape: str, window: int, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of which few events matter, whose guesses are good, too low or too high."""
    random, tried = np.random.default_rng(3), Counter[bool]()
    looked = strata_kernels.choose_events
    monkeypatch.setattr(strata_kernels, "choose_events", lambda *some: tried.update([found := looked(*some)]) or found)
    weight = np.stack([SHAPES[shape](random, np.arange(400)) for _ in range(3)])
    events = many(400, weight, ties=2)
    low = np.arange(0, 400 - window + 1, step) // 2 * 2
    found = best_paths(events.strata, low, low + window, 4, SUM)
    for at, begin in enumerate(low):
        expected = best_by_table(events.strata, begin, begin + window, 5)
        assert found.scores[found.offsets[at] : found.offsets[at + 1]].tolist() == expected[:4]
        assert found.more[at] == (expected[4] == expected[3])
    if not DEEP and len(low) >= ENOUGH_TO_GUESS and shape != "mostly the least":
        assert tried[True]


@pytest.mark.interpreted
def test_a_window_of_ties_does_not_spoil_the_guess_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    looked = strata_kernels.fill_tables
    monkeypatch.setattr(
        strata_kernels, "fill_tables", lambda strata, *some: sizes.append(len(strata.event)) or looked(strata, *some)
    )
    weight = np.stack([SHAPES["tied, then even"](np.random.default_rng(4), np.arange(800)) for _ in range(3)])
    low = np.arange(0, 800, 200)
    found = best_paths(many(800, weight).strata, low, low + 200, 4, SUM)
    assert found.scores[:4].tolist() == [0.0] * 4
    assert found.scores[4] > 0.0
    assert max(sizes) < 3 * 800


def test_large_sums_are_exact() -> None:
    weight = np.array([[2**61 - 5, 2**61 - 7, 0], [2**61 - 9, -(2**61), 1], [3, 2**60, -(2**60)]], np.int64)
    events = many(3, weight)
    found = best_paths(events.strata, np.array([0]), np.array([3]), 5, SUM)
    assert found.scores.tolist() == [2**61 - 5 - 2**61 - 2**60]
    assert found.events.tolist() == [[0, 1, 2]]


def test_windows_without_events_of_a_position_are_empty() -> None:
    events = events_of([[1, 2], [3]], [{0: 1, 2: 1}, {}, {1: 2}], "int64")
    found = best_paths(events.strata, np.array([0, 2]), np.array([2, 3]), 3, SUM)
    assert (found.offsets.tolist(), found.more.tolist()) == ([0, 0, 0], [False, False])


def test_no_windows() -> None:
    events = events_of([[1, 2]], [{0: 1}, {1: 2}], "int64")
    found = best_paths(events.strata, np.empty(0, np.int64), np.empty(0, np.int64), 3, SUM)
    assert found.offsets.tolist() == [0]
    assert found.events.shape == (0, 2)
