"""Comparisons of nested queries check their answers, and the streams have the shares that they promise."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.harness.report import Report, Result
from benchmarks.matching import nesting
from benchmarks.matching.nesting import TYPES, Case, compare, short_cut, short_cut_pattern, stock_trades


def measured(case: Case) -> list[Result]:
    report = Report()
    compare(report, case, 1, goal=0.001)
    return report.results


@pytest.mark.parametrize("pattern", [nesting.FLAT, *TYPES.values()])
def test_every_contender_finds_the_same(pattern: str) -> None:
    results = measured(Case("few", pattern, stock_trades(400, share=0.2), 60))
    assert [result.name for result in results] == [
        f"nesting, few, {name}" for name in (nesting.LATE, nesting.EARLY, nesting.KERNEL, nesting.LOCAL)
    ]
    assert all(result.checked for result in results)
    assert results[0].rows > 0
    assert results[2].met


def test_every_contender_finds_the_same_by_equality_deep_inside() -> None:
    pattern, trades = short_cut(0.5, 2, count=600, domain=10)
    results = measured(Case("deep", pattern, trades, 60))
    assert all(result.checked for result in results)
    assert results[0].rows > 0


def test_a_wrong_answer_is_not_called_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nesting, "_totals", lambda rows: (len(rows), -1))
    report = Report()
    compare(report, Case("wrong", nesting.FLAT, stock_trades(200, share=0.2), 60), 1)
    assert not any(result.checked for result in report.results)


def test_the_share_of_larger_amounts_is_known() -> None:
    trades = stock_trades(20_000, share=0.05)
    type, amount = trades["type"].to_numpy(zero_copy_only=False), trades["amount"].to_numpy()
    larger = amount[type == "IPIX"][:, None] > amount[type == "INTC"][None, :]
    assert larger.mean() == pytest.approx(0.05, rel=0.1)
    seconds = (trades["time"][-1].as_py() - trades["time"][0].as_py()) / nesting.SECOND
    assert len(trades) / seconds == pytest.approx(nesting.RATE, rel=0.05)


def test_an_inner_variable_has_its_share_of_values() -> None:
    _, trades = short_cut(0.25, 2, count=20_000, domain=40)
    type, amount = trades["type"].to_numpy(zero_copy_only=False), trades["amount"].to_numpy()
    assert (len(np.unique(amount[type == "RIMM"])), len(np.unique(amount[type == "INTC"]))) == (10, 40)


def test_the_predicate_stands_as_deep_as_asked() -> None:
    assert short_cut_pattern(1, levels=1) == "SEQ(DELL d, SEQ(MSFT s, (RIMM r: r.amount = i.amount)), INTC i)"
    assert short_cut_pattern(2) == (
        "SEQ(DELL d, SEQ(MSFT s, SEQ(YHOO y, SEQ(IPIX p, CSCO c), (RIMM r: r.amount = i.amount)), AMAT a), INTC i)"
    )
