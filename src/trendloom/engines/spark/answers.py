"""Queries on Spark, collected: `trendloom run` and `run(engine="spark")`. `trendloom.spark.detect` gives DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from trendloom.engines import precompile
from trendloom.engines.answers import UNWATCHED, Answer, repeatedly
from trendloom.engines.introspection import schema_of
from trendloom.engines.spark import batch
from trendloom.engines.spark.batch import FIRST, LAST
from trendloom.engines.spark.columns import column, shown_in
from trendloom.engines.spark.errors import in_our_words
from trendloom.engines.spark.frames import (
    Frame,
    describe,
    finite,
    inspect,
    open_frame,
    remote_parquet,
    with_null_columns,
)
from trendloom.engines.spark.plan_steps import Path, answered_together, requested_path
from trendloom.engines.spark.session import is_started, session
from trendloom.engines.spark.tasks import Batches, Job, mapped
from trendloom.engines.spark.workload_job import (
    by_query,
    in_one_table,
    members_of,
    parcels,
    partition_groups_of,
    rows_of_parts,
)
from trendloom.errors import BindError, OptionError, QueryWarning, option
from trendloom.frontend.tree import Query
from trendloom.io.parquet import ParquetFiles
from trendloom.logical.bind.workload import refuse_clashing_columns
from trendloom.logical.plan import RANK, Plan
from trendloom.planner.plan import Physical
from trendloom.planner.workload import PhysicalWorkload
from trendloom.runtime.blocks import stream_of_table
from trendloom.runtime.planning import bound, planned, planned_together
from trendloom.runtime.reading import is_spark_frame, load, opened, schema_of_columns
from trendloom.runtime.result_columns import aggregate_schema, row_schema
from trendloom.runtime.statistics import in_one_line, matching_alone, passed_events
from trendloom.runtime.warnings import Ties, report_warnings, warn_in_python, warning_of_ties

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import DataFrame

    from trendloom.engines.answers import Watch
    from trendloom.options import Options


def answers(
    queries: tuple[Query, ...], source: object, options: Options, watch: Watch
) -> tuple[Sequence[QueryWarning], list[Answer]]:
    """Warnings about the events, and the answers; rows are computed when they are read."""
    frame = framed(queries, source if not is_spark_frame(source) else finite(source), options, watch)
    with in_our_words():
        if frame.schema.present is None:
            frame = inspect(frame, unit_given=options.time_unit is not None)
        plans = bind_all(queries, frame)
    workload = planned_together(plans, options.limits)
    rows = _CollectedRows(workload, frame, options, watch)
    return frame.warnings, [
        Answer(plan, rows.of(number), None if plan.schema.imprecise else partial(describe_passed, plan, frame))
        for number, plan in enumerate(plans)
    ]


def detect_batch(events: object, queries: tuple[Query, ...], options: Options) -> DataFrame:
    """The rows of queries over a batch as a DataFrame; see `trendloom.spark.detect`."""
    if len(queries) > 1 and options.path not in (None, Path.GENERAL.value):
        names = ", ".join(str(one.name) for one in queries)
        raise OptionError(
            "several queries in one DataFrame take the path 'general'",
            hint=f"leave {option('path')} out, or choose one with {option('query')}: {names}",
        )
    frame = framed(queries, events, options)
    plans = bind_all(queries, frame)
    refuse_clashing_columns(plans)
    report_warnings(frame.warnings, plans, warn_in_python)
    workload = planned_together(plans, options.limits)
    if not workload.several:
        job = job_of(frame, options.numeric, workload.queries[0])
        path = requested_path(options)
        with in_our_words():  # choosing a path may look at the events
            return batch.run(frame.df, job, partitions=options.partitions, path=path, files=frame.files)
    groups = partition_groups_of(workload, workload.key_sets, partial(job_of, frame, options.numeric))
    return in_one_table(parcels(frame.df, groups, options.partitions), members_of(groups), options.partitions)


def framed(queries: tuple[Query, ...], source: object, options: Options, watch: Watch = UNWATCHED) -> Frame:
    """The events as a DataFrame; Spark starts only once all that needs no Spark is found right."""
    if is_spark_frame(source):
        return describe(source, options.columns())
    source = checked(queries, source, options)
    if not is_started(options.master):
        precompile.begin(queries, source, options)  # tasks find what is compiled while Spark starts
    with watch.starting():
        spark = session(options.master)
    with in_our_words():
        return open_frame(spark, source, options)


def checked(queries: tuple[Query, ...], source: object, options: Options) -> object:
    """The source, or its events where they had to be read; refuses what cannot be answered."""
    remote = remote_parquet(source, options.schema)
    if remote is not None:
        return remote
    found = opened(source, options)
    if not isinstance(found, ParquetFiles):
        events = load(found, options)
        planned(queries, events.schema, options.limits)
        return events
    try:
        planned(queries, schema_of_columns(found.columns, options), options.limits)
    except BindError:  # columns that are NULL everywhere, as the footers show, fit everywhere
        _, schema = schema_of(found, options)
        planned(queries, schema, options.limits)
    return found


def bind_all(queries: tuple[Query, ...], frame: Frame) -> list[Plan]:
    """Bind; where that fails, once more with columns that are all NULL, which fit everywhere."""
    try:
        return bound(queries, frame.schema)
    except BindError:
        wider = with_null_columns(frame)
        if wider is None:
            raise
        return bound(queries, wider.schema)


def job_of(frame: Frame, numeric: str, physical: Physical) -> Job:
    """The arguments of tasks for a query."""
    return Job(physical, pa.schema([frame.arrow.field(name) for name in physical.plan.scan.columns]), numeric)


class _CollectedRows:
    """The rows of the queries of a workload.

    One job answers several queries, when the rows of the first are read; the others have jobs of their own.
    """

    def __init__(self, workload: PhysicalWorkload, frame: Frame, options: Options, watch: Watch) -> None:
        self.queries, self.frame, self.options, self.watch = workload.queries, frame, options, watch
        self.counter = self._counter()
        self.partition_groups = partition_groups_of(
            workload, answered_together(workload), partial(self._job, self.counter)
        )
        self.members = {member.number: member for member in members_of(self.partition_groups)}

    def of(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of a query in order, in the types that the events had."""
        if number in self.members:
            job = self.members[number].job
            with in_our_words():
                table = rows_of_parts(job, self._joined_parts.pop(number, []))
        else:
            job = self._job(self._counter(), self.queries[number])
            table = self._alone(job)
        warning = warning_of_ties(job.plan, job.tied.ties) if isinstance(job.tied, TiesCounter) else None
        if warning is not None:
            self.watch.warn(warning, job.plan.name)
        table = self._as_read(job, table)
        yield from table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]

    @cached_property
    def _joined_parts(self) -> dict[int, list[pa.Table]]:
        """The results of the job for several queries, until they are read."""
        with in_our_words(), counting(self.counter, self.watch.progress):
            return by_query(parcels(self.frame.df, self.partition_groups).toArrow().to_batches())

    def _alone(self, job: Job) -> pa.Table:
        """The results of a job for one query."""
        frame, options, path = self.frame, self.options, requested_path(self.options)
        with in_our_words(), counting(job.counter, self.watch.progress):
            found = batch.run(frame.df, job, partitions=options.partitions, path=path, files=frame.files)
            if job.limit is not None and job.plan.ranking is None:
                found = found.limit(job.limit)
            return found.toArrow()

    def _counter(self) -> Accumulator[int] | None:
        return None if self.watch.progress is None else counter_of(self.frame.df)

    def _job(self, counter: Accumulator[int] | None, physical: Physical) -> Job:
        """The arguments of tasks for a query whose rows are collected."""
        job = job_of(self.frame, self.options.numeric, physical)
        if not physical.aggregates:
            job = replace(job, limit=self.options.limit, order=True, counter=counter)
        return replace(job, tied=ties_counter(self.frame.df))

    def _as_read(self, job: Job, table: pa.Table) -> pa.Table:
        """Rows as they left the tasks, in order, in the types that the events had before Spark read them."""
        plan, by_match = job.plan, not job.physical.aggregates
        keys = ["window_start"] if plan.window.sliding else []
        if plan.ranking is not None:
            keys += [*(() if plan.ranking.overall else plan.partition), RANK]
        else:
            keys += [*plan.partition, FIRST, LAST] if by_match else plan.group_by
        table = _in_order(table, keys)
        ends = [name for name in (FIRST, LAST) if name in table.column_names]
        table = table.drop_columns(ends).slice(0, self.options.limit)
        read = pa.schema([self.frame.given.field(name) for name in plan.scan.columns])
        types = row_schema(job.physical, read) if by_match else aggregate_schema(plan, read, self.options.numeric)
        return shown_in(table, types)


def _in_order(table: pa.Table, keys: list[str]) -> pa.Table:
    """Rows sorted here: they are all here, and to sort them Spark would compute them twice, to sample them first."""
    if not keys:
        return table
    columns: dict[str, pa.ChunkedArray] = {}
    for number, name in enumerate(keys):
        if table[name].null_count:
            columns[f"known {number}"] = table[name].is_valid()  # NULL comes first, as Spark sorts
        columns[f"key {number}"] = table[name]
    return table.take(pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in columns]))


# How many events pass the conditions on them alone, counted by Spark: one more job, for a query without any row.


COUNTS = pa.schema([("position", pa.int64()), ("of_type", pa.int64()), ("passing", pa.int64())])


def describe_passed(plan: Plan, frame: Frame) -> str:
    """As `runtime.statistics.describe_passed`, over the events of a DataFrame."""
    plan = matching_alone(plan)
    with in_our_words():
        rows = frame.df.select(*(column(name) for name in plan.scan.columns))
        counts = mapped(rows, partial(_counted, plan), COUNTS).toArrow()
    sums = counts.group_by("position").aggregate([("of_type", "sum"), ("passing", "sum")]).to_pylist()
    found = {one["position"]: (one["passing_sum"], one["of_type_sum"]) for one in sums}
    return in_one_line(plan, found)


def _counted(plan: Plan, batches: Batches) -> Batches:
    for part in batches:
        if part.num_rows:
            stream = stream_of_table(plan, pa.Table.from_batches([part]))
            found = [one for one in passed_events(plan, stream) if not one.negated]
            counts = [[one.atom.position, one.of_type, one.passing] for one in found]
            columns = [list(values) for values in zip(*counts, strict=True)]
            yield pa.RecordBatch.from_arrays([pa.array(values, pa.int64()) for values in columns], schema=COUNTS)


# What tasks count for the driver: matches, reported while the job runs, and events of equal time.
#
# Spark adds the count of a task when the task ends; a task that failed and was tried again may count twice.
# Sessions through Spark Connect have no accumulators.


LOOK_EVERY = 0.5
"""Seconds."""


def counter_of(df: DataFrame) -> Accumulator[int] | None:
    """A counter that tasks can add to; None where the session has none."""
    from pyspark.sql import SparkSession

    session = df.sparkSession
    return session.sparkContext.accumulator(0) if type(session) is SparkSession else None


@dataclass(frozen=True)
class TiesCounter:
    """Events of equal time, over all tasks."""

    events: Accumulator[int]
    tied: Accumulator[int]

    def __call__(self, found: Ties) -> None:
        self.events.add(found.events)
        self.tied.add(found.tied)

    @property
    def ties(self) -> Ties:
        return Ties(self.events.value, self.tied.value)


def ties_counter(df: DataFrame) -> TiesCounter | None:
    """A counter of events of equal time; None where the session has none."""
    events, tied = counter_of(df), counter_of(df)
    return None if events is None or tied is None else TiesCounter(events, tied)


@contextmanager
def counting(counter: Accumulator[int] | None, progress: Callable[[int], None] | None) -> Iterator[None]:
    """Report the counter to `progress` while the body runs."""
    if counter is None or progress is None:
        yield
        return

    def report() -> None:
        if counter.value:
            progress(counter.value)

    try:
        with repeatedly(report, LOOK_EVERY):
            yield
    finally:
        progress(counter.value)
