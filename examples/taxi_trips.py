"""Make up a month of taxi trips, the same at every run: two events for each trip, a Pickup and a Dropoff.

    python examples/taxi_trips.py trips.parquet

The queries of taxi_workload.tql ask about them. Columns and the numbers of zones are those that trip records of New
York become as events (README.md); the trips never happened. Like real ones they have rough edges: trips without
passengers or vendor, trips of zero length, meters that ran all night, fares agreed on beforehand.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Array = np.ndarray[Any, Any]

TRIPS, SEED, DAYS = 10_000, 2019, 31
MIDNIGHT = np.datetime64("2019-05-01T04:00:00", "us")  # of New York, in UTC
ZONES = 263
# zone: where it is, in miles east and north of Midtown; its share of pickups and of dropoffs
PLACES = {
    132: (10.5, -8.0, 0.030, 0.012),  # JFK airport
    138: (5.5, 1.5, 0.028, 0.015),  # LaGuardia
    161: (0.0, 0.0, 0.042, 0.041),  # Midtown
    186: (-1.0, -0.4, 0.035, 0.028),  # Penn Station
    230: (-0.6, 0.2, 0.038, 0.035),  # Times Square
    236: (0.8, 1.9, 0.038, 0.038),  # Upper East Side, north
    237: (0.5, 1.1, 0.041, 0.037),  # Upper East Side, south
}
BUSY = np.array([5, 3, 2, 1, 1, 2, 4, 7, 8, 8, 8, 8, 9, 9, 9, 9, 8, 9, 11, 11, 10, 10, 9, 7])  # by hour of New York
FIRST, EXTRAS, PER_MILE, PER_MINUTE = 2.5, 3.3, 2.0, 0.4
"""What a ride costs, in dollars."""
CARD, CASH, NO_CHARGE, DISPUTE = 1, 2, 3, 4


def made_up_trips(trips: int = TRIPS, seed: int = SEED) -> pa.Table:
    """Pickups and Dropoffs of so many trips, in order of time; of one time by trip, the Pickup first."""
    random = np.random.default_rng(seed)
    begin = np.sort(_times(random, trips))
    where, pickups, dropoffs = _zones(random)
    start, end = random.choice(ZONES, trips, p=pickups), random.choice(ZONES, trips, p=dropoffs)
    distance = np.abs(where[start] - where[end]).sum(axis=1) * random.uniform(0.95, 1.3, trips) + 0.3
    minutes = distance / random.uniform(6, 20, trips) * 60 + random.exponential(4, trips)
    fare = np.round((FIRST + PER_MILE * distance + PER_MINUTE * minutes) * 2) / 2
    fare[random.random(trips) < 0.01] += 25  # agreed on beforehand
    minutes[random.random(trips) < 0.002] += 22 * 60  # the meter ran all night
    minutes[random.random(trips) < 0.002] = 0
    payment = random.choice([CARD, CASH, NO_CHARGE, DISPUTE], trips, p=[0.72, 0.27, 0.007, 0.003])
    tip = np.where(payment == CARD, fare * random.uniform(0, 0.3, trips), 0)
    vendor, passengers = random.choice([1, 2, 4], trips, p=[0.38, 0.61, 0.01]), _passengers(random, trips)
    unknown = random.random(trips) < 0.02
    number = np.arange(1, trips + 1)
    of_trip = {"passengers": pa.array(passengers, mask=unknown), "vendor": pa.array(vendor, mask=unknown)}
    begins = {"time": begin, "type": ["Pickup"] * trips, "trip": number, "zone": start + 1} | of_trip
    ends = {
        "time": begin + (minutes * 60).astype("timedelta64[s]"), "type": ["Dropoff"] * trips, "trip": number,
        "zone": end + 1, **of_trip, "distance": distance.round(2), "fare": fare, "tip": tip.round(2),
        "total": (fare + EXTRAS + tip).round(2), "payment": payment,
    }  # fmt: skip
    events = pa.concat_tables([pa.table(begins), pa.table(ends)], promote_options="default")
    return events.take(pa.array(np.lexsort([np.tile(number, 2), events["time"].to_numpy()])))


def _times(random: np.random.Generator, trips: int) -> Array:
    """Whole seconds of a month, more of them in busy hours."""
    hour = random.choice(24, trips, p=BUSY / BUSY.sum())
    seconds = (random.integers(0, DAYS, trips) * 24 + hour) * 3600 + random.integers(0, 3600, trips)
    return MIDNIGHT + seconds.astype("timedelta64[s]")


def _zones(random: np.random.Generator) -> tuple[Array, Array, Array]:
    """Where zones lie, and their shares of pickups and of dropoffs; one that the queries do not name has some share."""
    where = random.normal(0, [1.5, 3.0], (ZONES, 2))
    popular = 1 / random.permutation(np.arange(5, ZONES + 5))
    named = np.array(list(PLACES)) - 1
    places = np.array(list(PLACES.values()))
    where[named] = places[:, :2]
    popular[named] = 0
    pickups, dropoffs = (popular / popular.sum() * (1 - places[:, at].sum()) for at in (2, 3))
    pickups[named], dropoffs[named] = places[:, 2], places[:, 3]
    return where, pickups, dropoffs


def _passengers(random: np.random.Generator, trips: int) -> Array:
    return random.choice(7, trips, p=[0.02, 0.70, 0.15, 0.04, 0.02, 0.04, 0.03])


def main(target: str) -> None:
    events = made_up_trips()
    pq.write_table(events, Path(target))
    print(f"{len(events):,} events of {TRIPS:,} trips: {target}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python examples/taxi_trips.py FILE.parquet")
    main(sys.argv[1])
