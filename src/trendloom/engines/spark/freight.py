"""Matrices as rows of a DataFrame, and back: what the reduced path shuffles instead of events.

A row is either a piece (`PANE` is there) or an event. Both have the key's columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.kernels.contract import PANE
from trendloom.kernels.matrices.packing import BEGIN, END, LEAST, piece_columns, stack_name
from trendloom.kernels.matrices.pieces import Pieces

Array = np.ndarray[Any, Any]

CUT = " cut"
MOST_BYTES = 1 << 25
"""Bytes of matrices in one Arrow batch."""


def freight_schema(events: pa.Schema, stacks: int) -> pa.Schema:
    """Columns of events, then `CUT` for events, then those of pieces."""
    numbers = [pa.field(name, pa.int64()) for name in (CUT, PANE, BEGIN, END)]
    matrices = [pa.field(name, pa.binary()) for name in (*map(stack_name, range(stacks)), LEAST)]
    return pa.schema([field.with_nullable(True) for field in events] + numbers + matrices)


def event_rows(schema: pa.Schema, events: pa.Table, cut: Array) -> Iterator[pa.RecordBatch]:
    """Events that travel as they are; those of one cut may be reduced together."""
    yield from _filled(schema, {name: events[name] for name in events.column_names} | {CUT: pa.array(cut)}, len(events))


def piece_rows(schema: pa.Schema, keys: pa.Table, pieces: Pieces) -> Iterator[pa.RecordBatch]:
    """Pieces with the key columns of each (`keys` has one row per piece)."""
    width = 16 * sum(stack.low[0].size for stack in pieces.stacks) + 8 * pieces.least[:, 0].size if len(pieces) else 1
    step = max(1, MOST_BYTES // max(1, width))
    for at in range(0, len(pieces), step):
        some = pieces.take(np.arange(at, min(at + step, len(pieces))))
        columns: dict[str, Any] = {name: keys[name].slice(at, len(some)) for name in keys.column_names}
        columns |= piece_columns(some)
        yield from _filled(schema, columns, len(some))


def _filled(schema: pa.Schema, columns: dict[str, Any], rows: int) -> Iterator[pa.RecordBatch]:
    arrays = [columns[field.name].cast(field.type) if field.name in columns else pa.nulls(rows, field.type)
              for field in schema]  # fmt: skip
    yield from pa.table(arrays, schema=schema).to_batches()
