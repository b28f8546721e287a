"""Fix what the literature leaves open, on days that the evaluation does not use.

    python -m benchmarks.diagnosis.tuning

The leap rule (`least_leap`, `least_reward`), the share of its reward that a feature must keep over related partitions
(`validated_share`) and the correlation threshold (`correlation`) are tried one after the other on the 14 anomalies of
`TUNING` days, first the two that matter together. For each choice: F against the truth, features named, and F of
predicting the day of the next tuning seed.

Of shares and of leaps the choice is the one with the greatest mean of both F, the middle of those within 0.005 of it,
which is farthest from where things get worse. The correlation threshold is another matter: a cluster is right if it
holds a true feature, so lower thresholds can only seem better, until everything is one cluster. The choice is the
highest that is within 0.015 of the best. See docs/decisions/0039.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.cases.diagnosis import TUNING, Case, anomalies, make_case
from benchmarks.diagnosis.methods import clusters_of, consistency, diagnose_case, f_measure, predict_by
from trendloom.diagnosis.request import Settings

SHARES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
CORRELATIONS = (0.5, 0.6, 0.7, 0.8, 0.9)
LEAPS = (0.01, 0.05, 0.1, 0.2)
LEAST_REWARDS = (0.1, 0.3, 0.5, 0.7)
EDGES = (0.0, 0.05, 0.1, 0.2)


def main() -> None:
    cases = {name: [make_case(make(seed)) for seed in TUNING] for name, make in anomalies().items()}
    usual = Settings()
    together = [replace(usual, validated_share=s, correlation=c) for s, c in product(SHARES, CORRELATIONS)]
    show("validated share, correlation", cases, ((f"{s.validated_share}, {s.correlation}", s) for s in together))
    leaps = [replace(usual, least_leap=leap, least_reward=least) for leap, least in product(LEAPS, LEAST_REWARDS)]
    show("least leap, least reward", cases, ((f"{s.least_leap}, {s.least_reward}", s) for s in leaps))
    show("edge", cases, ((f"{edge}", replace(usual, edge=edge)) for edge in EDGES))


def show(title: str, cases: dict[str, list[Case]], choices: Iterable[tuple[str, Settings]]) -> None:
    table = Table(title=title)
    for column in ("choice", "F", "least F", "features", "prediction F", "mean of both F"):
        table.add_column(column, justify="right")
    for name, settings in choices:
        found = np.array([trial(some, day, settings) for some in cases.values() for day in range(len(some))])
        f, features, predicts = found.mean(axis=0)
        least = found[:, 0].min()
        table.add_row(
            name, f"{f:.3f}", f"{least:.2f}", f"{features:.2f}", f"{predicts:.3f}", f"{(f + predicts) / 2:.3f}"
        )
    Console().print(table)


def trial(days: list[Case], day: int, settings: Settings) -> tuple[float, int, float]:
    """F against the truth, features, and F of predicting the next day."""
    case, other = days[day], days[(day + 1) % len(days)]
    _, diagnosis = diagnose_case(case, settings)
    named = clusters_of(diagnosis)
    return consistency(case, named), len(named), f_measure(predict_by(diagnosis.formula)(other), other.abnormal)


if __name__ == "__main__":
    main()
