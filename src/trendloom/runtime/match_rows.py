"""Rows per match as Arrow: the partition, the window, and the events of the match or the values of RETURN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.errors import RunError, option
from trendloom.expr.arrays import Array
from trendloom.expr.decimals import exact_array, to_text
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Attribute, Constant
from trendloom.expr.vectors import Vector, at_scale, to_arrow
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import Keys
from trendloom.kernels.columns.sort import sort_by_key_and_time
from trendloom.kernels.contract.matches import Matches, MatchValues, ResultColumn, binding_positions
from trendloom.logical.plan import Plan, Projection, Value
from trendloom.model.schema import Kind
from trendloom.model.selection import Trends
from trendloom.model.time import Window
from trendloom.planner.plan import Physical
from trendloom.runtime.blocks import Stream
from trendloom.runtime.result_columns import EXACT_ON_SPARK, added_type, events_type, time_array, value_type


@dataclass(frozen=True, eq=False)
class Arranged:
    """The events that a kernel has seen: as a table, and sorted, with the codes of their keys."""

    physical: Physical
    stream: Stream
    block: Block
    keys: Keys


def _by_content(shown: Arranged, matches: Matches) -> Matches:
    """The same rows, events of one instant ordered by their values, then by variable, not as they were in the input.

    O(entries with such events).
    """
    block = shown.block
    tie = block.tie_start[matches.events]
    tied = np.flatnonzero(block.tie_end[matches.events] - tie > 1)
    if not len(tied):
        return matches
    events, positions = matches.events[tied], matches.positions[tied]
    names = [place.variable for place in shown.physical.pattern_spec.places]
    variable = np.array([sorted(set(names)).index(name) for name in names])[positions]
    order = np.lexsort(
        (events, variable, shown.stream.content_ranks(block.row[events]), tie[tied], matches.match[tied])
    )
    changed = replace(matches, events=matches.events.copy(), positions=matches.positions.copy())
    changed.events[tied], changed.positions[tied] = events[order], positions[order]
    return changed


def integers_as(numbers: Array, exact: pa.DataType) -> pa.Array:
    """Integers as a column of the type given; one that does not fit is refused."""
    if pa.types.is_string(exact):
        return pa.array([to_text(int(number)) for number in numbers], exact)
    if numbers.dtype == np.int64:
        return pa.array(numbers).cast(exact)
    if pa.types.is_decimal(exact) and max(numbers, default=0) >= 10**exact.precision:
        raise RunError(
            f"a row stands for more matches than DECIMAL({exact.precision},0) can hold",
            hint=f"use a smaller window or more selective predicates, {option('engine', 'local')}, where numbers are "
            f"as wide as they need, or COUNT(*) with {option('numeric', 'log')}",
        )
    return exact_array(numbers.tolist()).cast(exact)


def width_of(columns: list[Array]) -> pa.DataType:
    """The narrowest type that holds all of them."""
    most = [max(numbers, default=0) for numbers in columns if numbers.dtype != np.int64]
    return exact_array(most).type


MANY = 1 << 18
"""Rows from which on they are sorted by compiled code: that takes longer to compile than fewer take to sort."""
MOST_BITS = 31
"""Bits of two places that fit one word."""


def order_of(block: Block, matches: Matches, window: Window, partition_of: Array | None = None) -> Array | None:
    """The order in which rows are returned: by window, partition, first and last event, then discovery.

    `partition_of`: the number of each key's partition, where these have several keys.
    None: as they are. Kernels that go through starts in order need no sorting, which one pass finds out.
    Cost: O(rows · bits / 11) for many rows (see `sort`).
    """
    if partition_of is not None:
        return _order_across_keys(block, matches, partition_of)
    first, last = matches.first, matches.last
    bits = max(len(block) - 1, 0).bit_length()
    if len(matches) < MANY or bits > MOST_BITS:
        return _order_by(matches, [block.instant[last], block.instant[first], block.key[first]])
    if (block.instant[1:] == block.instant[:-1]).any():  # events of one instant have no order
        first, last = block.tie_start[first], block.tie_start[last]
    places = (first << bits) | last
    if matches.window_start is None:
        return sort_by_key_and_time(None, places, 1)
    assert window.slide is not None
    number = matches.window_start // window.slide
    number -= number.min()
    return sort_by_key_and_time(number, places, int(number.max()) + 1)


def _order_by(matches: Matches, sort_by: list[Array]) -> Array | None:
    """The order by the window, then by the last of some columns, then by the one before; None: as they are."""
    if matches.window_start is not None:
        sort_by.append(matches.window_start)
    return None if _sorted(sort_by) else np.lexsort(sort_by)


def order_of_added(
    block: Block, matches: Matches, added: Sequence[ResultColumn], *, overall: bool = False
) -> Array | None:
    """The order in which rows are returned by columns that the kernel adds: by window, partition and these columns.

    `overall`: partitions do not matter. None: as they are.
    """
    sort_by = [matches.columns[column.name] for column in reversed(added) if column.sorts]
    if not overall:
        sort_by.append(block.key[matches.first])
    return _order_by(matches, sort_by)


def _order_across_keys(block: Block, matches: Matches, partition_of: Array) -> Array | None:
    """The same where a partition has several keys: events of these are ordered by their times alone."""
    first, last = matches.first, matches.last
    sort_by = [block.time[last], block.time[first], partition_of[block.key[first]]]
    if matches.window_start is not None:
        sort_by.append(matches.window_start)
    if _sorted(sort_by):
        return None
    order = np.arange(len(matches))
    for column in sort_by:
        more = sort_by_key_and_time(None, column[order], 1)
        order = order if more is None else order[more]
    return order


def _sorted(columns: list[Array]) -> bool:
    """Whether rows are sorted by the last column, then by the one before, and so on."""
    fine = np.ones(max(len(columns[0]) - 1, 0), np.bool_)
    for column in columns:
        fine = (column[:-1] < column[1:]) | ((column[:-1] == column[1:]) & fine)
    return bool(fine.all())


def match_rows(shown: Arranged, matches: Matches, exact: pa.DataType = EXACT_ON_SPARK) -> pa.RecordBatch:
    """One row per match, in the order of the chunk; further columns are integers of type `exact`."""
    physical, stream, plan = shown.physical, shown.stream, shown.physical.plan
    if any(column.counts for column in physical.kernel.columns):
        matches = _by_content(shown, matches)
    key_rows = pa.array(shown.keys.rows[shown.block.key[matches.first]])
    columns = {name: _plain(stream.table[name].take(key_rows)) for name in plan.partition}
    if matches.window_start is not None:
        assert plan.window.within is not None
        time_type = stream.table.schema.field(plan.schema.times).type
        columns["window_start"] = time_array(matches.window_start, time_type)
        columns["window_end"] = time_array(matches.window_start + plan.window.within, time_type)
    if isinstance(plan.output, Trends):
        variables = pa.array([place.variable for place in physical.pattern_spec.places], pa.string())
        bound_to = variables.take(pa.array(matches.positions))
        columns["events"] = lists_of_events(shown, matches, bound_to, events_type(stream.table.schema))
    else:
        assert isinstance(plan.output, Projection)
        values = values_of_matches(shown, matches)
        columns |= {value.name: _value(value, plan, values, stream, len(matches)) for value in plan.output.values}
    for column in physical.kernel.columns:
        found = matches.columns[column.name]
        columns[column.name] = integers_as(found, exact) if column.counts else _added(column, found, plan, stream)
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _plain(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)


def lists_of_events(shown: Arranged, matches: Matches, last: pa.Array, kind: pa.ListType) -> pa.ListArray:
    """The events of every match as a list of structs: all input columns, and a last one."""
    rows = pa.array(shown.block.row[matches.events])
    columns = [column.take(rows) for column in shown.stream.whole_columns]
    struct = pa.StructArray.from_arrays([*columns, last], fields=list(kind.value_type))
    return pa.ListArray.from_arrays(pa.array(matches.offsets, pa.int32()), struct)


def values_of_matches(shown: Arranged, matches: Matches) -> MatchValues:
    """The values of matches, read from the table of events."""
    stream, block = shown.stream, shown.block

    def of_events(name: str, events: Array) -> Vector:
        return stream.vector(name).take(np.where(events >= 0, block.row[events], -1) if len(block) else events)

    def of_keys(name: str, events: Array) -> Vector:
        return stream.vector(name).take(shown.keys.rows[block.key[events]])

    return MatchValues(block, matches, binding_positions(shown.physical.pattern_spec.places), of_events, of_keys)


def _value(value: Value, plan: Plan, values: MatchValues, stream: Stream, length: int) -> pa.Array:
    if isinstance(value.expr, Attribute):
        events = values.events(value.expr)
        rows = np.where(events >= 0, values.block.row[events], -1) if len(values.block) else events
        return _plain(stream.table[value.expr.column].take(pa.array(rows, mask=rows < 0)))
    wanted = value_type(value, plan, stream.table.schema)
    return _computed(value, evaluate(value.expr, values.leaf).broadcast(length), wanted)


def _added(column: ResultColumn, found: Any, plan: Plan, stream: Stream) -> pa.Array:
    """A column that the kernel adds, as rows have it."""
    wanted = added_type(column, plan, stream.table.schema)
    if isinstance(found, Vector):
        return _computed(Value(column.name, Constant(None, column.kind), column.kind, column.scale), found, wanted)
    return time_array(found, wanted) if column.kind is Kind.TIME else pa.array(found, wanted)


def _computed(value: Value, vector: Vector, wanted: pa.DataType) -> pa.Array:
    vector = at_scale(vector, value.scale)
    if value.kind is Kind.DECIMAL:
        return _decimals(value, vector, wanted)
    if vector.values.dtype == object:
        raise RunError(
            f"a value of '{value.name}' is beyond 64 bits", hint="multiply by 1.0 for a floating-point result"
        )
    return to_arrow(replace(vector, kind=value.kind), None)


def _decimals(value: Value, vector: Vector, wanted: pa.DataType) -> pa.Array:
    """Decimals in the one type that the rows of all batches have."""
    most = 10**wanted.precision
    units = vector.values if vector.valid is None else vector.values[vector.valid]
    if units.dtype == object and len(units) and (units.max() >= most or units.min() <= -most):
        raise RunError(
            f"a value of '{value.name}' does not fit DECIMAL({wanted.precision},{value.scale})",
            hint="round it to fewer digits with round(x, n), or divide by 1 for a floating-point result",
        )
    return to_arrow(replace(vector, kind=Kind.DECIMAL), wanted)
