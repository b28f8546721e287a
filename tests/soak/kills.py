"""Kills at random moments in the middle of batches, and how long the stream takes to go on."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice

from tests.spark.streaming_cluster import Cluster, Driver, kill, processor_time, wait_until

KINDS = ("python", "worker", "driver", "executor")
"""A Python worker; a worker with all its processes, as if the machine went; the driver; an executor alone."""
PATIENCE = 300.0


@dataclass(frozen=True)
class Kill:
    """`at` is the clock's time; `recovery`: seconds until the next batch was done."""

    kind: str
    at: float
    batch: int
    recovery: float


def timetable(kills: int, seconds: float, draw: random.Random) -> Iterator[tuple[float, str]]:
    """When to kill what, from the start on. Both halves have the same kinds, so that their memory can be compared."""
    half = list(islice(cycle(KINDS), (kills + 1) // 2))
    kinds = (draw.sample(half, len(half)) + draw.sample(half, len(half)))[:kills]
    begin, end = 0.1 * seconds, 0.95 * seconds
    slot = (end - begin) / max(kills, 1)
    for number, kind in enumerate(kinds):
        yield begin + (number + draw.uniform(0, 0.5)) * slot, kind


def strike(kind: str, cluster: Cluster, driver: Driver, draw: random.Random) -> Kill:
    """Kill in the middle of a batch, and wait until the stream has gone on."""
    driver.wait_for_batch(driver.committed() + 1, PATIENCE)
    time.sleep(draw.uniform(0, 2))  # a moment that nobody chose
    driver.wait_for_batch(driver.committed() + 1, PATIENCE)
    batch, at = driver.begun(), time.time()
    if kind == "driver":
        driver.kill()
        driver.start()
    elif kind == "worker":
        number = draw.randrange(cluster.workers)
        cluster.kill_worker(number)
        cluster.start_worker(number)
    elif kind == "executor":
        kill(draw.choice(cluster.executors()))
    else:
        kill(busy_python_worker(cluster))
    wait_until(lambda: driver.committed() >= batch, f"batch {batch} done after a kill ({kind})", PATIENCE)
    driver.check()
    return Kill(kind, at, batch, time.time() - at)


def busy_python_worker(cluster: Cluster) -> int:
    """One that is computing; an idle one is missed by nobody."""
    found: list[int] = []
    before: dict[int, int] = {}

    def one_computes() -> bool:
        now = {pid: processor_time(pid) for pid in cluster.python_workers()}
        found.extend(pid for pid, spent in now.items() if spent > before.get(pid, spent))
        before.update(now)
        return bool(found)

    wait_until(one_computes, "a Python worker that computes", PATIENCE)
    return found[0]
