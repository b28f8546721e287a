"""Simulate the log of a small cluster, the same at every run: tasks, and the load of every node.

    python examples/cluster_load.py cluster.parquet

Nobody measured this: tasks begin and end at random, most of them are light, a few are heavy, and the load of a node is
the sum of those it runs. What is noted of it is as imprecise as in real clusters. The load is sampled every 15 seconds:
a sample holds the greatest load of the 15 seconds around its time, so the peak was up to 7.5 s before or after. Tasks
are logged by another machine, whose clock is off by up to half a second. The queries of imprecise_time.tql say how sure
one can be.

Each event has time, type (TaskStart, TaskEnd, Load) and node; those of tasks have task, samples have load and rise,
the load minus that of the sample before.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

NODES, MINUTES, SEED = 4, 30, 21
BEGIN = np.datetime64("2024-05-01T09:00:00", "ms")
PERIOD = 15_000
"""Milliseconds from one sample to the next."""
STEP = 100
"""Milliseconds from one moment of the simulation to the next."""
KINDS = ((0.2, 1.0, 40), (5.0, 8.0, 360))
"""Light and heavy tasks: the least and most that they load a node, and the seconds from one to the next, on average."""

Row = dict[str, Any]
TYPES = {
    "time": pa.timestamp("ms"), "type": pa.string(), "node": pa.string(), "task": pa.string(), "load": pa.float64(),
    "rise": pa.float64(),
}  # fmt: skip


def cluster_log(nodes: int = NODES, minutes: int = MINUTES, seed: int = SEED) -> pa.Table:
    """What was noted of so many nodes, in order of time."""
    random = np.random.default_rng(seed)
    rows: list[Row] = []
    for number in range(1, nodes + 1):
        node = f"node{number}"
        load = np.zeros(minutes * 60_000 // STEP)
        rows += _tasks(random, node, load)
        rows += _samples(node, load)
    rows.sort(key=lambda row: (row["time"], row["node"], row["type"]))
    return pa.table({name: pa.array([row.get(name) for row in rows], kind) for name, kind in TYPES.items()})


def _tasks(random: np.random.Generator, node: str, load: np.ndarray[Any, Any]) -> list[Row]:
    """Run tasks on a node: what is logged of them. Their load is added."""
    rows: list[Row] = []
    for kind, (least, most, pause) in zip("lh", KINDS, strict=True):
        number, begin = 0, random.exponential(pause) * 1000
        while begin < len(load) * STEP:
            end = begin + random.uniform(30, 120) * 1000
            load[int(begin) // STEP : int(end) // STEP] += random.uniform(least, most)
            number += 1
            task = f"{node}-{kind}{number}"
            for type, moment in (("TaskStart", begin), ("TaskEnd", end)):
                logged = int(moment + random.uniform(-500, 500)) // 10 * 10
                rows.append({"time": _at(logged), "type": type, "node": node, "task": task})
            begin += random.exponential(pause) * 1000
    return rows


def _samples(node: str, load: np.ndarray[Any, Any]) -> list[Row]:
    """The greatest load of each period, noted for its middle."""
    peaks = load.reshape(-1, PERIOD // STEP).max(axis=1).round(1)
    rises = np.diff(peaks, prepend=peaks[0]).round(1)
    return [
        {"time": _at(number * PERIOD + PERIOD // 2), "type": "Load", "node": node, "load": peak, "rise": rise}
        for number, (peak, rise) in enumerate(zip(peaks.tolist(), rises.tolist(), strict=True))
    ]


def _at(milliseconds: int) -> Any:
    return (BEGIN + np.timedelta64(milliseconds, "ms")).item()


def main(target: str) -> None:
    events = cluster_log()
    pq.write_table(events, Path(target))
    print(f"{len(events):,} events of {NODES} nodes: {target}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python examples/cluster_load.py FILE.parquet")
    main(sys.argv[1])
