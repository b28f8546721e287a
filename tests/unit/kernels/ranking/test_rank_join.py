"""Rank joins give the best combinations: the same as sorting all of them, whatever is joined and how."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from benchmarks.baselines.rank_joins import ArrayComponent, round_robin
from hypothesis import given, settings
from hypothesis import strategies as st

from trendloom.kernels.ranking.join_entries import MERGES, Component, MergeName, merged
from trendloom.kernels.ranking.rank_join import MOST, JoinConditions, RankJoin, Schedule, waste_avoiding

EVENTS = 24
SCHEDULES = (round_robin, waste_avoiding)


@dataclass(frozen=True)
class Case:
    """Components as scores and events, and how they are joined."""

    scores: tuple[Any, ...]
    events: tuple[Any, ...]
    merge: MergeName
    keyed: bool
    before: tuple[tuple[int, int], ...]
    apart: tuple[tuple[int, int], ...]
    rare: bool
    schedule: Schedule

    @property
    def tie_end(self) -> Any:
        """Events 0 and 1 have one time, 2 and 3 the next, ..."""
        return np.arange(EVENTS) // 2 * 2 + 2

    def key(self, events: Any) -> Any:
        return (events[:, :1] * 7) % 4 if self.keyed else events[:, :0]

    def conditions(self) -> JoinConditions:
        keys = [self.key] * len(self.scores) if self.keyed else []
        residual = (lambda parts: sum(part.max(axis=1) for part in parts) % 7 == 0) if self.rare else None
        return JoinConditions(keys, self.before, self.apart, self.tie_end, residual)

    def components(self) -> list[Component]:
        return [ArrayComponent(some, events) for some, events in zip(self.scores, self.events, strict=True)]

    @property
    def type_(self) -> Any:
        return np.result_type(*(some.dtype for some in self.scores))


def all_results(case: Case) -> list[tuple[Any, tuple[int, ...]]]:
    """Every combination that fulfils the conditions, by brute force, best first."""
    found = []
    for rows in product(*(range(len(some)) for some in case.scores)):
        parts = [events[row] for events, row in zip(case.events, rows, strict=True)]
        bound = [[event for event in part if event >= 0] for part in parts]
        if case.keyed and len({int(part[0]) * 7 % 4 for part in parts}) > 1:
            continue
        if any(min(bound[j]) < case.tie_end[max(bound[i])] for i, j in case.before):
            continue
        if any(set(bound[i]) & set(bound[j]) for i, j in case.apart):
            continue
        if case.rare and sum(max(part) for part in parts) % 7:
            continue
        score = merged(MERGES.index(case.merge), [some[row] for some, row in zip(case.scores, rows, strict=True)])
        found.append((score, tuple(int(event) for part in parts for event in part)))
    return sorted(found)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    count = draw(st.sampled_from([1, 2, 2, 3, 3]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    exact, few = draw(st.booleans()), draw(st.sampled_from([2, 20, 10**6]))
    scores: list[Any] = []
    events: list[Any] = []
    for _ in range(count):
        size = draw(st.sampled_from([0, 1, 3, 6, 12] if count == 3 else [0, 1, 5, 20, 40]))
        drawn = random.integers(-few, few, size)
        scores.append(drawn if exact else drawn / 3)
        width = draw(st.integers(1, 3))
        rows = np.sort(np.array([random.permutation(EVENTS)[:width] for _ in range(size)]).reshape(size, width), axis=1)
        if width > 1 and draw(st.booleans()):
            rows[random.random(size) < 0.3, -1] = -1
        events.append(rows.astype(np.int64))
    pairs = [(i, i + 1) for i in range(count - 1)]
    return Case(
        tuple(scores), tuple(events), draw(st.sampled_from(MERGES)), draw(st.booleans()),
        tuple(pair for pair in pairs if draw(st.booleans())), tuple(pair for pair in pairs if draw(st.booleans())),
        draw(st.booleans()), draw(st.sampled_from(SCHEDULES)),
    )  # fmt: skip


def check(case: Case, join: RankJoin, k: int, *, ties: bool) -> None:
    expected = all_results(case)
    found = join.best(k, MOST if ties else 0)
    last = expected[k - 1][0] if len(expected) >= k else None
    good = sum(score <= last for score, _ in expected) if last is not None else len(expected)
    assert [score for score, _ in expected[: len(found.scores)]] == list(found.scores)
    assert len(found.scores) == (good if ties else min(k, len(expected)))
    assert found.more == (good > k and not ties)
    rows = Counter(zip(found.scores, (tuple(map(int, row)) for row in found.events), strict=True))
    assert Counter(row for row in expected if last is None or row[0] < last) <= rows <= Counter(expected)


@settings(max_examples=300, deadline=None)
@given(cases(), st.sampled_from([1, 2, 5, 30, 1000]), st.booleans())
def test_a_join_gives_the_best_combinations(case: Case, k: int, ties: bool) -> None:
    join = RankJoin(case.components(), case.merge, case.conditions(), schedule=case.schedule, type_=case.type_)
    check(case, join, k, ties=ties)


def test_scores_that_are_integers_stay_exact() -> None:
    large = 2**60
    some = np.array([large, large + 1]), np.array([[0], [1]])
    found = RankJoin([ArrayComponent(*some), ArrayComponent(*some)], type_=np.int64).best(2, 0)
    assert found.scores.tolist() == [2 * large, 2 * large + 1]
    assert found.more


def test_a_component_is_read_no_further_than_needed() -> None:
    scores = np.arange(10_000.0)
    events = np.arange(10_000).reshape(-1, 1)
    join = RankJoin([ArrayComponent(scores, events), ArrayComponent(scores, events)])
    assert list(join.best(3, 0).scores) == [0, 1, 1]
    assert sum(join.frontier.depths) <= 32


def test_too_many_equal_results_are_cut() -> None:
    same = np.zeros(100), np.arange(100).reshape(-1, 1)
    join = RankJoin([ArrayComponent(*same), ArrayComponent(*same)])
    found = join.best(10, most=50)
    assert len(found.scores) == 50
    assert found.more
    join = RankJoin([ArrayComponent(*same), ArrayComponent(*same)])
    assert len(join.best(10, most=20_000).scores) == 10_000


@pytest.mark.parametrize("merge", MERGES)
@pytest.mark.parametrize("costs", [(1, 1), (5, 1), (1, 1, 1)], ids=str)
def test_the_schedule_costs_no_more_than_round_robin(costs: tuple[float, ...], merge: MergeName) -> None:
    spent, scores = [], []
    for schedule in SCHEDULES:
        random, ids = np.random.default_rng(11), np.arange(10_000).reshape(-1, 1)
        queues = [ArrayComponent(random.random(10_000), ids, cost=cost) for cost in costs]
        join = RankJoin(queues, merge, JoinConditions([lambda events: events] * len(costs)), schedule=schedule)
        scores.append(join.best(50, 0).scores.tolist())
        spent.append(sum(depth * cost for depth, cost in zip(join.frontier.depths, costs, strict=True)))
    assert scores[0] == scores[1]
    assert spent[1] <= 1.05 * spent[0]
