"""The simulated supply chain: fixed rates, valid ranges, and anomalies of one product only."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import trendloom as tl
from trendloom.errors import OptionError
from trendloom.simulate import ANOMALIES, Simulation, simulate_supply_chain
from trendloom.simulate.supply_chain import Anomaly, build_plant

SILENT, POOR = ANOMALIES[1], ANOMALIES[4]


@cache
def simulation(anomaly: Anomaly, seed: int = 1) -> Simulation:
    return simulate_supply_chain(anomaly, seed, products=8, references=2)


def of(events: pa.Table, kind: str, product: str | None = None) -> pa.Table:
    chosen = pc.equal(events["type"], kind)
    return events.filter(chosen if product is None else pc.and_(chosen, pc.equal(events["product"], product)))


def test_the_same_seed_gives_the_same_events() -> None:
    again = simulate_supply_chain(SILENT, 1, products=8, references=2)
    assert again.events.equals(simulation(SILENT).events)
    assert not simulation(SILENT, 2).events.equals(simulation(SILENT).events)


def test_sensors_report_at_a_fixed_rate_within_their_range() -> None:
    found, plant = simulation(SILENT), build_plant()
    for number in (1, 50, 100):
        name = f"Sensor{number:03d}"
        times = of(found.events, name, found.spans[0].partition)["time"].cast(pa.int64()).to_numpy()
        assert np.all(np.diff(times) == 1_000_000 * plant.period[number - 1])
        values = of(found.events, name)["value"].to_numpy()
        assert values.min() >= plant.low[number - 1] - 1e-4
        assert values.max() <= plant.high[number - 1] + 1e-4


def test_there_are_a_hundred_of_each() -> None:
    types = pc.unique(simulation(SILENT).events["type"]).to_pylist()
    assert sum(name.startswith("Sensor") for name in types) == 100
    assert sum(name.startswith("Material") for name in types) == 100


def test_silent_sensors_say_nothing_of_their_product_and_all_else_goes_on() -> None:
    found = simulation(SILENT)
    there = set(zip(found.events["type"].to_pylist(), found.events["product"].to_pylist(), strict=True))
    all_pairs = {(f"Sensor{number:03d}", span.partition) for number in range(1, 101) for span in found.spans}
    assert all_pairs - there == {(f"Sensor{number:03d}", found.partition) for number in SILENT.silent}


def test_poor_material_is_below_its_bar_for_its_product_only() -> None:
    found, plant = simulation(POOR), build_plant()
    for number in range(1, 101):
        events = of(found.events, f"Material{number:03d}")
        mine = pc.equal(events["product"], found.partition).to_numpy(zero_copy_only=False)
        below = events["quality"].to_numpy() < plant.bar[number - 1] - 1e-4
        assert np.array_equal(below, mine if number in POOR.poor else np.zeros(len(mine), bool))


def test_material_is_taken_at_times_of_its_own() -> None:
    found = simulation(POOR)
    times = of(found.events, "Material009", found.spans[1].partition)["time"].cast(pa.int64()).to_numpy()
    assert np.diff(times).std() > 1_000_000


@pytest.mark.parametrize("anomaly", ANOMALIES, ids=lambda one: one.name)
def test_the_truth_names_what_was_changed(anomaly: Anomaly) -> None:
    (cause,) = anomaly.truth
    assert len(cause) == len(anomaly.silent) + len(anomaly.poor)
    assert len({one.name for one in ANOMALIES}) == 6


def test_the_reference_is_made_of_good_products_of_the_same_model() -> None:
    found = simulation(SILENT)
    starts = of(found.events, "ProductStart")
    models = dict(zip(starts["product"].to_pylist(), starts["model"].to_pylist(), strict=True))
    assert {one.partition for one in found.reference} <= set(found.related)
    assert {models[name] for name in found.related} == {models[found.partition]}
    assert found.partition not in found.related


def test_the_query_counts_the_steps_of_each_product() -> None:
    found = simulation(SILENT)
    rows = tl.run(found.query, found.events.filter(pc.equal(found.events["type"], "Step")))
    assert sum(rows["steps"].to_pylist()) == len(of(found.events, "Step"))
    assert set(rows["product"].to_pylist()) == {one.partition for one in found.spans}


def test_too_few_products_are_an_error() -> None:
    with pytest.raises(OptionError, match="with 4 products has no anomaly"):
        simulate_supply_chain(SILENT, 1, products=4)
