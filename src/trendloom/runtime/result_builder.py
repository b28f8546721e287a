"""Results of kernels as rows, or as sums by group and window that are added up or ranked again: for all engines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
from trendloom.runtime.aggregates import WINDOW, amount_columns, by_code, exact_column, merge_partials
from trendloom.runtime.blocks import Stream, standing_of, stream_of_table
from trendloom.runtime.limits import MOST_BATCHED
from trendloom.runtime.match_rows import Arranged, lists_of_events, match_rows, values_of_matches
from trendloom.runtime.parallel import made_ahead
from trendloom.runtime.result_columns import EXACT_ON_SPARK, fitted, row_schema

Progress = Callable[[int], None]
Keep = Callable[[Stream, Keys, Totals], Totals]

SUMS = ("matches", "count", "sum")
"""Measures that are sums over matches."""
MOST_PARTIAL_ROWS = 1_000_000
"""Rows of partial results that are held before they are merged."""
BOUND, POSITION = " bound", " position"
"""The column of the events that a row binds, and in these the position at which each is bound."""
ROW = "row"
BATCH = 1 << 16
"""Rows of a result batch."""


def row_batches(
    shown: Arranged, matches: Matches, exact: pa.DataType = EXACT_ON_SPARK, most_events: int = MOST_BATCHED,
    order: Array | None = None,
) -> Iterator[tuple[pa.RecordBatch, Matches]]:  # fmt: skip
    """Rows per match in batches of bounded size, with the matches of each; further columns as `exact` integers.

    `order`: that of the rows, if it is not the matches' own. Some batches are made ahead by the stream's threads.
    """
    schema = row_schema(shown.physical, shown.stream.table.schema, exact)

    def make(begin: int, end: int) -> tuple[pa.RecordBatch, Matches]:
        some = matches.part(begin, end) if order is None else matches.take(order[begin:end])
        return fitted(match_rows(shown, some, exact), schema), some

    offsets = matches.offsets if order is None else np.r_[0, np.cumsum(np.diff(matches.offsets)[order])]
    yield from made_ahead(make, list(_bounds_of_batches(offsets, most_events)), shown.stream.threads)


def _bounds_of_batches(offsets: Array, most_events: int) -> Iterator[tuple[int, int]]:
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

    `keep` picks the results to return where others belong to another task. `progress` receives the number of matches.
    """
    physical, stream = shown.physical, shown.stream
    parts: list[pa.Table] = []
    whole: list[Totals] = []
    count, rows = 0, 0
    for found in results:
        if isinstance(found, Matches):
            count += len(found)
            _check_limit(physical, count)
            part = chunk_partial(shown, found)
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


def _check_limit(physical: Physical, matches: int) -> None:
    """Refuse to enumerate more matches than allowed."""
    if matches > physical.limits.trends:
        raise RunError(
            f"more than {physical.limits.trends:,} matches to enumerate for an aggregate ({physical.chosen.why})",
            hint="use a smaller WITHIN, more selective predicates, or predicates on adjacent events (NEXT); "
            f"{option('max_trends')} allows more",
        )


# ------------------------------------------------------- aggregates over matches that were enumerated first
#
# Each chunk of matches becomes a partial table (see `aggregates`). Where matches are only likely, expected values are
# added up, as doubles. Integer sums are exact: where a chunk could leave 64 bits, Python integers take over.


def chunk_partial(shown: Arranged, matches: Matches) -> pa.Table:
    """The measures of a chunk, by group and window."""
    plan, stream = shown.physical.plan, shown.stream
    rows = shown.keys.rows[shown.block.key[matches.first]]  # that hold the values of groups
    groups = [stream.vector(name).take(rows) for name in plan.group_by]
    windows = [] if matches.window_start is None else [Vector(Kind.INT, matches.window_start)]
    keys = encode_keys([*windows, *groups]) if windows or groups else one_key(len(matches))
    columns: dict[str, Any] = {
        name: stream.table[name].take(pa.array(rows[keys.rows])).combine_chunks() for name in plan.group_by
    }
    if matches.window_start is not None:
        columns[WINDOW] = pa.array(matches.window_start[keys.rows])
    weight = next((column for column in shown.physical.kernel.columns if column.weighs), None)
    match = matches.match
    for measure in measures_of(plan):
        if weight is None:
            columns[measure.name] = _add_up(measure, shown, matches, match, keys)
        else:
            columns |= _expect(measure, shown, matches, match, keys, matches.columns[weight.name])
    return pa.table(columns)


def _expect(
    measure: Measure, shown: Arranged, matches: Matches, match: Array, keys: Keys, weight: Array
) -> dict[str, pa.Array]:
    """The expected value of a measure: each match counts as much as it is likely. Zero if it is not a sum."""
    if measure.function not in SUMS:
        return amount_columns(measure.name, doubles_as_amounts(np.zeros(keys.count)))
    codes = keys.codes
    if measure.positions is not None:
        entries = _entries(measure.positions, matches)
        codes, weight = codes[match[entries]], weight[match[entries]]
        if measure.column is not None:
            values = shown.stream.vector(measure.column).take(shown.block.row[matches.events[entries]])
            known = slice(None) if values.valid is None else values.valid
            numbers = as_doubles(values.values, values.scale) if measure.function == "sum" else np.ones(len(entries))
            codes, weight = codes[known], (weight * numbers)[known]
    return amount_columns(measure.name, doubles_as_amounts(np.bincount(codes, weights=weight, minlength=keys.count)))


def _add_up(measure: Measure, shown: Arranged, matches: Matches, match: Array, keys: Keys) -> pa.Array:
    if measure.positions is None:
        return exact_column(np.bincount(keys.codes, minlength=keys.count))
    entries = _entries(measure.positions, matches)
    codes = keys.codes[match[entries]]
    if measure.column is None:
        return exact_column(np.bincount(codes, minlength=keys.count))
    values = shown.stream.vector(measure.column).take(shown.block.row[matches.events[entries]])
    if values.valid is not None:
        codes, values = codes[values.valid], values.take(np.flatnonzero(values.valid))
    return by_code(measure, values, codes, keys.count)


def _entries(positions: tuple[int, ...], matches: Matches) -> Array:
    """The entries of matches at some positions."""
    table = np.zeros(int(matches.positions.max(initial=0)) + 1, np.bool_)
    table[[position for position in positions if position < len(table)]] = True
    return np.flatnonzero(table[matches.positions])


# ------------------------------------------------------------------- ranked rows that were found apart
#
# The best of all are among the best of each part.
# Equal scores are ordered by all values of the events of a match, and by where these are bound. So a row travels with
# its events (`BOUND`), and is ranked again by the same code as in kernels, over the same values.
# Cost: O(m log m) for m rows: the best of each window, from every task or bucket that has seen a part of it.


def bound_type(schema: pa.Schema) -> pa.DataType:
    """The type of the column of events, where events have these columns."""
    return pa.list_(pa.struct([*schema, pa.field(POSITION, pa.int32())]))


def bound_events(shown: Arranged, matches: Matches) -> pa.Array:
    """The events of every match, with all their columns and the positions where they are bound."""
    positions = pa.array(matches.positions, pa.int32())
    return lists_of_events(shown, matches, positions, bound_type(shown.stream.table.schema))


def merge_ranked(physical: Physical, rows: pa.Table) -> pa.Table:
    """The best of rows of any keys, window by window in the order of their ranks, without the events they came with."""
    from trendloom.planner.ranking import best_matches

    shown, matches = _opened(physical, rows)
    names = tuple(place.variable for place in physical.pattern_spec.places)
    best = best_matches(physical.plan, names, shown.block, values_of_matches(shown, matches))
    found = rows.take(pa.array(best.columns[ROW])).drop_columns([BOUND])
    return found.set_column(found.schema.get_field_index(RANK), RANK, pa.array(best.columns[RANK], pa.int64()))


def _opened(physical: Physical, rows: pa.Table) -> tuple[Arranged, Matches]:
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
    matches = Matches(offsets, number, positions, start, {ROW: np.arange(len(rows))})
    return Arranged(physical, stream, block, Keys(block.key, len(matches), matches.first, None)), matches
