"""Other ways to explain find what they can, and predict it again."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.peers.scikit_learn import BASELINES, best_thresholds, majority_vote

CHANCE = np.random.default_rng(12)
ABNORMAL = np.arange(60) < 20


def day() -> np.ndarray:
    """Feature 0 tells the classes apart, 1 nearly, the others not; 2 has gaps, 3 never changes."""
    values = CHANCE.normal(size=(6, 60))
    values[0] += 10.0 * ABNORMAL
    values[1] -= 4.0 * ABNORMAL
    values[2, ::3] = np.nan
    values[3] = 7.0
    return values


@pytest.mark.parametrize("name", BASELINES)
def test_what_is_learned_predicts_another_day(name: str) -> None:
    model = BASELINES[name](day(), ABNORMAL)
    predicted = np.asarray(model.predict(day()), bool)
    assert (predicted == ABNORMAL).mean() > (0.7 if name == "vote of all features" else 0.95)


def test_tree_and_regression_use_few_features_and_votes_all() -> None:
    used = {name: int(fit(day(), ABNORMAL).used.sum()) for name, fit in BASELINES.items()}
    assert used["decision tree"] < 3
    assert used["logistic regression"] < 6
    assert used["vote of all features"] == used["data fusion"] == 6


def test_thresholds_lie_between_the_classes() -> None:
    found = best_thresholds(day(), ABNORMAL)
    assert 2.5 < found.bound[0] < 8.0
    assert found.above[0]
    assert not found.above[1]
    assert not found.useful[3]
    votes = found.votes(day())
    assert not votes[3].any()
    assert not votes[2, ::3].any(), "without a value there is no vote"


def test_a_vote_is_decided_by_the_majority() -> None:
    values = np.array([[5.0, 5, 0, 0], [5, 5, 0, 0], [0, 0, 5, 5]])
    model = majority_vote(values, np.array([True, True, False, False]))
    assert model.predict(np.array([[9.0, -9], [9, -9], [9, -9]])).tolist() == [True, False], "two against one"
