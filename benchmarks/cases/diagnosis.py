"""Simulated anomalies as a diagnosis sees them: features over windows, marked periods, related periods, and the truth.

A case is one anomaly on one day. Its series are the rows of the monitoring query, as the archive would hold them; the
features are those of all events but the measured values of the annotated partitions, and their number, which a sum or a
count measures, too. A seed is a day: days for tuning and for the evaluation are kept apart (`TUNING`, `EVALUATION`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import trendloom as tl
from trendloom.diagnosis.feature_space import Excluded, FeatureSpace, WindowedSpace, features_in_part, windows_within
from trendloom.diagnosis.features import Feature, FeatureTable
from trendloom.diagnosis.periods import MonitoredSeries, Period, labelled
from trendloom.simulate import (
    ANOMALIES,
    WORKLOADS,
    SimulatedStretch,
    Simulation,
    simulate_cluster,
    simulate_supply_chain,
)
from trendloom.simulate.simulation import Cause

Array = np.ndarray[Any, Any]
WINDOW = 30_000_000
"""Half a minute, in ticks."""
TUNING = tuple(range(901, 911))
EVALUATION = tuple(range(21, 26))
HELD_BACK = 500
"""What is added to a seed of the evaluation: the day on which its reason must predict."""

MEASURED = {"job": ("DataIO", "size", "moved"), "product": ("Step", "duration", "seconds")}
"""By partition attribute: the type, the attribute and the column of the rows that the query measures."""


@dataclass(frozen=True, eq=False)
class Case:
    """An anomaly with its features, without its events. `annotated` and `others` are for `related_periods`."""

    name: str
    truth: tuple[Cause, ...]
    events: int
    table: FeatureTable
    periods: tuple[Period, ...]
    annotated: tuple[tuple[Period, MonitoredSeries], ...]
    others: tuple[MonitoredSeries, ...]

    @property
    def values(self) -> Array:
        """Of all features, over the annotated windows."""
        return self.table.values[:, labelled(self.table, self.periods).places]

    @property
    def abnormal(self) -> Array:
        return labelled(self.table, self.periods).abnormal

    def is_true(self, feature: Feature) -> bool:
        return any((feature.type, feature.attribute) in cause for cause in self.truth)

    def causes(self, features: Sequence[Feature]) -> list[Array]:
        """For each cause, which features name it."""
        pairs = [(feature.type, feature.attribute) for feature in features]
        return [np.array([pair in cause for pair in pairs], bool) for cause in self.truth]


def anomalies() -> dict[str, Callable[[int], Simulation]]:
    """The 8 of the cluster and the 6 of the supply chain, by name, each as a function of the seed."""
    cluster = {f"cluster: {kind}, {name}": partial(simulate_cluster, kind, name) for kind, name in WORKLOADS}
    return cluster | {f"supply: {one.name}": partial(simulate_supply_chain, one) for one in ANOMALIES}


def make_case(simulation: Simulation) -> Case:
    """Features over the windows of all partitions that matter: the annotated ones and those related to them."""
    series = monitored(simulation)
    marked = [(one, True) for one in simulation.abnormal] + [(one, False) for one in simulation.reference]
    periods = tuple(Period(one.low, one.high, sick, _partition(simulation, one)) for one, sick in marked)
    named = {one.partition for one, _ in marked}
    spans = [one for one in simulation.spans if one.partition in named | set(simulation.related)]
    return Case(
        simulation.name,
        simulation.truth,
        len(simulation.events),
        features_of(simulation, [(one.low, one.high) for one in spans]),
        periods,
        tuple((period, series[one.partition]) for period, (one, _) in zip(periods, marked, strict=True)),
        tuple(series[name] for name in simulation.related if name not in named),
    )


def _partition(simulation: Simulation, stretch: SimulatedStretch) -> tuple[tuple[str, Any], ...]:
    return ((simulation.key, stretch.partition),)


def features_of(simulation: Simulation, spans: Sequence[tuple[int, int]]) -> FeatureTable:
    """The features of all events over the windows inside some stretches of time."""
    type_, attribute, _ = MEASURED[simulation.key]
    marked = {one.partition for one in simulation.abnormal + simulation.reference}
    partitions = tuple(((simulation.key, name),) for name in sorted(marked))
    left_out = [Excluded(type_, attribute, partitions), Excluded(type_, None, partitions)]
    space = FeatureSpace(left_out=left_out, keys=[simulation.key], length="30 s")
    windows = WindowedSpace(WINDOW, windows_within(spans, WINDOW, "30 s"), space)
    return features_in_part(by_type(simulation.events), "time", windows).table


def by_type(events: pa.Table) -> dict[str, pa.Table]:
    """A table for each type, with the columns that it has."""
    encoded = events["type"].combine_chunks().dictionary_encode()
    codes = encoded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(encoded.dictionary)))
    found = {}
    for code, name in enumerate(encoded.dictionary.to_pylist()):
        some = events.take(pa.array(order[ends[code - 1] if code else 0 : ends[code]]))
        kept = [one for one in some.column_names if one != "type" and some[one].null_count < len(some)]
        found[name] = some.select(kept)
    return found


def monitored(simulation: Simulation) -> dict[str, MonitoredSeries]:
    """The rows of the query by partition: what a user looks at."""
    type_, _, column = MEASURED[simulation.key]
    rows = tl.run(simulation.query, simulation.events.filter(pc.equal(simulation.events["type"], type_)))
    at = rows["window_end"].cast(pa.int64()).to_numpy()
    name = np.array(rows[simulation.key].to_pylist())
    values = rows[column].to_numpy().astype(np.float64)
    found = {}
    for span in simulation.spans:
        mine = np.flatnonzero(name == span.partition)
        mine = mine[np.argsort(at[mine], kind="stable")]
        found[span.partition] = MonitoredSeries(
            _partition(simulation, span), span.low, span.high, at[mine], values[mine]
        )
    return found


def filled_in(table: FeatureTable, features: Sequence[Feature]) -> FeatureTable:
    """Features of another day: one that has no events at all there counts 0, or has no value."""
    there = set(table.features)
    rows = [
        table.values[table.rows([one])[0]]
        if one in there
        else np.full(len(table.starts), 0.0 if one.function == "count" else np.nan)
        for one in features
    ]
    return FeatureTable(
        tuple(features), table.window, table.starts, np.array(rows).reshape(len(features), len(table.starts))
    )
