"""The partitions of a query as its archive lists them: find one by its attributes, those like it, and their series.

A value may be given as text (the command has nothing else): it is compared with the values as they are written.
Cost: the table of partitions, which has a row for each; for series, the rows of the query between the first and last
time of the partitions, read once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendloom.archive import Archive, ArchivedQuery
from trendloom.archive.catalog import AT
from trendloom.archive.partitions import FIRST, LAST, MEASURES, POINTS
from trendloom.diagnosis.features import Floats, Ticks
from trendloom.diagnosis.periods import MonitoredSeries
from trendloom.errors import OptionError, did_you_mean, option
from trendloom.io.timestamps import ticks
from trendloom.model.time import TimeAxis


@dataclass(frozen=True)
class PartitionRow:
    """One partition: its attributes, its first and last time in ticks, and how many points its chart has."""

    key: tuple[tuple[str, Any], ...]
    first: int
    last: int
    points: int

    def __str__(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in self.key) or "the whole stream"


@dataclass(frozen=True, eq=False)
class PartitionTable:
    """The partitions of one query. `keys`: the partition attributes; what else the table has are dimensions."""

    query: str
    keys: tuple[str, ...]
    table: pa.Table
    axis: TimeAxis

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The columns of partitions beside their attributes and measures."""
        return tuple(name for name in self.table.column_names if name not in (*self.keys, *MEASURES))

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        measured = self.table
        for name in (FIRST, LAST):
            times = pa.array(ticks(self.table.column(name), self.axis))
            measured = measured.set_column(measured.column_names.index(name), name, times)
        return list(measured.to_pylist())

    def row(self, number: int) -> PartitionRow:
        found = self._rows[number]
        key = tuple((name, found[name]) for name in self.keys)
        return PartitionRow(key, found[FIRST], found[LAST], found[POINTS])

    def find(self, given: Mapping[str, object], name: str) -> PartitionRow:
        """The partition of these attributes; `name` is the option that they were given with."""
        self._check_attributes(given, name)
        wanted = {key: written(given[key]) for key in self.keys}
        for number, row in enumerate(self._rows):
            if all(written(row[key]) == text for key, text in wanted.items()):
                return self.row(number)
        raise OptionError(
            f"query '{self.query}' has no partition " + ", ".join(f"{key} = {text}" for key, text in wanted.items()),
            hint=self._what_there_is(wanted),
        )

    def _check_attributes(self, given: Mapping[str, object], name: str) -> None:
        for key in given:
            if key not in self.keys:
                hint = did_you_mean(key, self.keys) or "it has one partition, the whole stream: leave it out"
                raise OptionError(f"query '{self.query}' is not partitioned by '{key}'", hint=hint)
        missing = [key for key in self.keys if key not in given]
        if missing:
            example = self._rows[0][missing[0]] if self._rows else "..."
            shown = option(name) + f" {missing[0]}={example}"
            raise OptionError(
                f"query '{self.query}' is partitioned by {' and '.join(self.keys)}, and no {missing[0]} is given",
                hint=f"e.g. {shown}",
            )

    def _what_there_is(self, wanted: Mapping[str, str]) -> str:
        """The nearest value of the only attribute; of several the values of the first that fits none."""
        if not self._rows:
            return "the archive has no partitions of this query"
        for key, text in wanted.items():
            values = {written(row[key]) for row in self._rows}
            if text not in values:
                found = did_you_mean(text, values) or ""
                return f"{key}: {found} ({len(values):,} in all)" if len(values) > 1 else f"{key}: {found}"
        return "each of these values exists, but not together; e.g. " + str(self.row(0))

    # -------------------------------------------------------------------------------------------- relatives

    def dimensions_named(self, names: tuple[str, ...] | None) -> tuple[str, ...]:
        """The dimensions to be related by, all by default; one that does not exist is refused."""
        if names is None:
            return self.dimensions
        for name in names:
            if name not in self.dimensions:
                hint = did_you_mean(name, self.dimensions) or "partitions of this query have no dimension attributes"
                raise OptionError(f"partitions of '{self.query}' have no dimension '{name}'", hint=hint)
        return names

    def related(
        self, partition: PartitionRow, by: tuple[str, ...], apart: Collection[PartitionRow] = ()
    ) -> tuple[PartitionRow, ...]:
        """The other partitions with equal dimensions, nearest in time first; none where there is no dimension."""
        if not by:
            return ()
        places = {self.row(number).key: number for number in range(len(self._rows))}
        own = self._rows[places[partition.key]]
        if any(own[name] is None for name in by):
            return ()
        known = {one.key for one in apart} | {partition.key}
        like = [self.row(number) for number, row in enumerate(self._rows) if all(row[name] == own[name] for name in by)]
        others = [one for one in like if one.key not in known]
        return tuple(sorted(others, key=lambda one: (abs(one.first - partition.first), one.first)))

    def come_and_go(self, partition: PartitionRow, low: int, high: int) -> bool:
        """Whether most of the others that were there between two times were not there all that time."""
        others = [one for one in map(self.row, range(len(self._rows))) if one.key != partition.key]
        there = [one for one in others if one.first < high and one.last >= low]
        slack = (high - low) // 10  # a chart has its first point a while after the first event
        staying = [one for one in there if one.first <= low + slack and one.last >= high - slack]
        return 2 * len(staying) < len(there) or not there


def written(value: object) -> str:
    """A value of an attribute as text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


# ------------------------------------------------------------------------------------------ monitored series


APART = 4
"""Up to so many partitions are read one by one: statistics of files leave out the rows of others."""


def monitored_series(
    archive: Archive, query: ArchivedQuery, partitions: Sequence[PartitionRow]
) -> tuple[MonitoredSeries, ...]:
    """The series that the query's chart shows of each partition: the first numeric column of its rows over time."""
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
    """The numbers of the chart; rows without any differ only in how many they are."""
    if not query.values or query.values[0] not in rows.column_names:
        return np.full(len(rows), np.nan)
    column = rows.column(query.values[0])
    try:
        return np.asarray(column.cast(pa.float64()).to_numpy(), np.float64)
    except pa.ArrowInvalid:  # whole numbers beyond 53 bits: a chart does not show the difference
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)
