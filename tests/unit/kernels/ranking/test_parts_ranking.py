"""Sequences ranked by a monotone function of their parts: the same as listing all of them."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trendloom.kernels.ranking.parts import Parts, PartsRanking, best_of_parts
from trendloom.kernels.ranking.rank_join import MOST

SCORES: dict[str, Any] = {
    "norm": (lambda parts: np.sqrt(sum(part * part for part in parts)), lambda count: [True] * count),
    "product": (lambda parts: np.prod(np.stack(parts), axis=0), lambda count: [True] * count),
    "last falls": (lambda parts: sum(parts[:-1], 0.0) - parts[-1] ** 3, lambda count: [True] * (count - 1) + [False]),
    "integers": (lambda parts: sum(part * part for part in parts), lambda count: [True] * count),
}


def stream(seed: int, positions: int, size: int, most: int, kind: str) -> Parts:
    random = np.random.default_rng(seed)
    type_ = np.int64 if kind == "integers" else np.float64
    events = [np.flatnonzero(random.random(size) < 0.5) for _ in range(positions)]
    values = [random.integers(0, most, len(some)).astype(type_) for some in events]
    score, rises = SCORES[kind]
    return Parts(events, values, np.arange(size) // 2 * 2 + 2, score, rises(positions))


def all_matches(parts: Parts, low: int, high: int) -> list[tuple[Any, tuple[int, ...]]]:
    found = []
    inside = [[(int(e), v) for e, v in zip(*each, strict=True) if low <= e < high]
              for each in zip(parts.events, parts.values, strict=True)]  # fmt: skip
    for chosen in product(*inside):
        events = tuple(event for event, _ in chosen)
        if all(parts.tie_end[one] <= other for one, other in pairwise(events)):
            score = parts.score([np.array([value]) for _, value in chosen])
            found.append((score.item(), events))
    return sorted(found)


def check(ranking: PartsRanking, expected: list[tuple[Any, tuple[int, ...]]], k: int, *, ties: bool) -> None:
    found = ranking.best(k, MOST if ties else 0)
    last = expected[k - 1][0] if len(expected) >= k else None
    good = sum(score <= last for score, _ in expected) if last is not None else len(expected)
    assert list(found.scores) == [score for score, _ in expected[: good if ties else k]]
    assert found.more == (good > k and not ties)
    rows = Counter(zip(found.scores.tolist(), map(tuple, found.events.tolist()), strict=True))
    assert Counter(row for row in expected if last is None or row[0] < last) <= rows <= Counter(expected)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 2**32), st.integers(1, 3), st.sampled_from(list(SCORES)), st.sampled_from([1, 3, 20, 5000]),
    st.sampled_from([3, 1000]), st.booleans(),
)  # fmt: skip
def test_windows_have_their_best_matches(seed: int, positions: int, kind: str, k: int, most: int, ties: bool) -> None:
    size, width = 40, 20
    parts = stream(seed, positions, size, most, kind)
    for low in range(0, size - width, 1 + seed % 12):
        check(PartsRanking(parts, low, low + width), all_matches(parts, low, low + width), k, ties=ties)


def test_few_matches_are_made() -> None:
    random = np.random.default_rng(5)
    events = [np.flatnonzero(random.random(30_000) < 0.3) for _ in range(3)]
    values = [random.random(len(some)) for some in events]
    parts = Parts(events, values, np.arange(30_000) + 1, SCORES["norm"][0], [True] * 3)
    ranking = PartsRanking(parts, 0, 30_000)
    assert len(ranking.best(10).scores) == 10
    assert ranking.tested < 20_000


@pytest.mark.parametrize("k", [1, 5])
def test_a_position_without_events_has_no_match(k: int) -> None:
    some, none = np.arange(5), np.zeros(0, np.int64)
    parts = Parts([some, none], [some * 1.0, none * 1.0], np.arange(5) + 1, SCORES["norm"][0], [True, True])
    assert len(PartsRanking(parts, 0, 5).best(k).scores) == 0


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32), st.integers(1, 3), st.sampled_from(list(SCORES)), st.sampled_from([1, 4, 1000]),
    st.sampled_from([3, 1000]), st.booleans(), st.sampled_from([0, 30, 10**6]),
)  # fmt: skip
def test_all_windows_at_once(seed: int, positions: int, kind: str, k: int, most: int, ties: bool, listed: int) -> None:
    size = 40
    parts = stream(seed, positions, size, most, kind)
    random = np.random.default_rng(seed)
    low = np.sort(random.integers(0, size, 6))
    high = np.minimum(low + random.integers(0, 20, 6), size)
    found = best_of_parts(parts, low, high, k, most=MOST if ties else 0, listed=listed)
    for number in range(len(low)):
        expected = all_matches(parts, int(low[number]), int(high[number]))
        last = expected[k - 1][0] if len(expected) >= k else None
        good = sum(score <= last for score, _ in expected) if last is not None else len(expected)
        some = slice(found.offsets[number], found.offsets[number + 1])
        assert list(found.scores[some]) == [score for score, _ in expected[: good if ties else k]]
        assert found.more[number] == (good > k and not ties)
        rows = Counter(zip(found.scores[some].tolist(), map(tuple, found.events[some].tolist()), strict=True))
        assert rows <= Counter(expected)
