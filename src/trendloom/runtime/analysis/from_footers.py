"""Statistics of Parquet files without reading a row: what the footers say of row groups.

How many events there are is always known; times, NULLs and types only where every row group tells.
Cost: O(row groups · columns), and nothing is read that opening the files has not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from trendloom.io.events import ticks
from trendloom.io.parquet import ParquetFiles
from trendloom.logical.statistics import Origin, Statistics
from trendloom.model.schema import Schema


def statistics_of_footers(files: ParquetFiles, schema: Schema) -> Statistics:
    """What the footers tell of a stream."""
    bounds = _times(files, schema)
    return Statistics(
        Origin.FOOTERS,
        files.rows,
        0,
        _types(files, schema.type),
        first=None if bounds is None else bounds[0],
        last=None if bounds is None else bounds[1],
        nulls={name: nulls for name in files.columns.names if (nulls := _nulls(files, name)) is not None},
    )


def _groups(files: ParquetFiles, name: str) -> Iterator[tuple[int, Any]]:
    """For every row group with rows how many it has, and the statistics of a column in it (None: there are none)."""
    for footer in files.footers:
        for group in (footer.row_group(number) for number in range(footer.num_row_groups)):
            if group.num_rows:
                leaves = {group.column(at).path_in_schema: at for at in range(group.num_columns)}
                yield group.num_rows, group.column(leaves[name]).statistics if name in leaves else None


def _times(files: ParquetFiles, schema: Schema) -> tuple[int, int] | None:
    found = [statistics for _, statistics in _groups(files, schema.time)]
    if not found or schema.imprecise or any(one is None or not one.has_min_max for one in found):
        return None
    ends = [min(one.min for one in found), max(one.max for one in found)]
    try:
        times = pa.chunked_array([pa.array(ends, files.columns.field(schema.time).type)])
        first, last = ticks(times, schema.axis).tolist()
    except pa.ArrowException:  # text, or not whole microseconds: whoever reads the rows says so better
        return None
    return first, last


def _nulls(files: ParquetFiles, name: str) -> float | None:
    """Events without a value in a column; None: some row group does not tell."""
    if name in files.keys:
        return float(
            sum(f.num_rows for f, key in zip(files.footers, files.keys[name], strict=True) if not key.is_valid)
        )
    found = [statistics for _, statistics in _groups(files, name)]
    if any(one is None or not one.has_null_count for one in found):
        return None
    return float(sum(one.null_count for one in found))


def _types(files: ParquetFiles, name: str) -> dict[str, float]:
    """Events of each type, where all events of a row group are of one; {}: they are not, or nobody tells."""
    counts: dict[str, float] = {}
    if name in files.keys:
        for footer, key in zip(files.footers, files.keys[name], strict=True):
            counts[str(key)] = counts.get(str(key), 0.0) + footer.num_rows
        return counts
    for rows, one in _groups(files, name):
        if one is None or not one.has_min_max or one.min != one.max or not one.has_null_count or one.null_count:
            return {}
        counts[str(one.min)] = counts.get(str(one.min), 0.0) + rows
    return counts
