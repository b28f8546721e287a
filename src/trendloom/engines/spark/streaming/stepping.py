"""What the stateful operator does: one columnar step per query and bucket, the state of a bundle in Spark's store.

State is a map from numbers to chunks of bytes, and an index. A timer in event time calls a bucket whose windows end
though nothing arrives; when nothing is left to wait for, everything of the bucket is removed.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Row

from trendloom.engines.spark.error_transport import COMPLAINT, complaint
from trendloom.engines.spark.streaming.packing import events_for
from trendloom.errors import DataError, Door, StateError, TrendloomError, at_door, option
from trendloom.io.files import place
from trendloom.model.time import TimeAxis
from trendloom.streaming.partition_groups import (
    TOGETHER,
    GroupStep,
    StreamPartitionGroup,
    StreamQueryGroup,
    queries_of_member,
)
from trendloom.streaming.state import EventBuffer, Memory, NamespacedState, pack, unpack
from trendloom.streaming.step import QueryStep
from trendloom.streaming.streaming_query import StreamingQuery

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, TimerValues

    from trendloom.engines.spark.streaming.processor import Processor


# Events that came after the watermark had passed them: counted, and written to a side table if there is one.
#
# A task writes them itself, into a file that is named by batch, query and bucket: a batch that is done again writes the
# same file again, so every late event is in the table once.


def refuse_untimed(count: int, late_to: str | None) -> None:
    """Events without a time belong nowhere: without a side table to put them in, the stream stops."""
    if count and late_to is None:
        raise DataError(
            f"{count} events have no time", hint=f"give {option('late_to', 'FOLDER')}: they are put there, and counted"
        )


def write_late(events: pa.Table, late_to: str | None, query: str, bucket: int) -> None:
    """Put late events into the side table: a folder of Parquet files."""
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
    told = context.getLocalProperty("streaming.sql.batchId") if context is not None else None
    return int(told) if told is not None else 0


def ticks_of(axis: TimeAxis, milliseconds: int) -> int | None:
    """The watermark in ticks: no event before it is expected. Spark's is 0 as long as it has none."""
    return -(-milliseconds * 1000 // int(axis.tick)) if milliseconds > 0 else None


def milliseconds_of(axis: TimeAxis, ticks: int) -> int:
    """The least watermark of Spark's that is at least so many ticks; there is none before 1970."""
    return max((ticks - 1) * int(axis.tick) // 1000 + 1, 1)


@dataclass(frozen=True)
class Stepping:
    """Steps the bundles of a workload; `door`: how the user of the driver spells options."""

    partition_groups: tuple[StreamPartitionGroup, ...]
    buckets: int
    late_to: str | None
    door: Door
    probes: tuple[str, ...] = ()  # bundles that must not have any state

    def rows(self, at: Processor, key: Any, payloads: list[bytes], timers: TimerValues) -> Iterator[Row]:
        """What the queries of a bundle give out in a bucket when events have arrived, or time has passed."""
        name, bucket = str(key[0]), int(key[1])
        partition_group = next((one for one in self.partition_groups if one.name == name), None)
        if partition_group is None:
            yield from self._unknown(name, Store(at.handle, at.indexes, at.chunks, None))
            return
        arrived = pa.concat_tables([unpack(one) for one in payloads]) if payloads else None
        store = Store(at.handle, at.indexes, at.chunks, partition_group.streaming_queries[0].physical.plan.schema.axis)
        if not partition_group.shared:
            yield from self._heard(partition_group.streaming_queries[0], store, bucket, arrived, timers)
            return
        namespaces = NamespacedState(store)
        namespaces.keep_only([_drawer(taker) for taker in partition_group.members])
        for number, taker in enumerate(partition_group.members):
            events = None if arrived is None else events_for(number, arrived)
            yield from self._heard(taker, namespaces.of(_drawer(taker)), bucket, events, timers)
        namespaces.close()

    def _unknown(self, name: str, store: Store) -> Iterator[Row]:
        """Clear the state of a bundle all of whose queries were removed; complain of one that must not be there."""
        if name not in self.probes:
            store.clear()
        elif store.index() is not None:
            with at_door(self.door):
                error = StateError(
                    "the checkpoint holds states of queries that travel together, as it was named when it was made",
                    hint=f"name it again: {option('checkpoint', 'FOLDER')}",
                )
                yield _told(complaint(error))

    def _heard(
        self,
        taker: StreamingQuery | StreamQueryGroup,
        memory: Memory,
        bucket: int,
        arrived: pa.Table | None,
        timers: TimerValues,
    ) -> Iterator[Row]:
        """The rows of a step; what it refuses leaves it as a row, too."""
        first = queries_of_member(taker)[0]
        try:
            with at_door(self.door):
                watermark = ticks_of(first.physical.plan.schema.axis, timers.getCurrentWatermarkInMs())
                if isinstance(taker, StreamQueryGroup):
                    group = GroupStep(taker, memory, watermark, self.buckets)
                    for streaming_query, batch in group.rows(arrived):
                        yield _of_rows(streaming_query, bucket, batch)
                    yield self._counted(group, first, taker.named(), bucket)
                else:
                    step = QueryStep(taker, memory, watermark, self.buckets)
                    for batch in step.rows(arrived):
                        yield _of_rows(taker, bucket, batch)
                    yield self._counted(step, first, taker.name, bucket)
        except TrendloomError as error:
            yield _given_out(first, bucket, told=complaint(error))

    def _counted(self, step: EventBuffer, streaming_query: StreamingQuery, name: str, bucket: int) -> Row:
        """What a step has kept; late events are put aside."""
        if step.late is not None:
            refuse_untimed(step.untimed, self.late_to)
            write_late(step.late, self.late_to, name, bucket)
        late = 0 if step.late is None else len(step.late) - step.untimed
        return _given_out(streaming_query, bucket, kept=step.kept, late=late, untimed=step.untimed)


def _drawer(taker: StreamingQuery | StreamQueryGroup) -> str:
    return TOGETHER if isinstance(taker, StreamQueryGroup) else taker.name


def _of_rows(streaming_query: StreamingQuery, bucket: int, batch: pa.RecordBatch) -> Row:
    return _given_out(streaming_query, bucket, payload=pack(pa.Table.from_batches([batch]), compress=False))


def _given_out(
    streaming_query: StreamingQuery, bucket: int, *, payload: bytes | None = None, kept: int = 0, late: int = 0,
    untimed: int = 0, told: str | None = None,
) -> Row:  # fmt: skip
    """A row that leaves the operator: results, counts, or a complaint, after which there is nothing more."""
    route = 0 if streaming_query.in_parts else bucket
    counts = {"kept": kept, "late": late, "untimed": untimed}
    return Row(query=streaming_query.name, route=route, payload=payload, **counts, **{COMPLAINT: told})


def _told(told: str) -> Row:
    """A complaint that is not of a query."""
    return Row(query="", route=0, payload=None, kept=0, late=0, untimed=0, **{COMPLAINT: told})


@dataclass
class Store:
    """The memory of one bundle and bucket in Spark's state store."""

    handle: StatefulProcessorHandle
    indexes: Any
    chunks: Any
    axis: TimeAxis | None

    def index(self) -> bytes | None:
        found = self.indexes.get()
        return None if found is None else bytes(found[0])

    def set_index(self, content: bytes) -> None:
        self.indexes.update((content,))

    def chunk(self, number: int) -> bytes:
        return bytes(self.chunks.getValue((number,))[0])

    def set_chunk(self, number: int, content: bytes) -> None:
        self.chunks.updateValue((number,), (content,))

    def drop_chunk(self, number: int) -> None:
        self.chunks.removeKey((number,))

    def clear(self) -> None:
        self.indexes.clear()
        self.chunks.clear()
        for timer in list(self.handle.listTimers()):
            self.handle.deleteTimer(timer)

    def wake_at(self, watermark: int) -> None:
        assert self.axis is not None
        wanted = milliseconds_of(self.axis, watermark)
        there = list(self.handle.listTimers())
        for timer in there:
            if timer != wanted:
                self.handle.deleteTimer(timer)
        if wanted not in there:
            self.handle.registerTimer(wanted)
