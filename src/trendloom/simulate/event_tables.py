"""One table of all events from columns by type: a column that a type does not have is NULL there.

Cost: one sort by time, O(n log n).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, Any]
SECOND = 1_000_000
"""Ticks of a second: times are timestamps in microseconds."""


def event_table(parts: Sequence[tuple[str, Array, Mapping[str, Any]]]) -> pa.Table:
    """Events in time order, from (type, times in ticks, columns by name) of each type."""
    times = np.concatenate([time for _, time, _ in parts])
    types = np.repeat(np.arange(len(parts), dtype=np.int32), [len(time) for _, time, _ in parts])
    tables = [pa.table(dict(columns)) for _, _, columns in parts]
    attributes = pa.concat_tables(tables, promote_options="default")
    whole = pa.table(
        {
            "time": pa.array(times, pa.timestamp("us", tz="UTC")),
            "type": words(types, [name for name, _, _ in parts]),
            **{name: attributes[name] for name in attributes.column_names},
        }
    )
    return whole.take(pa.array(np.argsort(times, kind="stable"))).combine_chunks()


def words(codes: Array, names: Sequence[str]) -> pa.Array:
    """A text column from numbers of names."""
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(list(names))).cast(pa.string())
