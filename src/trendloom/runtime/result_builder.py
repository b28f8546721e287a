"""What kernels give out becomes rows, or sums by group and window that are added up: the one place for all hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.errors import RunError, option
from trendloom.expr.arrays import Array
from trendloom.expr.decimals import as_doubles
from trendloom.expr.vectors import Vector, to_arrow
from trendloom.io.events import ticks
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import Keys, encode_keys, one_key
from trendloom.kernels.contract.aggregates import Amounts, Measure, Totals, doubles_as_amounts, join_totals
from trendloom.kernels.contract.matches import Matches
from trendloom.logical.plan import RANK, Plan
from trendloom.model.schema import Kind
from trendloom.planner.measures import measures_of
from trendloom.planner.plan import Physical
from trendloom.runtime.blocks import Stream, standing_of, stream_of_table
from trendloom.runtime.limits import MOST_BATCHED
from trendloom.runtime.match_rows import match_rows, values_of_matches
from trendloom.runtime.parallel import made_ahead
from trendloom.runtime.partial_aggregates import WINDOW, amount_columns, by_code, exact_column, merge_partials
from trendloom.runtime.result_columns import EXACT_ON_SPARK, fitted, row_schema

# Aggregates over matches, the two-step way: enumerate matches, then add up. What the one-step kernels are measured by.
#
# Each chunk of matches becomes a partial table (`partials`). Where matches are only likely, expected values are added
# up, as doubles. Integer sums are exact: where a chunk could leave 64 bits, Python integers take over.


SUMS = ("matches", "count", "sum")
"""Measures that are sums over matches."""


def chunk_partial(physical: Physical, stream: Stream, block: Block, group_of_key: Array, matches: Matches) -> pa.Table:
    """The measures of a chunk, by group and window. `group_of_key[k]` is a row that holds key k's group values."""
    plan = physical.plan
    groups = [stream.vector(name).take(group_of_key[block.key[matches.first]]) for name in plan.group_by]
    windows = [] if matches.window_start is None else [Vector(Kind.INT, matches.window_start)]
    keys = encode_keys([*windows, *groups]) if windows or groups else one_key(len(matches))
    entry_code = keys.codes[matches.match]
    columns: dict[str, Any] = {
        name: stream.table[name].take(pa.array(group_of_key[block.key[matches.first[keys.rows]]])).combine_chunks()
        for name in plan.group_by
    }
    if matches.window_start is not None:
        columns[WINDOW] = pa.array(matches.window_start[keys.rows])
    weight = next((column for column in physical.kernel.columns if column.weighs), None)
    for measure in measures_of(plan):
        if weight is None:
            columns[measure.name] = _add_up(measure, stream, block, matches, entry_code, keys.codes, keys.count)
        else:
            columns |= _expect(measure, stream, block, matches, keys, matches.columns[weight.name])
    return pa.table(columns)


def _expect(
    measure: Measure, stream: Stream, block: Block, matches: Matches, keys: Keys, weight: Any
) -> dict[str, pa.Array]:
    """The expected value of a measure: each match counts as much as it is likely. Zero if it is not a sum."""
    if measure.function not in SUMS:
        return amount_columns(measure.name, doubles_as_amounts(np.zeros(keys.count)))
    match = np.arange(len(matches))
    if measure.positions is not None:
        entries = np.flatnonzero(np.isin(matches.positions, measure.positions))
        match = matches.match[entries]
        weight = weight[match]
        if measure.column is not None:
            values = stream.vector(measure.column).take(block.row[matches.events[entries]])
            known = slice(None) if values.valid is None else values.valid
            numbers = as_doubles(values.values, values.scale) if measure.function == "sum" else np.ones(len(entries))
            match, weight = match[known], (weight * numbers)[known]
    sums = np.bincount(keys.codes[match], weights=weight, minlength=keys.count)
    return amount_columns(measure.name, doubles_as_amounts(sums))


def _add_up(
    measure: Measure, stream: Stream, block: Block, matches: Matches, entry_code: Array, match_code: Array, groups: int
) -> pa.Array:
    if measure.positions is None:
        return exact_column(np.bincount(match_code, minlength=groups))
    table = np.zeros(int(matches.positions.max(initial=0)) + 1, np.bool_)
    table[[p for p in measure.positions if p < len(table)]] = True
    entries = np.flatnonzero(table[matches.positions])
    code = entry_code[entries]
    if measure.column is None:
        return exact_column(np.bincount(code, minlength=groups))
    values = stream.vector(measure.column).take(block.row[matches.events[entries]])
    if values.valid is not None:
        code, values = code[values.valid], values.take(np.flatnonzero(values.valid))
    return by_code(measure, values, code, groups)


def check_limit(physical: Physical, matches: int) -> None:
    """Refuse to enumerate for ever."""
    if matches > physical.limits.trends:
        raise RunError(
            f"more than {physical.limits.trends:,} matches to enumerate for an aggregate ({physical.chosen.why})",
            hint="use a smaller WITHIN, more selective predicates, or predicates on adjacent events (NEXT); "
            f"{option('max_trends')} allows more",
        )


Progress = Callable[[int], None]
Keep = Callable[[Stream, Keys, Totals], Totals]

MOST_PARTIAL_ROWS = 1_000_000
"""Rows of partial results that are held before they are merged."""
BATCH = 1 << 16
"""Rows of a result batch."""


@dataclass(frozen=True, eq=False)
class Arranged:
    """The events that a kernel has seen: as a table, and sorted, with the codes of their keys."""

    physical: Physical
    stream: Stream
    block: Block
    keys: Keys


def row_batches(
    shown: Arranged, matches: Matches, exact: pa.DataType = EXACT_ON_SPARK, most_events: int = MOST_BATCHED,
    order: Array | None = None, threads: int = 1,
) -> Iterator[tuple[pa.RecordBatch, Matches]]:  # fmt: skip
    """Rows per match in batches of bounded size, with the matches of each; further columns as `exact` integers.

    `order`: that in which the matches are given out, if not as they are. Some batches are made ahead by `threads`.
    """
    physical, stream, block = shown.physical, shown.stream, shown.block
    schema = row_schema(physical, stream.table.schema, exact)

    def make(begin: int, end: int) -> tuple[pa.RecordBatch, Matches]:
        some = matches.part(begin, end) if order is None else matches.take(order[begin:end])
        return fitted(match_rows(physical, stream, block, shown.keys, some, exact), schema), some

    offsets = matches.offsets if order is None else np.r_[0, np.cumsum(np.diff(matches.offsets)[order])]
    bounds = list(bounds_of_batches(offsets, most_events))
    yield from made_ahead(make, bounds, threads)


def bounds_of_batches(offsets: Array, most_events: int = MOST_BATCHED) -> Iterator[tuple[int, int]]:
    """Stretches of matches of bounded size: few rows, and few events in all unless one match alone has more."""
    begin, rows = 0, len(offsets) - 1
    while begin < rows:
        end = int(np.searchsorted(offsets, offsets[begin] + most_events, side="right")) - 1
        end = min(max(end, begin + 1), begin + BATCH, rows)
        yield begin, end
        begin = end


def partial_table(
    shown: Arranged, results: Iterable[Totals | Matches], *, keep: Keep | None = None, progress: Progress | None = None
) -> pa.Table | None:
    """Results by group and window, as a table that can be added to others; None where there is no match.

    `keep` picks the results to give out where others belong to another task. Matches are counted for `progress`.
    """
    physical, stream = shown.physical, shown.stream
    parts: list[pa.Table] = []
    whole: list[Totals] = []
    count, rows = 0, 0
    for found in results:
        if isinstance(found, Matches):
            count += len(found)
            check_limit(physical, count)
            part = chunk_partial(physical, stream, shown.block, shown.keys.rows, found)
            if progress is not None:
                progress(count)
        else:
            totals = found if keep is None else keep(stream, shown.keys, found)
            if totals.whole:  # of other keys or windows than those before
                whole += [totals] if len(totals) else []
                continue
            part = totals_table(physical.plan, stream, shown.keys, totals)
        parts.append(part)
        rows += part.num_rows
        if rows > MOST_PARTIAL_ROWS:
            parts = [merge_partials(physical.plan, parts)]
            rows = parts[0].num_rows
    if whole:
        parts.append(totals_table(physical.plan, stream, shown.keys, join_totals(whole)))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 and not count else merge_partials(physical.plan, parts)


def totals_table(plan: Plan, stream: Stream, keys: Keys, totals: Totals) -> pa.Table:
    """Totals as a partial table; `keys` are those of the stream."""
    rows = pa.array(keys.rows[totals.key])
    columns = {name: stream.table[name].take(rows).combine_chunks() for name in plan.group_by}
    if plan.window.sliding:
        columns[WINDOW] = pa.array(totals.start)
    for name, value in totals.values.items():
        columns |= amount_columns(name, value) if isinstance(value, Amounts) else {name: to_arrow(value)}
    table = pa.table(columns)
    whole = totals.whole and set(plan.keys) == set(plan.group_by)
    return table if whole else merge_partials(plan, [table])


# Ranked rows that were found apart, ranked together: the best of all are among the best of each.
#
# Equal scores are ordered by all values of the events of a match, and by where these are bound. So a row travels with
# its events (`BOUND`), and is ranked again by the same code as in kernels, over the same values.
# Cost: O(m log m) for m rows: the best of each window, from every task or bucket that has seen a part of it.

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
    from trendloom.planner.ranking import best_matches

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
