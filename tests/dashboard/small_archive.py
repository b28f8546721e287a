"""A small archive to look at: load and memory of two nodes, one of which runs out of memory for five minutes.

One type and one node are called by what a browser must not run. Names of the stretches: `ABNORMAL`, `REFERENCE`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from trendloom.archive import open_archive, write_results
from trendloom.archive.requests import ArchiveRequest
from trendloom.engines.local.archive import archive_locally
from trendloom.options import Options

SCRIPT = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
NODES = ("n1", SCRIPT)
BEGIN = 1_700_000_000_000_000 // 60_000_000 * 60_000_000
SECOND = 1_000_000
STEPS, STEP = 360, 5 * SECOND  # half an hour
LOW, HIGH = 180, 240  # the steps that are abnormal
ABNORMAL = (BEGIN + LOW * STEP, BEGIN + HIGH * STEP)
REFERENCE = (BEGIN, BEGIN + (LOW - 12) * STEP)
QUERY = """QUERY latency:
  RETURN    node, COUNT(*) AS tasks, AVG(t.seconds) AS seconds
  PATTERN   Task t
  WHERE     [node]
  GROUP BY  node
  WITHIN    30 s"""


def make_archive(root: Path) -> Path:
    """Events, and the results of one query over them."""
    archive_locally(ArchiveRequest(root, QUERY, "history"), events_of_nodes(), Options())
    return root


def add_results(root: Path) -> None:
    """What a running stream would add: another row for each node."""
    at = BEGIN + (STEPS + 6) * STEP
    stamps = pa.array([at, at], pa.timestamp("us", "UTC"))
    rows = pa.table({"node": list(NODES), "tasks": [6, 6], "seconds": [77.0, 1.0], "at": stamps})
    write_results(root, "more", open_archive(root).queries()["latency"], rows)


def events_of_nodes() -> pa.Table:
    random = np.random.default_rng(5)
    times = BEGIN + np.arange(STEPS) * STEP
    wrong = (np.arange(STEPS) >= LOW) & (np.arange(STEPS) < HIGH)
    tables = [
        _table(times, "Task", {"seconds": np.where(wrong, 9.0, 1.0) + random.random(STEPS)}),
        _table(times + 1, "Memory", {"free": np.where(wrong, 40.0, 400.0) + 20 * random.random(STEPS)}),
        _table(times + 2, "Disk", {"writes": random.integers(0, 50, STEPS).astype(np.float64)}),
        _table(times[::12] + 3, SCRIPT, {"writes": random.integers(0, 50, STEPS // 12).astype(np.float64)}),
    ]
    return pa.concat_tables(tables, promote_options="default").sort_by("time")


def _table(times: np.ndarray, kind: str, columns: dict[str, np.ndarray]) -> pa.Table:
    nodes = [NODES[number % 2] for number in range(len(times))]
    stamps = pa.array(times, pa.timestamp("us", "UTC"))
    return pa.table({"time": stamps, "type": [kind] * len(times), "node": nodes, **columns})
