"""Joins over a window that moves on give what a join of the whole window gives, and pull nothing twice."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from trendloom.kernels.ranking.joins.components import ArrayComponent, Component
from trendloom.kernels.ranking.joins.merging import MERGES, MergeName
from trendloom.kernels.ranking.joins.rank_join import JoinConditions, RankJoin
from trendloom.kernels.ranking.joins.schedules import RoundRobin, WasteAvoiding
from trendloom.kernels.ranking.joins.sliding import OldAndNew, SlidingJoin


class Pairs:
    """Pairs of events of two classes in order of time, as a component of any window."""

    def __init__(self, random: np.random.Generator, size: int, most: int, tie_end: Any) -> None:
        self.value = random.integers(0, most, size)
        self.kind = random.integers(0, 2, size)
        self.tie_end, self.pulled = tie_end, 0

    def matches(self, low: int, high: int, since: int) -> Component:
        rows = [
            pair
            for pair in combinations(range(low, high), 2)
            if self.kind[pair[0]] == 0 and self.kind[pair[1]] == 1
            if pair[1] >= since and self.tie_end[pair[0]] <= pair[1]
        ]
        events = np.array(rows, np.int64).reshape(-1, 2)
        return ArrayComponent(self.value[events].sum(axis=1), events)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from(MERGES),
    st.sampled_from([1, 3, 10, 50]),
    st.sampled_from([3, 1000]),
    st.booleans(),
    st.sampled_from([RoundRobin, WasteAvoiding]),
)
def test_a_moving_window_gives_the_best_of_each_window(
    seed: int, merge: MergeName, k: int, most: int, ordered: bool, schedule: Any
) -> None:
    random = np.random.default_rng(seed)
    size = 40
    tie_end = np.arange(size) // 2 * 2 + 2
    sources = [Pairs(random, size, most, tie_end) for _ in range(2)]
    conditions = JoinConditions(
        before=[(0, 1)] if ordered else [],
        apart=[(0, 1)],
        tie_end=tie_end,
        keys=[lambda events: events[:, :1] % 2] * 2 if seed % 2 else [],
    )
    width, step = 14, int(random.integers(2, 10))
    joined = SlidingJoin(
        [OldAndNew(source.matches, 0, width) for source in sources], merge, conditions, schedule=schedule()
    )
    for low in range(0, size - width, step):
        if low:
            joined.slide(low, low + width)
        whole = RankJoin([source.matches(low, low + width, low) for source in sources], merge, conditions)
        ties = bool(seed % 3)
        found, expected = joined.best(k, ties=ties), whole.best(k, ties=ties)
        assert list(found.scores) == list(expected.scores)
        assert found.more == expected.more
        if ties or not expected.more:
            assert sorted(map(tuple, found.events.tolist())) == sorted(map(tuple, expected.events.tolist()))


def test_a_result_beyond_the_last_rank_comes_back() -> None:
    """The best result of the first window expires; the next one is made of events that were joined before."""
    values = np.array([0, 1, 0, 1])
    events = {0: [0, 1], 1: [2, 3]}

    def singles(position: int) -> OldAndNew:
        def matches(low: int, high: int, since: int) -> Component:
            found = np.array([event for event in events[position] if max(low, since) <= event < high], np.int64)
            return ArrayComponent(values[found], found.reshape(-1, 1))

        return OldAndNew(matches, 0, 4)

    joined = SlidingJoin([singles(0), singles(1)])
    assert joined.best(1).events.tolist() == [[0, 2]]
    joined.slide(1, 4)
    before = joined.join.progress.read
    assert joined.best(1).events.tolist() == [[1, 2]]
    assert joined.join.progress.read == before


def test_nothing_is_pulled_twice() -> None:
    random = np.random.default_rng(3)
    size, width = 90, 50
    tie_end = np.arange(size) + 1
    sources = [Pairs(random, size, 10**6, tie_end) for _ in range(2)]
    joined = SlidingJoin([OldAndNew(source.matches, 0, width) for source in sources])
    read_again = 0
    for low in range(0, size - width, 3):
        if low:
            joined.slide(low, low + width)
        whole = RankJoin([source.matches(low, low + width, low) for source in sources], schedule=WasteAvoiding())
        assert list(joined.best(300).scores) == list(whole.best(300).scores)
        read_again += whole.progress.read
    assert joined.join.progress.read < read_again / 2
