"""Ranked rows that were found apart, ranked together: the best of all are among the best of each.

What decides between equal scores is all that the events of a match hold, and where they are bound. So a row travels
with its events (`BOUND`), and those who rank it again do so by the same code as kernels, over the same values.
Cost: O(m log m) for m rows that meet, which are the wanted ones of each window for everyone who has seen a part of it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trendloom.io.events import ticks
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import Keys
from trendloom.kernels.contract.matches import Matches
from trendloom.logical.plan import RANK
from trendloom.planner.plan import Physical
from trendloom.planner.ranking import best_matches
from trendloom.runtime.blocks import Stream, standing_of, stream_of_table
from trendloom.runtime.match_rows import values_of_matches
from trendloom.runtime.result_builder import Arranged

BOUND, POSITION = " bound", " position"
"""The column of the events that a row binds, and in these the position at which each is bound."""
ROW = "row"


def bound_type(schema: pa.Schema) -> pa.DataType:
    """The type of the column of events, where events have these columns."""
    return pa.list_(pa.struct([*schema, pa.field(POSITION, pa.int32())]))


def bound_events(shown: Arranged, matches: Matches) -> pa.Array:
    """The events of every match, with all that they hold and where they are bound."""
    rows = pa.array(shown.block.row[matches.events])
    fields = [column.take(rows) for column in shown.stream.whole_columns]
    wanted = bound_type(shown.stream.table.schema)
    struct = pa.StructArray.from_arrays(
        [*fields, pa.array(matches.positions, pa.int32())], fields=list(wanted.value_type)
    )
    return pa.ListArray.from_arrays(pa.array(matches.offsets, pa.int32()), struct)


def rank_together(physical: Physical, rows: pa.Table) -> pa.Table:
    """The best of rows of any keys, window by window in the order of their ranks, without the events they came with."""
    stream, block, matches = _opened(physical, rows)
    keys = Keys(block.key, len(matches), matches.first, None)
    names = tuple(place.variable for place in physical.pattern_spec.places)
    values = values_of_matches(physical, stream, block, keys, matches)
    best = best_matches(physical.plan, names, block, values)
    found = rows.take(pa.array(best.columns[ROW])).drop_columns([BOUND])
    return found.set_column(found.schema.get_field_index(RANK), RANK, pa.array(best.columns[RANK], pa.int64()))


def _opened(physical: Physical, rows: pa.Table) -> tuple[Stream, Block, Matches]:
    """The events that rows came with, each match a key of its own, and the matches."""
    plan = physical.plan
    bound = pa.concat_arrays(rows[BOUND].chunks)
    entries = bound.flatten()
    events = pa.Table.from_arrays(entries.flatten(), names=[one.name for one in entries.type])
    positions = events[POSITION].to_numpy()
    stream = stream_of_table(plan, events.drop_columns([POSITION]))
    offsets = np.r_[0, np.cumsum(bound.value_lengths().to_numpy())].astype(np.int64)
    number = np.arange(len(events))
    block = Block(offsets, stream.ticks, number, {}, standing=standing_of(plan, stream))
    start = ticks(rows["window_start"], plan.schema.axis) if plan.window.sliding else None
    return stream, block, Matches(offsets, number, positions, start, {ROW: np.arange(len(rows))})
