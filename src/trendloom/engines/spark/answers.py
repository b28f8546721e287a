"""Queries on Spark, collected: what `trendloom run` and `run(engine="spark")` do. `detect` gives DataFrames instead."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from trendloom.engines import precompile
from trendloom.engines.answers import UNWATCHED, Answer
from trendloom.engines.spark import batch
from trendloom.engines.spark.allowed_paths import joined, requested_path
from trendloom.engines.spark.batch import FIRST, LAST
from trendloom.engines.spark.columns import column
from trendloom.engines.spark.error_transport import in_our_words
from trendloom.engines.spark.frames import Frame, describe, finite, inspect, open_frame, with_null_columns
from trendloom.engines.spark.precheck import checked
from trendloom.engines.spark.session import is_started, session
from trendloom.engines.spark.tasks import Batches, Job, Task, mapped
from trendloom.engines.spark.timestamps import shown_in
from trendloom.engines.spark.workload_job import by_query, meetings_of, opened, parcels
from trendloom.errors import BindError, QueryWarning
from trendloom.frontend.tree import Query
from trendloom.logical.plan import RANK, Plan
from trendloom.planner.plan import Physical
from trendloom.planner.workload import PhysicalWorkload
from trendloom.runtime.blocks import stream_of_table
from trendloom.runtime.planning import bound, planned_together
from trendloom.runtime.reading import is_spark_frame
from trendloom.runtime.result_columns import aggregate_schema, row_schema
from trendloom.runtime.statistics import in_one_line, matching_alone, passed_events
from trendloom.runtime.warnings import Ties, warning_of_ties

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import DataFrame

    from trendloom.engines.answers import Watch
    from trendloom.options import Options


# How many events pass the conditions on them alone, counted by Spark: one more job, for a query without any row.


COUNTS = pa.schema([("position", pa.int64()), ("of_type", pa.int64()), ("together", pa.int64())])


def describe_passed(plan: Plan, frame: Frame) -> str:
    """As `runtime.statistics.describe_passed`, over the events of a DataFrame."""
    plan = matching_alone(plan)
    with in_our_words():
        rows = frame.df.select(*(column(name) for name in plan.scan.columns))
        counts = mapped(rows, Task(plan, _counted), COUNTS).toArrow()
    sums = counts.group_by("position").aggregate([("of_type", "sum"), ("together", "sum")]).to_pylist()
    found = {one["position"]: (one["together_sum"], one["of_type_sum"]) for one in sums}
    return in_one_line(plan, found)


def _counted(plan: Any, batches: Batches) -> Batches:
    for part in batches:
        if part.num_rows:
            stream = stream_of_table(plan, pa.Table.from_batches([part]))
            found = [one for one in passed_events(plan, stream) if not one.negated]
            counts = [[one.atom.position, one.of_type, one.together] for one in found]
            columns = [list(values) for values in zip(*counts, strict=True)]
            yield pa.RecordBatch.from_arrays([pa.array(values, pa.int64()) for values in columns], schema=COUNTS)


# What tasks count for the driver: the matches they have found, looked at while the job runs, and events of equal time.
#
# Spark hands on what a task has counted when the task ends; a task that failed and was tried again may count twice.
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
    """Tell `progress` of the counter while the body runs."""
    if counter is None or progress is None:
        yield
        return
    done = threading.Event()

    def look() -> None:
        while not done.wait(LOOK_EVERY):
            if counter.value:
                progress(counter.value)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        progress(counter.value)


def answers(
    queries: tuple[Query, ...], source: object, options: Options, watch: Watch
) -> tuple[Sequence[QueryWarning], list[Answer]]:
    """Every query bound and planned over the same DataFrame; rows are computed when they are read.

    Also what a look at the events brought up.
    """
    frame = framed(queries, source if not is_spark_frame(source) else finite(source), options, watch)
    with in_our_words():
        if frame.schema.present is None:
            frame = inspect(frame, unit_given=options.time_unit is not None)
        plans = bind_all(queries, frame)
    workload = planned_together(plans, options.limits)
    runs = _runs(workload, frame, options, watch)
    both = zip(plans, runs, strict=True)
    return frame.warnings, [Answer(plan, run, _passed(plan, frame)) for plan, run in both]


def _runs(workload: PhysicalWorkload, frame: Frame, options: Options, watch: Watch) -> list[Iterator[pa.RecordBatch]]:
    """The rows of every query; queries that one job answers are computed when the rows of the first are read."""
    one_job = _OneJob(workload, frame, options, watch)
    return [
        one_job.rows(number) if number in one_job.members else _alone(physical, frame, options, watch)
        for number, physical in enumerate(workload.queries)
    ]


def _passed(plan: Plan, frame: Frame) -> Callable[[], str] | None:
    return None if plan.schema.imprecise else partial(describe_passed, plan, frame)


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


def bind_all(queries: tuple[Query, ...], frame: Frame) -> list[Plan]:
    """Bind; where that fails, once more with columns that are all NULL, which fit everywhere."""
    try:
        return bound(queries, frame.schema)
    except BindError:
        wider = with_null_columns(frame)
        if wider is None:
            raise
        return bound(queries, wider.schema)


def _alone(physical: Physical, frame: Frame, options: Options, watch: Watch) -> Iterator[pa.RecordBatch]:
    """The rows of a query that has a job of its own."""
    job = _job(frame, options, counter_of(frame.df) if watch.progress is not None else None, physical)
    with in_our_words(), counting(job.counter, watch.progress):
        path = requested_path(options)
        found = batch.run(frame.df, job, partitions=options.partitions, path=path, files=frame.files)
        if job.limit is not None and physical.plan.ranking is None:
            found = found.limit(job.limit)
        table = found.toArrow()
    yield from _given_out(job, table, frame, options, watch)


class _OneJob:
    """The job that answers several queries, and what it has found until their rows are read."""

    def __init__(self, workload: PhysicalWorkload, frame: Frame, options: Options, watch: Watch) -> None:
        self.frame, self.options, self.watch = frame, options, watch
        self.counter = counter_of(frame.df) if watch.progress is not None else None
        self.partition_groups = meetings_of(workload, joined(workload), partial(_job, frame, options, self.counter))
        self.members = {
            member.number: member for partition_group in self.partition_groups for member in partition_group.members
        }

    @cached_property
    def found(self) -> dict[int, list[pa.Table]]:
        with in_our_words(), counting(self.counter, self.watch.progress):
            return by_query(parcels(self.frame.df, self.partition_groups).toArrow().to_batches())

    def rows(self, number: int) -> Iterator[pa.RecordBatch]:
        member = self.members[number]
        with in_our_words():
            table = opened(member, self.found.pop(number, []))
        yield from _given_out(member.job, table, self.frame, self.options, self.watch)


def _job(frame: Frame, options: Options, counter: Accumulator[int] | None, physical: Physical) -> Job:
    """What tasks need to know of a query whose rows are collected."""
    job = job_of(frame, options.numeric, physical)
    if not physical.aggregates:
        job = replace(job, limit=options.limit, order=True, counter=counter)
    return replace(job, tied=ties_counter(frame.df))


def job_of(frame: Frame, numeric: str, physical: Physical) -> Job:
    """What tasks need to know of a query."""
    return Job(physical, pa.schema([frame.arrow.field(name) for name in physical.plan.scan.columns]), numeric)


def _given_out(job: Job, table: pa.Table, frame: Frame, options: Options, watch: Watch) -> Iterator[pa.RecordBatch]:
    """Rows as they left the tasks, in order, in the types that the events had."""
    plan, by_match = job.plan, not job.physical.aggregates
    warning = warning_of_ties(plan, job.tied.ties) if isinstance(job.tied, TiesCounter) else None
    if warning is not None:
        watch.warn(warning, plan.name)
    keys = ["window_start"] if plan.window.sliding else []
    if plan.ranking is not None:
        keys += [*(() if plan.ranking.overall else plan.partition), RANK]
    else:
        keys += [*plan.partition, FIRST, LAST] if by_match else plan.group_by
    table = _in_order(table, keys)
    ends = [name for name in (FIRST, LAST) if name in table.column_names]
    table = table.drop_columns(ends).slice(0, options.limit)
    scanned = pa.schema([frame.given.field(name) for name in plan.scan.columns])
    wanted = row_schema(job.physical, scanned) if by_match else aggregate_schema(plan, scanned, options.numeric)
    table = shown_in(table, wanted)
    yield from table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]


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
