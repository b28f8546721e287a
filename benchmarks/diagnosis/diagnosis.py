"""Are reasons right, short and of use? Simulated anomalies with known causes, beside other ways to explain.

The 8 anomalies of a cluster and the 6 of a supply chain, as in section 5.7 of H. Zhang, "High-Performance Complex Event
Processing for Decision Analytics", each on the days of `EVALUATION`, which were not used to fix any threshold
(`benchmarks.diagnosis.tuning`). Of each method: F of what it names against the causes, how many features it names, and
F per window of what it predicts on a held-back day. Then how many features each distance of time series needs, greatest
first, until every cause is named; and how often reasons on NAB's labelled metrics name the right series.

An anomaly's table: `python -m benchmarks.run --only diagnosis`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.baselines.series_distances import ANY_SCALE, DISTANCES, both_series, needed
from benchmarks.cases.diagnosis import EVALUATION, HELD_BACK, Case, anomalies, make_case
from benchmarks.diagnosis.methods import METHODS, OURS, Scores, explain_case, score
from benchmarks.diagnosis.nab import count_nab
from benchmarks.harness.report import Report, Result
from trendloom.diagnosis.reasoning import distances_of_classes
from trendloom.diagnosis.request import Settings
from trendloom.diagnosis.reward import rewards

Array = np.ndarray[Any, Any]
ENTROPY, ENTROPY_AND_GAP = "entropy", "entropy, then gap"
RANKINGS = (ENTROPY, ENTROPY_AND_GAP, *DISTANCES, *(f"{name}, unscaled" for name in ANY_SCALE))
GOALS = {"F": 0.875, "features": 6.0, "prediction F": 0.95}
"""A handful of features is six at most."""


def measure_diagnosis(report: Report, *, quick: bool = False) -> None:
    """All three comparisons; `quick`: one day of each anomaly."""
    days = EVALUATION[:1] if quick else EVALUATION
    pairs = {
        name: [(make_case(make(day)), make_case(make(day + HELD_BACK))) for day in days]
        for name, make in anomalies().items()
    }
    add_methods(report, pairs)
    add_distances(report, [case for some in pairs.values() for case, _ in some])
    add_nab(report)


# ------------------------------------------------------------------------------------------------ explanations


def add_methods(report: Report, pairs: dict[str, list[tuple[Case, Case]]]) -> None:
    found = {name: [scores_of(*pair) for pair in some] for name, some in pairs.items()}
    show_methods(found)
    events = sum(case.events for some in pairs.values() for case, _ in some)
    for method in METHODS:
        mine = [scores[method] for some in found.values() for scores in some]
        f, features, prediction = means(mine)
        seconds = sum(one.seconds for one in mine)
        result = Result(f"diagnosis, {method}", events, max(seconds, 1e-9), len(mine), True)
        result = result.noting(f"F {f:.3f}, {features:.1f} features, predicts with F {prediction:.3f}")
        if method == OURS:
            met = f >= GOALS["F"] and features <= GOALS["features"] and prediction >= GOALS["prediction F"]
            result = result.with_goal(", ".join(f"{name} {goal:g}" for name, goal in GOALS.items()), met)
        report.add(result)


def scores_of(case: Case, held_back: Case) -> dict[str, Scores]:
    """By method."""
    return {found.method: score(case, held_back, found) for found in explain_case(case, Settings())}


def means(scores: Sequence[Scores]) -> tuple[float, float, float]:
    """Consistency, features, prediction."""
    rows = np.array([(one.consistency, one.features, one.prediction) for one in scores])
    f, features, prediction = rows.mean(axis=0)
    return float(f), float(features), float(prediction)


def show_methods(found: dict[str, list[dict[str, Scores]]]) -> None:
    """Means over days, per anomaly and method: F / features / F of the prediction."""
    table = Table(title="F against the causes / features named / F of predicted windows")
    for column in ("anomaly", *METHODS):
        table.add_column(column, justify="left" if column == "anomaly" else "right")
    rows = {**found, "all": [scores for some in found.values() for scores in some]}
    for name, days in rows.items():
        cells = (means([scores[method] for scores in days]) for method in METHODS)
        table.add_row(name, *(f"{f:.2f} / {features:.1f} / {predicts:.2f}" for f, features, predicts in cells))
    Console(width=200).print(table)


# --------------------------------------------------------------------------------------------------- distances


def add_distances(report: Report, cases: Sequence[Case]) -> None:
    """Features needed to name every cause; the entropy distance is the reward."""
    counts: dict[str, list[float]] = {name: [] for name in RANKINGS}
    seconds = dict.fromkeys(counts, 0.0)
    for case in cases:
        for name, ranks, spent in ranks_of(case):
            counts[name].append(needed(ranks, case.causes(case.table.features)))
            seconds[name] += spent
    show_distances([case.name for case in cases], counts)
    events = sum(case.events for case in cases)
    for name, some in counts.items():
        result = Result(f"diagnosis, features ranked by {name}", events, max(seconds[name], 1e-9), len(some), True)
        report.add(
            result.noting(
                f"{np.mean(some):.1f} features needed to name every cause on average, {max(some):.0f} at most"
            )
        )


def ranks_of(case: Case) -> list[tuple[str, Array, float]]:
    """The distance of abnormal and reference values of every feature, by name, with the processor's seconds.

    Many features separate perfectly, so the entropy distance has many ties; among them a diagnosis takes the feature
    whose classes lie farthest apart first, and so does `ENTROPY_AND_GAP`.
    """
    values, abnormal = case.values, case.abnormal
    begin = time.process_time()
    reward = rewards(values, abnormal).reward
    found = [(ENTROPY, reward, time.process_time() - begin)]
    order = np.lexsort((distances_of_classes(values, abnormal), reward))
    place = np.empty(len(order))
    place[order] = np.arange(len(order))
    found.append((ENTROPY_AND_GAP, place, time.process_time() - begin))
    for scaled, names in ((True, tuple(DISTANCES)), (False, ANY_SCALE)):
        one, other = both_series(values, abnormal, standardise=scaled)
        for name in names:
            begin = time.process_time()
            ranks = DISTANCES[name](one, other)
            found.append((name if scaled else f"{name}, unscaled", ranks, time.process_time() - begin))
    return found


def show_distances(names: Sequence[str], counts: dict[str, list[float]]) -> None:
    table = Table(title="features needed, greatest distance first, to name every cause (ties: expected)")
    for column in ("anomaly", *counts):
        table.add_column(column, justify="left" if column == "anomaly" else "right")
    for name in dict.fromkeys(names):
        mine = [place for place, other in enumerate(names) if other == name]
        table.add_row(name, *(f"{np.mean([some[place] for place in mine]):.1f}" for some in counts.values()))
    Console(width=200).print(table)


# --------------------------------------------------------------------------------------------------------- NAB


def add_nab(report: Report) -> None:
    begin = time.process_time()
    found = count_nab(Settings())
    spent = time.process_time() - begin
    note = (
        f"names the labelled series for {found.which[0]} of {found.which[1]} (control: {found.control[0]} of "
        f"{found.control[1]}); with it left out, another labelled one for {found.company[0]} of {found.company[1]}, "
        f"nothing for {found.alone[0]} of {found.alone[1]} without such"
    )
    report.add(Result("diagnosis, NAB", found.which[1], spent, found.which[0], True).noting(note))
