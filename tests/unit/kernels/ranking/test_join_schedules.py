"""Schedules of rank joins: the same answers at less cost, and never at much more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trendloom.kernels.ranking.joins.components import ArrayComponent
from trendloom.kernels.ranking.joins.merging import MERGES, MergeName
from trendloom.kernels.ranking.joins.rank_join import JoinConditions, RankJoin
from trendloom.kernels.ranking.joins.schedules import RoundRobin, Schedule, WasteAvoiding

SIZE, K = 10_000, 50


def spent(schedule: Schedule, costs: tuple[float, ...], merge: MergeName, **options: Any) -> tuple[float, list[float]]:
    """What the accesses cost that the best results took, and their scores."""
    random = np.random.default_rng(11)
    ids = np.arange(SIZE).reshape(-1, 1)
    queues = [ArrayComponent(random.random(SIZE), ids, ids, cost=cost) for cost in costs]
    join = RankJoin(queues, merge, JoinConditions([lambda events: events] * len(costs)), schedule=schedule, **options)
    found = join.best(K)
    return join.progress.spent, found.scores.tolist()


@pytest.mark.parametrize(
    ("costs", "merge", "times"),
    [((1, 1), "max", 1.5), ((1, 1, 1), "max", 2), ((10, 1), "max", 4), ((10, 1), "sum", 2), ((10, 1), "avg", 2)],
)
def test_the_cheapest_boundary_is_found(costs: tuple[float, ...], merge: MergeName, times: float) -> None:
    by_turns, expected = spent(RoundRobin(), costs, merge, random_access=True)
    chosen, found = spent(WasteAvoiding(), costs, merge, random_access=True)
    assert found == expected
    assert by_turns >= times * chosen


@pytest.mark.parametrize("merge", MERGES)
@pytest.mark.parametrize("random_access", [False, True], ids=["sorted", "random"])
@pytest.mark.parametrize("costs", [(1, 1), (5, 1), (1, 1, 1)], ids=str)
def test_nothing_is_lost_where_nothing_is_gained(
    costs: tuple[float, ...], random_access: bool, merge: MergeName
) -> None:
    by_turns, expected = spent(RoundRobin(), costs, merge, random_access=random_access)
    chosen, found = spent(WasteAvoiding(), costs, merge, random_access=random_access)
    assert found == expected
    assert chosen <= 1.05 * by_turns


def test_a_component_that_rises_late_is_noticed() -> None:
    """The one that is ahead comes to a plateau; the other one, which is probed now and then, takes over."""
    ids = np.arange(SIZE).reshape(-1, 1)
    flat = np.minimum(np.arange(SIZE) / 100, 1.0)
    steady = np.random.default_rng(2).permutation(SIZE) / 1000
    keys = JoinConditions([lambda events: events] * 2)
    queues = [ArrayComponent(scores, ids, ids) for scores in (flat, steady)]
    join = RankJoin(queues, "max", keys, random_access=True)
    turns = RankJoin(
        [ArrayComponent(scores, ids, ids) for scores in (flat, steady)], "max", keys, schedule=RoundRobin(),
        random_access=True,
    )  # fmt: skip
    assert join.best(1500).scores.tolist() == turns.best(1500).scores.tolist()
    assert join.progress.spent <= 1.1 * turns.progress.spent
