"""Rank joins give the best combinations: the same as sorting all of them, whatever is joined and how."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trendloom.kernels.ranking.joins.components import ArrayComponent, Component, MergedComponent, ProducedComponent
from trendloom.kernels.ranking.joins.merging import MERGES, MergeName, merged
from trendloom.kernels.ranking.joins.rank_join import JoinConditions, RankJoin
from trendloom.kernels.ranking.joins.schedules import RoundRobin, Schedule, WasteAvoiding

EVENTS = 24
SCHEDULES = (RoundRobin, WasteAvoiding)


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

    def components(self, *, keys: bool) -> list[Component]:
        pairs = zip(self.scores, self.events, strict=True)
        return [ArrayComponent(some, events, self.key(events) if keys else None) for some, events in pairs]

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
        draw(st.booleans()), draw(st.sampled_from(SCHEDULES))(),
    )  # fmt: skip


def check(case: Case, join: RankJoin, k: int, *, ties: bool) -> None:
    expected = all_results(case)
    found = join.best(k, ties=ties)
    last = expected[k - 1][0] if len(expected) >= k else None
    good = sum(score <= last for score, _ in expected) if last is not None else len(expected)
    assert [score for score, _ in expected[: len(found.scores)]] == list(found.scores)
    assert len(found.scores) == (good if ties else min(k, len(expected)))
    assert found.more == (good > k and not ties)
    rows = Counter(zip(found.scores, (tuple(map(int, row)) for row in found.events), strict=True))
    assert Counter(row for row in expected if last is None or row[0] < last) <= rows <= Counter(expected)


@settings(max_examples=300, deadline=None)
@given(cases(), st.sampled_from([1, 2, 5, 30, 1000]), st.booleans(), st.booleans())
def test_a_join_gives_the_best_combinations(case: Case, k: int, ties: bool, asks: bool) -> None:
    join = RankJoin(
        case.components(keys=asks), case.merge, case.conditions(), schedule=case.schedule, random_access=asks,
        type_=case.type_,
    )  # fmt: skip
    check(case, join, k, ties=ties)


@settings(max_examples=100, deadline=None)
@given(cases(), st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_a_join_can_be_asked_for_more(case: Case, counts: list[int]) -> None:
    join = RankJoin(case.components(keys=False), case.merge, case.conditions(), type_=case.type_)
    given_scores: list[Any] = []
    for count in counts:
        given_scores += list(join.pull(count).scores)
    assert given_scores == [score for score, _ in all_results(case)[: sum(counts)]]
    check(case, join, sum(counts) + 3, ties=True)


def numbers(*scores: float) -> tuple[Any, Any]:
    return np.array(scores), np.arange(len(scores)).reshape(-1, 1)


def test_an_or_takes_the_best_of_any() -> None:
    either = MergedComponent([ArrayComponent(*numbers(5, 1, 3)), ArrayComponent(*numbers(4, 2)), produced([1, 6])])
    assert list(either.pull(3).scores) == [1, 1, 2]
    assert list(either.component) == [0, 2, 1]
    assert list(either.pull(10).scores) == [3, 4, 5, 6]
    assert either.exhausted


def test_scores_that_are_integers_stay_exact() -> None:
    large = 2**60
    some = np.array([large, large + 1]), np.array([[0], [1]])
    none = np.zeros(0, np.int64), np.zeros((0, 1), np.int64)
    either = MergedComponent([ArrayComponent(*some), ArrayComponent(*none)])
    found = RankJoin([either, ArrayComponent(*some)], type_=np.int64).best(2)
    assert found.scores.tolist() == [2 * large, 2 * large + 1]
    assert found.more


def produced(scores: Sequence[int]) -> ProducedComponent:
    left = list(scores)

    def produce(count: int) -> tuple[Any, Any]:
        some, left[:] = left[:count], left[count:]
        return np.array(some), np.zeros((len(some), 1), np.int64)

    return ProducedComponent(produce, 1)


def test_a_component_is_read_no_further_than_needed() -> None:
    scores = np.arange(10_000.0)
    events = np.arange(10_000).reshape(-1, 1)
    join = RankJoin([ArrayComponent(scores, events), ArrayComponent(scores, events)])
    assert list(join.best(3).scores) == [0, 1, 1]
    assert sum(join.progress.depths) <= 32


def test_too_many_equal_results_are_cut() -> None:
    same = np.zeros(100), np.arange(100).reshape(-1, 1)
    join = RankJoin([ArrayComponent(*same), ArrayComponent(*same)])
    found = join.best(10, ties=True, most=50)
    assert len(found.scores) == 50
    assert found.more
    assert len(join.best(10, ties=True, most=20_000).scores) == 10_000


def test_random_access_needs_components_that_answer() -> None:
    with pytest.raises(TypeError, match="asked for keys"):
        RankJoin([produced([1]), produced([2])], random_access=True)
