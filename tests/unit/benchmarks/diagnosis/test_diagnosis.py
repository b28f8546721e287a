"""Reasons of simulated anomalies are right, short and predict: two anomalies here, all in the benchmark."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from benchmarks.cases import diagnosis as diagnosis_cases
from benchmarks.cases.diagnosis import Case, by_type, filled_in, make_case
from benchmarks.diagnosis.diagnosis import add_distances, add_methods, ranks_of
from benchmarks.diagnosis.methods import consistency, explain_case, f_measure, score
from benchmarks.diagnosis.nab import HOUR, Label, marked, nab_tables
from benchmarks.diagnosis.tuning import trial
from benchmarks.harness.report import Report

from trendloom.diagnosis.features import Feature
from trendloom.diagnosis.request import Settings
from trendloom.simulate import ANOMALIES, simulate_cluster, simulate_supply_chain

SEEDS = (31, 32)
CLUSTER = "cluster: network, sessions"
SUPPLY = "supply: two sensors are silent"


@pytest.fixture(scope="module")
def cases() -> dict[str, list[Case]]:
    """Two days of each, smaller than those of the benchmark."""
    cluster = [simulate_cluster("network", "sessions", seed, nodes=6, runs=5) for seed in SEEDS]
    supply = [simulate_supply_chain(ANOMALIES[1], seed, products=8, references=3) for seed in SEEDS]
    return {name: [make_case(one) for one in some] for name, some in ((CLUSTER, cluster), (SUPPLY, supply))}


def test_reasons_are_right_short_and_predict(cases: dict[str, list[Case]]) -> None:
    for case, other in cases.values():
        ours = explain_case(case, Settings())[0]
        found = score(case, other, ours)
        assert found.consistency == 1.0
        assert found.features <= 2
        assert found.prediction >= 0.95


def test_tables_of_methods_and_distances(cases: dict[str, list[Case]]) -> None:
    report = Report()
    add_methods(report, {name: [(some[0], some[1])] for name, some in cases.items()})
    add_distances(report, cases[CLUSTER][:1])
    names = [result.name for result in report.results]
    assert len(set(names)) == 7 + 12
    goals = [result.met for result in report.results if result.goal]
    assert goals == [True]


def test_the_truth_is_among_the_features_and_the_measured_series_is_not(cases: dict[str, list[Case]]) -> None:
    (case, _), _ = cases.values()
    assert all(cause.any() for cause in case.causes(case.table.features))
    assert not any(one.category and one.category[0] == "job" for one in case.table.features)
    assert case.table.values.shape[1] > case.values.shape[1] == len(case.abnormal)
    assert {name for name, _, _ in ranks_of(case)} >= {"entropy", "DTW"}


def test_tuning_tries_a_choice(cases: dict[str, list[Case]]) -> None:
    assert trial(cases[SUPPLY], 0, Settings()) == (1.0, 1, 1.0)
    assert trial(cases[SUPPLY], 0, Settings(least_reward=1.1)) == (0.0, 0, 0.0), "no reason at all"


def test_consistency_counts_groups_and_causes(cases: dict[str, list[Case]]) -> None:
    case = cases[CLUSTER][0]
    sent, bytes_in, other = (
        Feature(*one, "mean") for one in (("Connections", "sent_again"), ("Network", "bytes_in"), ("Load", "one"))
    )
    assert consistency(case, [(sent, bytes_in, other)]) == 1.0
    assert consistency(case, [(sent,), (bytes_in,)]) == 1.0
    assert consistency(case, [(sent,)]) == pytest.approx(2 / 3), "one of two causes"
    assert consistency(case, [(sent, bytes_in), (other,)]) == pytest.approx(2 / 3), "one of two is right"
    assert consistency(case, [(other,)]) == consistency(case, []) == 0.0


def test_f_measure() -> None:
    abnormal = np.array([True, True, False, False])
    assert f_measure(abnormal, abnormal) == 1.0
    assert f_measure(np.array([True, False, True, False]), abnormal) == 0.5
    assert f_measure(~abnormal, abnormal) == f_measure(np.zeros(4, bool), abnormal) == 0.0


def test_a_feature_that_another_day_lacks_counts_0_or_has_no_value(cases: dict[str, list[Case]]) -> None:
    table = cases[SUPPLY][0].table
    there = table.features[0]
    count, mean = (dataclasses.replace(there, type="Nothing", function=one) for one in ("count", "mean"))
    found = filled_in(table, [count, there, mean])
    assert not found.values[0].any()
    np.testing.assert_array_equal(found.values[1], table.values[0])
    assert np.isnan(found.values[2]).all()


def test_events_by_type_have_their_own_columns() -> None:
    events = simulate_supply_chain(ANOMALIES[0], 1, products=5, references=1).events
    found = by_type(events)
    assert sum(map(len, found.values())) == len(events)
    assert found["Sensor001"].column_names == ["time", "product", "model", "value"]


def test_seeds_of_tuning_and_evaluation_are_apart() -> None:
    evaluated = {seed + shift for seed in diagnosis_cases.EVALUATION for shift in (0, diagnosis_cases.HELD_BACK)}
    assert not evaluated & set(diagnosis_cases.TUNING)
    assert not (evaluated | set(diagnosis_cases.TUNING)) & set(SEEDS)


# --------------------------------------------------------------------------------------------------------- NAB


def test_the_middle_of_a_label_is_marked_and_other_labels_are_left_out() -> None:
    label, before = Label("s", 100 * HOUR, 110 * HOUR), Label("s", 80 * HOUR, 84 * HOUR)
    found = marked(label, [before, label, Label("t", 90 * HOUR, 99 * HOUR)], (70 * HOUR, 120 * HOUR), 0)
    assert found is not None
    assert [(one.low // HOUR, one.high // HOUR, one.abnormal) for one in found] == [
        (104, 106, True),
        (70, 80, False),
        (84, 100, False),
        (110, 120, False),
    ]
    control = marked(label, [before, label], (70 * HOUR, 120 * HOUR), 6 * HOUR)
    assert control is not None
    assert [(one.low // HOUR, one.high // HOUR) for one in control] == [
        (93, 95),
        (70, 80),
        (84, 93),
        (95, 100),
        (110, 120),
    ]
    assert marked(label, [before, label], (70 * HOUR, 120 * HOUR), 17 * HOUR) is None, "that was labelled, too"


def test_labels_are_those_of_the_sample() -> None:
    metrics, labels = nab_tables()
    assert len(labels) == 49
    assert {one.series for one in labels} <= set(metrics["series"].unique().to_pylist())
