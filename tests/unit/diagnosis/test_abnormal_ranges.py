"""Ranges of abnormal values, their boundaries, and how they are written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from trendloom.diagnosis.diagnosis import show_range
from trendloom.diagnosis.features import Feature, FeatureTable
from trendloom.diagnosis.formula import AbnormalRange, Formula, Predicate, clauses_of, show_number
from trendloom.diagnosis.request import Settings
from trendloom.diagnosis.reward import abnormal_ranges, boundary

from trendloom.errors import DataError  # isort: skip

INF = float("inf")
FEATURE = Feature("T", "x", "mean", None, 10, "10 s")


def ranges(abnormal: Sequence[float], reference: Sequence[float], **settings: float) -> list[tuple[float, float]]:
    """With boundaries in the middle, if nothing else is said."""
    values = np.array([*abnormal, *reference], float)
    chosen = Settings(**{"nearest_boundary": 0.5, **settings})  # type: ignore[arg-type]
    found = abnormal_ranges(values, np.arange(len(values)) < len(abnormal), chosen)
    return [(one.low, one.high) for one in found]


def test_one_boundary_where_separation_is_perfect() -> None:
    assert ranges([1, 2, 3], [9, 12]) == [(-INF, 6)]
    assert ranges([9, 12], [1, 2, 3]) == [(6, INF)]
    assert ranges([5, 6], [1, 12]) == [(3, 9)]


def test_a_boundary_is_nearer_to_a_reference_that_is_known_well() -> None:
    assert ranges([20, 21], [10] * 18, nearest_boundary=0.1) == [(11, INF)], "a tenth of the windows, and of the gap"
    assert ranges([20, 21], [10] * 18, nearest_boundary=0.4) == [(14, INF)]
    assert ranges([20, 21], [10], nearest_boundary=0.1) == [(15, INF)], "but never nearer to the anomaly"
    assert ranges([-20, -21], [-10] * 18, nearest_boundary=0.1) == [(-INF, -11)]


def test_several_ranges_where_a_feature_needs_them() -> None:
    assert ranges([10, 20, 30, 50], [25, 60]) == [(-INF, 22), (28, 60 - 5)]
    assert ranges([1, 9], [5]) == [(-INF, 3), (7, INF)]


def test_a_noisy_feature_has_a_handful_of_ranges() -> None:
    chance = np.random.default_rng(5)
    abnormal, reference = chance.normal(0, 1, 300), chance.normal(2, 1, 300)
    (only,) = ranges(abnormal.tolist(), reference.tolist())
    assert only[0] == -INF
    assert 0.7 < only[1] < 1.3
    assert len(ranges(abnormal.tolist(), reference.tolist(), range_gain=0)) == 3


def test_reference_beyond_all_ranges_is_never_taken_in() -> None:
    """Of one range, the second abnormal run matters more than the little reference below the first, and yet goes."""
    abnormal, reference = [10, 11, 12, 13, 14, 31, 32, 33], [1, 20, 21, 22, 23, 24, 25, 26, 27, 40]
    assert ranges(abnormal, reference, most_ranges=1) == [(6, 17)]


def test_one_stray_window_makes_no_range() -> None:
    normal = list(range(100, 140))
    assert ranges([*range(30), 120], normal) == [(-INF, pytest.approx(64, abs=20))]


def test_values_that_do_not_differ_have_no_range() -> None:
    assert ranges([1, 1], [1, 1, 1]) == []


def test_whole_numbers_have_whole_boundaries() -> None:
    values, abnormal = np.array([0, 0, 1, 7, 8.0]), np.array([True, True, False, False, True])
    assert abnormal_ranges(values, abnormal, Settings(), whole=True) == (AbnormalRange(-INF, 0), AbnormalRange(8, INF))


@pytest.mark.parametrize(
    ("inside", "outside", "found"),
    [
        (1_978_482_000, 2_411_000_000, 2.2e9),
        (0.1, 0.2, 0.15),
        (0.0, 1000.0, 500),
        (-3.0, -4.0, -3.5),
        (1.0, np.nextafter(1.0, 2), 1.0),
        (-1e308, 1e308, 0),
        (-INF, 3.0, -1),
        (5.0, INF, 11),
    ],
)
def test_boundaries_are_short_numbers_in_the_gap(inside: float, outside: float, found: float) -> None:
    assert boundary(inside, outside) == found


def test_ranges_become_clauses() -> None:
    clauses = clauses_of(FEATURE, [AbnormalRange(-INF, 20), AbnormalRange(30, 50)])
    text = "T.x mean over 10 s <= 50 AND (T.x mean over 10 s <= 20 OR T.x mean over 10 s >= 30)"
    assert str(Formula(clauses)) == text
    assert str(Formula(clauses_of(FEATURE, [AbnormalRange(3, 3)]))) == "T.x mean over 10 s = 3"


def test_what_is_not_known_is_not_abnormal() -> None:
    table = FeatureTable((FEATURE,), 10, np.arange(3) * 10, np.array([[1.0, np.nan, 9.0]]))
    assert Formula(((Predicate(FEATURE, "<=", 5.0),),)).evaluate(table).tolist() == [True, False, False]
    assert Formula(()).evaluate(table).tolist() == [False, False, False]


def test_features_over_windows_of_two_lengths() -> None:
    longer = Feature("T", None, "count", None, 20, "20 s")
    short = FeatureTable((FEATURE,), 10, np.array([0, 10, 20, 30]), np.array([[1.0, 9.0, 1.0, 1.0]]))
    long = FeatureTable((longer,), 20, np.array([0, 20]), np.array([[5.0, 0.0]]))
    formula = Formula(((Predicate(FEATURE, "<", 5.0),), (Predicate(longer, ">", 4.0),)))
    assert formula.evaluate(long, short).tolist() == [True, False, False, False]
    with pytest.raises(DataError, match=r"'T count over 20 s' needs windows of 20 s"):
        formula.evaluate(short)


def test_a_comparison_that_does_not_exist() -> None:
    found = Formula(((Predicate(FEATURE, "<", 5.0),),)).to_json()
    found[0][0]["operator"] = "!="
    with pytest.raises(DataError, match="'!=' is not a comparison"):
        Formula.from_json(found)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.9e9, "1.9e9"),
        (0.25, "0.25"),
        (12, "12"),
        (0, "0"),
        (-1.5e-7, "-1.5e-7"),
        (1234567, "1234567"),
        (0.1 + 0.2, "0.3"),
    ],
)
def test_numbers_as_people_write_them(number: float, text: str) -> None:
    assert show_number(number) == text


def test_ranges_as_people_read_them() -> None:
    shown = [show_range(AbnormalRange(*ends)) for ends in ((-INF, 2), (3, INF), (4, 5), (6, 6))]
    assert shown == ["<= 2", ">= 3", "4 to 5", "= 6"]
