"""What tasks of a live stream do: pack events into parcels, and step the state of a partition group in a bucket.

A parcel holds all events of one partition group and bucket in an input task, as one row of Arrow bytes: the columns and
rows that any query of the group needs, and a bit for each query and row, whether it needs it. So Spark shuffles a few
large rows instead of many small ones, and what leaves the shuffle is columns already.
Cost: one stable sort by bucket and one copy of the columns, per batch and group.

The stateful operator makes one columnar step per query and bucket. State is a map from numbers to chunks of bytes, and
an index, in Spark's store. A timer in event time wakes a bucket whose windows end though no event arrives; when there
is nothing left to wait for, all state of the bucket is removed.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Row

from trendloom.engines.spark.errors import ERROR, error_text
from trendloom.engines.spark.tasks import PAYLOAD, Batches
from trendloom.errors import DataError, Door, StateError, TrendloomError, at_door, option
from trendloom.io.files import place
from trendloom.model.time import TimeAxis
from trendloom.streaming.partition_groups import (
    GROUP_NAMESPACE,
    GroupStep,
    StreamPartitionGroup,
    StreamQueryGroup,
    queries_of_member,
)
from trendloom.streaming.state import EventBuffer, Memory, NamespacedState, pack, unpack
from trendloom.streaming.step import QueryStep
from trendloom.streaming.streaming_query import StreamingQuery

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import TimerValues

    from trendloom.engines.spark.streaming.processor import Processor


# ------------------------------------------------------------------------------------------- parcels of events


BUNDLE, BUCKET = "query", "bucket"
PARCEL = pa.schema([(BUNDLE, pa.string()), (BUCKET, pa.int32()), (PAYLOAD, pa.binary())])

FLAG = " for query "
"""How the names of columns begin that mark the events a query of the group needs."""
MOST_ROWS = 1 << 20
"""Events that are packed at a time."""


@dataclass(frozen=True)
class Label:
    """How the events of one partition group are packed: its name, their columns, and the column of their buckets.

    `needed`: the column that marks the events a query needs, for each query of the group; None: it needs all.
    """

    partition_group: str
    columns: tuple[str, ...]
    bucket: str
    needed: tuple[str | None, ...]


@dataclass(frozen=True)
class Packing:
    """How an input task packs its events."""

    labels: tuple[Label, ...]
    probes: tuple[str, ...] = ()  # bundles that must not have any state
    buckets: int = 1


def packed(packing: Packing, batches: Batches) -> Batches:
    """Task function: events as parcels."""
    for table in _large_tables(batches):
        parcels = [parcel for label in packing.labels for parcel in _parcels(table, label)]
        parcels += [(name, bucket, b"") for name in packing.probes for bucket in range(packing.buckets)]
        if parcels:
            columns = zip(*parcels, strict=True)
            arrays = [pa.array(values, one.type) for values, one in zip(columns, PARCEL, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=PARCEL)


def _large_tables(batches: Batches) -> Iterator[pa.Table]:
    """Batches together, up to so many rows."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
        if sum(one.num_rows for one in held) >= MOST_ROWS:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _parcels(table: pa.Table, label: Label) -> Iterator[tuple[str, int, bytes]]:
    tests = [name for name in label.needed if name is not None]
    if len(tests) == len(label.needed):
        table = table.filter(reduce(pc.or_, [table[name] for name in tests]))
    if not len(table):
        return
    bucket = table[label.bucket].to_numpy()
    order = np.argsort(bucket, kind="stable")
    bounds = np.flatnonzero(np.diff(bucket[order], prepend=-1, append=-1))
    events = table.select(list(label.columns))
    for number, name in enumerate(label.needed):
        if name is not None and len(label.needed) > 1:
            events = events.append_column(_flag(number), table[name])
    events = events.take(pa.array(order)) if len(bounds) > 2 else events
    for begin, end in pairwise(bounds):
        yield label.partition_group, int(bucket[order[begin]]), pack(events.slice(begin, end - begin), compress=False)


def events_for(number: int, arrived: pa.Table) -> pa.Table:
    """The events of a parcel that a query of its group needs."""
    name = _flag(number)
    events = arrived.filter(arrived[name]) if name in arrived.column_names else arrived
    return events.drop_columns([one for one in events.column_names if one.startswith(FLAG)])


def _flag(number: int) -> str:
    return f"{FLAG}{number}"


# --------------------------------------------------------------------------------------------------- steps


@dataclass(frozen=True)
class Stepping:
    """Steps the bundles of a workload; `door`: how the user of the driver spells options."""

    partition_groups: tuple[StreamPartitionGroup, ...]
    buckets: int
    late_to: str | None
    door: Door
    probes: tuple[str, ...] = ()  # bundles that must not have any state

    def rows(self, processor: Processor, key: Any, payloads: list[bytes], timers: TimerValues) -> Iterator[Row]:
        """The results of a partition group in a bucket after events have arrived, or time has passed."""
        name, bucket = str(key[0]), int(key[1])
        group = next((one for one in self.partition_groups if one.name == name), None)
        if group is None:
            yield from self._unknown(name, Store(processor, None))
            return
        arrived = pa.concat_tables([unpack(one) for one in payloads]) if payloads else None
        store = Store(processor, group.streaming_queries[0].physical.plan.schema.axis)
        if not group.shared:
            yield from self._step(group.streaming_queries[0], store, bucket, arrived, timers)
            return
        namespaces = NamespacedState(store)
        namespaces.keep_only([_namespace(member) for member in group.members])
        for number, member in enumerate(group.members):
            events = None if arrived is None else events_for(number, arrived)
            yield from self._step(member, namespaces.of(_namespace(member)), bucket, events, timers)
        namespaces.close()

    def _unknown(self, name: str, store: Store) -> Iterator[Row]:
        """Clear the state of a group all of whose queries were removed; refuse that of one that must not exist."""
        if name not in self.probes:
            store.clear()
        elif store.index() is not None:
            with at_door(self.door):
                error = StateError(
                    "the checkpoint holds states of queries that travel together, as it was named when it was made",
                    hint=f"name it again: {option('checkpoint', 'FOLDER')}",
                )
                yield _row(None, 0, **{ERROR: error_text(error)})

    def _step(
        self,
        member: StreamingQuery | StreamQueryGroup,
        memory: Memory,
        bucket: int,
        arrived: pa.Table | None,
        timers: TimerValues,
    ) -> Iterator[Row]:
        """The rows of a step; an error of ours leaves it as a row, too."""
        first = queries_of_member(member)[0]
        try:
            with at_door(self.door):
                watermark = ticks_of(first.physical.plan.schema.axis, timers.getCurrentWatermarkInMs())
                step: GroupStep | QueryStep
                if isinstance(member, StreamQueryGroup):
                    step, name = GroupStep(member, memory, watermark, self.buckets), member.named()
                    found = step.rows(arrived)
                else:
                    step, name = QueryStep(member, memory, watermark, self.buckets), member.name
                    found = ((member, batch) for batch in step.rows(arrived))
                for query, batch in found:
                    yield _row(query, bucket, payload=pack(pa.Table.from_batches([batch]), compress=False))
                yield _row(first, bucket, **self._counts(step, name, bucket))
        except TrendloomError as error:
            yield _row(first, bucket, **{ERROR: error_text(error)})

    def _counts(self, step: EventBuffer, name: str, bucket: int) -> dict[str, int]:
        """How many events a step has kept, and how many were late, which are put aside."""
        late = 0
        if step.late is not None:
            refuse_untimed(step.untimed, self.late_to)
            write_late(step.late, self.late_to, name, bucket)
            late = len(step.late) - step.untimed
        return {"kept": step.kept, "late": late, "untimed": step.untimed}


def _namespace(member: StreamingQuery | StreamQueryGroup) -> str:
    return GROUP_NAMESPACE if isinstance(member, StreamQueryGroup) else member.name


def _row(query: StreamingQuery | None, bucket: int, **given: Any) -> Row:
    """A row that leaves the operator: results, counts, or an error, after which there is nothing more."""
    name, route = ("", 0) if query is None else (query.name, 0 if query.in_parts else bucket)
    rest = {"payload": None, "kept": 0, "late": 0, "untimed": 0, ERROR: None} | given
    return Row(query=name, route=route, **rest)


@dataclass
class Store:
    """The memory of one partition group and bucket in Spark's state store."""

    processor: Processor
    axis: TimeAxis | None

    def index(self) -> bytes | None:
        found = self.processor.indexes.get()
        return None if found is None else bytes(found[0])

    def set_index(self, content: bytes) -> None:
        self.processor.indexes.update((content,))

    def chunk(self, number: int) -> bytes:
        found = self.processor.chunks.getValue((number,))
        assert found is not None
        return bytes(found[0])

    def set_chunk(self, number: int, content: bytes) -> None:
        self.processor.chunks.updateValue((number,), (content,))

    def drop_chunk(self, number: int) -> None:
        self.processor.chunks.removeKey((number,))

    def clear(self) -> None:
        self.processor.indexes.clear()
        self.processor.chunks.clear()
        for timer in list(self.processor.handle.listTimers()):
            self.processor.handle.deleteTimer(timer)

    def wake_at(self, watermark: int) -> None:
        assert self.axis is not None
        moment = milliseconds_of(self.axis, watermark)
        there = list(self.processor.handle.listTimers())
        for timer in there:
            if timer != moment:
                self.processor.handle.deleteTimer(timer)
        if moment not in there:
            self.processor.handle.registerTimer(moment)


def ticks_of(axis: TimeAxis, milliseconds: int) -> int | None:
    """The watermark in ticks: no event before it is expected. Spark's is 0 as long as it has none."""
    return -(-milliseconds * 1000 // int(axis.tick)) if milliseconds > 0 else None


def milliseconds_of(axis: TimeAxis, ticks: int) -> int:
    """The least watermark of Spark's that is at least so many ticks; there is none before 1970."""
    return max((ticks - 1) * int(axis.tick) // 1000 + 1, 1)


# ----------------------------------------------------------------------------------------------- late events


def refuse_untimed(count: int, late_to: str | None) -> None:
    """Events without a time belong nowhere: without a side table to put them in, the stream stops."""
    if count and late_to is None:
        raise DataError(
            f"{count} events have no time", hint=f"give {option('late_to', 'FOLDER')}: they are put there, and counted"
        )


def write_late(events: pa.Table, late_to: str | None, query: str, bucket: int) -> None:
    """Put late events into the side table: a folder of Parquet files.

    A file is named by batch, query and bucket: a batch that is done again writes the same file again, so every late
    event is in the table once.
    """
    if late_to is None:
        return
    system, folder = place(late_to)
    system.create_dir(folder, recursive=True)
    name = f"{folder}/{_batch():09d}-{hashlib.sha256(query.encode()).hexdigest()[:8]}-{bucket:05d}"
    if query:
        events = events.append_column("query", pa.array([query] * len(events), pa.string()))
    unfinished = f"{folder}/.{uuid.uuid4().hex}"
    with system.open_output_stream(unfinished) as sink:
        pq.write_table(events, sink)
    system.move(unfinished, f"{name}.parquet")


def _batch() -> int:
    """The number of the micro-batch that this task belongs to."""
    from pyspark import TaskContext

    context = TaskContext.get()
    number = context.getLocalProperty("streaming.sql.batchId") if context is not None else None
    return 0 if number is None else int(number)
