"""Products made one after the other under 100 sensors, of 100 materials: a sensor that stops, material below its bar.

A sensor reports at a fixed rate, within its valid range; a machine records the quality of its material whenever it
takes some, and good material is at or above the bar. Levels drift from product to product and lots of material differ,
within what is valid. The annotated product was claimed by its customer: all its time is abnormal, and that of some
products of the same model, which nobody claimed, is the reference. The query shows how steps go on; it does not show
the reason. After H. Zhang, "High-Performance Complex Event Processing for Decision Analytics", section 5.7.3.
Cost: 200,000 events in a fraction of a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.simulate.simulation import (
    SECOND,
    Cause,
    SimulatedStretch,
    Simulation,
    check_least,
    event_table,
    wandering,
    words,
)

TUESDAY = 1_712_016_000
"""2024-04-02, the day of seed 0; each seed is the next day."""
QUERY = """\
RETURN  product, COUNT(*) AS steps, AVG(s.duration) AS seconds
PATTERN Step s
WHERE   [product]
GROUP BY product
WITHIN  30 seconds
"""
SENSORS = MATERIALS = 100
MODELS = ("wing", "rudder")
PLANT = 20_151_101
"""The seed of what does not change from day to day: rates, ranges and bars."""


@dataclass(frozen=True)
class Anomaly:
    """Sensors that are silent for the product, and materials that are below their bar, by number."""

    name: str
    silent: tuple[int, ...] = ()
    poor: tuple[int, ...] = ()

    @property
    def truth(self) -> tuple[Cause, ...]:
        """What goes silent with one product goes silent together, and so for material: that is one cause."""
        stopped = frozenset((f"Sensor{number:03d}", None) for number in self.silent)
        below = frozenset((f"Material{number:03d}", "quality") for number in self.poor)
        return tuple(cause for cause in (stopped, below) if cause)


ANOMALIES: tuple[Anomaly, ...] = (
    Anomaly("one sensor is silent", silent=(17,)),
    Anomaly("two sensors are silent", silent=(4, 61)),
    Anomaly("three sensors are silent", silent=(8, 33, 92)),
    Anomaly("one material is poor", poor=(23,)),
    Anomaly("two materials are poor", poor=(40, 77)),
    Anomaly("three materials are poor", poor=(5, 52, 88)),
)
"""Three of missing monitoring, three of sub-par material."""


@dataclass(frozen=True, eq=False)
class Plant:
    """Periods of sensors in seconds and their valid ranges; seconds between two takes of material, and the bars."""

    period: Array
    low: Array
    high: Array
    pause: Array
    bar: Array


@dataclass(frozen=True, eq=False)
class Products:
    """Products in the order they are made: when each begins and how long it takes, in seconds, and its model."""

    names: tuple[str, ...]
    model: Array
    begin: Array
    length: Array


def build_plant() -> Plant:
    random = np.random.default_rng(PLANT)
    low = random.uniform(-20.0, 80.0, SENSORS)
    return Plant(
        period=random.choice([5, 10, 15, 20, 30], SENSORS),
        low=low,
        high=low + random.uniform(5.0, 60.0, SENSORS),
        pause=random.uniform(6.0, 16.0, MATERIALS),
        bar=random.uniform(55.0, 85.0, MATERIALS),
    )


def simulate_supply_chain(anomaly: Anomaly, seed: int, *, products: int = 20, references: int = 6) -> Simulation:
    """One of `products` products has the anomaly; `references` others of its model are known to be good."""
    check_least("products", products, 5)
    check_least("references", references, 1)
    random = np.random.default_rng([seed, *map(ord, anomaly.name)])
    origin = (TUESDAY + 86_400 * seed + int(random.integers(0, 43_200))) * SECOND
    made = _products(random, products)
    claimed = int(random.integers(2, products - 2))
    plant = build_plant()
    parts = [
        *_sensor_events(random, plant, made, origin, {(claimed, number) for number in anomaly.silent}),
        *_material_events(random, plant, made, origin, {(claimed, number) for number in anomaly.poor}),
        *_step_events(random, made, origin),
    ]
    spans = [_span(made, number, origin) for number in range(products)]
    same = [number for number in range(products) if made.model[number] == made.model[claimed] and number != claimed]
    good = sorted(int(one) for one in random.choice(same, min(references, len(same)), replace=False))
    return Simulation(
        name=anomaly.name,
        events=event_table(parts),
        query=QUERY,
        key="product",
        dimensions=("model",),
        abnormal=(spans[claimed],),
        reference=tuple(spans[number] for number in good),
        truth=anomaly.truth,
        related=tuple(made.names[number] for number in same),
        spans=tuple(spans),
    )


def _products(random: np.random.Generator, count: int) -> Products:
    length = random.uniform(540.0, 720.0, count)
    begin = np.concatenate([[0.0], np.cumsum(length + random.uniform(60.0, 150.0, count))[:-1]])
    model = np.tile(np.arange(len(MODELS)), count)[:count]
    return Products(tuple(f"product-{number + 1:03d}" for number in range(count)), model, begin, length)


def _span(made: Products, number: int, origin: int) -> SimulatedStretch:
    low = made.begin[number]
    return SimulatedStretch(made.names[number], *(origin + int(t * SECOND) for t in (low, low + made.length[number])))


Part = tuple[str, Array, dict[str, Any]]


def _sensor_events(
    random: np.random.Generator, plant: Plant, made: Products, origin: int, silent: set[tuple[int, int]]
) -> list[Part]:
    """Reports at a fixed rate while a product is made, within the valid range."""
    found = []
    for number in range(SENSORS):
        period = plant.period[number]
        reports = np.arange(float(number % period), made.begin[-1] + made.length[-1], period)
        product = np.searchsorted(made.begin, reports, side="right") - 1
        quiet = [claimed for claimed, sensor in silent if sensor == number + 1]
        there = (reports < made.begin[product] + made.length[product]) & ~np.isin(product, quiet)
        middle, wide = (plant.high + plant.low)[number] / 2, (plant.high - plant.low)[number]
        swing = 0.07 * wandering(random, (len(reports),), 0.7) + 0.07 * wandering(random, (len(reports),), 0.999)
        value = np.clip(middle + wide * swing, plant.low[number], plant.high[number])
        found.append(_part(f"Sensor{number + 1:03d}", made, origin, reports[there], product[there], value[there]))
    return found


def _material_events(
    random: np.random.Generator, plant: Plant, made: Products, origin: int, poor: set[tuple[int, int]]
) -> list[Part]:
    """What machines take at times of their own: at or above the bar, unless the lot is poor."""
    found = []
    for number in range(MATERIALS):
        takes = int(2.5 * (made.begin[-1] + made.length[-1]) / plant.pause[number])
        taken = np.cumsum(random.gamma(3.0, plant.pause[number] / 3.0, takes))
        product = np.searchsorted(made.begin, taken, side="right") - 1
        there = taken < made.begin[product] + made.length[product]
        lot = random.uniform(5.0, 9.0, len(made.names))[product]
        above = np.abs(lot + 3.0 * random.normal(size=takes))
        below = np.isin(product, [claimed for claimed, material in poor if material == number + 1])
        quality = plant.bar[number] + np.where(below, -random.uniform(0.5, 8.0, takes), above)
        name = f"Material{number + 1:03d}"
        found.append(_part(name, made, origin, taken[there], product[there], quality[there], "quality"))
    return found


def _step_events(random: np.random.Generator, made: Products, origin: int) -> list[Part]:
    """Begin and end of each product, and the steps between: about one every six seconds."""
    whole = np.arange(len(made.names))
    steps = np.cumsum(random.gamma(4.0, 1.5, int((made.begin[-1] + made.length[-1]) / 4)))
    product = np.searchsorted(made.begin, steps, side="right") - 1
    there = steps < made.begin[product] + made.length[product]
    took = random.gamma(9.0, 0.6, len(steps))
    return [
        _part("ProductStart", made, origin, made.begin, whole),
        _part("Step", made, origin, steps[there], product[there], took[there], "duration"),
        _part("ProductEnd", made, origin, made.begin + made.length - 0.001, whole),
    ]


def _part(
    kind: str,
    made: Products,
    origin: int,
    seconds: Array,
    product: Array,
    value: Array | None = None,
    attribute: str = "value",
) -> Part:
    columns: dict[str, Any] = {
        "product": words(product, made.names),
        "model": words(made.model[product], MODELS),
    }
    if value is not None:
        columns[attribute] = np.round(value, 4)
    return kind, origin + np.round(seconds * SECOND).astype(np.int64), columns
