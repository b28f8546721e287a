"""A batch of events into an archive by Spark: tasks write files, the driver commits them once, when all are there.

Events move once, to bring those of a type and chunk together, so that there are few files; a task writes what it gets
in pieces, so it need not hold them all. Rows of queries are found by the jobs that `detect` runs and written by the
tasks that find them. Nothing is collected but the names of files and what was seen of partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from trendloom.archive.catalog import ArchiveSettings
from trendloom.archive.requests import (
    REPORT,
    Archived,
    ArchiveRequest,
    Archiving,
    TaskEventWriter,
    TaskReport,
    dimensions_by_query,
    joined_reports,
)
from trendloom.archive.result_series import ArchivedSeries
from trendloom.archive.writing import ArchiveWriter
from trendloom.engines.answers import UNWATCHED, Watch
from trendloom.engines.spark.answers import bind_all, framed, job_of
from trendloom.engines.spark.columns import column
from trendloom.engines.spark.error_transport import in_our_words
from trendloom.engines.spark.frames import Frame, inspect
from trendloom.engines.spark.session import set_arrow_rows
from trendloom.engines.spark.tasks import Batches, Task, by_key, mapped
from trendloom.engines.spark.workload_job import QUERY, ROUTE, Member, by_query, meetings_of, opened, parcels
from trendloom.errors import OptionError
from trendloom.options import Options
from trendloom.planner.workload import PhysicalWorkload
from trendloom.runtime.planning import planned_together
from trendloom.runtime.reading import for_queries, is_spark_frame, queries_of
from trendloom.runtime.warnings import report_warnings

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CHUNK = " chunk"


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
            found = _findings(_events_written(frame, archiving.event_writer(), series))
            archiving.commit_events(found.files)
            rows = (
                TaskReport()
                if workload is None
                else _findings(_rows_written(frame, workload, options, archiving, series))
            )
        dimensions = dimensions_by_query(series, found.dimensions)
        for one in series:
            partitions = archiving.row_writer(one).partitions(one.query, dimensions[one.query.name])
            archiving.commit_rows(one, [*(file for file in rows.files if file.of == one.query.name), *partitions])
        return archiving.end()


def _findings(told: DataFrame) -> TaskReport:
    return joined_reports(told.toArrow().to_batches())


def _events_written(frame: Frame, writer: ArchiveWriter, series: tuple[ArchivedSeries, ...]) -> DataFrame:
    settings = writer.settings
    df = frame.df.withColumn(CHUNK, chunk_of(frame.df, settings))
    moved = df.repartition(column(settings.type), column(CHUNK))
    moved = moved.sortWithinPartitions(column(settings.type), column(settings.time)).drop(CHUNK)
    return mapped(moved, Task(None, _WritingEvents(writer, series)), REPORT)


def chunk_of(df: DataFrame, settings: ArchiveSettings) -> Column:
    """About the number of the chunk of each event: it brings events together, and the writer goes by their times."""
    from pyspark.sql import functions as F

    time = column(settings.time)
    if settings.unit is None:
        kind = dict(df.dtypes)[settings.time]
        time = F.unix_micros(time if kind == "timestamp" else time.cast("timestamp"))
    return F.floor(time.cast("bigint") / F.lit(settings.chunk))


def _rows_written(
    frame: Frame, workload: PhysicalWorkload, options: Options, archiving: Archiving,
    series: tuple[ArchivedSeries, ...],
) -> DataFrame:  # fmt: skip
    partition_groups = meetings_of(workload, workload.key_sets, partial(job_of, frame, options.numeric))
    members = tuple(member for partition_group in partition_groups for member in partition_group.members)
    found = parcels(frame.df, partition_groups)
    if any(member.job.in_parts for member in members):
        found = by_key(found, (QUERY, ROUTE), None)
    writers = tuple(archiving.row_writer(one) for one in series)
    return mapped(found, Task(None, _WritingRows(writers, series, members)), REPORT)


# ------------------------------------------------------------------------------------------ inside a task


@dataclass(frozen=True)
class _WritingEvents:
    """Write the events of a task."""

    writer: ArchiveWriter
    series: tuple[ArchivedSeries, ...]

    def __call__(self, _: object, batches: Batches) -> Batches:
        keeper = TaskEventWriter(self.writer, self.series)
        for batch in batches:
            keeper.take(batch)
        yield keeper.flush().to_batch()


@dataclass(frozen=True)
class _WritingRows:
    """Write the rows that are in a task's parcels; parts of one query's rows have come to one task."""

    writers: tuple[ArchiveWriter, ...]
    series: tuple[ArchivedSeries, ...]
    members: tuple[Member, ...]

    def __call__(self, _: object, batches: Batches) -> Batches:
        found = by_query(batches)
        for member in self.members:
            if member.number in found:
                series, writer = self.series[member.number], self.writers[member.number]
                rows = series.placed(opened(member, found.pop(member.number)))
                yield TaskReport(writer.results(series.query, rows)).to_batch()
