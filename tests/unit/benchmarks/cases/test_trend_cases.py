"""The streams for trends have the properties that their benchmarks speak of."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest
from benchmarks.baselines.trend_columns import check_columns, rising_columns
from benchmarks.baselines.trends import sase_stack_trends
from benchmarks.cases.trends import (
    CLASSES,
    KITES,
    MICRO,
    REGIONAL_KITES,
    RISING_PRICES,
    RISING_RATES,
    activity,
    check_kites,
    microbench,
    stocks,
)

import trendloom as tl


def compatible(table: Any) -> list[int]:
    """For every uncovered deposit after the first second: the earlier ones that it can continue."""
    rows = [row for row in table.to_pylist() if row["status"] == "uncovered"]
    return [
        sum(other["destination"] == row["source"] and other["time"] < row["time"] for other in rows)
        for row in rows
        if row["time"] > 0
    ]


def test_deposits_have_the_rate_compatibility_and_selectivity_asked_for() -> None:
    table = check_kites(6, 8, 3, selectivity=0.75)
    assert Counter(table["time"].to_pylist()) == dict.fromkeys(range(6), 8)
    assert Counter(table["status"].to_pylist()) == {"uncovered": 36, "covered": 12}
    assert set(compatible(table)) == {3}


def test_deposits_continue_earlier_seconds_up_to_the_lag() -> None:
    table = check_kites(30, 4, 2, lag=3)
    assert np.mean(compatible(table)) == pytest.approx(2)
    second = dict(zip(table["destination"].to_pylist(), table["time"].to_pylist(), strict=True))
    pairs = zip(table["source"].to_pylist(), table["time"].to_pylist(), strict=True)
    assert {time - second[source] for source, time in pairs if time > 0} == {1, 2, 3}


def test_a_lag_and_a_stretch_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="lag=1"):
        check_kites(4, 2, 2, lag=2, stretch=2)


@pytest.mark.parametrize(("width", "seconds"), [(2, 6), (3, 5)])
def test_worst_case_has_a_power_of_trends(width: int, seconds: int) -> None:
    found = sase_stack_trends(check_columns(check_kites(seconds, width, width)))
    assert (found.trends, found.trend_events) == (width**seconds, seconds * width**seconds)


def test_stretches_lengthen_trends_and_add_none() -> None:
    plain = sase_stack_trends(check_columns(check_kites(4, 3, 3)))
    stretched = sase_stack_trends(check_columns(check_kites(16, 3, 3, stretch=3)))
    assert stretched.trends == plain.trends
    assert stretched.trend_events == 4 * plain.trend_events


def test_regions_share_no_bank() -> None:
    table = check_kites(3, 2, 2, regions=3)
    found = sase_stack_trends(check_columns(table))
    assert found.by_range.tolist() == [8, 8, 8]
    assert len(tl.run(REGIONAL_KITES, table)) == found.trends
    assert len(tl.run(KITES, table)) == found.trends


def test_prices_are_walks_of_companies() -> None:
    table = stocks(3_000, companies=6, sectors=2, rate=10)
    assert set(table["sector"].to_pylist()) == {0, 1}
    time, company, price = (table[name].to_numpy() for name in ("time", "company", "price"))
    assert (np.diff(time) >= 0).all()
    assert len(table) / (time[-1] - time[0] + 1) == pytest.approx(10, rel=0.1)
    for one in range(6):
        steps = np.diff(price[company == one])
        assert np.abs(steps).max() <= 0.2
        assert (steps > 0).mean() == pytest.approx(0.475, abs=0.1)


def test_rates_follow_activities() -> None:
    table = activity(2_000, people=3)
    assert len(table) == 6_000
    rate, doing = table["rate"].to_numpy(), np.array(table["activity"].to_pylist())
    active = np.char.startswith(doing, "active")
    assert 0.1 < active.mean() < 0.9
    assert rate[active].mean() > rate[~active].mean() + 10


def test_the_micro_benchmark_has_its_shares() -> None:
    table = microbench(10_000, shares=(1, 8, 1), tasks=4)
    assert Counter(table["type"].to_pylist())["B"] == pytest.approx(8_000, rel=0.05)
    assert set(table["task"].to_pylist()) == {0, 1, 2, 3}


def test_streams_are_the_same_for_a_seed() -> None:
    for make in (partial(check_kites, 5, 4, 2), partial(stocks, 50), partial(activity, 50), partial(microbench, 50)):
        assert make(seed=1).equals(make(seed=1))
        assert not make(seed=1).equals(make(seed=2))


def test_all_queries_are_understood() -> None:
    tl.check(f"{KITES} WITHIN 5 SLIDE 1", check_kites(3, 2, 2))
    for condition in CLASSES.values():
        tl.check(MICRO.format(condition=condition, within=10), microbench(20))
    for text, table, key, value in (
        (RISING_PRICES, stocks(40, rate=1), "company", "price"),
        (RISING_RATES, activity(20, people=2), "person", "rate"),
    ):
        found = sase_stack_trends(rising_columns(table, key, value, 10, 5))
        assert len(tl.run(f"{text} WITHIN 10 SLIDE 5", table)) == found.trends
