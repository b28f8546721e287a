"""A batch of events, or a live stream, into an archive by Spark: tasks write files, the driver commits them.

A batch: events move once, to bring those of a type and chunk together, so that there are few files; a task writes what
it receives in pieces, so it need not hold it all. Rows of queries are found by the jobs that `detect` runs and written
by the tasks that find them. Nothing is collected but the names of files and the dimensions of partitions.

A live stream: every event of the source and every row of the queries, exactly once. Events and rows pass tasks that
keep a copy: they write files and leave a note of them beside the archive. When the sink has taken the rows of a batch,
one commit lists the files of the notes. A batch that is done again, after a crash or in the same process, has the same
name, and its commit replaces the one before; notes and files of earlier attempts belong to another attempt, and count
for nothing. So one source is read once, and all events of it are kept: of types that no query names, and late ones,
too. Old chunks are dropped and small files are put together beside the stream, by a thread of the driver.
Cost: each event goes through one more Python worker; a file for each task, type and chunk in a batch.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from trendloom.archive.catalog import (
    ArchiveSettings,
    agree_on_settings,
    refuse_other_query,
    refuse_other_settings,
    save_query,
    settings_for,
)
from trendloom.archive.commits import stream_commit, write_whole
from trendloom.archive.partitions import PartitionRows, merged_dimensions, news_of_partitions
from trendloom.archive.requests import (
    REPORT,
    Archived,
    ArchiveRequest,
    Archiving,
    TaskEventWriter,
    TaskReport,
    alike,
    dimensions_by_query,
    joined_reports,
    partition_files,
)
from trendloom.archive.result_series import ArchivedSeries, series_of
from trendloom.archive.upkeep import compact, keep_to_retention
from trendloom.archive.writing import ArchiveWriter, commit_files
from trendloom.engines.answers import UNWATCHED, Watch
from trendloom.engines.spark.answers import bind_all, framed, job_of
from trendloom.engines.spark.columns import column, in_utc
from trendloom.engines.spark.errors import in_our_words
from trendloom.engines.spark.frames import Frame, inspect
from trendloom.engines.spark.session import set_arrow_rows
from trendloom.engines.spark.streaming.sinks import STREAM_ID, BatchWriter, stream_of
from trendloom.engines.spark.streaming.sources import MARKS
from trendloom.engines.spark.tasks import QUERY, Batches, mapped, task_number
from trendloom.engines.spark.workload_job import Member, meeting, members_of, opened, parcels, partition_groups_of
from trendloom.errors import OptionError, RunError
from trendloom.frontend.tree import Query
from trendloom.io.events import prepare
from trendloom.model.schema import Schema
from trendloom.model.time import UTC
from trendloom.options import Options
from trendloom.planner.workload import PhysicalWorkload
from trendloom.runtime.planning import planned, planned_together
from trendloom.runtime.reading import for_queries, is_spark_frame, queries_of
from trendloom.runtime.warnings import report_warnings

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from trendloom.engines.spark.streaming.stream import LivePlan

CHUNK = " chunk"
ATTEMPT = "trendloom.archive.attempt"
BATCH = "streaming.sql.batchId"
"""Properties of Spark's jobs that tasks can see."""
NOTES = ".notes"
COMPACT_EVERY = 64
"""Batches between two looks for small files."""


def archive_on_spark(request: ArchiveRequest, source: object, options: Options, watch: Watch = UNWATCHED) -> Archived:
    """Put the events of a DataFrame or of files, and the rows of queries over them, into an archive."""
    if is_spark_frame(source) and getattr(source, "isStreaming", False):
        raise OptionError(
            "a streaming DataFrame has no last event, so it cannot be archived at once",
            hint="`trendloom stream` archives a stream while it runs; see its option for an archive",
        )
    queries = queries_of(request.text, options.query) if request.text else ()
    options = for_queries(options, queries)
    frame = framed(queries, source, options, watch)
    with in_our_words():
        frame = inspect(frame, unit_given=options.time_unit is not None)
        plans = bind_all(queries, frame)
    report_warnings(frame.warnings, plans, watch.warn)
    workload = planned_together(plans, options.limits) if plans else None
    series = request.opened(frame.schema, frame.arrow, workload, options)
    set_arrow_rows(frame.df.sparkSession)
    archiving = Archiving(request)
    with archiving.alone(series):
        with in_our_words():
            found = _collected(_events_written(frame, archiving.event_writer(), series))
            archiving.commit_events(found.files)
            rows = TaskReport()
            if workload is not None:
                rows = _collected(_rows_written(frame, workload, options, archiving, series))
        dimensions = dimensions_by_query(series, found.dimensions)
        for one in series:
            partitions = archiving.row_writer(one).partitions(one.query, dimensions[one.query.name])
            archiving.commit_rows(one, [*(file for file in rows.files if file.of == one.query.name), *partitions])
        return archiving.end()


def _collected(reports: DataFrame) -> TaskReport:
    return joined_reports(reports.toArrow().to_batches())


def _events_written(frame: Frame, writer: ArchiveWriter, series: tuple[ArchivedSeries, ...]) -> DataFrame:
    settings = writer.settings
    df = frame.df.withColumn(CHUNK, chunk_of(frame.df, settings))
    moved = df.repartition(column(settings.type), column(CHUNK))
    moved = moved.sortWithinPartitions(column(settings.type), column(settings.time)).drop(CHUNK)
    return mapped(moved, partial(_write_events, writer, series), REPORT)


def chunk_of(df: DataFrame, settings: ArchiveSettings) -> Column:
    """About the number of the chunk of each event: it brings events together, and the writer goes by their times."""
    time = column(settings.time)
    if settings.unit is None:
        kind = dict(df.dtypes)[settings.time]
        time = F.unix_micros(time if kind == "timestamp" else time.cast("timestamp"))
    return F.floor(time.cast("bigint") / F.lit(settings.chunk))


def _rows_written(
    frame: Frame, workload: PhysicalWorkload, options: Options, archiving: Archiving,
    series: tuple[ArchivedSeries, ...],
) -> DataFrame:  # fmt: skip
    partition_groups = partition_groups_of(workload, workload.key_sets, partial(job_of, frame, options.numeric))
    members = members_of(partition_groups)
    writers = tuple(archiving.row_writer(one) for one in series)
    found = meeting(parcels(frame.df, partition_groups), members)
    return mapped(found, partial(_write_rows, members, writers, series), REPORT)


def _write_events(writer: ArchiveWriter, series: tuple[ArchivedSeries, ...], batches: Batches) -> Batches:
    """Task function: write the events of a task."""
    keeper = TaskEventWriter(writer, series)
    for batch in batches:
        keeper.take(batch)
    yield keeper.flush().to_batch()


def _write_rows(
    members: tuple[Member, ...],
    writers: tuple[ArchiveWriter, ...],
    all_series: tuple[ArchivedSeries, ...],
    batches: Batches,
) -> Batches:
    """Task function: write the rows in parcels; parts of the same rows are in one task."""
    for member, rows in opened(members, batches):
        series, writer = all_series[member.number], writers[member.number]
        yield TaskReport(writer.results(series.query, series.placed(rows))).to_batch()


# ------------------------------------------------------------------------------------------------------ a live stream


@dataclass(frozen=True)
class LiveArchive:
    """Where a stream is archived, and how; `name`: of a query that has none."""

    root: Path
    chunk: str
    keep: str | None = None
    name: str | None = None

    def settings(self, schema: Schema) -> ArchiveSettings:
        """The settings of an archive of events with this schema."""
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
        """The events of a workload, with tasks that keep a copy of them; the archive is made ready first."""
        frame, schema, root = plan.frame, plan.frame.schema, self.place.root.resolve()
        series = tuple(series_of(one, frame.arrow, self.numeric, self.place.name) for one in plan.workload.queries)
        settings = agree_on_settings(root, self.place.settings(schema))
        for one in series:
            save_query(root, one.query)
        self.series, self.settings = series, settings
        columns = in_utc(to_arrow_schema(frame.df.schema, timezone=UTC))
        left_out = tuple(name for name in columns.names if name in MARKS)
        return mapped(frame.df, partial(_copy_events, root, settings, series, left_out), columns)

    def of_rows(self, rows: DataFrame) -> DataFrame:
        assert self.settings is not None
        columns = in_utc(to_arrow_schema(rows.schema, timezone=UTC))
        return mapped(rows, partial(_copy_rows, self.place.root.resolve(), self.settings, self.series), columns)

    def sink(self, sink: BatchWriter) -> BatchWriter:
        """The sink that takes rows, and then commits the copies."""
        self.committing = ArchivingSink(sink, self)
        return self.committing

    def close(self) -> None:
        if self.committing is not None:
            self.committing.close()


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
        """The notes of the tasks of this attempt."""
        for path in sorted((root / NOTES / self.commit).glob(f"{self.attempt}-*.arrow")):
            yield from pa.ipc.open_stream(pa.BufferReader(path.read_bytes()))


def attempt_of_task() -> BatchAttempt:
    """The attempt that the task which runs this belongs to."""
    from pyspark import TaskContext

    context = TaskContext.get()
    values = [context.getLocalProperty(name) for name in (STREAM_ID, BATCH, ATTEMPT)] if context is not None else [None]
    if None in values:
        raise RunError("events for an archive passed outside of its stream", hint="give them to the archive's sink")
    stream, batch, attempt = map(str, values)
    return BatchAttempt(stream[:8], int(batch), attempt)


def _copy_events(
    root: Path,
    settings: ArchiveSettings,
    series: tuple[ArchivedSeries, ...],
    left_out: tuple[str, ...],
    batches: Batches,
) -> Batches:
    """Task function: pass events on, and keep a copy of those that have a time."""
    attempt = attempt_of_task()
    keeper = TaskEventWriter(ArchiveWriter(root, settings, attempt.commit), series, left_out)
    for batch in batches:
        keeper.take(batch)
        yield batch
    _leave_note(keeper.flush(), attempt.note(root, "events"))


def _copy_rows(
    root: Path, settings: ArchiveSettings, all_series: tuple[ArchivedSeries, ...], batches: Batches
) -> Batches:
    """Task function: pass rows on, and keep a copy of them by query."""
    attempt, held = attempt_of_task(), []
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
        yield batch
    if held:
        writer = ArchiveWriter(root, settings, attempt.commit)
        rows = pa.Table.from_batches(held)
        files = [file for one in all_series for file in writer.results(one.query, one.placed(_of(one, rows)))]
        _leave_note(TaskReport(files), attempt.note(root, "rows"))


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
        """The partitions, or values of them, that earlier batches did not have."""
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
        """Wait for upkeep under way, and do it once more."""
        if self.upkeep is not None:
            self.upkeep.join()
        self._upkeep()
        if self.failed is not None:
            raise self.failed
