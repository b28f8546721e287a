"""A diagnosis out of an archive is measured at a small size, with its answer checked; so is what a stream would run."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.diagnosis.diagnosing import (
    WAYS,
    RepeatedDiagnosis,
    measure_from_archive,
    monitoring_queries,
    rise_beside,
)
from benchmarks.harness.report import Report

import trendloom as tl


def test_a_diagnosis_out_of_an_archive() -> None:
    report = Report()
    measure_from_archive(report, 60_000, 1, WAYS[:1])
    assert [result.checked for result in report.results] == [True]
    assert "345 features" in report.results[0].name


def test_queries_of_the_stream_are_queries() -> None:
    assert tl.check(monitoring_queries(3), schema="time timestamp, type string, node long, load double") == []


def test_batches_with_a_diagnosis_are_told_from_others() -> None:
    other = RepeatedDiagnosis([], 1.0, spans=[(10.0, 12.0), (20.0, 21.0)])
    assert other.ran_during(11.0, 13.0)
    assert other.ran_during(9.0, 30.0)
    assert not other.ran_during(12.5, 19.5)


def test_batches_beside_a_diagnosis_are_compared_with_their_neighbours() -> None:
    """In the second half everything takes twice as long; a diagnosis adds a tenth in both."""
    beside = np.arange(40) % 4 == 3
    pace = np.where(np.arange(40) < 20, 1.0, 2.0)
    assert rise_beside(pace * np.where(beside, 1.1, 1.0), beside) == pytest.approx(0.1)
