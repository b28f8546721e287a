"""The order in which components are bound: as cheap as any other, by the same estimate."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from trendloom.kernels.matching.join_order import (
    MOST_WEIGHED,
    PAIRS,
    PairCondition,
    SequenceFigures,
    cheapest_order,
    sampled,
)


def cost(figures: SequenceFigures, order: tuple[int, ...]) -> float:
    return sum(figures.tried(frozenset(order[:at]), new) for at, new in enumerate(order))


@pytest.mark.parametrize("seed", range(10))
def test_no_order_is_cheaper(seed: int) -> None:
    random = np.random.default_rng(seed)
    conditions = tuple(
        PairCondition(
            frozenset(random.permutation(4)[:2].tolist()), float(random.random()), bool(random.integers(0, 2))
        )
        for _ in range(3)
    )
    figures = SequenceFigures(1000, tuple(random.random(4).tolist()), 50.0, conditions)
    best = min(cost(figures, order) for order in permutations(range(4)))
    assert cost(figures, cheapest_order(figures)) == pytest.approx(best)


def test_a_selective_pair_comes_first_however_far_apart() -> None:
    figures = SequenceFigures(1000, (0.2,) * 5, 100.0, (PairCondition(frozenset({0, 4}), 0.001, True),))
    assert set(cheapest_order(figures)[:2]) == {0, 4}


def test_many_components_are_ordered_too() -> None:
    count = MOST_WEIGHED + 3
    figures = SequenceFigures(1000, (0.1,) * count, 100.0, (PairCondition(frozenset({2, 9}), 0.001, False),))
    order = cheapest_order(figures)
    assert sorted(order) == list(range(count))
    assert order.index(9) <= 2


def test_the_first_is_the_rarest() -> None:
    assert cheapest_order(SequenceFigures(1000, (0.5, 0.01, 0.3), 10.0, ()))[0] == 1


def test_samples_are_the_same_in_every_run() -> None:
    events = np.arange(0, 5_000, 3)
    assert sampled(events).tolist() == sampled(events).tolist()
    assert set(sampled(events)) <= set(events)
    assert len(sampled(events)) == PAIRS
    assert len(sampled(np.zeros(0, np.int64))) == 0
