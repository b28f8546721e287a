"""System metrics of the nodes of a cluster, every few seconds: what runs and interference do to them.

Every metric has a level of its own on each node, follows what takes the resource (some at once, some with a delay),
and wanders. Some change for reasons of their own: uptime and free disk only ever go one way, the cache drifts,
a daemon's heap is a saw, temperatures follow the hour. These separate two stretches of time by nature, or by chance.
The levels of nodes belong to the cluster: they are the same for every seed. Cost: O(nodes · reports · metrics).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.simulate.simulation import SECOND, followed, wandering, words

HARDWARE = 20_140_310
"""The seed of what is bolted to the floor."""
MEMORY, SWAP, DISK, CORES = 16_384.0, 4_096.0, 2_000.0, 8
"""What a node has: megabytes, megabytes, gigabytes, and so many cores."""
BOOTED = 1_700_000_000
"""The second of 1970 when the first node was booted; the others followed in the hours after."""


@dataclass(frozen=True, eq=False)
class Pressure:
    """What is taken at each report of each node: [reports, nodes]. `hog` is interference by kind."""

    every: float
    cpu: Array
    memory: Array
    read: Array
    write: Array
    network: Array
    tasks: Array
    hog: Mapping[str, Array]


def pressure(
    random: np.random.Generator, taken: Mapping[str, Array], hogs: Mapping[str, Array], nodes: int, every: float
) -> Pressure:
    """Shares of the nodes: not all do the same part of a run, and interference does not hit all of them alike."""
    at = np.arange(0.0, len(taken["cpu"]), every).astype(np.int64)
    share = np.random.default_rng(HARDWARE).uniform(0.85, 1.15, nodes)
    uneven = 1.0 + 0.1 * wandering(random, (len(at), nodes), 0.8)
    spread = {name: values[at, None] * share * uneven for name, values in taken.items()}
    hit = np.where(random.random(nodes) < 0.85, random.uniform(0.8, 1.2, nodes), 0.0)
    return Pressure(every=every, hog={kind: values[at, None] * hit for kind, values in hogs.items()}, **spread)


@dataclass(frozen=True, eq=False)
class RandomWalk:
    """Draws noise of the shape of the reports; `memory` is that of values 15 s apart."""

    random: np.random.Generator
    shape: tuple[int, int]
    every: float

    def __call__(self, memory: float = 0.6) -> Array:
        """Part of it is that of the cluster, part that of each node."""
        kept = memory ** (self.every / 15.0)
        mine = wandering(self.random, self.shape, kept)
        ours = wandering(self.random, (self.shape[0], 1), kept)
        found: Array = 0.8 * mine + 0.6 * ours
        return found


def metric_events(
    random: np.random.Generator, under: Pressure, nodes: list[str], origin: int
) -> list[tuple[str, Array, dict[str, Any]]]:
    """Reports of all nodes by type: (type, times in ticks, columns)."""
    reports, count = under.cpu.shape
    late = np.random.default_rng(HARDWARE + 1).uniform(0.0, under.every, count)
    second = np.arange(reports)[:, None] * under.every + late
    draw = RandomWalk(random, (reports, count), under.every)
    cpu = cpu_usage(under, draw)
    kinds = {
        "CPUUsage": cpu,
        **memory_and_swap(under, draw),
        "Load": load(under, cpu, draw),
        "Disk": disk(under, draw),
        **network(random, under, draw),
        "Processes": processes(under, draw),
        "Automaton": machine(under, cpu, origin // SECOND + second, draw),
        "Daemon": daemon(under, origin // SECOND + second, draw),
    }
    column = words(np.tile(np.arange(count), reports), nodes)
    found = []
    for place, (name, values) in enumerate(kinds.items()):
        times = origin + np.round((second + 0.01 * place + random.uniform(0, 0.005, second.shape)) * SECOND)
        columns = {key: np.round(some, 4).ravel() for key, some in values.items()}
        found.append((name, times.astype(np.int64).ravel(), {"node": column, **columns}))
    return found


# -------------------------------------------------------------------------------------------------- the metrics


def cpu_usage(under: Pressure, draw: RandomWalk) -> dict[str, Array]:
    """Percent of the time; what is not used is idle, and there is never more than 100."""
    user = 5 + 16 * under.cpu + 45 * under.hog["cpu"] + 1.5 * draw()
    system = 3 + 3 * under.cpu + 3 * under.network + 4 * under.hog["network"] + 4 * under.hog["disk"] + 0.5 * draw()
    iowait = 1.5 + 2.5 * under.write + 28 * under.hog["disk"] + 3 * under.hog["memory"] + 0.5 * draw()
    nice = 0.4 + 0.1 * draw()
    used = np.maximum([user, system, iowait, nice], 0.0)
    used *= np.minimum(1.0, 98.5 / used.sum(axis=0))
    return {**dict(zip(("user", "system", "iowait", "nice"), used, strict=True)), "idle": 100.0 - used.sum(axis=0)}


def memory_and_swap(under: Pressure, draw: RandomWalk) -> dict[str, dict[str, Array]]:
    """Megabytes: a program that takes memory leaves less for caches; what is idle is swapped out, later."""
    taken = 3_000 + 1_400 * under.memory + 5_600 * under.hog["memory"] + 90 * draw()
    squeezed = 1.0 - 0.55 * np.minimum(under.hog["memory"], 1.4)
    cached = (3_000 + 250 * draw(0.999)) * squeezed + 60 * draw()
    buffers = (420 + 25 * draw(0.995)) * squeezed + 6 * draw()
    late = followed(under.hog["memory"], 45.0 / under.every)
    return {
        "Memory": {
            "free": np.maximum(MEMORY - taken - cached - buffers, 120 + 8 * draw()),
            "cached": np.maximum(cached, 100.0),
            "buffers": np.maximum(buffers, 20.0),
            "shared": 260 + 12 * draw(0.99),
        },
        "Swap": {
            "free": np.clip(SWAP - 180 - 2_300 * late - 25 * draw(0.98), 0.0, SWAP),
            "paged_in": np.maximum(4 + 60 * under.hog["memory"] + 1.5 * draw(0.2), 0.0),
            "paged_out": np.maximum(3 + 90 * under.hog["memory"] + 1.5 * draw(0.2), 0.0),
        },
    }


def load(under: Pressure, cpu: Mapping[str, Array], draw: RandomWalk) -> dict[str, Array]:
    """Averages of the processes that want to run, over one, five and fifteen minutes."""
    wanting = CORES * (cpu["user"] + cpu["system"] + 1.2 * cpu["iowait"]) / 100 + 3.5 * under.hog["cpu"]
    return {
        name: np.maximum(followed(wanting, 60 * minutes / under.every) + noise * draw(), 0.0)
        for name, minutes, noise in (("one", 0.5, 0.25), ("five", 5, 0.1), ("fifteen", 15, 0.05))
    }


def disk(under: Pressure, draw: RandomWalk) -> dict[str, Array]:
    """Megabytes a second, percent of the time that the disk is busy, and gigabytes left."""
    read = np.maximum(2 + 24 * under.read + 2.5 * draw(), 0.0)
    write = np.maximum(3 + 18 * under.write + 75 * under.hog["disk"] + 8 * under.hog["memory"] + 2.5 * draw(), 0.0)
    busy = np.clip(4 + 0.35 * read + 0.7 * write + 2.5 * draw(), 0.0, 100.0)
    left = DISK - 400 - np.cumsum(write * under.every, axis=0) / 1e5
    return {"read": read, "write": write, "busy": busy, "free": left}


def network(random: np.random.Generator, under: Pressure, draw: RandomWalk) -> dict[str, dict[str, Array]]:
    """Megabytes and packets a second, connections and what had to be sent again."""
    moved = 1.5 + 16 * under.network + 55 * under.hog["network"]
    bytes_in, bytes_out = (np.maximum(moved + 1.8 * draw(), 0.1) for _ in range(2))
    return {
        "Network": {
            "bytes_in": bytes_in,
            "bytes_out": bytes_out,
            "packets_in": np.maximum(bytes_in * (820 + 15 * draw()), 0.0),
            "packets_out": np.maximum(bytes_out * (790 + 15 * draw()), 0.0),
        },
        "Connections": {
            "open": np.round(140 + 22 * under.network + 12 * under.hog["network"] + 4 * draw()),
            "sent_again": random.poisson(1.0 + 0.8 * under.network + 9.0 * under.hog["network"]).astype(np.float64),
        },
    }


def processes(under: Pressure, draw: RandomWalk) -> dict[str, Array]:
    others = sum((values > 0.05).astype(np.float64) for values in under.hog.values())
    return {
        "total": np.round(214 + 9 * under.tasks + 2 * others + 2.0 * draw(0.95)),
        "running": np.round(np.maximum(1 + 3.0 * under.cpu + 4 * under.hog["cpu"] + 0.8 * draw(), 0.0)),
    }


def machine(under: Pressure, cpu: Mapping[str, Array], second: Array, draw: RandomWalk) -> dict[str, Array]:
    """Uptime, heat and power: what the load does to the box itself, and what the hour does."""
    booted = BOOTED + np.random.default_rng(HARDWARE + 2).uniform(0, 3_600, under.cpu.shape[1])
    hour = np.sin(2 * np.pi * (second % 86_400) / 86_400)
    heat = followed(cpu["user"], 240.0 / under.every)
    return {
        "uptime": second - booted,
        "temperature": 31 + 3 * hour + 0.12 * heat + 0.6 * draw(0.98),
        "power": 140 + 0.9 * cpu["user"] + 3.0 * draw(),
        "fan": 2_400 + 110 * hour + 5.0 * heat + 30 * draw(0.95),
    }


def daemon(under: Pressure, second: Array, draw: RandomWalk) -> dict[str, Array]:
    """The process that starts tasks: its heap fills and is collected, with a period of its own on each node."""
    period = np.random.default_rng(HARDWARE + 3).uniform(400, 1_600, under.cpu.shape[1])
    turn = (second / period) % 1.0
    return {
        "heap": 300 + 500 * turn + 12 * draw(),
        "threads": np.round(60 + 4 * under.tasks + 1.5 * draw(0.9)),
        "offset": 0.8 * draw(0.999) + 0.05 * draw(0.2),
    }
