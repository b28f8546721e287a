"""Every way to explain a case: which groups of features it names, and which windows of another day it predicts.

Ours names one feature for each correlation cluster; a cluster that holds a true feature is right. Other methods name
single features. Precision is the share of what is named that is right, recall the share of the causes that are named.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.baselines.greedy_features import greedy_choice
from benchmarks.cases.diagnosis import Case, filled_in
from benchmarks.peers.scikit_learn import BASELINES, Model, majority_vote
from trendloom.diagnosis.diagnosis import Diagnosis
from trendloom.diagnosis.features import Feature
from trendloom.diagnosis.formula import Formula, formula_of
from trendloom.diagnosis.periods import Period, labelled, related_periods
from trendloom.diagnosis.reasoning import diagnose
from trendloom.diagnosis.request import Settings
from trendloom.diagnosis.reward import abnormal_ranges

Array = np.ndarray[Any, Any]
OURS, UNCLUSTERED, GREEDY = "ours", "ours before clustering", "greedy mutual information"
METHODS = (OURS, UNCLUSTERED, *BASELINES, GREEDY)


@dataclass(frozen=True, eq=False)
class Explanation:
    """What a method names, and its prediction for the annotated windows of another case."""

    method: str
    named: tuple[tuple[Feature, ...], ...]
    predict: Callable[[Case], Array]
    seconds: float


@dataclass(frozen=True)
class Scores:
    """Of one explanation: F against the truth, how many features it names, F of its prediction, processor seconds."""

    consistency: float
    features: int
    prediction: float
    seconds: float


def score(case: Case, held_back: Case, found: Explanation) -> Scores:
    return Scores(
        consistency(case, found.named),
        len(found.named),
        f_measure(found.predict(held_back), held_back.abnormal),
        found.seconds,
    )


def consistency(case: Case, named: Sequence[Sequence[Feature]]) -> float:
    """F of precision over what is named and recall over the causes."""
    right = sum(any(map(case.is_true, group)) for group in named)
    features = [feature for group in named for feature in group]
    hit = sum(bool(cause.any()) for cause in case.causes(features))
    return _f(right / len(named), hit / len(case.truth)) if named else 0.0


def f_measure(predicted: Array, abnormal: Array) -> float:
    right = int((predicted & abnormal).sum())
    return _f(right / max(int(predicted.sum()), 1), right / int(abnormal.sum()))


def _f(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


# ---------------------------------------------------------------------------------------------------- methods


def explain_case(case: Case, settings: Settings) -> list[Explanation]:
    """By every method."""
    begin = time.process_time()
    related, diagnosis = diagnose_case(case, settings)
    spent = time.process_time() - begin
    whole = _formula_of_all(case, diagnosis, related, settings)
    left = tuple((one.feature,) for one in diagnosis.candidates if one.cluster is not None)
    ours = Explanation(OURS, clusters_of(diagnosis), predict_by(diagnosis.formula), spent)
    before = Explanation(UNCLUSTERED, left, predict_by(whole), spent)
    return [ours, before, *(_by_model(case, name, fit) for name, fit in BASELINES.items()), _by_greedy(case)]


def diagnose_case(case: Case, settings: Settings) -> tuple[tuple[Period, ...], Diagnosis]:
    """Our reason, and the labelled periods of related partitions that it is validated with."""
    related = related_periods(case.annotated, case.others, settings).periods
    return related, diagnose([case.table], case.periods, related, settings)


def clusters_of(diagnosis: Diagnosis) -> tuple[tuple[Feature, ...], ...]:
    """The features of each cluster that is left, the representative first."""
    found: dict[int, list[Feature]] = {}
    for one in sorted(diagnosis.candidates, key=lambda one: not one.kept):
        if one.cluster is not None:
            found.setdefault(one.cluster, []).append(one.feature)
    return tuple(map(tuple, found.values()))


def _formula_of_all(case: Case, diagnosis: Diagnosis, related: Sequence[Period], settings: Settings) -> Formula:
    """The conjunction of all features that are left before clustering."""
    windows = labelled(case.table, [*case.periods, *related])
    left = [one.feature for one in diagnosis.candidates if one.cluster is not None]
    values = case.table.take(left).values[:, windows.places]
    return formula_of(
        {
            feature: abnormal_ranges(row, windows.abnormal, settings, whole=feature.function == "count")
            for feature, row in zip(left, values, strict=True)
        }
    )


def predict_by(formula: Formula) -> Callable[[Case], Array]:
    def predict(other: Case) -> Array:
        table = filled_in(other.table, formula.features)
        return formula.evaluate(table)[labelled(other.table, other.periods).places]

    return predict


def _by_model(case: Case, name: str, fit: Callable[[Array, Array], Model]) -> Explanation:
    begin = time.process_time()
    model = fit(case.values, case.abnormal)
    spent = time.process_time() - begin
    features = case.table.features

    def predict(other: Case) -> Array:
        values = filled_in(other.table, features).values[:, labelled(other.table, other.periods).places]
        return np.asarray(model.predict(values), bool)

    return Explanation(name, tuple((features[row],) for row in np.flatnonzero(model.used)), predict, spent)


def _by_greedy(case: Case) -> Explanation:
    """Features by mutual information; what they predict is put to the vote."""
    begin = time.process_time()
    rows = greedy_choice(case.values, case.abnormal).rows
    spent = time.process_time() - begin
    features = [case.table.features[row] for row in rows]
    model = majority_vote(case.values[rows], case.abnormal)

    def predict(other: Case) -> Array:
        values = filled_in(other.table, features).values[:, labelled(other.table, other.periods).places]
        return np.asarray(model.predict(values), bool)

    return Explanation(GREEDY, tuple((feature,) for feature in features), predict, spent)
