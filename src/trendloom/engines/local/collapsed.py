"""Collapsed trends of the local engine: all rows are found before the first leaves, and `matches` is as wide as needed.

There are polynomially many rows, so they are held.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from trendloom.engines import task
from trendloom.engines.collapsed import width_of
from trendloom.engines.events import Stream
from trendloom.engines.results import fitted, row_schema
from trendloom.engines.rows import in_order, match_rows
from trendloom.kernels.detection.matches import join
from trendloom.physical.plan import Physical


def collapsed_rows(
    physical: Physical, stream: Stream, *, limit: int | None = None, progress: task.Progress | None = None
) -> Iterator[pa.RecordBatch]:
    """Rows in order, `limit` of them at most; an empty batch first, so that columns are known where there is no row."""
    block, keys, found = task.detect(physical, stream)
    rows = in_order(block, join(list(task.watched(found, limit, progress))))
    exact = width_of(np.zeros(0, np.int64) if rows.stands_for is None else rows.stands_for)
    schema = row_schema(physical.plan, stream.table.schema, exact)
    yield pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
    for some in task.parts_of(rows):
        yield fitted(match_rows(physical, stream, block, keys, some, exact), schema)
