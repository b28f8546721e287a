"""What a kernel is shown in a step: events and summaries with one numbering of keys, and the way back to values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.kernels.aggregate.results import Totals
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import Keys
from trendloom.kernels.contract import KEY
from trendloom.kernels.matching.matches import Matches
from trendloom.runtime.blocks import Stream, build_block, key_codes
from trendloom.streaming.streaming_query import Flow

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class KeyWindows:
    """Pairs of a key and the start of a window."""

    key: Array
    start: Array

    def of(self, found: Totals | Matches, block: Block) -> Totals | Matches:
        """The results of these keys and windows."""
        if isinstance(found, Totals):
            key, start = found.key, found.start
        else:
            assert found.window_start is not None
            key, start = block.key[found.first], found.window_start
        if not len(self.key):
            return found.take(np.zeros(0, np.int64))
        width = int(self.key.max()) + 1
        known = (key < width) & np.isin(start * width + key, self.start * width + self.key)
        return found.take(np.flatnonzero(known))


@dataclass(frozen=True, eq=False)
class Scene:
    """What a kernel is shown: a block of events, and summaries, with one numbering of keys."""

    stream: Stream  # events, then a row for each summary
    keys: Keys
    block: Block
    summaries: pa.Table | None


def scene_of(flow: Flow, events: Stream, summaries: pa.Table | None) -> Scene:
    """Number the keys of events and summaries together."""
    stream, keys = _with_summaries(flow, events, summaries)
    count = len(events.ticks)
    numbered = None if summaries is None else _numbered(flow, summaries, keys.codes[count:])
    block, _ = build_block(flow.physical, events, replace(keys, codes=keys.codes[:count]))
    return Scene(stream, keys, block, numbered)


def _with_summaries(flow: Flow, events: Stream, summaries: pa.Table | None) -> tuple[Stream, Keys]:
    """Events and, after them, one row per summary with its key's columns; and the keys of all these rows."""
    partition = flow.physical.plan.keys
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
    return summaries.drop_columns(list(flow.physical.plan.keys)).append_column(KEY, pa.array(codes))


def valued(flow: Flow, stream: Stream, keys: Keys, made: pa.Table) -> pa.Table:
    """Summaries with the values of their keys in place of the numbers."""
    rows = pa.array(keys.rows[made[KEY].to_numpy()])
    made = made.drop_columns([KEY])
    for name in flow.physical.plan.keys:
        made = made.append_column(flow.schema.field(name), stream.table[name].take(rows))
    return made
