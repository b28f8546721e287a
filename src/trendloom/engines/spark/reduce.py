"""Reduce before the shuffle: tasks sum up the events they read, and only summaries move (`Kernel.summarising`).

A first, small job finds which times each part of the input covers. Where parts overlap (`overlap`), tasks send their
events as they are, everywhere else their summaries per key and pane. The task of a key sums up the events, puts all
summaries in order of time and joins them. A task whose events hardly shrink sends them as they are, too.
Cost: as many rows are shuffled as there are keys and panes in each part, instead of one per event.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from trendloom.engines.spark.tasks import Batches, Job, Task, by_key, keyed_by, mapped, stream_of, task_number
from trendloom.engines.spark.time_overlap import Zones
from trendloom.errors import RunError
from trendloom.expr.arrays import Array
from trendloom.io.events import without_nan
from trendloom.kernels.columns.block import Block, check_range
from trendloom.kernels.columns.keys import Keys, encode_keys, one_key
from trendloom.kernels.contract import PANE, Summaries, Summarising
from trendloom.runtime import task
from trendloom.runtime.blocks import Stream, build_block, stream_of_table
from trendloom.runtime.result_builder import totals_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
