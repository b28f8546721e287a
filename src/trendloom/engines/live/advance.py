"""One step of one query in one bucket: events that have become certain go to the kernel, new ones are kept.

What arrives in a batch is never earlier than the watermark of that batch (or it is late), so it cannot be certain yet.
So a step first works off what was kept and is now certain, then keeps what has arrived, as it is.
Cost: reading the events that the kernel asks for, one columnar call, writing what is new.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.engines.events import Stream, build_block, key_codes, stream_of_table
from trendloom.engines.live import chunks
from trendloom.engines.live.chunks import (
    Chunk,
    Holds,
    Index,
    crowded,
    pack,
    pack_index,
    unpack,
    unpack_index,
)
from trendloom.engines.live.flow import Flow
from trendloom.engines.live.memory import Memory
from trendloom.errors import RunError
from trendloom.io.events import ticks
from trendloom.kernels.clock import Certain, Clock
from trendloom.kernels.columns.keys import Keys
from trendloom.kernels.contract import KEY, PANE

Array = np.ndarray[Any, Any]

CUTS = 4
"""Into how many chunks the events of a batch are cut that covers more time than WITHIN, so that old ones can go."""


@dataclass
class Advance:
    """A step under way. `rows` gives out results and at its end writes the state; then the counts are right."""

    flow: Flow
    memory: Memory
    watermark: int | None
    found: int = 0
    kept: int = 0
    untimed: int = 0
    late: pa.Table | None = None  # events that came too late or have no time
    index: Index = field(init=False)

    def __post_init__(self) -> None:
        stored = self.memory.index()
        fresh = Index(self.flow.fingerprint, self.flow.kernel.version)
        self.index = fresh if stored is None else _checked(self.flow, unpack_index(stored))

    @property
    def clock(self) -> Clock:
        return self.flow.kernel.clock

    def rows(self, arrived: pa.Table | None = None) -> Iterator[pa.RecordBatch]:
        """The results that have become certain; then the events that have arrived are kept."""
        if self.watermark is not None:
            if self._moves(self.watermark):
                yield from self._counted(self._step(self.watermark))
            self.index = replace(self.index, before=self.watermark)
        if arrived is not None and len(arrived):
            self._keep(arrived)
        if self.watermark is not None:
            self._forget(self.watermark)
        self._save()

    def _counted(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.found += batch.num_rows
            yield batch

    # ---------------------------------------------------------------------------------------------- stepping

    def _moves(self, watermark: int) -> bool:
        """Whether the kernel would have anything to do."""
        before, clock = self.index.before, self.clock
        if not self.index.chunks or (before is not None and watermark <= before):
            return False
        events = self.index.of(Holds.EVENTS)
        more = any(chunk.low < watermark and (before is None or chunk.high >= before) for chunk in events)
        if clock.certain is Certain.LAST:
            return more
        return (clock.pane is not None and more) or self._closes() <= watermark

    def _closes(self) -> int:
        """The next watermark at which a window or a span may end."""
        earliest = min(chunk.low for chunk in self.index.chunks)
        return self.clock.closes(earliest, earliest if self.index.before is None else self.index.before)

    def _step(self, watermark: int) -> Iterator[pa.RecordBatch]:
        flow, kernel, before = self.flow, self.flow.kernel, self.index.before
        events = self._events(before, watermark)
        join = len(self.index.of(Holds.SUMMARIES)) > chunks.MOST_CHUNKS
        summaries = self._summaries() if join or self._closes() <= watermark else None
        stream, keys = _with_summaries(flow, events, summaries)
        numbered = None if summaries is None else _numbered(flow, summaries, keys.codes[len(events.ticks) :])
        block, _ = build_block(flow.physical, events, replace(keys, codes=keys.codes[: len(events.ticks)]))
        results, state = kernel.step(kernel.load(numbered, before), block, watermark)
        yield from flow.rows(stream, block, keys, results)
        if join:
            self._drop(list(self.index.of(Holds.SUMMARIES)))
        made = kernel.dump(state, whole=join)
        if made is not None:
            assert self.clock.pane is not None
            self._write(Holds.SUMMARIES, _valued(flow, stream, keys, made), made[PANE].to_numpy() * self.clock.pane)

    def _events(self, before: int | None, watermark: int) -> Stream:
        """The events that are certain and still needed."""
        needs = -(2**63) if before is None else self.clock.needs(before)
        chosen = [c for c in self.index.of(Holds.EVENTS) if c.low < watermark and c.high >= needs]
        tables = [self._read(chunk) for chunk in chosen] or [self.flow.schema.empty_table()]
        stream = stream_of_table(self.flow.physical.plan, pa.concat_tables(tables))
        wanted = (stream.ticks >= needs) & (stream.ticks < watermark)
        if wanted.all():
            return stream
        rows = np.flatnonzero(wanted)
        return Stream(stream.table.take(pa.array(rows)), stream.kinds, stream.ticks[rows])

    def _summaries(self) -> pa.Table | None:
        """What earlier steps have made of events, as far as it still matters."""
        chosen = self.index.of(Holds.SUMMARIES)
        if not chosen:
            return None
        assert self.clock.pane is not None
        table = pa.concat_tables([self._read(chunk) for chunk in chosen])
        before = self.index.before
        old = None if before is None else self.clock.oldest(before)
        if old is not None and any(chunk.low < old for chunk in chosen):
            table = table.filter(pa.array(table[PANE].to_numpy() * self.clock.pane >= old))
        return table

    # ----------------------------------------------------------------------------------------------- keeping

    def _keep(self, arrived: pa.Table) -> None:
        """Write the events that have arrived, apart from those that came too late."""
        plan = self.flow.physical.plan
        timed = np.asarray(arrived[plan.schema.time].is_valid())
        self.untimed = int(len(timed) - timed.sum())
        with_time = arrived if timed.all() else arrived.filter(pa.array(timed))
        times = ticks(with_time[plan.schema.time], plan.schema.axis)
        late = np.zeros(len(times), np.bool_) if self.watermark is None else times < self.watermark
        if self.untimed or late.any():
            parts = [arrived.filter(pa.array(~timed)), with_time.filter(pa.array(late))]
            self.late = pa.concat_tables(parts)
            with_time, times = with_time.filter(pa.array(~late)), times[~late]
        events = with_time.select(self.flow.schema.names).cast(self.flow.schema)
        self.kept = len(events)
        for part, its_times in self._parts(events, times):
            self._write(Holds.EVENTS, part, its_times)

    def _parts(self, events: pa.Table, times: Array) -> Iterator[tuple[pa.Table, Array]]:
        within = self.clock.window.within or 1
        if not len(times) or int(times.max()) - int(times.min()) <= within:
            yield events, times
            return
        low, span = int(times.min()), int(times.max()) - int(times.min()) + 1
        part = (times - low) // -(-span // CUTS)
        for number in np.unique(part):
            rows = np.flatnonzero(part == number)
            yield events.take(pa.array(rows)), times[rows]

    def _forget(self, watermark: int) -> None:
        """Drop chunks that nothing asks for any more, join small ones."""
        bounds = {Holds.EVENTS: self.clock.needs(watermark), Holds.SUMMARIES: self.clock.oldest(watermark)}
        self._drop([chunk for chunk in self.index.chunks if chunk.high < bounds[chunk.holds]])
        plan = self.flow.physical.plan
        for group in list(crowded(self.index.of(Holds.EVENTS), (self.clock.window.within or 1) // CUTS)):
            table = pa.concat_tables([self._read(chunk) for chunk in group])
            times = ticks(table[plan.schema.time], plan.schema.axis)
            rows = np.flatnonzero(times >= bounds[Holds.EVENTS])
            self._drop(group)
            self._write(Holds.EVENTS, table.take(pa.array(rows)), times[rows])

    def _save(self) -> None:
        if not self.index.chunks:
            self.memory.clear()
            return
        self.memory.set_index(pack_index(self.index))
        self.memory.wake_at(self._due())

    def _due(self) -> int:
        """The watermark at which there is something to do, even if nothing arrives."""
        clock, events = self.clock, self.index.of(Holds.EVENTS)
        passed = -(2**63) if self.watermark is None else self.watermark
        if clock.certain is Certain.LAST:
            waiting = [max(chunk.low, passed) for chunk in events if chunk.high >= passed]
            return min(waiting) + 1 if waiting else clock.forgotten(max(chunk.high for chunk in events))
        return self._closes()

    # ------------------------------------------------------------------------------------------------ chunks

    def _read(self, chunk: Chunk) -> pa.Table:
        return unpack(self.memory.chunk(chunk.number))

    def _write(self, holds: Holds, table: pa.Table, times: Array) -> None:
        if len(table):
            self.index, chunk = self.index.with_chunk(holds, int(times.min()), int(times.max()), len(table))
            self.memory.set_chunk(chunk.number, pack(table))

    def _drop(self, gone: list[Chunk]) -> None:
        for chunk in gone:
            self.memory.drop_chunk(chunk.number)
        self.index = self.index.without({chunk.number for chunk in gone})


def _checked(flow: Flow, index: Index) -> Index:
    """Refuse the state of another query."""
    named = f"query '{flow.name}'" if flow.name else "the query"
    if index.fingerprint != flow.fingerprint:
        raise RunError(
            f"{named} has changed, and what the checkpoint holds for it belongs to the old one",
            hint="put the old query back, or give the new one another name (QUERY name: ...): it then starts afresh",
        )
    if index.kernel != flow.kernel.version:
        raise RunError(
            f"the state of {named} was written by version {index.kernel} of its kernel, this is {flow.kernel.version}",
            hint="go on with the version of Trendloom that wrote it, or start with a new checkpoint",
        )
    return index


# ------------------------------------------------------------------------------------------------------- keys


def _with_summaries(flow: Flow, events: Stream, summaries: pa.Table | None) -> tuple[Stream, Keys]:
    """Events and, after them, one row per summary with its key's columns; and the keys of all these rows."""
    partition = flow.physical.plan.partition
    if summaries is None or not len(summaries):
        return events, key_codes(partition, events)
    if not partition:
        rows = len(events.ticks) + len(summaries)
        return events, Keys(np.zeros(rows, np.int64), 1, np.zeros(1, np.int64), None)
    table = pa.concat_tables([events.table, summaries.select(list(partition))], promote_options="default")
    stream = Stream(table, events.kinds, events.ticks)
    return stream, key_codes(partition, stream)


def _numbered(flow: Flow, summaries: pa.Table, codes: Array) -> pa.Table:
    """Summaries with the numbers of their keys in place of the values."""
    return summaries.drop_columns(list(flow.physical.plan.partition)).append_column(KEY, pa.array(codes))


def _valued(flow: Flow, stream: Stream, keys: Keys, made: pa.Table) -> pa.Table:
    """Summaries with the values of their keys in place of the numbers."""
    rows = pa.array(keys.rows[made[KEY].to_numpy()])
    made = made.drop_columns([KEY])
    for name in flow.physical.plan.partition:
        made = made.append_column(flow.schema.field(name), stream.table[name].take(rows))
    return made
