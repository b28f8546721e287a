"""Events as parcels: all events of one bundle of queries and bucket in an input task, as one row of Arrow bytes.

Spark then shuffles a few large rows instead of many small ones, and what comes out of the shuffle is columns already.
A parcel has the columns and rows that any query of the bundle needs, and a bit for each query and row: whether it does.
Cost: one stable sort by bucket and one copy of the columns, per batch and bundle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendloom.engines.spark.tasks import Batches
from trendloom.streaming.state import pack

BUNDLE, BUCKET, PAYLOAD = "query", "bucket", "payload"
PARCEL = pa.schema([(BUNDLE, pa.string()), (BUCKET, pa.int32()), (PAYLOAD, pa.binary())])

FLAG = " for query "
"""How the columns begin that say which events a query of the bundle needs."""
MOST_ROWS = 1 << 20
"""Events that are packed at a time."""


@dataclass(frozen=True)
class Label:
    """How the events of one bundle are packed: its name, which columns, and the columns that say into which bucket.

    `wanted`: the column that says which events a query needs, for each query of the bundle; None: all.
    """

    partition_group: str
    columns: tuple[str, ...]
    bucket: str
    wanted: tuple[str | None, ...]


@dataclass(frozen=True)
class Packing:
    """What an input task does with its events."""

    labels: tuple[Label, ...]
    probes: tuple[str, ...] = ()  # bundles that must not have any state
    buckets: int = 1

    def __call__(self, _: object, batches: Batches) -> Batches:
        for table in _gathered(batches):
            parcels = [parcel for label in self.labels for parcel in _parcels(table, label)]
            parcels += [(name, bucket, b"") for name in self.probes for bucket in range(self.buckets)]
            if parcels:
                partition_groups, buckets, payloads = zip(*parcels, strict=True)
                arrays = [
                    pa.array(partition_groups, pa.string()),
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
    tests = [name for name in label.wanted if name is not None]
    if len(tests) == len(label.wanted):
        table = table.filter(reduce(pc.or_, [table[name] for name in tests]))
    if not len(table):
        return
    bucket = table[label.bucket].to_numpy()
    order = np.argsort(bucket, kind="stable")
    bounds = np.flatnonzero(np.diff(bucket[order], prepend=-1, append=-1))
    events = table.select(list(label.columns))
    for number, name in enumerate(label.wanted):
        if name is not None and len(label.wanted) > 1:
            events = events.append_column(_flag(number), table[name])
    events = events.take(pa.array(order)) if len(bounds) > 2 else events
    for begin, end in pairwise(bounds):
        yield label.partition_group, int(bucket[order[begin]]), pack(events.slice(begin, end - begin), compress=False)


def events_for(number: int, arrived: pa.Table) -> pa.Table:
    """The events of a parcel that a query of its bundle needs."""
    name = _flag(number)
    events = arrived.filter(arrived[name]) if name in arrived.column_names else arrived
    return events.drop_columns([one for one in events.column_names if one.startswith(FLAG)])


def _flag(number: int) -> str:
    return f"{FLAG}{number}"
