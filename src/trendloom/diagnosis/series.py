"""The monitored series: what the query's chart shows of a partition, to find marked stretches again in other ones.

Cost: the rows of the query between the first and last time of the partitions asked for, read once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendloom.archive import Archive, ArchivedQuery
from trendloom.archive.catalog import AT
from trendloom.diagnosis.features import Floats, Ticks
from trendloom.diagnosis.partitions import PartitionRow
from trendloom.diagnosis.related_periods import MonitoredSeries
from trendloom.io.timestamps import ticks

APART = 4
"""So many partitions are read one by one: statistics leave out the rows of others."""


def monitored_series(
    archive: Archive, query: ArchivedQuery, partitions: Sequence[PartitionRow]
) -> tuple[MonitoredSeries, ...]:
    """The series of each partition, by the first numeric column of the query's rows."""
    if len(partitions) <= APART:
        rows = [archive.results(query.name, dict(one.key), one.first, one.last + 1) for one in partitions]
    else:
        rows = _split(archive, query, partitions)
    return tuple(_series(archive, query, one, table) for one, table in zip(partitions, rows, strict=True))


def _split(archive: Archive, query: ArchivedQuery, partitions: Sequence[PartitionRow]) -> list[pa.Table]:
    """The rows of many partitions, read together: sorted by partition, then cut."""
    low, high = min(one.first for one in partitions), max(one.last for one in partitions)
    table = archive.results(query.name, None, low, high + 1)
    if not query.keys:
        return [table for _ in partitions]
    wanted = pa.table({name: [dict(one.key)[name] for one in partitions] for name in query.keys})
    wanted = wanted.cast(pa.schema([table.schema.field(name) for name in query.keys]))
    known, code = _codes(table, wanted, query.keys)
    order = np.argsort(known, kind="stable")
    begins, ends = (np.searchsorted(known[order], code, side=side) for side in ("left", "right"))
    return [table.take(pa.array(order[begin:end])) for begin, end in zip(begins, ends, strict=True)]


def _codes(table: pa.Table, wanted: pa.Table, keys: Sequence[str]) -> tuple[Ticks, Ticks]:
    """A number for each row's partition, the same in both tables; -1 for partitions that are not wanted."""
    found, code = np.zeros(len(table), np.int64), np.zeros(len(wanted), np.int64)
    for name in keys:
        values = wanted.column(name).combine_chunks().unique()
        places = pc.index_in(table.column(name), values).fill_null(-1).to_numpy()
        found = np.where((found < 0) | (places < 0), -1, found * len(values) + places)
        code = code * len(values) + pc.index_in(wanted.column(name), values).to_numpy()
    return found.astype(np.int64), code.astype(np.int64)


def _series(archive: Archive, query: ArchivedQuery, partition: PartitionRow, rows: pa.Table) -> MonitoredSeries:
    times = ticks(rows.column(AT), archive.axis)
    return MonitoredSeries(partition.key, partition.first, partition.last, times, _values(query, rows))


def _values(query: ArchivedQuery, rows: pa.Table) -> Floats:
    """The numbers of the chart; rows without any differ by their count alone."""
    if not query.values or query.values[0] not in rows.column_names:
        return np.full(len(rows), np.nan)
    column = rows.column(query.values[0])
    try:
        return np.asarray(column.cast(pa.float64()).to_numpy(), np.float64)
    except pa.ArrowInvalid:  # whole numbers beyond 53 bits: a chart does not show the difference
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)
