"""The report of a task on its part in a commit: the files it has written, and what it saw of partitions.

Tasks write files themselves and never commit: a task may be repeated, and only the report of the attempt that counts is
committed. What tasks saw of partitions is small and is joined by the process that commits. Queries that have the same
partitions share a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from trendloom.archive.commits import ArchivedFile, file_of, file_to_json
from trendloom.archive.partitions import PartitionRows
from trendloom.archive.result_series import ArchivedSeries
from trendloom.archive.writing import ArchiveWriter

REPORT = pa.schema([("told", pa.string()), ("payload", pa.binary())])
FILE, DIMENSIONS = "file", "dimensions"
ROWS_AT_ONCE = 500_000
"""Rows that a task holds before it writes them."""


@dataclass
class TaskReport:
    """Files, and partitions by the number of the queries that share them (see `alike`)."""

    files: list[ArchivedFile] = field(default_factory=list)
    dimensions: dict[int, list[PartitionRows]] = field(default_factory=dict)

    def to_batch(self) -> pa.RecordBatch:
        """The report as rows of a task's result."""
        told = [(json.dumps({FILE: file_to_json(file)}), b"") for file in self.files]
        for number, parts in self.dimensions.items():
            for part in parts:
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, part.table.schema) as stream:
                    stream.write_table(part.table)
                told.append((json.dumps({DIMENSIONS: number, "varying": part.varying}), sink.getvalue().to_pybytes()))
        columns = [pa.array([text for text, _ in told], pa.string()), pa.array([one for _, one in told], pa.binary())]
        return pa.RecordBatch.from_arrays(columns, schema=REPORT)


def joined_reports(batches: Iterable[pa.RecordBatch]) -> TaskReport:
    """The reports of several tasks as one."""
    found = TaskReport()
    for batch in batches:
        for text, payload in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            told = json.loads(text)
            if FILE in told:
                found.files.append(file_of(told[FILE]))
            else:
                table = pa.ipc.open_stream(payload.as_buffer()).read_all()
                found.dimensions.setdefault(told[DIMENSIONS], []).append(PartitionRows(table, tuple(told["varying"])))
    return found


@dataclass
class TaskEventWriter:
    """Writes the events that pass through a task, and looks at the partitions of queries in them."""

    writer: ArchiveWriter
    series: Sequence[ArchivedSeries]
    left_out: Sequence[str] = ()
    held: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    found: TaskReport = field(default_factory=TaskReport)

    def take(self, batch: pa.RecordBatch) -> None:
        """Take events; they are written when there are many, and at the end."""
        if batch.num_rows:
            self.held.append(batch)
            self.rows += batch.num_rows
        if self.rows >= ROWS_AT_ONCE:
            self.flush()

    def flush(self) -> TaskReport:
        """Write what is held; what was found so far."""
        if self.held:
            table = pa.Table.from_batches(self.held).drop_columns(list(self.left_out))
            table = table.filter(table.column(self.writer.settings.time).is_valid())
            self.held, self.rows = [], 0
            self.found.files += self.writer.events(table)
            for number, group in enumerate(alike(self.series)):
                if group[0].candidates:
                    self.found.dimensions.setdefault(number, []).append(group[0].dimensions(table))
        return self.found


def alike(series: Sequence[ArchivedSeries]) -> list[list[ArchivedSeries]]:
    """Queries by their partitions: those of a group have the same, with the same dimensions."""
    found: dict[object, list[ArchivedSeries]] = {}
    for one in series:
        found.setdefault((one.query.keys, frozenset(one.query.types), one.candidates), []).append(one)
    return list(found.values())


def dimensions_by_query(
    series: Sequence[ArchivedSeries], dimensions: Mapping[int, Sequence[PartitionRows]]
) -> dict[str, Sequence[PartitionRows]]:
    """What was seen of the partitions of every query."""
    groups = enumerate(alike(series))
    return {one.query.name: dimensions.get(number, ()) for number, group in groups for one in group}


def partition_files(
    writer: ArchiveWriter, series: Sequence[ArchivedSeries], dimensions: Mapping[int, Sequence[PartitionRows]]
) -> list[ArchivedFile]:
    """Files of partitions, of all that tasks saw of them."""
    found = []
    for number, group in enumerate(alike(series)):
        files = writer.partitions(group[0].query, dimensions.get(number, ()))
        found += [replace(file, of=one.query.name) for one in group for file in files]
    return found
