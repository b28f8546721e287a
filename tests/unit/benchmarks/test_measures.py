"""Every benchmark runs at a small size and finds its answers right; what is reported can be read again."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from benchmarks.aggregation import decorrelation, growth, long_window
from benchmarks.aggregation import kernels as aggregation
from benchmarks.cases.events import stream
from benchmarks.harness.planned import planned
from benchmarks.harness.report import Curve, Report, Result, race
from benchmarks.imprecise import imprecise
from benchmarks.matching import exists, short_cuts
from benchmarks.ranking import ranking
from tests.property.amounts import MORE


def all_checked(report: Report) -> bool:
    return bool(report.results) and all(result.checked for result in report.results)


def test_type_grained() -> None:
    report = Report()
    case = planned(aggregation.SEQUENCE.format(within=100, slide=100), stream(3_000, {"A": 0.5, "B": 0.5}))
    aggregation.one_vector(report, "small", case, 1)
    assert all_checked(report)


def test_overlapping_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregation, "OVERLAP", 60)
    report = Report()
    aggregation.overlapping(report, 2, 600, 1)
    assert all_checked(report)


def test_pattern_grained() -> None:
    report = Report()
    aggregation.pattern_grains(report, 3_000, 1)
    assert all_checked(report)


def test_one_inequality_and_its_picture(tmp_path: Path) -> None:
    report = Report()
    growth.by_tree(report, (100, 400), 1)
    growth.by_scan(report, (100, 200), 1)
    growth.by_enumeration(report, (4, 8))
    assert all_checked(report)
    report.write(tmp_path / "results.json")
    found = json.loads((tmp_path / "results.json").read_text())
    assert len(found["results"]) == len(report.results)
    assert {curve["name"] for curve in found["curves"]} >= {"the kernel", "the quadratic kernel", "two steps"}
    assert "the quadratic kernel" in (tmp_path / "growth-one-inequality.svg").read_text()


@pytest.mark.parametrize("query", decorrelation.QUERIES)
def test_counting_around_a_correlated_not(query: str) -> None:
    report = Report()
    decorrelation.grow(report, query, (200, 400), (100, 200), 1)
    assert all_checked(report)


def test_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exists, "KEYS", 5)
    monkeypatch.setattr(exists, "WITHIN", 60)
    report = Report()
    exists.measure_rows(report, exists.keyed_types(600), 1)
    exists.measure_counts(report, exists.keyed_types(600), 1)
    assert all_checked(report)


def test_long_window() -> None:
    found = long_window.fed(4_000, 1_000)
    assert found["log"] == pytest.approx(found["expected"])


def test_exponent_is_the_slope_of_the_logarithms() -> None:
    sizes = (10, 100, 1_000)
    assert Curve("p", "c", sizes, tuple(3e-6 * n**1.5 for n in sizes)).exponent == pytest.approx(1.5)


def test_race_keeps_the_last_answer_and_the_best_time() -> None:
    calls: list[str] = []
    contenders = {name: lambda name=name: calls.append(name) or len(calls) for name in ("a", "b")}  # type: ignore[misc]
    timings = race(2, contenders)
    assert calls == ["a", "b", "a", "b", "a", "b"]  # in turns, the first ones not counted
    assert timings["b"].answer == 6
    assert timings["a"].best <= timings["a"].median


def test_ratio_and_goal() -> None:
    one = Result("x", 100, 2.0, 1, True).against("y", 25.0).with_goal("twice", True)
    assert (one.rate, one.ratio, one.met) == (50.0, 2.0, True)


def test_short_cuts() -> None:
    report = Report()
    for depth in short_cuts.DEPTHS:
        short_cuts.compare(report, "", short_cuts.pattern_of(depth), short_cuts.trades(300, 0.1), 1)
        short_cuts.compare(report, "", short_cuts.pattern_of(depth, "NOT "), short_cuts.trades(300, 0.1), 1)
    assert all_checked(report)


def test_ranking() -> None:
    report = Report()
    if MORE:
        ranking.compare(report, "", ranking.readings(12), window=6, step=2, tries=1)
        ranking.measure_slides(report, 52, 1, distances=True)
    ranking.measure_growth_of_window(report, (300, 600), 1)
    ranking.measure_keys(report, 600, 1, keys=3)
    assert all_checked(report)


def test_imprecise_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imprecise, "SAMPLE", 1)  # of 160,000 points
    monkeypatch.setattr(imprecise, "tool_moves", partial(imprecise.tool_moves, tools=4))
    report = Report()
    imprecise.compare(report, "", imprecise.EXCLUSIVE[:3], 1_000, 1, half=2)
    imprecise.compare(report, "", imprecise.OVERLAPPING[:3], 1_000, 1, half=2)
    imprecise.compare(report, "", imprecise.EXCLUSIVE[:3], 1_000, 1, half=2, following=True)
    imprecise.measure_thresholds(report, 1_000, 1)
    imprecise.measure_search(report, 500, 1)
    imprecise.measure_confidences(report, 40, 1)
    imprecise.measure_growth(report, (200, 400), 1)
    imprecise.measure_tools(report, 600, 1)  # a tenth of them still has matches
    imprecise.measure_engine(report, 500, 1)
    imprecise.measure_expected(report, 200, 1)
    assert all_checked(report)
