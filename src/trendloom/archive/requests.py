"""Requests to archive, the commits of a request, and the reports of its tasks: the same for both engines.

Events come in by one commit, and the rows of every query by one of their own: the same events may be archived again
with other queries. What is archived again under the same name replaces itself; what was put together with others since
is in the archive for good, and is left as it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from trendloom.archive.archive import create_archive
from trendloom.archive.catalog import save_query
from trendloom.archive.commits import PARTITIONS, ArchivedFile, file_of, sole_writer
from trendloom.archive.partitions import PartitionRows
from trendloom.archive.result_series import ArchivedSeries, check_dimensions, series_of
from trendloom.archive.upkeep import keep_to_retention
from trendloom.archive.writing import ArchiveWriter, commit_files, writer_of
from trendloom.model.schema import Schema
from trendloom.options import Options
from trendloom.planner.workload import PhysicalWorkload

CONTENT, PAYLOAD = "content", "payload"
REPORT = pa.schema([(CONTENT, pa.string()), (PAYLOAD, pa.binary())])
FILE, DIMENSIONS = "file", "dimensions"
ROWS_AT_ONCE = 500_000
"""Rows that a task holds before it writes them."""


@dataclass(frozen=True)
class ArchiveRequest:
    """What is to be archived where: the text of queries ("" for none), and how the archive is to be.

    `commit`: the name under which it comes in; `name`: that of a query that has none. `chunk` and `keep`: durations;
    `keep` None: for ever. `dimensions`: columns beside texts that may distinguish partitions.
    """

    root: Path
    text: str
    commit: str
    name: str | None = None
    chunk: str | int = "1 hour"
    keep: str | int | None = None
    dimensions: tuple[str, ...] = ()

    def opened(
        self, schema: Schema, arrow: pa.Schema, workload: PhysicalWorkload | None, options: Options
    ) -> tuple[ArchivedSeries, ...]:
        """The archive made ready for these events, and how the rows of queries go into it."""
        check_dimensions(self.dimensions, arrow)
        queries = () if workload is None else workload.queries
        series = tuple(series_of(one, arrow, options.numeric, self.name, self.dimensions) for one in queries)
        create_archive(
            self.root, time=schema.times, type=schema.type, axis=schema.axis, chunk=self.chunk, retention=self.keep
        )
        for one in series:
            save_query(self.root, one.query)
        return series


@dataclass
class Archived:
    """How many events and rows by query came in; `there`: what was in the archive before, and was left as it is."""

    events: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    there: list[str] = field(default_factory=list)


@dataclass
class Archiving:
    """The commits of one request: of events, and of the rows of every query. See `alone` before any is written."""

    request: ArchiveRequest
    archived: Archived = field(default_factory=Archived)

    def alone(self, series: Sequence[ArchivedSeries]) -> AbstractContextManager[None]:
        """Hold the commits of events and of these queries; refuse where another process is writing one of them."""
        writers = [self.event_writer(), *(self.row_writer(one) for one in series)]
        return sole_writer(self.request.root.resolve(), [one.commit for one in writers])

    def event_writer(self) -> ArchiveWriter:
        return writer_of(self.request.root.resolve(), f"{self.request.commit}-events")

    def row_writer(self, series: ArchivedSeries) -> ArchiveWriter:
        return writer_of(self.request.root.resolve(), f"{self.request.commit}-query-{series.query.name}")

    def commit_events(self, files: Sequence[ArchivedFile]) -> None:
        self.archived.events = self._committed(self.event_writer(), files, "events")

    def commit_rows(self, series: ArchivedSeries, files: Sequence[ArchivedFile]) -> None:
        """Commit rows of a query, and what was seen of its partitions."""
        name = series.query.name
        self.archived.rows[name] = self._committed(self.row_writer(series), files, f"rows of query {name}")

    def end(self) -> Archived:
        """Drop what has become old."""
        keep_to_retention(self.request.root)
        return self.archived

    def _committed(self, writer: ArchiveWriter, files: Sequence[ArchivedFile], what: str) -> int:
        if not commit_files(writer.root, writer.commit, files):
            self.archived.there.append(what)
            return 0
        return sum(file.rows for file in files if file.kind != PARTITIONS)


def commit_name(places: Sequence[str]) -> str:
    """A name for events of files: the same files have the same."""
    resolved = sorted(place if "://" in place else str(Path(place).resolve()) for place in places)
    return f"files-{hashlib.sha256(chr(0).join(resolved).encode()).hexdigest()[:12]}"


# ------------------------------------------------------------------------------------------- reports of tasks
#
# Tasks write files themselves and never commit: a task may be repeated, and only the report of the attempt that counts
# is committed. Dimensions are small and are joined by the process that commits. Queries that have the same partitions
# share a file.


@dataclass
class TaskReport:
    """Files, and partitions by the number of the queries that share them (see `alike`)."""

    files: list[ArchivedFile] = field(default_factory=list)
    dimensions: dict[int, list[PartitionRows]] = field(default_factory=dict)

    def to_batch(self) -> pa.RecordBatch:
        """The report as rows of a task's result."""
        rows = [{CONTENT: json.dumps({FILE: asdict(file)}), PAYLOAD: b""} for file in self.files]
        for number, parts in self.dimensions.items():
            for part in parts:
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, part.table.schema) as stream:
                    stream.write_table(part.table)
                content = json.dumps({DIMENSIONS: number, "varying": part.varying})
                rows.append({CONTENT: content, PAYLOAD: sink.getvalue().to_pybytes()})
        return pa.RecordBatch.from_pylist(rows, schema=REPORT)


def joined_reports(batches: Iterable[pa.RecordBatch]) -> TaskReport:
    """The reports of several tasks as one."""
    found = TaskReport()
    for batch in batches:
        for text, payload in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            content = json.loads(text)
            if FILE in content:
                found.files.append(file_of(content[FILE]))
            else:
                table = pa.ipc.open_stream(payload.as_buffer()).read_all()
                part = PartitionRows(table, tuple(content["varying"]))
                found.dimensions.setdefault(content[DIMENSIONS], []).append(part)
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
