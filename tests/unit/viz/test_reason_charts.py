"""Charts of reasons: what is drawn is data, and the file shows names, boundaries and what was marked."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from trendloom.diagnosis.diagnosis import CandidateFeature, Diagnosis
from trendloom.diagnosis.features import Feature, FeatureTable
from trendloom.diagnosis.formula import AbnormalRange, formula_of
from trendloom.diagnosis.periods import Period
from trendloom.viz.reasons import MOST_CHARTS, charts_of, draw_reasons

FREE = Feature("Memory", "free", "mean", window=10, length="10 s")
DISK = Feature("Disk", None, "count", window=10, length="10 s")
STARTS = np.array([0, 10, 20, 50, 60])
TABLE = FeatureTable((FREE, DISK), 10, STARTS, np.array([[9.0, 8.0, np.nan, 1.0, 2.0], [0.0, 1.0, 2.0, 3.0, 4.0]]))
PERIODS = (Period(0, 30, abnormal=False), Period(50, 70, abnormal=True), Period(0, 70, True, annotated=False))


def diagnosis(features: tuple[Feature, ...] = (FREE,), **ranges: AbnormalRange) -> Diagnosis:
    found = {feature: (AbnormalRange(-math.inf, 3.0),) for feature in features}
    kept = tuple(CandidateFeature(feature, 1.0, kept=True) for feature in features)
    left = (CandidateFeature(DISK, 0.4, why="below the leap"),)
    return Diagnosis(formula_of(found), found, kept + left, "free memory is at most 3", PERIODS, None, (), (TABLE,))


def test_a_chart_has_the_windows_of_a_kept_feature_by_what_they_were_marked() -> None:
    (chart,) = charts_of(diagnosis(), dated=False)
    assert chart.name == "Memory.free mean over 10 s"
    assert chart.times.tolist() == [0, 10, 20, 30, 50, 60]
    assert chart.kinds.tolist() == ["reference", "reference", "reference", "", "abnormal", "abnormal"]
    assert np.isnan(chart.values[3]), "the line breaks where windows are left out"
    assert chart.bounds == (3.0,)
    assert [(span.low, span.high, span.kind) for span in chart.spans] == [(0, 30, "reference"), (50, 70, "abnormal")]


def test_ticks_of_timestamps_are_dates() -> None:
    (chart,) = charts_of(diagnosis(), dated=True)
    assert chart.times.dtype == np.dtype("datetime64[us]")
    assert chart.spans[0].high == np.datetime64(30, "us")


def test_several_ranges_have_a_line_at_each_end() -> None:
    found = diagnosis()
    several = {FREE: (AbnormalRange(-math.inf, 1.5), AbnormalRange(8.5, 8.75))}
    (chart,) = charts_of(
        Diagnosis(found.formula, several, found.candidates, "", PERIODS, None, (), (TABLE,)), dated=False
    )
    assert chart.bounds == (1.5, 8.5, 8.75)
    assert chart.boundary == "<= 1.5 or 8.5 to 8.75"


def test_the_file_names_features_boundaries_and_kinds(tmp_path: Path) -> None:
    text = draw_reasons(diagnosis(), tmp_path / "r.svg", dated=False, title="why").read_text()
    for said in (
        "Memory.free mean over 10 s &lt;= 3",
        "reward 1.00",
        ">abnormal<",
        ">reference<",
        ">boundary<",
        ">why<",
    ):
        assert said in text
    assert "Disk" not in text


def test_nothing_kept_is_a_picture_too(tmp_path: Path) -> None:
    assert "no feature was kept" in draw_reasons(diagnosis(()), tmp_path / "r.svg", dated=False).read_text()


def test_more_features_than_fit_are_counted(tmp_path: Path) -> None:
    many = tuple(Feature("M", f"a{number}", "mean", window=10) for number in range(MOST_CHARTS + 3))
    found = diagnosis(many)
    table = FeatureTable(many, 10, STARTS, np.ones((len(many), len(STARTS))))
    whole = Diagnosis(found.formula, found.ranges, found.candidates, "", PERIODS, None, (), (table,))
    assert f"({MOST_CHARTS} of {len(many)} features)" in draw_reasons(whole, tmp_path / "r.svg", dated=True).read_text()
