"""One step of one query in one bucket: events that have become certain go to the kernel, new ones are kept.

What arrives in a batch is never earlier than the watermark of that batch (or it is late), so it cannot be certain yet.
So a step first processes what was kept and is now certain, then keeps what has arrived, as it is.
Cost: reading the events that the kernel needs, one columnar call, writing what is new.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.errors import StateError, option
from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block, windows_of
from trendloom.kernels.columns.keys import Keys
from trendloom.kernels.contract import KEY, PANE, Kernel
from trendloom.kernels.contract.aggregates import Totals
from trendloom.kernels.contract.emission import Certain
from trendloom.kernels.contract.matches import Matches
from trendloom.model.schema import Schema
from trendloom.runtime.blocks import Stream, build_block, key_codes, since_grain, stream_of_table
from trendloom.runtime.match_rows import Arranged
from trendloom.streaming import state as stored_state
from trendloom.streaming.state import Chunk, ChunkIndex, EventBuffer, Holds, Memory, unpack_index
from trendloom.streaming.streaming_query import StreamingQuery, as_before_rules


@dataclass
class QueryStep(EventBuffer):
    """A step under way. `rows` returns results and at its end writes the state; then the counts are right."""

    streaming_query: StreamingQuery
    memory: Memory
    watermark: int | None
    buckets: int = 1  # of the query
    kept: int = 0
    untimed: int = 0
    late: pa.Table | None = None  # events that came too late or have no time
    index: ChunkIndex = field(init=False)

    def __post_init__(self) -> None:
        streaming_query, stored = self.streaming_query, self.memory.index()
        if self.watermark is not None:
            self.watermark = since_grain(self.watermark, self.meaning)
        self.index = ChunkIndex(
            streaming_query.fingerprint, streaming_query.kernel.version, self.buckets, streaming_query.generation
        )
        if stored is None:
            return
        found = unpack_index(stored)
        if found.generation < streaming_query.generation:
            self.memory.clear()  # the query was away, and has missed events
        else:
            self.index = _checked(streaming_query, found, self.buckets)

    @property
    def kernel(self) -> Kernel[Any, Any]:
        return self.streaming_query.kernel

    @property
    def meaning(self) -> Schema:
        return self.streaming_query.physical.plan.schema

    @property
    def schema(self) -> pa.Schema:
        return self.streaming_query.schema

    @property
    def since(self) -> int | None:
        return self.streaming_query.since

    def rows(self, arrived: pa.Table | None = None) -> Iterator[pa.RecordBatch]:
        """The results that have become certain; then the events that have arrived are kept."""
        if self.watermark is not None:
            if self._moves(self.watermark):
                yield from self._step(self.watermark)
            self.index = replace(self.index, before=self.watermark)
        if arrived is not None and len(arrived):
            events, times = self.in_time(arrived)
            if self.streaming_query.early and len(events):
                yield from self._early(events)
            self.keep(events, times)
        if self.watermark is not None:
            self.forget(self.emission.needs(self.watermark), self.emission.oldest(self.watermark))
        self.save()

    # ---------------------------------------------------------------------------------------------- stepping

    def _moves(self, watermark: int) -> bool:
        """Whether the kernel would have anything to do."""
        before, emission = self.index.before, self.emission
        if not self.index.chunks or (before is not None and watermark <= before):
            return False
        events = self.index.of(Holds.EVENTS)
        more = any(
            chunk.low < watermark and (before is None or self._matters_until(chunk) >= before) for chunk in events
        )
        if emission.certain in (Certain.LAST, Certain.LATEST):
            return more
        return (emission.pane is not None and more) or self.closes() <= watermark

    def _step(self, watermark: int) -> Iterator[pa.RecordBatch]:
        streaming_query, kernel = self.streaming_query, self.kernel
        read = self._certain(watermark)
        join = len(self.index.of(Holds.SUMMARIES)) > stored_state.MOST_CHUNKS
        summaries = self._summaries() if join or self.closes() <= watermark else None
        shown, numbered = _arranged(streaming_query, read.events, summaries)
        results, state = kernel.step(kernel.load(numbered, self.index.before), shown.block, watermark)
        yield from streaming_query.rows(shown, results)
        kept = kernel.kept(state)
        if kept is not None:
            self._thin_out(read, shown.block.row[kept])
        if join:
            self.drop(list(self.index.of(Holds.SUMMARIES)))
        made = kernel.dump(state, whole=join)
        if made is not None:
            assert self.emission.pane is not None
            self.write(
                Holds.SUMMARIES,
                _with_key_values(streaming_query, shown, made),
                made[PANE].to_numpy() * self.emission.pane,
            )

    def _early(self, arrived: pa.Table) -> Iterator[pa.RecordBatch]:
        """The results of open windows so far, of keys and windows that events have arrived for."""
        kernel, plan = self.kernel, self.streaming_query.physical.plan
        tables = [self.read(chunk) for chunk in self.index.of(Holds.EVENTS) if chunk.high >= self.needed_from]
        known = sum(map(len, tables))
        events = stream_of_table(plan, pa.concat_tables([*tables, arrived]))
        needed = np.flatnonzero(events.ticks >= self.needed_from)
        shown, summaries = _arranged(self.streaming_query, rows_of_stream(events, needed), self._summaries())
        new = needed >= known
        times = events.ticks[needed][new]
        which, start = windows_of(times, times, plan.window)
        key = shown.keys.codes[: len(needed)][new][which]
        _, state = kernel.step(kernel.load(summaries, self.index.before), shown.block, None)
        results = (_of_windows(found, shown.block, key, start) for found in kernel.finish(state))
        yield from self.streaming_query.rows(shown, results)

    def _certain(self, watermark: int) -> _ReadChunks:
        """The events that are certain and still needed."""
        chosen = self.certain_chunks(watermark)
        tables = [self.read(chunk) for chunk in chosen] or [self.streaming_query.schema.empty_table()]
        stream = stream_of_table(self.streaming_query.physical.plan, pa.concat_tables(tables))
        wanted = (stream.ticks >= self.needed_from) & (stream.ticks < watermark)
        if wanted.all():
            return _ReadChunks(chosen, stream, rows_of_stream(stream, np.zeros(0, np.int64)))
        uncertain = rows_of_stream(stream, np.flatnonzero(stream.ticks >= watermark))
        return _ReadChunks(chosen, rows_of_stream(stream, np.flatnonzero(wanted)), uncertain)

    def _thin_out(self, read: _ReadChunks, kept: Array) -> None:
        """Write the events that are still needed anew, if there are few of them."""
        left, all_ = len(kept) + len(read.uncertain.ticks), sum(chunk.rows for chunk in read.chunks)
        if 2 * left > all_:
            return
        self.drop(read.chunks)
        some = rows_of_stream(read.events, np.sort(kept))
        for stream in (some, read.uncertain):
            self.write(Holds.EVENTS, stream.table, stream.ticks)

    def _summaries(self) -> pa.Table | None:
        """What earlier steps have made of events, as far as it still matters."""
        chosen = self.index.of(Holds.SUMMARIES)
        if not chosen:
            return None
        assert self.emission.pane is not None
        table = pa.concat_tables([self.read(chunk) for chunk in chosen])
        before = self.index.before
        old = None if before is None else self.emission.oldest(before)
        if old is not None and any(chunk.low < old for chunk in chosen):
            table = table.filter(pa.array(table[PANE].to_numpy() * self.emission.pane >= old))
        return table

    def due(self) -> int:
        emission, events = self.emission, self.index.of(Holds.EVENTS)
        passed = -(2**63) if self.watermark is None else self.watermark
        if emission.certain in (Certain.LAST, Certain.LATEST):
            waiting = [max(chunk.low, passed) for chunk in events if self._matters_until(chunk) >= passed]
            return min(waiting) + 1 if waiting else emission.forgotten(max(chunk.high for chunk in events))
        return self.closes()

    def _matters_until(self, chunk: Chunk) -> int:
        """By when an event of a chunk may make a match certain."""
        return chunk.high + (self.emission.slack if self.emission.certain is Certain.LATEST else 0)


@dataclass(frozen=True, eq=False)
class _ReadChunks:
    """Chunks that were read, their events that are certain and needed, and those that are not certain yet."""

    chunks: list[Chunk]
    events: Stream
    uncertain: Stream


def rows_of_stream(stream: Stream, rows: Array) -> Stream:
    """Some events of a stream."""
    intervals = None if stream.intervals is None else stream.intervals.take(rows)
    return Stream(stream.table.take(pa.array(rows)), stream.kinds, stream.ticks[rows], intervals=intervals)


def _arranged(
    streaming_query: StreamingQuery, events: Stream, summaries: pa.Table | None
) -> tuple[Arranged, pa.Table | None]:
    """The events sorted for the kernel, and the summaries with numbers in place of the values of their keys.

    Keys of both have one numbering: the stream has a row for each summary after those of the events.
    """
    partition, count, stream = streaming_query.physical.plan.keys, len(events.ticks), events
    if summaries is None or not len(summaries):
        keys = key_codes(partition, events)
    elif not partition:
        keys = Keys(np.zeros(count + len(summaries), np.int64), 1, np.zeros(1, np.int64), None)
    else:
        table = pa.concat_tables([events.table, summaries.select(list(partition))], promote_options="default")
        stream = Stream(table, events.kinds, events.ticks)
        keys = key_codes(partition, stream)
    if summaries is not None:
        summaries = summaries.drop_columns(list(partition)).append_column(KEY, pa.array(keys.codes[count:]))
    block, _ = build_block(streaming_query.physical, events, replace(keys, codes=keys.codes[:count]))
    return Arranged(streaming_query.physical, stream, block, keys), summaries


def _with_key_values(streaming_query: StreamingQuery, shown: Arranged, summaries: pa.Table) -> pa.Table:
    """Summaries with the values of their keys in place of the numbers."""
    rows = pa.array(shown.keys.rows[summaries[KEY].to_numpy()])
    summaries = summaries.drop_columns([KEY])
    for name in streaming_query.physical.plan.keys:
        summaries = summaries.append_column(streaming_query.schema.field(name), shown.stream.table[name].take(rows))
    return summaries


def _of_windows(found: Totals | Matches, block: Block, key: Array, start: Array) -> Totals | Matches:
    """The results of some windows: pairs of a key and the start."""
    if isinstance(found, Totals):
        keys, starts = found.key, found.start
    else:
        assert found.window_start is not None
        keys, starts = block.key[found.first], found.window_start
    if not len(key):
        return found.take(np.zeros(0, np.int64))
    width = int(key.max()) + 1
    return found.take(np.flatnonzero((keys < width) & np.isin(starts * width + keys, start * width + key)))


def _checked(streaming_query: StreamingQuery, index: ChunkIndex, buckets: int) -> ChunkIndex:
    """Refuse the state of another query."""
    named = f"query '{streaming_query.name}'" if streaming_query.name else "the query"
    if index.fingerprint not in streaming_query.continued:
        if index.fingerprint in as_before_rules(streaming_query).continued:
            raise StateError(
                f"the state of {named} was made by an earlier version, which kept its events otherwise",
                hint=f"name the folder with {option('checkpoint')}: the query then goes on as it began",
            )
        raise StateError(
            f"{named} has changed, and what the checkpoint holds for it belongs to the old one",
            hint="put the old query back, or give the new one another name (QUERY name: ...): it then starts afresh",
        )
    if index.buckets != buckets:
        raise StateError(
            f"the state of {named} was made with {index.buckets} buckets, not {buckets}",
            hint=f"use {index.buckets} buckets, or a new checkpoint",
        )
    if index.kernel != streaming_query.kernel.version:
        raise StateError(
            f"the state of {named} was written by version {index.kernel} of its kernel, "
            f"this is {streaming_query.kernel.version}",
            hint="go on with the version of Trendloom that wrote it, or start with a new checkpoint",
        )
    return index
