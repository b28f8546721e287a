"""Periods of related partitions: where they lie, and whether they are abnormal, normal or uncertain."""

from __future__ import annotations

import numpy as np
import pytest

from trendloom.diagnosis.periods import MonitoredSeries, Period, aligned, difference, entropy_distances, related_periods
from trendloom.diagnosis.request import Settings


def series(first: int, values: list[float] | np.ndarray, step: int = 10, name: str = "j") -> MonitoredSeries:
    times = first + step * np.arange(len(values))
    return MonitoredSeries((("job", name),), first, first + step * len(values), times, np.array(values, float))


def test_alignment_by_time() -> None:
    own, other = series(0, [0.0] * 100), series(5_000, [0.0] * 50, step=30)
    assert aligned(Period(0, 310, True), own, other, by_points=False) == (5_000, 5_000 + 465)
    assert aligned(Period(310, 1_000, False), own, other, by_points=False) == (5_465, 6_500)


def test_alignment_by_points() -> None:
    own = series(0, [0.0] * 10)
    other = MonitoredSeries((), 0, 90, np.array([0, 1, 2, 3, 90]), np.zeros(5))
    assert aligned(Period(0, 40, True), own, other, by_points=True) == (0, 2)
    assert aligned(Period(40, 100, False), own, other, by_points=True) == (2, 91)
    low, high = aligned(Period(0, 1, True), own, series(7, [1.0, 2.0]), by_points=True)
    assert low == high, "no point of the other partition"


def test_the_alignment_with_the_smaller_difference() -> None:
    """10 % more points and 50 % longer in time: by points."""
    own = series(0, [0.0] * 100)
    other = MonitoredSeries((), 0, 1_500, np.arange(110), np.zeros(110))
    assert difference(own, other) == (pytest.approx(0.1), True)
    assert difference(own, MonitoredSeries((), 0, 1_050, np.arange(150), np.zeros(150))) == (pytest.approx(0.05), False)


def test_entropy_distance_is_scaled() -> None:
    nan = float("nan")
    one = np.array([[1.0, 2, 3], [1, 2, 3], [1, 3, 5], [nan, nan, nan], [nan, nan, nan]])
    other = np.array([[7.0, 8, 9], [1, 2, 3], [2, 4, 6], [1, 2, 3], [nan, nan, nan]])
    assert entropy_distances(one, other).tolist() == [1, 0, 0, 1, 0]


# ------------------------------------------------------------------------------------------------------ labels

CHANCE = np.random.default_rng(8)


def run(first: int, sick: bool, name: str) -> MonitoredSeries:
    """A hundred points: the first 30 queue up where the run is sick."""
    level = np.where(np.arange(100) < 30, 500 if sick else 100, 100)
    return series(first, level + CHANCE.normal(0, 10, 100), name=name)


OWN = run(0, True, "own")
MARKED = [(Period(0, 300, True), OWN), (Period(300, 1_000, False), OWN)]


def test_periods_are_labelled_by_likeness() -> None:
    """Without a tenth at both edges, where alignment is not sure."""
    found = related_periods(MARKED, [run(2_000, False, "well"), run(4_000, True, "sick")], Settings())
    labels = {(dict(period.partition)["job"], period.low, period.high): period.abnormal for period in found.periods}
    assert labels == {
        ("well", 2_030, 2_270): False,
        ("well", 2_370, 2_930): False,
        ("sick", 4_030, 4_270): True,
        ("sick", 4_370, 4_930): False,
    }
    assert not any(period.annotated for period in found.periods)
    assert found.uncertain == 0


def test_another_frequency_is_not_the_anomaly() -> None:
    """The values of the anomaly, but a tenth of its points in as much time."""
    slow = MonitoredSeries((), 2_000, 3_000, 2_000 + 100 * np.arange(10), OWN.values[:100:10])
    found = related_periods([MARKED[0], MARKED[1]], [slow], Settings())
    assert [period.abnormal for period in found.periods] == [False, False]


def test_what_is_neither_like_nor_unlike_is_left_out() -> None:
    between = series(2_000, np.where(np.arange(100) < 30, np.tile([500, 100], 50), 100) + CHANCE.normal(0, 10, 100))
    strict = Settings(same_cluster=0.3, far_cluster=0.9)
    found = related_periods(MARKED, [between], strict)
    assert found.uncertain == 1
    assert [period.low for period in found.periods] == [2_370]


def test_the_scale_is_how_far_the_annotated_periods_are_apart() -> None:
    """Levels that overlap: absolute distances are small, and yet runs are told apart."""
    chance = np.random.default_rng(4)

    def noisy(first: int, sick: bool, name: str) -> MonitoredSeries:
        level = np.where(np.arange(400) < 200, 130 if sick else 100, 100)
        return series(first, level + chance.normal(0, 15, 400), name=name)

    own = noisy(0, True, "own")
    marks = [(Period(0, 2_000, True), own), (Period(2_000, 4_000, False), own)]
    found = related_periods(marks, [noisy(10_000, False, "well"), noisy(20_000, True, "sick")], Settings())
    assert [(dict(one.partition)["job"], one.abnormal) for one in found.periods] == [
        ("well", False),
        ("sick", True),
        ("well", False),
        ("sick", False),
    ]


def test_a_period_across_an_edge_is_left_out() -> None:
    late = np.where((np.arange(100) >= 15) & (np.arange(100) < 45), 500, 100) + CHANCE.normal(0, 10, 100)
    found = related_periods(MARKED, [series(2_000, late, name="late")], Settings())
    assert all(not one.abnormal for one in found.periods)
    assert 2_030 not in [one.low for one in found.periods]


def test_a_reference_like_the_anomaly_labels_nothing() -> None:
    same = [(Period(0, 500, True), series(0, [1.0, 2] * 50)), (Period(500, 1_000, False), series(0, [1.0, 2] * 50))]
    found = related_periods(same, [series(3_000, [1.0, 2] * 50)], Settings())
    assert found.periods == ()
    assert found.uncertain == 2


def test_of_many_partitions_the_most_alike() -> None:
    others = [series(10_000 * number, OWN.values[: 100 - number], name=f"r{number}") for number in range(1, 9)]
    found = related_periods(MARKED, others, Settings(most_related=6))
    assert {dict(period.partition)["job"] for period in found.periods} <= {"r1", "r2", "r3"}
    assert found.notes == (
        "of 16 periods in related partitions the 6 were used whose partitions are most alike in length",
    )


def test_no_related_partitions() -> None:
    assert related_periods(MARKED, [], Settings()).periods == ()
