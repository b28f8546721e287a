"""A diagnosis on one core: features, rewards and the reason of 10⁶ events, beside plain loops.

The stream has 15 types with 66 attributes in all, which make 345 features (counts, and five functions of each
attribute), over windows of 30 s; three attributes move during the anomaly. With a category of 20 nodes there are 20
times as many. As one type, every event has all attributes: 15 times the numbers. Answers are compared with those of
`explanation_baselines`: all features of a short stream, and the rewards of all features of the long one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.baselines.explanation import Key, plain_features, plain_reward
from benchmarks.harness.report import Curve, Report, race
from trendloom.diagnosis.diagnosis import Diagnosis
from trendloom.diagnosis.feature_space import FeatureSpace, WindowedSpace, features_in_part, windows_within
from trendloom.diagnosis.features import FeatureTable
from trendloom.diagnosis.periods import Period
from trendloom.diagnosis.reasoning import diagnose
from trendloom.diagnosis.reward import rewards

TYPES, ATTRIBUTES = 15, 66
WINDOW = 30_000_000
WINDOWS = 960
"""Eight hours."""
SICK = (320, 400)
"""The windows of the anomaly."""
MOVED = {"a0", "a1", "a2"}
NODES = 20
SAMPLE = 5_000


def measure_explanation(report: Report, *, quick: bool = False) -> None:
    """All of it; `quick`: fewer tries, a shorter curve."""
    tries = 2 if quick else 5
    sizes = (50_000, 200_000, 1_000_000) if quick else (100_000, 300_000, 1_000_000, 3_000_000)
    measure_features(report, SAMPLE, tries)
    measure_rewards(report, 200_000 if quick else 1_000_000, tries)
    measure_diagnosis(report, 1_000_000, tries)
    measure_diagnosis(report, 1_000_000, tries, types=1)
    measure_diagnosis(report, 1_000_000, 1 if quick else 3, nodes=True)
    measure_curve(report, sizes, tries)


def measured_stream(count: int, *, types: int = TYPES, nodes: bool = False) -> dict[str, pa.Table]:
    """So many events in all; attributes are noise around a level of their own."""
    chance = np.random.default_rng(17)
    found = {}
    for number in range(types):
        times = np.sort(chance.integers(0, WINDOWS * WINDOW, count // types))
        sick = (times >= SICK[0] * WINDOW) & (times < SICK[1] * WINDOW)
        columns: dict[str, Any] = {"time": pa.array(times, pa.timestamp("us", "UTC"))}
        for attribute in range(number, ATTRIBUTES, types):
            name = f"a{attribute}"
            shift = -40.0 if name in MOVED else 0.0
            columns[name] = 100.0 + attribute + shift * sick + chance.normal(0, 5, len(times))
        if nodes:
            columns["node"] = pa.array([f"n{node}" for node in range(NODES)]).take(
                chance.integers(0, NODES, len(times))
            )
        found[f"T{number}"] = pa.table(columns)
    return found


def table_of(events: Mapping[str, pa.Table]) -> FeatureTable:
    starts = windows_within([(0, WINDOWS * WINDOW)], WINDOW)
    return features_in_part(events, "time", WindowedSpace(WINDOW, starts, FeatureSpace(length="30 s"))).table


def reason_of(table: FeatureTable) -> Diagnosis:
    low, high = (end * WINDOW for end in SICK)
    return diagnose([table], [Period(low, high, True), Period(0, low, False), Period(high, WINDOWS * WINDOW, False)])


# ------------------------------------------------------------------------------------------------ measurements


def measure_features(report: Report, count: int, tries: int) -> None:
    """All features of a short stream, with a category, beside plain loops."""
    events = measured_stream(count, nodes=True)
    rows = {name: _plain_rows(table) for name, table in events.items()}
    starts = [window * WINDOW for window in range(WINDOWS)]
    found = race(
        tries,
        {"columns": lambda: table_of(events), "loops": lambda: plain_features(rows, "time", starts, WINDOW, ["node"])},
        on_processor=True,
    )
    same = same_features(found["columns"].answer, found["loops"].answer)
    features = len(found["columns"].answer)
    loops = found["loops"].result("features, plain loops", count, rows=features, checked=same)
    columns = found["columns"].result("features, columns", count, rows=features, checked=same)
    report.add(loops)
    report.add(columns.against("plain loops", loops.rate))


def measure_rewards(report: Report, count: int, tries: int) -> None:
    """The rewards of all features, beside plain loops."""
    values, abnormal = table_of(measured_stream(count)).values, np.zeros(WINDOWS, bool)
    abnormal[slice(*SICK)] = True
    known = [(row[abnormal].tolist(), row[~abnormal].tolist()) for row in values]
    found = race(
        tries,
        {
            "columns": lambda: rewards(values, abnormal).reward,
            "loops": lambda: [plain_reward(_there(sick), _there(well)) for sick, well in known],
        },
        on_processor=True,
    )
    same = bool(np.allclose(found["columns"].answer, found["loops"].answer, atol=1e-9))
    loops = found["loops"].result("rewards, plain loops", values.size, rows=len(values), checked=same)
    columns = found["columns"].result("rewards, columns", values.size, rows=len(values), checked=same)
    report.add(loops.noting("values instead of events"))
    report.add(columns.against("plain loops", loops.rate).noting("values instead of events"))


def measure_diagnosis(report: Report, count: int, tries: int, *, types: int = TYPES, nodes: bool = False) -> None:
    """From events by type to the reason."""
    events = measured_stream(count, types=types, nodes=nodes)
    timing = race(tries, {"": lambda: reason_of(table_of(events))}, on_processor=True)[""]
    found: Diagnosis = timing.answer
    features = len(found.candidates)
    name = f"diagnosis, {features:,} features of {types} type{'s' * (types > 1)}"
    result = timing.result(name, count, rows=features, checked=names_the_cause(found))
    report.add(result.with_goal("10 s", timing.best < 10).noting(f"{len(found.kept)} kept"))


def measure_curve(report: Report, sizes: tuple[int, ...], tries: int) -> None:
    """How a diagnosis grows with the events."""
    seconds = []
    for size in sizes:
        events = measured_stream(size)
        timing = race(tries, {"": lambda events=events: reason_of(table_of(events))}, on_processor=True)[""]
        seconds.append(timing.best)
        result = timing.result(
            "diagnosis, growth", size, rows=len(timing.answer.candidates), checked=names_the_cause(timing.answer)
        )
        report.add(result)
    report.curves.append(Curve("diagnosis", "features and reason", sizes, tuple(seconds)))


# ----------------------------------------------------------------------------------------------------- checks


def names_the_cause(found: Diagnosis) -> bool:
    """Whether the features that were kept, or that stand for others, are exactly those that were moved."""
    clusters = {one.cluster for one in found.candidates if one.feature.attribute in MOVED} - {None}
    reported = {one.feature.attribute for one in found.candidates if one.cluster is not None}
    return reported == MOVED and {one.cluster for one in found.kept} == clusters


def same_features(table: FeatureTable, plain: Mapping[Key, list[float | None]]) -> bool:
    keys = [(one.type, one.attribute, one.function, one.category) for one in table.features]
    expected = np.array([plain.get(key, [None] * len(table.starts)) for key in keys], float)
    return set(keys) == set(plain) and bool(np.allclose(table.values, expected, rtol=1e-9, atol=1e-9, equal_nan=True))


def _plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    ticks = table.column("time").cast(pa.int64())
    return list(table.set_column(0, "time", ticks).to_pylist())


def _there(values: list[float]) -> list[float]:
    return [value for value in values if value == value]
