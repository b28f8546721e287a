"""Events as parcels: all events of one query and bucket in an input task, as one row of Arrow bytes.

Spark then shuffles a few large rows instead of many small ones, and what comes out of the shuffle is columns already.
Cost: one stable sort by bucket and one copy of the columns, per batch and query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from trendloom.engines.live.chunks import pack
from trendloom.engines.spark.tasks import Batches

QUERY, BUCKET, PAYLOAD = "query", "bucket", "payload"
PARCEL = pa.schema([(QUERY, pa.string()), (BUCKET, pa.int32()), (PAYLOAD, pa.binary())])

MOST_ROWS = 1 << 20
"""Events that are packed at a time."""


@dataclass(frozen=True)
class Label:
    """How the events of one query are packed: which columns, and the columns that say into which bucket and whether."""

    query: str
    columns: tuple[str, ...]
    bucket: str
    wanted: str | None


@dataclass(frozen=True)
class Packing:
    """What an input task does with its events."""

    labels: tuple[Label, ...]

    def __call__(self, _: object, batches: Batches) -> Batches:
        for table in _gathered(batches):
            parcels = [parcel for label in self.labels for parcel in _parcels(table, label)]
            if parcels:
                queries, buckets, payloads = zip(*parcels, strict=True)
                arrays = [
                    pa.array(queries, pa.string()),
                    pa.array(buckets, pa.int32()),
                    pa.array(payloads, pa.binary()),
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=PARCEL)


def _gathered(batches: Batches) -> Iterator[pa.Table]:
    """Batches together, up to so many rows."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
        if sum(one.num_rows for one in held) >= MOST_ROWS:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _parcels(table: pa.Table, label: Label) -> Iterator[tuple[str, int, bytes]]:
    if label.wanted is not None:
        table = table.filter(table[label.wanted])
    if not len(table):
        return
    bucket = table[label.bucket].to_numpy()
    order = np.argsort(bucket, kind="stable")
    bounds = np.flatnonzero(np.diff(bucket[order], prepend=-1, append=-1))
    events = table.select(list(label.columns))
    events = events.take(pa.array(order)) if len(bounds) > 2 else events
    for begin, end in pairwise(bounds):
        yield label.query, int(bucket[order[begin]]), pack(events.slice(begin, end - begin), compress=False)
