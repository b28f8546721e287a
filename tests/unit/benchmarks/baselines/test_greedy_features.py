"""The greedy choice of features takes what adds most to what is known of the class."""

from __future__ import annotations

import numpy as np
from benchmarks.baselines.greedy_features import greedy_choice

CHANCE = np.random.default_rng(3)
MEMORY, CPU = CHANCE.normal(size=200), CHANCE.normal(size=200)


def test_greedy_choice_takes_what_adds_most() -> None:
    """The class is the sign of one feature or of another: each says a part, both say more, a copy adds nothing."""
    abnormal = (MEMORY > 0.6745) | (CPU > 0.6745)
    found = greedy_choice(np.array([CHANCE.normal(size=200), MEMORY, MEMORY, CPU]), abnormal)
    assert set(found.rows[:2].tolist()) in ({1, 3}, {2, 3})
    assert not {1, 2} <= set(found.rows.tolist())
    share = abnormal.mean()
    whole = -share * np.log2(share) - (1 - share) * np.log2(1 - share)
    assert 0.8 * whole < found.information[1] <= found.information[-1] <= whole + 1e-9
    assert (np.diff(found.information) > 0).all()


def test_greedy_choice_ends_where_nothing_is_gained() -> None:
    constant = np.ones((3, 10))
    assert len(greedy_choice(constant, np.arange(10) < 5).rows) == 0
    missing = np.where(np.arange(10) < 5, np.nan, 1.0)
    assert greedy_choice(np.array([np.ones(10), missing]), np.arange(10) < 5).rows.tolist() == [1], "no value says much"
    assert len(greedy_choice(CHANCE.normal(size=(50, 40)), np.arange(40) < 20, most=2).rows) == 2
