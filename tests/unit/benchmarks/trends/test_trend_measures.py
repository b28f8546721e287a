"""Benchmarks of trends run at a small size and find all answers right; wrong ones would be seen."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.cases.trends import check_kites, microbench
from benchmarks.harness.report import Report
from benchmarks.trends import partitioning as search
from benchmarks.trends import postponing, trends


def all_checked(report: Report) -> bool:
    return bool(report.results) and all(result.checked for result in report.results)


def test_complete_trends_by_events_and_number() -> None:
    report = Report()
    trends.by_events(report, (100, 200), 1)
    trends.by_number(report, (4, 5), 1)
    assert all_checked(report)
    assert {curve.name for curve in report.curves} >= {trends.KERNEL, trends.STACK, "H-CET"}


def test_complete_trends_by_shape() -> None:
    report = Report()
    trends.by_stretch(report, (0, 3), 5, 1)
    trends.by_overlap(report, (1, 25), 3, 1)
    trends.by_compatibility(report, 12, 1)
    assert all_checked(report)


def test_complete_trends_within_memory() -> None:
    report = Report()
    trends.by_memory(report, 5, 1)
    assert all_checked(report)
    assert all(result.met for result in report.results)


def test_a_wrong_answer_is_not_checked() -> None:
    report = Report()
    case = trends.kites("right", check_kites(4, 3, 3))
    other = trends.kites("wrong", check_kites(5, 3, 3))
    trends.compare(report, replace(case, columns=other.columns), [trends.KERNEL, trends.STACK], 1)
    assert [result.checked for result in report.results] == [False, True]


def test_search_for_plans() -> None:
    report = Report()
    costs = search.costs_of(8)
    for name, share in search.LIMITS.items():
        search.search(report, costs, name, share, last=False)
    assert all_checked(report)


def test_postponing_and_its_shared_phase() -> None:
    report = Report()
    table = microbench(400, shares=postponing.MANY_ENDS)
    for name in postponing.RULES:
        postponing.race_matches(report, name, name, table, 8, 1)
    assert all_checked(report)
    postponing.matching_phase(report, (500, 1_000), 1)
    assert report.curves[0].sizes == (500, 1_000)
