"""Where the ranking of rewards is cut."""

from __future__ import annotations

import numpy as np
import pytest

from trendloom.diagnosis.reasoning import keep_before_leap
from trendloom.diagnosis.request import Settings


@pytest.mark.parametrize(
    ("ranked", "kept"),
    [
        ([1, 1, 1, 0.4, 0.38, 0.2], 3),
        ([1, 0.81, 0.65, 0.3, 0.28], 3),
        ([1, 1], 2),
        ([1, 0.6, 0.2], 2),  # of equal drops the last
        ([0.29, 0.05], 0),  # noise
        ([], 0),
    ],
)
def test_the_deepest_drop_is_the_leap(ranked: list[float], kept: int) -> None:
    assert keep_before_leap(np.array(ranked, float)) == kept


def test_without_a_sharp_drop_all_good_ones_stay() -> None:
    ranked = np.linspace(0.6, 0.1, 101)
    assert keep_before_leap(ranked) == 61
    assert keep_before_leap(ranked, Settings(least_reward=0.5)) == 21
    assert keep_before_leap(np.array([0.9, 0.8, 0.35, 0.1]), Settings(least_leap=0.5)) == 3
