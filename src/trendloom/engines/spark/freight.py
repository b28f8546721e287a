"""Summaries as rows of a DataFrame: what the reduced path shuffles instead of events.

A row is either a summary (`PANE` is there) or an event. Both have the key's columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.kernels.contract import Summaries, Summarising

Array = np.ndarray[Any, Any]

CUT = " cut"
MOST_BYTES = 1 << 25
"""Bytes of summaries in one Arrow batch."""


def freight_schema(events: pa.Schema, summaries: pa.Schema) -> pa.Schema:
    """Columns of events, then `CUT` for events, then those of summaries."""
    return pa.schema([field.with_nullable(True) for field in events] + [pa.field(CUT, pa.int64()), *summaries])


def event_rows(schema: pa.Schema, events: pa.Table, cut: Array) -> Iterator[pa.RecordBatch]:
    """Events that travel as they are; those of one cut may be reduced together."""
    yield from _filled(schema, {name: events[name] for name in events.column_names} | {CUT: pa.array(cut)}, len(events))


def summary_rows(
    schema: pa.Schema, keys: pa.Table, summaries: Summaries, summarising: Summarising
) -> Iterator[pa.RecordBatch]:
    """Summaries with the key columns of each (`keys` has one row per summary)."""
    one = summarising.pack(summaries.take(np.arange(min(len(summaries), 1))))
    step = max(1, MOST_BYTES // max(1, sum(column.nbytes for column in one.values())))
    for at in range(0, len(summaries), step):
        some = summaries.take(np.arange(at, min(at + step, len(summaries))))
        columns: dict[str, Any] = {name: keys[name].slice(at, len(some)) for name in keys.column_names}
        columns |= summarising.pack(some)
        yield from _filled(schema, columns, len(some))


def _filled(schema: pa.Schema, columns: dict[str, Any], rows: int) -> Iterator[pa.RecordBatch]:
    arrays = [columns[field.name].cast(field.type) if field.name in columns else pa.nulls(rows, field.type)
              for field in schema]  # fmt: skip
    yield from pa.table(arrays, schema=schema).to_batches()
