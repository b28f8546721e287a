"""Events for tests of archives: two types with attributes of their own, one event a second."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from trendloom.archive import ArchivedQuery, create_archive, write_events

QUERY = ArchivedQuery("load", "RETURN ...", ("node",), ("mean",), {"node": "string", "mean": "number"}, ("Load",))


def events(start: int, stop: int, kind: pa.DataType | None = None) -> pa.Table:
    """Seconds [start, stop): loads on even ones, starts of tasks on odd ones; times whole numbers or timestamps."""
    seconds = np.arange(start, stop)
    times = pa.array(seconds) if kind is None else pa.array(seconds * 1_000_000, pa.timestamp("us", kind.tz)).cast(kind)
    even = seconds % 2 == 0
    return pa.table(
        {
            "time": times,
            "type": np.where(even, "Load", "Task Start/ä"),
            "node": np.where(seconds % 4 < 2, "n1", "n2"),
            "idle": pa.array(seconds / 2, mask=~even),
            "job": pa.array(seconds, mask=even),
            "nothing": pa.nulls(len(seconds)),
        }
    )


def rows(ats: list[int], nodes: list[str]) -> pa.Table:
    return pa.table({"node": nodes, "mean": [at / 2 for at in ats], "at": ats})


def archive_of_seconds(root: Path, stop: int = 100, chunk: int = 10) -> Path:
    """An archive with one commit, times in whole seconds."""
    create_archive(root, unit="s", chunk=chunk)
    write_events(root, "first", events(0, stop))
    return root
