"""Clusters of features that say the same."""

from __future__ import annotations

import numpy as np
import pytest

from trendloom.diagnosis.features import Feature
from trendloom.diagnosis.reasoning import correlation_clusters, correlations, distances_of_classes

CHANCE = np.random.default_rng(3)
MEMORY, CPU = CHANCE.normal(size=200), CHANCE.normal(size=200)


def features(*functions: str) -> list[Feature]:
    return [Feature("T", f"x{place}", function) for place, function in enumerate(functions)]


def test_chains_of_correlation_are_one_cluster() -> None:
    values = np.array([MEMORY, MEMORY + 0.3 * CHANCE.normal(size=200), -MEMORY, CPU])
    found = correlation_clusters(
        values, features("max", "min", "deviation", "mean"), np.array([0.8, 0.9, 0.7, 1.0]), 0.8
    )
    assert found.number.tolist() == [1, 1, 1, 0], "clusters are numbered by their representatives' rewards"
    assert found.representative.tolist() == [3, 1]
    assert found.correlation[2] < -0.9


def test_of_equal_rewards_the_simplest_speaks() -> None:
    values = np.array([MEMORY] * 4)
    found = correlation_clusters(values, features("deviation", "max", "count", "mean"), np.ones(4), 0.8)
    assert found.representative.tolist() == [3]
    assert correlation_clusters(values[:2], features("max", "max"), np.ones(2), 0.8).representative.tolist() == [0]


def test_of_equally_simple_features_the_one_with_the_widest_gap_speaks() -> None:
    values = np.array([MEMORY] * 3)
    found = correlation_clusters(values, features("mean", "mean", "max"), np.ones(3), 0.8, np.array([2.0, 5.0, 9.0]))
    assert found.representative.tolist() == [1]


def test_how_far_apart_classes_lie() -> None:
    nan = float("nan")
    abnormal = np.array([True, True, False, False])
    values = np.array(
        [[9.0, 11, 1, 3], [9, nan, 1, 3], [5, 5, 4, 4], [5, 5, 5, 5], [nan, nan, 1, 2], [9e9, 11e9, 1e9, 3e9]]
    )
    assert distances_of_classes(values, abnormal).tolist() == [4, 5.25, np.inf, 0, 0, 4]


def test_a_higher_threshold_keeps_more_apart() -> None:
    values = np.array([MEMORY, MEMORY + 0.5 * CPU])
    counts = [
        len(correlation_clusters(values, features("mean", "mean"), np.ones(2), t).representative) for t in (0.8, 0.95)
    ]
    assert counts == [1, 2]


def test_values_that_do_not_vary_correlate_with_nothing() -> None:
    nan = float("nan")
    found = correlations(np.array([[1.0, 1, 1, 1], [1, 2, 3, 4], [nan, nan, nan, 4], [2e9, 4e9, 6e9, 8e9]]))
    assert found[0].tolist() == [1, 0, 0, 0]
    assert found[2].tolist() == [0, 0, 1, 0]
    assert found[1, 3] == pytest.approx(1)
