"""The measurements of explanations run at a small size, and find their answers right."""

from __future__ import annotations

import pytest
from benchmarks.diagnosis import explanation
from benchmarks.harness.report import Report


@pytest.fixture(autouse=True)
def _short_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half an hour, ten minutes of which are abnormal."""
    monkeypatch.setattr(explanation, "WINDOWS", 60)
    monkeypatch.setattr(explanation, "SICK", (20, 40))


def test_features_rewards_and_reasons_are_checked() -> None:
    report = Report()
    explanation.measure_features(report, 600, 1)
    explanation.measure_rewards(report, 3_000, 1)
    explanation.measure_diagnosis(report, 15_000, 1)
    explanation.measure_diagnosis(report, 3_000, 1, types=1)
    assert all(result.checked for result in report.results)
    assert [result.rows for result in report.results if result.name.startswith("diagnosis")] == [345, 331]


def test_growth_has_a_curve() -> None:
    report = Report()
    explanation.measure_curve(report, (8_000, 16_000), 1)
    assert all(result.checked for result in report.results)
    assert report.curves[0].sizes == (8_000, 16_000)


def test_a_wrong_feature_is_found() -> None:
    events = explanation.measured_stream(300)
    table = explanation.table_of(events)
    rows = {name: explanation._plain_rows(found) for name, found in events.items()}
    plain = explanation.plain_features(rows, "time", table.starts.tolist(), explanation.WINDOW)
    assert explanation.same_features(table, plain)
    plain["T3", None, "count", None][7] = 1_000.0
    assert not explanation.same_features(table, plain)
