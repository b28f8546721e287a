from __future__ import annotations

import numpy as np

from trendloom.simulate.simulation import followed, remembered, wandering


def test_remembering_is_the_recursion() -> None:
    inputs = np.random.default_rng(1).normal(size=(37, 2))
    expected = np.zeros(2)
    for row, found in zip(inputs, remembered(inputs, 0.8), strict=True):
        expected = 0.8 * expected + row
        np.testing.assert_allclose(found, expected)


def test_wandering_noise_has_variance_1_and_remembers() -> None:
    found = wandering(np.random.default_rng(2), (400, 500), 0.9)
    assert 0.95 < found.std() < 1.05
    assert 0.95 < found[0].std() < 1.05 + 0.05
    assert 0.88 < np.corrcoef(found[:-1].ravel(), found[1:].ravel())[0, 1] < 0.92


def test_what_follows_starts_at_its_input_and_reaches_it() -> None:
    step = np.r_[np.full(50, 3.0), np.full(100, 7.0)]
    found = followed(step, 10.0)
    np.testing.assert_allclose(found[:50], 3.0)
    assert 3.0 < found[55] < 6.0
    assert abs(found[-1] - 7.0) < 0.01
