"""The ways through windows that overlap give the same rows, and each of them is taken."""

from __future__ import annotations

import pytest
from benchmarks.ranking.merged_queries import OTHERS, QUERIES, merged_events, run_with

from trendloom.kernels.ranking import join_kernel as joins
from trendloom.kernels.ranking import join_stretches
from trendloom.kernels.ranking.kernel import ListingKernel
from trendloom.planner import plan as physical_plan

QUERY = "PATTERN AND(SEQ(A a, B b), SEQ(C c, D d)) WITHIN 24 SLIDE 6 RANK BY MERGE(sum, a.w + b.w, c.w + d.w) LIMIT 3"


def test_windows_one_by_one_give_what_turns_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joins, "LITTLE", 0)
    monkeypatch.setattr(join_stretches, "FEW", 0)
    events = merged_events(60)
    expected = run_with({}, QUERY, events)
    assert len(expected) > 20
    alone = {(join_stretches, "FIRST_TURN"): 1, (join_stretches, "LONGEST_TURN"): 1}
    assert run_with(alone, QUERY, events) == expected


@pytest.mark.parametrize("name", QUERIES)
def test_without_joins_queries_are_listed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joins, "LITTLE", 0)
    events = merged_events(60)
    expected = run_with({}, QUERIES[name][0], events)
    listed = []
    inside = ListingKernel.best
    monkeypatch.setattr(ListingKernel, "best", lambda *given: listed.append(1) or inside(*given))
    assert run_with({(physical_plan, "ALGORITHMS"): OTHERS}, QUERIES[name][0], events) == expected
    assert listed
