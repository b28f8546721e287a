"""Reduce before the shuffle: tasks sum up the events they read, and only summaries move (`Kernel.summarising`).

A first, small job finds which times each part of the input covers. Where parts overlap (`overlap`), tasks send their
events as they are, everywhere else their summaries per key and pane. The task of a key sums up the events, puts all
summaries in order of time and joins them. A task whose events hardly shrink sends them as they are, too.
Cost: as many rows are shuffled as there are keys and panes in each part, instead of one per event.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trendloom.engines.spark.plan_steps import summed
from trendloom.engines.spark.tasks import Batches, Job, Task, by_key, keyed_by, mapped, stream_of, task_number
from trendloom.engines.spark.timestamps import HINT
from trendloom.errors import DataError, RunError
from trendloom.expr.arrays import Array
from trendloom.io.events import ticks, without_nan
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import Keys, encode_keys, one_key
from trendloom.kernels.columns.windows import check_range
from trendloom.kernels.contract import PANE, Summaries, Summarising
from trendloom.runtime import task
from trendloom.runtime.blocks import Stream, build_block, stream_of_table
from trendloom.runtime.result_builder import totals_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Summaries as rows of a DataFrame: what the reduced path shuffles instead of events.
#
# A row is either a summary (`PANE` is there) or an event. Both have the key's columns.


CUT = " cut"
MOST_BYTES = 1 << 25
"""Bytes of summaries in one Arrow batch."""


def freight_schema(events: pa.Schema, summaries: pa.Schema) -> pa.Schema:
    """Columns of events, then `CUT` for events, then those of summaries."""
    return pa.schema([field.with_nullable(True) for field in events] + [pa.field(CUT, pa.int64()), *summaries])


def event_rows(schema: pa.Schema, events: pa.Table, cut: Array) -> Iterator[pa.RecordBatch]:
    """Events that travel as they are; those of one cut may be reduced together."""
    yield from _filled(schema, {name: events[name] for name in events.column_names} | {CUT: pa.array(cut)}, len(events))


def summary_rows(
    schema: pa.Schema, keys: pa.Table, summaries: Summaries, summarising: Summarising
) -> Iterator[pa.RecordBatch]:
    """Summaries with the key columns of each (`keys` has one row per summary)."""
    one = summarising.pack(summaries.take(np.arange(min(len(summaries), 1))))
    step = max(1, MOST_BYTES // max(1, sum(column.nbytes for column in one.values())))
    for at in range(0, len(summaries), step):
        some = summaries.take(np.arange(at, min(at + step, len(summaries))))
        columns: dict[str, Any] = {name: keys[name].slice(at, len(some)) for name in keys.column_names}
        columns |= summarising.pack(some)
        yield from _filled(schema, columns, len(some))


def _filled(schema: pa.Schema, columns: dict[str, Any], rows: int) -> Iterator[pa.RecordBatch]:
    arrays = [columns[field.name].cast(field.type) if field.name in columns else pa.nulls(rows, field.type)
              for field in schema]  # fmt: skip
    yield from pa.table(arrays, schema=schema).to_batches()


SHRINKS = 4
"""Events for each summary at least, on the average of a task, for summaries to be sent instead of events."""


def reduced(df: DataFrame, job: Job, zones: Zones, partitions: int | None) -> DataFrame:
    """Summaries and contested events of a DataFrame, those of one key in one task; for `multiplied`."""
    return by_key(mapped(df, Task(job, Reduce(zones)), freight_of(job)), job.plan.keys, partitions)


def freight_of(job: Job) -> pa.Schema:
    """The columns that are shuffled."""
    return freight_schema(job.schema, summarising_of(job).columns)


def summarising_of(job: Job) -> Summarising:
    """How stretches of events are summed up; the query allows it, or nobody would ask."""
    found = job.physical.kernel.in_numbers(job.numeric).summarising
    assert found is not None
    return found


# ------------------------------------------------------------------------------------------ inside a task


@dataclass(frozen=True)
class Reduce:
    """What a task does before the shuffle."""

    zones: Zones

    def __call__(self, job: Job, batches: Batches) -> Batches:
        stream = stream_of(job, batches)
        if stream is not None:
            yield from self.of(job, stream)

    def of(self, job: Job, stream: Stream) -> Batches:
        """The rows to send for some events."""
        check_range(stream.ticks, job.plan.window)
        zone = self.zones.of(stream.ticks)
        shared = zone % 2 == 1
        if shared.any():
            yield from event_rows(freight_of(job), stream.table.filter(pa.array(shared)), zone[shared])
            table, zone = stream.table.filter(pa.array(~shared)), zone[~shared]
            stream = stream_of_table(job.plan, table)
        if len(stream.ticks):
            yield from self._alone(job, stream, zone)

    def _alone(self, job: Job, stream: Stream, zone: Array) -> Batches:
        """Events that no other task has a say in."""
        block, keys, found = _reduced_by_cut(job, stream, zone)
        if len(found) * SHRINKS <= len(block):
            table = stream.table.select(list(job.plan.keys)).take(pa.array(keys.rows[found.key]))
            yield from summary_rows(freight_of(job), table, found, summarising_of(job))
        else:
            yield from event_rows(freight_of(job), stream.table, zone + len(self.zones) * (1 + task_number()))


def _reduced_by_cut(job: Job, stream: Stream, cut: Array) -> tuple[Block, Keys, Summaries]:
    """The summaries of events, none across a border between cuts."""
    physical = job.physical
    if len(cut) and (cut != cut[0]).any():
        physical = keyed_by(physical, CUT)
        stream = stream_of_table(job.plan, stream.table.append_column(CUT, pa.array(cut)))
    block, keys = build_block(physical, stream)
    found = summarising_of(job).reduce(block)
    if found is None:
        raise RunError("integers near 2^63 cannot be compared or added up before the shuffle", hint=_GENERAL)
    return block, keys, found


_GENERAL = "choose the general path"


def multiplied(job: Job, batches: Batches) -> pa.Table | None:
    """The partial table of all summaries and events of some keys."""
    found = [batch for batch in batches if batch.num_rows]
    if not found:
        return None
    table = without_nan(pa.Table.from_batches(found))
    summed_up = np.asarray(table[PANE].is_valid())
    if not summed_up.any():
        return task.partial(job.physical, stream_of_table(job.plan, _events(job, table)), numeric=job.numeric)
    keys, summarising = _joint_keys(job, table), summarising_of(job)
    nothing, _ = build_block(job.physical, stream_of_table(job.plan, job.schema.empty_table()))
    parts = [summarising.unpack(table.filter(pa.array(summed_up)), keys.codes[summed_up], nothing)]
    if not summed_up.all():
        rows = np.flatnonzero(~summed_up)
        some = table.take(pa.array(rows))
        stream = stream_of_table(job.plan, _events(job, some))
        _, own, found_here = _reduced_by_cut(job, stream, some[CUT].to_numpy())
        parts.append(found_here.with_keys(keys.codes[rows[own.rows[found_here.key]]]))
    totals = summarising.results(parts, nothing)
    if totals is None:
        raise RunError(
            "the DataFrame was divided differently when it was read a second time",
            hint=f"cache it or write it to a file first, or {_GENERAL}",
        )
    if not len(totals):
        return None
    return totals_table(job.plan, Stream(table, {}, np.zeros(0, np.int64)), keys, totals)


def _events(job: Job, table: pa.Table) -> pa.Table:
    return table.select(job.schema.names)


def _joint_keys(job: Job, table: pa.Table) -> Keys:
    """The keys of summaries and events together."""
    if not job.plan.keys:
        return one_key(len(table))
    kinds = {one.name: one.kind for one in job.plan.schema.columns}
    stream = Stream(table, kinds, np.zeros(0, np.int64))
    return encode_keys([stream.vector(name) for name in job.plan.keys])


@dataclass(frozen=True)
class InputPart:
    """A part of the input: its first and last tick, and how many events it has."""

    first: int
    last: int
    events: int


@dataclass(frozen=True)
class Zones:
    """Time as zones 0, 1, 2, ...: the odd ones are the contested intervals `low[i]` to `high[i]`, both included."""

    low: tuple[int, ...] = ()
    high: tuple[int, ...] = ()

    def __len__(self) -> int:
        """How many zones there are."""
        return 2 * len(self.low) + 1

    def of(self, ticks: Array) -> Array:
        """The zone of every tick."""
        if not self.low:
            return np.zeros(len(ticks), np.int64)
        before = np.searchsorted(np.array(self.low, np.int64), ticks, side="right")
        inside = (before > 0) & (ticks <= np.array(self.high, np.int64)[before - 1])
        return np.asarray(2 * before - inside)

    def share(self, parts: Iterable[InputPart]) -> float:
        """About how much of the events is contested, as if each part had its events evenly spread."""
        contested = whole = 0.0
        for part in parts:
            length = part.last - part.first + 1
            shared = sum(
                max(0, min(part.last, high) - max(part.first, low) + 1)
                for low, high in zip(self.low, self.high, strict=True)
            )
            contested += part.events * (shared / length)
            whole += part.events
        return contested / whole if whole else 0.0


def contested(parts: Iterable[InputPart]) -> Zones:
    """The zones of some parts. A part is contested where it begins before all parts that began earlier have ended."""
    low: list[int] = []
    high: list[int] = []
    covered: int | None = None
    for part in sorted(parts, key=lambda one: (one.first, one.last)):
        if covered is not None and part.first <= covered:
            end = min(part.last, covered)
            if high and part.first <= high[-1] + 1:
                high[-1] = max(high[-1], end)
            else:
                low.append(part.first)
                high.append(end)
        covered = part.last if covered is None else max(covered, part.last)
    return Zones(tuple(low), tuple(high))


@dataclass(frozen=True)
class RowGroups:
    """Row groups `first` up to `last` (not included) of a file, and what they hold."""

    file: str
    first: int
    last: int
    part: InputPart


def row_groups(files: tuple[Path, ...], job: Job) -> list[RowGroups] | str:
    """All row groups of the files, one by one; or why tasks cannot read them themselves."""
    found: list[RowGroups] = []
    for name in files:
        with pq.ParquetFile(name) as file:
            problem = _unfit(file, job)
            if problem is not None:
                return problem
            for number in range(file.metadata.num_row_groups):
                part = _part(file, number, job)
                if part is None:
                    return f"{name.name} does not say which times its row groups hold"
                if part.events:
                    found.append(RowGroups(str(name.resolve()), number, number + 1, part))
    return found


def _unfit(file: pq.ParquetFile, job: Job) -> str | None:
    given = file.schema_arrow
    for field in job.schema:
        at = given.get_field_index(field.name)
        if at < 0 or not _same(given.field(at).type, field.type):
            return f"column '{field.name}' is not stored as {field.type}"
    return None


def _same(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a column is what Spark would make of it: the same, but for nanoseconds, which are microseconds here."""
    if pa.types.is_timestamp(stored) and pa.types.is_timestamp(wanted) and stored.unit == "ns":
        return (stored.tz is None) == (wanted.tz is None)
    return bool(stored == wanted)


def _part(file: pq.ParquetFile, number: int, job: Job) -> InputPart | None:
    group = file.metadata.row_group(number)
    leaves = {group.column(at).path_in_schema: at for at in range(group.num_columns)}
    for name in exact_columns(job):
        statistics = group.column(leaves[name]).statistics
        if statistics is None or not statistics.has_min_max or near_bounds(statistics.min, statistics.max):
            return None
    time = job.plan.schema.time
    statistics = group.column(leaves[time]).statistics
    if group.num_rows == 0:
        return InputPart(0, 0, 0)
    if statistics is None or not statistics.has_min_max:
        return None
    bounds = pa.array([statistics.min, statistics.max], file.schema_arrow.field(time).type)
    try:
        first, last = ticks(pa.chunked_array([bounds]), job.plan.schema.axis).tolist()
    except pa.ArrowInvalid:  # not whole microseconds: reading the rows reports it with more context
        return None
    return InputPart(first, last, group.num_rows)


def exact_columns(job: Job) -> list[str]:
    """Integer columns of MIN and MAX: values next to the bounds of 64 bits look like absent ones."""
    measures = summed(job.physical).measures
    names = {m.column for m in measures if m.function in ("min", "max") and m.column}
    return sorted(name for name in names if pa.types.is_integer(job.schema.field(name).type))


def near_bounds(least: Any, most: Any) -> bool:
    """Whether integers come near the bounds of 64 bits."""
    return least is not None and most is not None and (int(least) <= -(2**63) + 4 or int(most) >= 2**63 - 4)


def any_near_bounds(least: pa.ChunkedArray, most: pa.ChunkedArray) -> bool:
    """The same, for one of many parts."""
    return any(near_bounds(*one) for one in zip(least.to_pylist(), most.to_pylist(), strict=True))


def shares(groups: list[RowGroups], tasks: int) -> list[list[RowGroups]]:
    """Row groups in their order, divided among tasks by their number of events."""
    whole = sum(group.part.events for group in groups)
    found: list[list[RowGroups]] = [[] for _ in range(tasks)]
    before = 0
    for group in groups:
        found[min(tasks - 1, (before + group.part.events // 2) * tasks // max(whole, 1))].append(group)
        before += group.part.events
    return [share for share in found if share]


def part_of(share: list[RowGroups]) -> InputPart:
    parts = [group.part for group in share]
    return InputPart(min(p.first for p in parts), max(p.last for p in parts), sum(p.events for p in parts))


def read_and_reduced(
    spark: SparkSession, groups: list[RowGroups], job: Job, tasks: int, partitions: int | None
) -> DataFrame:
    """As `reduce.reduced`, out of files."""
    from pyspark.sql import functions as F

    divided = shares(groups, tasks)
    zones = contested(part_of(share) for share in divided)
    rows = [(number, one.file, one.first, one.last) for number, share in enumerate(divided) for one in share]
    listed = spark.createDataFrame(rows, "task int, file string, first int, last int")
    placed = listed.repartitionById(max(len(divided), 1), F.col("task"))
    return by_key(mapped(placed, Task(job, Read(Reduce(zones))), freight_of(job)), job.plan.keys, partitions)


@dataclass(frozen=True)
class Read:
    """What a task does: read the row groups that are listed, and reduce their events."""

    reduce: Reduce

    def __call__(self, job: Job, batches: Batches) -> Batches:
        rows = [row for batch in batches for row in batch.to_pylist()]
        tables = list(_tables(sorted(rows, key=lambda row: (row["file"], row["first"])), job))
        if tables:
            yield from self.reduce.of(job, stream_of_table(job.plan, pa.concat_tables(tables)))


def _tables(rows: list[dict[str, Any]], job: Job) -> Iterator[pa.Table]:
    for row in rows:
        if not os.path.exists(row["file"]):
            raise RunError(
                f"{row['file']} cannot be seen by the tasks",
                hint="keep it on storage that all machines share, or read it with Spark and call detect",
            )
        with pq.ParquetFile(row["file"]) as file:
            numbers = list(np.arange(row["first"], row["last"]))
            found = file.read_row_groups(numbers, columns=job.schema.names, use_threads=False)
            yield _cast(found.select(job.schema.names), job.schema, row["file"])


def _cast(events: pa.Table, schema: pa.Schema, file: str) -> pa.Table:
    try:
        return events.cast(schema)
    except pa.ArrowInvalid as problem:
        raise DataError(
            f"{file} has times that are not whole microseconds, or too far away: {problem}", hint=HINT
        ) from problem
