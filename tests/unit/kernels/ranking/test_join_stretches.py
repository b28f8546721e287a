"""Few combinations are listed in one call, large stretches are joined, those that cannot hold the best are left out."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import trendloom as tl
from trendloom.kernels.ranking import join_kernel as joins
from trendloom.kernels.ranking import join_operands, join_stretches
from trendloom.kernels.ranking.kernel import ListingKernel

PAIRS = "AND(SEQ(A a, B b), SEQ(C c, D d))"
RANKED = "RANK BY MERGE(sum, a.w + b.w, c.w + d.w) LIMIT 3"


def events(counts: list[int], *, apart: int = 1) -> pa.Table:
    """For each key so many events of all types, key after key."""
    random = np.random.default_rng(len(counts))
    key = np.repeat(np.arange(len(counts)), counts)
    types = np.concatenate([np.arange(count) % 4 for count in counts])
    return pa.table(
        {
            "time": np.arange(len(key)) + key * apart,
            "type": np.array(list("ABCD"))[types],
            "k": key,
            "w": random.integers(0, 1000, len(key)),
        }
    )


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often matches were listed, and how many stretches were joined."""
    seen: Counter[str] = Counter()
    listed, joined = ListingKernel.best, join_stretches.StretchJoins._best

    def listing(kernel: ListingKernel, *given: Any) -> Any:
        seen["listed"] += 1
        return listed(kernel, *given)

    def joining(joined_: join_stretches.StretchJoins, *given: Any) -> Any:
        seen["joined"] += 1
        return joined(joined_, *given)

    monkeypatch.setattr(ListingKernel, "best", listing)
    monkeypatch.setattr(join_stretches.StretchJoins, "_best", joining)
    monkeypatch.setattr(joins, "LITTLE", 0)
    return seen


def compare(query: str, table: pa.Table) -> None:
    assert tl.run(query, table, engine="local").to_pylist() == tl.run(query, table, engine="reference").to_pylist()


def test_small_keys_are_listed_together_and_large_ones_joined(
    calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_stretches, "FEW", 10)
    compare(f"PATTERN {PAIRS} WHERE [k] {RANKED}", events([8] * 30 + [24, 24] + [8] * 10))
    assert calls == {"listed": 1, "joined": 2}


def test_listing_is_divided_where_it_would_be_too_much(calls: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_stretches, "LISTED", 50)
    compare(f"PATTERN {PAIRS} WHERE [k] {RANKED}", events([8] * 4))
    assert calls == {"listed": 2}  # 16 combinations of each key


def test_windows_beside_large_ones_are_listed_and_counted_once(
    calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_stretches, "FEW", 10)
    for overall in ("", "OVERALL"):
        compare(f"PATTERN {PAIRS} WHERE [k] WITHIN 12 SLIDE 4 {RANKED} {overall}", events([10, 26, 9]))
    assert min(calls.values()) > 1


def test_of_keys_that_are_ranked_together_few_are_opened(calls: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_stretches, "FEW", -1)
    compare(f"PATTERN {PAIRS} WHERE [k] {RANKED} OVERALL", events([12] * 60))
    assert 0 < calls["joined"] < 40
    assert not calls["listed"]


def test_a_bound_on_spans_opens_few_stretches(calls: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_stretches, "FEW", -1)
    compare(f"PATTERN {PAIRS} WITHIN 10 {RANKED}", events([300]))
    assert 0 < calls["joined"] < 25  # of 30
    assert not calls["listed"]


def test_matches_without_a_score_are_listed_where_too_few_have_one(
    calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_stretches, "FEW", -1)
    table = events([8, 8])
    few = table.set_column(3, "w", pa.array([1, 2, 3, 4, None, None, None, None, 1, 2, 3, 4, 5, 6, 7, None]))
    compare(f"PATTERN {PAIRS} WHERE [k] {RANKED}", few)
    assert calls == {"listed": 1, "joined": 2}


def test_explain_counts_what_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joins, "LITTLE", 0)
    monkeypatch.setattr(join_stretches, "FEW", 10)
    explained = tl.explain(f"PATTERN {PAIRS} WHERE [k] {RANKED}", events([8, 24, 8]), analyze=True)
    shown = explained[explained.index("Ranking\n") : explained.index("Measured")]
    figures = dict(re.findall(r"─ (\S.*?)  +(\d+)$", shown, re.MULTILINE))
    assert (figures["stretches listed"], figures["stretches joined"]) == ("2", "1")
    assert figures["matches made"] == str(2 * 9 + 3)  # nine of each small key; three of the large one, which are wanted


@pytest.mark.parametrize(("module", "name"), [(join_stretches, "PATIENCE"), (join_operands, "MOST")])
def test_a_join_that_finds_too_little_is_given_up(
    module: Any, name: str, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for constants, one in ((module, name), (join_stretches, "FEW")):
        monkeypatch.setattr(constants, one, 0)
    monkeypatch.setattr(join_operands, "FIRST", 1)
    monkeypatch.setattr(join_stretches, "FIRST", 1)
    compare(f"PATTERN {PAIRS} WHERE a.w + c.w = 1000000 {RANKED}", events([40]))
    assert calls == {"listed": 1, "joined": 1}
    calls.clear()
    compare(f"PATTERN {PAIRS} {RANKED}", events([40]))
    assert calls["joined"] == 1
