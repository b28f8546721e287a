"""Distances of time series against plain definitions, and the example of why the order of values misleads them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from benchmarks.baselines.series_distances import DISTANCES, MATCH, both_series, dtw, edr, erp, lcss, lock_step, needed

CHANCE = np.random.default_rng(6)
ONE, OTHER = CHANCE.normal(size=(3, 5)), CHANCE.normal(size=(3, 7))


def recursive(one: np.ndarray, other: np.ndarray, kind: str) -> float:
    """The textbook's recursion, from the ends."""

    @cache
    def cost(i: int, j: int) -> float:
        if kind == "lcss":
            if i == 0 or j == 0:
                return 0.0
            near = abs(one[i - 1] - other[j - 1]) < MATCH
            return 1 + cost(i - 1, j - 1) if near else max(cost(i - 1, j), cost(i, j - 1))
        if i == 0 or j == 0:
            if kind == "dtw":
                return 0.0 if i == j else float("inf")
            gaps = [*one[:i], *other[:j]]
            return float(len(gaps)) if kind == "edr" else float(np.abs(gaps).sum())
        apart = abs(one[i - 1] - other[j - 1])
        if kind == "dtw":
            return apart + min(cost(i - 1, j), cost(i, j - 1), cost(i - 1, j - 1))
        if kind == "edr":
            return min(cost(i - 1, j - 1) + (apart > MATCH), cost(i - 1, j) + 1, cost(i, j - 1) + 1)
        skips = cost(i - 1, j) + abs(one[i - 1]), cost(i, j - 1) + abs(other[j - 1])
        return min(cost(i - 1, j - 1) + apart, *skips)

    return cost(len(one), len(other))


@pytest.mark.parametrize(
    ("kind", "distance", "scaled"),
    [
        ("dtw", dtw, lambda found: found),
        ("edr", edr, lambda found: found / 7),
        ("erp", erp, lambda found: found),
        ("lcss", lcss, lambda found: 1 - found / 5),
    ],
)
def test_elastic_distances_are_their_recursions(
    kind: str, distance: Callable[..., np.ndarray], scaled: Callable[[float], float]
) -> None:
    expected = [scaled(recursive(one, other, kind)) for one, other in zip(ONE, OTHER, strict=True)]
    np.testing.assert_allclose(distance(ONE, OTHER), expected)


def test_lock_step_distances_do_not_see_what_is_mixed() -> None:
    """(1, 1, 1) and (0, 0, 0) are apart, (1, 0, 1) and (0, 1, 0) are mixed: these distances find no difference."""
    one, other = np.array([[1.0, 1, 1], [1, 0, 1]]), np.array([[0.0, 0, 0], [0, 1, 0]])
    for power in (1.0, 2.0):
        apart, mixed = lock_step(power)(one, other)
        assert apart == mixed


@pytest.mark.parametrize("name", DISTANCES)
def test_equal_series_have_no_distance(name: str) -> None:
    assert DISTANCES[name](ONE, ONE).max() == 0.0


def test_values_are_standardised_and_gaps_filled() -> None:
    nan = float("nan")
    values = np.array([[nan, 1.0, nan, 5.0, 5.0], [2.0, 2, 2, 2, 2], [nan, nan, nan, 1.0, 2.0]])
    one, other = both_series(values, np.array([True, True, True, False, False]))
    np.testing.assert_allclose(one[0], [one[0, 1]] * 3)
    assert (one[0] < other[0, 0]).all()
    assert not one[1:].any()
    raw, _ = both_series(values, np.array([True, True, True, False, False]), standardise=False)
    assert raw[0].tolist() == [1.0, 1.0, 1.0]
    assert not other[1:].any(), "without values in one of them, or without any difference, there is no distance"


def test_features_needed() -> None:
    ranks = np.array([0.9, 0.5, 0.5, 0.5, 0.1])
    first, tied, last = (np.arange(5) == place for place in (0, 2, 4))
    assert needed(ranks, [first]) == 1
    assert needed(ranks, [first, tied]) == 3, "one above, and the second of three in the middle"
    assert needed(ranks, [first, last]) == 5
    assert needed(ranks, [np.zeros(5, bool)]) == 5, "what is no feature needs them all"
