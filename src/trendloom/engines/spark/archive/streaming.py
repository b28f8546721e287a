"""A live stream into an archive: every event of the source and every row of the queries, exactly once.

Events and rows pass tasks that keep a copy: they write files and leave a note of them beside the archive. When the sink
has taken the rows of a batch, one commit lists what the notes say. A batch that is done again, after a crash or in the
same process, has the same name, and its commit replaces the one before; notes and files of earlier attempts are of
another attempt, and count for nothing.

So one source is read once, and all events of it are kept: of types that no query wants, and those that come late, too.
Old chunks are dropped and small files are put together beside the stream, by a thread of the driver.
Cost: each event goes through one more Python worker; a file for each task, type and chunk in a batch.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from trendloom.archive.commits import stream_commit, write_whole
from trendloom.archive.partitions import PartitionRows, merged_dimensions, news_of_partitions
from trendloom.archive.queries import refuse_other_query, save_query
from trendloom.archive.result_series import ArchivedSeries, series_of
from trendloom.archive.settings import ArchiveSettings, agree_on_settings, refuse_other_settings, settings_for
from trendloom.archive.task_commits import TaskEventWriter, TaskReport, alike, joined_reports, partition_files
from trendloom.archive.upkeep import compact, keep_to_retention
from trendloom.archive.writing import ArchiveWriter, commit_files
from trendloom.engines.spark.streaming.sinks import STREAM_ID, BatchWriter, stream_of
from trendloom.engines.spark.streaming.sources import MARKS
from trendloom.engines.spark.tasks import Batches, Task, mapped, task_number
from trendloom.engines.spark.timestamps import in_utc
from trendloom.engines.spark.workload_table import QUERY
from trendloom.errors import RunError
from trendloom.frontend.tree import Query
from trendloom.io.events import prepare
from trendloom.model.schema import Schema
from trendloom.model.time import UTC
from trendloom.options import Options
from trendloom.runtime.planning import planned
from trendloom.runtime.reading import for_queries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trendloom.engines.spark.streaming.detect import LivePlan

ATTEMPT = "trendloom.archive.attempt"
BATCH = "streaming.sql.batchId"
"""Properties of Spark's jobs that tasks can see."""

NOTES = ".notes"
COMPACT_EVERY = 64
"""Batches between two looks for small files."""


@dataclass(frozen=True)
class LiveArchive:
    """Where a stream is archived, and how; `name`: of a query that has none."""

    root: Path
    chunk: str
    keep: str | None = None
    name: str | None = None

    def settings(self, schema: Schema) -> ArchiveSettings:
        """What an archive of such events is to be."""
        return settings_for(
            schema.axis, time=schema.times, type=schema.type, chunk=self.chunk, retention=self.keep,
            options=("archive_chunk", "archive_keep"),
        )  # fmt: skip

    def check(self, queries: tuple[Query, ...], columns: pa.Schema, options: Options) -> None:
        """Refuse what cannot be archived, before Spark starts and before anything is written."""
        events = prepare(columns.empty_table(), **for_queries(options, queries).columns())
        refuse_other_settings(self.root, self.settings(events.schema))
        for one in planned(queries, events.schema, options.limits).queries:
            series = series_of(one, events.table.schema, options.numeric, self.name)
            refuse_other_query(self.root, series.query)


@dataclass
class LiveArchiver:
    """Copies the events and rows of a stream into an archive, and makes the sink that commits the copies."""

    place: LiveArchive
    numeric: str
    series: tuple[ArchivedSeries, ...] = ()
    settings: ArchiveSettings | None = None
    committing: ArchivingSink | None = None

    def of_events(self, plan: LivePlan) -> DataFrame:
        """Make the archive ready for the workload, and its events keep a copy."""
        from pyspark.sql.pandas.types import to_arrow_schema

        frame, schema, root = plan.frame, plan.frame.schema, self.place.root.resolve()
        series = tuple(series_of(one, frame.arrow, self.numeric, self.place.name) for one in plan.workload.queries)
        settings = agree_on_settings(root, self.place.settings(schema))
        for one in series:
            save_query(root, one.query)
        self.series, self.settings = series, settings
        columns = in_utc(to_arrow_schema(frame.df.schema, timezone=UTC))
        left_out = tuple(name for name in columns.names if name in MARKS)
        return mapped(frame.df, Task(None, CopyEvents(root, settings, series, left_out)), columns)

    def of_rows(self, rows: DataFrame) -> DataFrame:
        from pyspark.sql.pandas.types import to_arrow_schema

        assert self.settings is not None
        columns = in_utc(to_arrow_schema(rows.schema, timezone=UTC))
        return mapped(rows, Task(None, CopyRows(self.place.root.resolve(), self.settings, self.series)), columns)

    def sink(self, sink: BatchWriter) -> BatchWriter:
        """The sink that takes rows, and then commits what passed."""
        self.committing = ArchivingSink(sink, self)
        return self.committing

    def close(self) -> None:
        if self.committing is not None:
            self.committing.close()


# ------------------------------------------------------------------------------------------ inside a task


@dataclass(frozen=True)
class BatchAttempt:
    """One attempt at a batch of a stream, the same for tasks and the driver."""

    stream: str
    batch: int
    attempt: str

    @property
    def commit(self) -> str:
        return stream_commit(self.stream, self.batch)

    def note(self, root: Path, what: str) -> Path:
        return root / NOTES / self.commit / f"{self.attempt}-{what}-{task_number():06d}.arrow"

    def notes(self, root: Path) -> Iterator[pa.RecordBatch]:
        """What the tasks of this attempt have noted down."""
        for path in sorted((root / NOTES / self.commit).glob(f"{self.attempt}-*.arrow")):
            yield from pa.ipc.open_stream(pa.BufferReader(path.read_bytes()))


def attempt_of_task() -> BatchAttempt:
    """The attempt that the task which runs this belongs to."""
    from pyspark import TaskContext

    context = TaskContext.get()
    told = [context.getLocalProperty(name) for name in (STREAM_ID, BATCH, ATTEMPT)] if context is not None else [None]
    if None in told:
        raise RunError("events for an archive passed outside of its stream", hint="give them to the archive's sink")
    stream, batch, attempt = map(str, told)
    return BatchAttempt(stream[:8], int(batch), attempt)


@dataclass(frozen=True)
class CopyEvents:
    """Pass events on, and keep a copy of those that have a time."""

    root: Path
    settings: ArchiveSettings
    series: tuple[ArchivedSeries, ...]
    left_out: tuple[str, ...]

    def __call__(self, _: object, batches: Batches) -> Batches:
        attempt = attempt_of_task()
        keeper = TaskEventWriter(ArchiveWriter(self.root, self.settings, attempt.commit), self.series, self.left_out)
        for batch in batches:
            keeper.take(batch)
            yield batch
        _leave_note(keeper.flush(), attempt.note(self.root, "events"))


@dataclass(frozen=True)
class CopyRows:
    """Pass rows on, and keep a copy of them by query."""

    root: Path
    settings: ArchiveSettings
    series: tuple[ArchivedSeries, ...]

    def __call__(self, _: object, batches: Batches) -> Batches:
        attempt, held = attempt_of_task(), []
        for batch in batches:
            if batch.num_rows:
                held.append(batch)
            yield batch
        if held:
            writer = ArchiveWriter(self.root, self.settings, attempt.commit)
            rows = pa.Table.from_batches(held)
            files = [file for one in self.series for file in writer.results(one.query, one.placed(_of(one, rows)))]
            _leave_note(TaskReport(files), attempt.note(self.root, "rows"))


def _of(series: ArchivedSeries, rows: pa.Table) -> pa.Table:
    """The rows of one query."""
    if QUERY not in rows.column_names:
        return rows
    return rows.filter(pc.equal(rows.column(QUERY), series.query.name))


def _leave_note(found: TaskReport, path: Path) -> None:
    if found.files or found.dimensions:
        batch, sink = found.to_batch(), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        write_whole(path, sink.getvalue().to_pybytes())


# ------------------------------------------------------------------------------------------ on the driver


@dataclass
class ArchivingSink:
    """Let a sink take the rows of a batch; then commit the events and rows that passed in it."""

    sink: BatchWriter
    archiver: LiveArchiver
    batches: int = 0
    seen: dict[object, PartitionRows] = field(default_factory=dict)
    upkeep: Thread | None = None
    failed: Exception | None = None

    def __call__(self, rows: DataFrame, batch: int) -> None:
        attempt = BatchAttempt(stream_of(rows)[:8], batch, uuid.uuid4().hex[:12])
        rows.sparkSession.sparkContext.setLocalProperty(ATTEMPT, attempt.attempt)
        self.sink(rows, batch)
        self._commit(attempt)
        self._keep_small()

    def _commit(self, attempt: BatchAttempt) -> None:
        root, settings, series = self.archiver.place.root.resolve(), self.archiver.settings, self.archiver.series
        assert settings is not None
        found = joined_reports(attempt.notes(root))
        writer = ArchiveWriter(root, settings, attempt.commit)
        news = self._news(series, found)
        files = [*found.files, *partition_files(writer, series, {number: [part] for number, part in news.items()})]
        first = self.batches == 0  # only the first batch of a process can be one that is done again
        if files or first:
            commit_files(root, attempt.commit, files, stream=attempt.stream, batch=attempt.batch, again=first)
        shutil.rmtree(root / NOTES / attempt.commit, ignore_errors=True)
        self.batches += 1

    def _news(self, series: Sequence[ArchivedSeries], found: TaskReport) -> dict[int, PartitionRows]:
        """What batches before have not shown of partitions."""
        news = {}
        for number, group in enumerate(alike(series)):
            parts = found.dimensions.get(number, [])
            if not parts:
                continue
            query, candidates = group[0].query, group[0].candidates
            key = (query.keys, frozenset(query.types), candidates)
            part = merged_dimensions(parts, query.keys)
            fresh = part if key not in self.seen else news_of_partitions(self.seen[key], part, query.keys)
            if len(fresh.table):
                known = [self.seen[key]] if key in self.seen else []
                self.seen[key] = merged_dimensions([*known, fresh], query.keys)
                news[number] = fresh
        return news

    # ------------------------------------------------------------------------------------------- keep it small

    def _keep_small(self) -> None:
        """Every so many batches: drop what is old and put small files together, while the stream goes on."""
        if self.failed is not None:
            failed, self.failed = self.failed, None
            raise failed
        if self.batches % COMPACT_EVERY == 0 and (self.upkeep is None or not self.upkeep.is_alive()):
            self.upkeep = Thread(target=self._upkeep, daemon=True)
            self.upkeep.start()

    def _upkeep(self) -> None:
        root = self.archiver.place.root.resolve()
        try:
            keep_to_retention(root)
            compact(root, tiered=True)
        except Exception as problem:
            self.failed = problem

    def close(self) -> None:
        """Wait for upkeep under way, and look after the archive once more."""
        if self.upkeep is not None:
            self.upkeep.join()
        self._upkeep()
        if self.failed is not None:
            raise self.failed
