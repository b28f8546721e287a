"""Columns of times as whole numbers: what a tick is, the time axis says."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from trendloom.model.time import TimeAxis

Ticks = npt.NDArray[np.int64]


def ticks(column: pa.ChunkedArray, axis: TimeAxis) -> Ticks:
    """The times of a prepared column (no NULLs) as whole ticks."""
    if axis.timestamp:
        column = column.cast(pa.timestamp("us", getattr(column.type, "tz", None)))
    return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.int64)
