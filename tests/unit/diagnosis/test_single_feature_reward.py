"""The reward of a feature, on series that can be worked out by hand."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from trendloom.diagnosis.reward import ABNORMAL, MIXED, REFERENCE, rewards, segments, worst_order_entropy


def reward(abnormal: list[float], reference: list[float]) -> float:
    values = np.array([[*abnormal, *reference]], float)
    return float(rewards(values, np.arange(values.shape[1]) < len(abnormal)).reward[0])


def entropy(*counts: int) -> float:
    return sum(-count / sum(counts) * log2(count / sum(counts)) for count in counts)


def test_perfect_separation_is_one() -> None:
    assert reward([1, 2, 3], [4, 5, 6, 7]) == 1
    assert reward([9], [4, 5, 6, 7]) == 1


def test_three_segments_are_worth_less() -> None:
    assert reward([1, 9], [4, 5]) == pytest.approx(entropy(2, 2) / entropy(1, 2, 1))


def test_a_mixed_segment_is_penalised_by_its_worst_order() -> None:
    """Three normal and two abnormal points of one value are N A N A N: five segments of a point each."""
    assert worst_order_entropy(np.array([2]), np.array([3]))[0] == pytest.approx(log2(5))
    assert reward([7, 7], [7, 7, 7]) == pytest.approx(entropy(2, 3) / log2(5))


@pytest.mark.parametrize(
    ("abnormal", "reference", "runs"),
    [
        (1, 1, (1, 1)),
        (2, 2, (1, 1, 1, 1)),
        (1, 5, (3, 1, 2)),
        (7, 2, (3, 1, 2, 1, 2)),
        (3, 10, (3, 1, 3, 1, 2, 1, 2)),
    ],
)
def test_the_majority_is_split_as_evenly_as_it_goes(abnormal: int, reference: int, runs: tuple[int, ...]) -> None:
    assert worst_order_entropy(np.array([abnormal]), np.array([reference]))[0] == pytest.approx(entropy(*runs))


def test_pure_and_mixed_segments_together() -> None:
    """A A | 3 and 4 in both | N N N: the mixed segment has two abnormal and two normal points."""
    penalty = entropy(1, 1, 1, 1)
    expected = entropy(4, 5) / (entropy(2, 4, 3) + penalty)
    assert reward([1, 2, 3, 4], [3, 4, 5, 6, 7]) == pytest.approx(expected)


def test_holistic_where_lock_step_measures_are_not() -> None:
    """(1,1,1) against (0,0,0) and (1,0,1) against (0,1,0) are as far apart step by step; only the first is clear."""
    assert np.abs(np.subtract([1, 1, 1], [0, 0, 0])).sum() == np.abs(np.subtract([1, 0, 1], [0, 1, 0])).sum()
    assert reward([1, 1, 1], [0, 0, 0]) == 1
    assert reward([1, 0, 1], [0, 1, 0]) == pytest.approx(1 / log2(6))


def test_values_in_one_class_only_have_no_reward() -> None:
    nan = float("nan")
    found = rewards(np.array([[1.0, 2, nan, nan], [nan, nan, 1, 2], [nan] * 4]), np.array([True, True, False, False]))
    assert found.reward.tolist() == [0, 0, 0]
    assert found.abnormal.tolist() == [2, 0, 0]
    assert found.reference.tolist() == [0, 2, 0]


def test_missing_values_are_not_there() -> None:
    nan = float("nan")
    found = rewards(np.array([[1.0, 2, nan, 5, nan]]), np.array([True, True, True, False, False]))
    assert (found.reward[0], found.abnormal[0], found.reference[0]) == (1, 2, 1)


def test_segments_by_value() -> None:
    found = segments(np.array([5.0, 1, 2, 3, 3, 4, 9]), np.array([True, True, True, True, False, False, False]))
    assert found.kind.tolist() == [ABNORMAL, MIXED, REFERENCE, ABNORMAL, REFERENCE]
    assert found.low.tolist() == [1, 3, 4, 5, 9]
    assert found.high.tolist() == [2, 3, 4, 5, 9]
    assert found.abnormal.tolist() == [2, 1, 0, 1, 0]
    assert found.reference.tolist() == [0, 1, 1, 0, 1]


def test_no_features_and_no_points() -> None:
    assert len(rewards(np.zeros((0, 3)), np.array([True, False, True])).reward) == 0
    assert rewards(np.zeros((2, 0)), np.zeros(0, bool)).reward.tolist() == [0, 0]
