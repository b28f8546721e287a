"""A small archive whose anomaly has a known reason: runs of a program, one after the other, two short of memory.

Runs last ten minutes. `Step` is what a run does (the query adds up the sizes per half a minute), `Memory` and `Uptime`
tell of the machine. In the first four minutes of j3 and of j5 free memory is low, and steps are small. `Uptime` grows
within every run, so it tells the same two stretches apart without being the reason.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.archive import Archive, open_archive
from trendloom.engines.local.archive import ArchiveRequest, archive_locally
from trendloom.options import Options

QUERY = "QUERY moved: RETURN job, SUM(s.size) AS moved PATTERN Step s WHERE [job] GROUP BY job WITHIN 30"
LENGTH, SHORT = 600, 240
SICK = ("j3", "j5")
FIRST = 3000
"""When the first run begins: not at a border of the archive's chunks."""

ABNORMAL = (FIRST + 2 * LENGTH, FIRST + 2 * LENGTH + SHORT)
"""Of j3."""
REFERENCE = (FIRST + 2 * LENGTH + SHORT, FIRST + 3 * LENGTH)


def begin_of(run: int) -> int:
    """When run number 1, 2, ... begins."""
    return FIRST + (run - 1) * LENGTH


def events_of_runs(runs: int = 6, seed: int = 3) -> pa.Table:
    """The events of all runs, by time."""
    draw = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for number in range(1, runs + 1):
        job, begin = f"j{number}", begin_of(number)
        for at in range(0, LENGTH, 5):
            sick = job in SICK and at < SHORT
            free = draw.normal(20 if sick else 100, 3)
            size = int(draw.integers(5, 10) if sick else draw.integers(50, 60))
            rows.append({"type": "Step", "time": begin + at, "job": job, "program": "sort", "size": size})
            rows.append({"type": "Memory", "time": begin + at, "node": f"n{at % 2}", "free": free})
            rows.append({"type": "Load", "time": begin + at + 1, "node": f"n{at % 2}", "one": draw.normal(1, 0.2)})
            if at % 10 == 0:
                rows.append({"type": "Uptime", "time": begin + at, "seconds": float(at)})
    names = ("type", "time", "job", "program", "size", "node", "free", "one", "seconds")
    kinds = {"time": pa.int64(), "size": pa.int64(), "free": pa.float64(), "one": pa.float64(), "seconds": pa.float64()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in names])
    return pa.Table.from_pylist(rows, schema)


def archive_of_runs(root: Path, events: pa.Table | None = None, query: str = QUERY, **options: Any) -> Archive:
    """The archive of these events and of the query's rows."""
    request = ArchiveRequest(root, query, "runs", chunk=options.pop("chunk", 1000), **options)
    archive_locally(request, events_of_runs() if events is None else events, Options(engine="local"))
    return open_archive(root)


def in_dates(events: pa.Table) -> pa.Table:
    """The same with timestamps: seconds since 1970."""
    times = events.column("time").cast(pa.timestamp("s", "UTC")).cast(pa.timestamp("us", "UTC"))
    return events.set_column(events.column_names.index("time"), "time", times)
