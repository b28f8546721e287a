"""One columnar call: a table of events in, result batches out. The local engine makes one, Spark one per task."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from trendloom.engines.budget import MOST_BATCHED, budget_of
from trendloom.engines.events import Stream, build_block
from trendloom.engines.finish import beyond_decimal
from trendloom.engines.forecast import (
    Forecast,
    forecast_matches,
    forecast_trends,
    refuse_endless_search,
    refuse_too_many,
    refuse_too_many_to_try,
    too_many,
)
from trendloom.engines.partials import WINDOW, amount_columns, merge_partials
from trendloom.engines.results import fitted, row_schema
from trendloom.engines.rows import in_order, match_rows
from trendloom.engines.two_step import check_limit, chunk_partial
from trendloom.expr.nodes import Total
from trendloom.expr.vectors import to_arrow
from trendloom.kernels.aggregation.aggregate import Totals, aggregate
from trendloom.kernels.aggregation.widen import Amounts, OnWidening, Widening
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import Keys
from trendloom.kernels.complete.trends import trends_of
from trendloom.kernels.detection.matches import Matches, join
from trendloom.lang.tree import Trends
from trendloom.physical.plan import Physical
from trendloom.plan.logical import Aggregation, Plan

Progress = Callable[[int], None]
Keep = Callable[[Stream, Keys, Totals], Totals]

MOST_PARTIAL_ROWS = 1_000_000
"""Rows of partial results that are held before they are merged."""
DECIMAL_BITS = 127
"""A number with more bits has more than 38 digits."""
BATCH = 1 << 16
"""Rows of a result batch."""
FIRST_ENTRIES = 1 << 21
"""Entries of matches that are found before matches are counted: few matches are there sooner than their number."""


def detect(physical: Physical, stream: Stream) -> tuple[Block, Keys, Iterator[Matches]]:
    """Sort the events and start the kernel; matches come in chunks as they are found."""
    block, keys = build_block(physical, stream)
    return block, keys, _matches(physical, block)


def _matches(physical: Physical, block: Block) -> Iterator[Matches]:
    kernel = physical.kernel
    return kernel.finish(kernel.step(kernel.start(), block, None)[1])


def rows(
    physical: Physical, stream: Stream, *, limit: int | None = None, progress: Progress | None = None,
    unsorted: Callable[[], None] | None = None, with_ends: tuple[str, str] | None = None, ordered: bool = True,
    foreseen: Callable[[Forecast], None] | None = None,
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    """Rows per match, `ordered` where they fit in memory (else `unsorted` is told); `limit` stops the search.

    `with_ends` names two more columns for the instants of the first and last event, for whoever sorts later. `foreseen`
    is told how many matches there will be, where there are many: they are counted, and more than allowed are refused.
    """
    block, keys, found = _counted(physical, stream, limit, foreseen)
    schema = row_schema(physical.plan, stream.table.schema)
    budget = budget_of(physical)
    batched = budget.batched(stream.table)

    def batches(matches: Matches) -> Iterator[pa.RecordBatch]:
        for some in parts_of(matches, batched):
            batch = fitted(match_rows(physical, stream, block, keys, some), schema)
            yield batch if with_ends is None else _with_ends(batch, block, some, with_ends)

    found = watched(found, limit, progress)
    held, all_there = _up_to(found, budget.held) if ordered or limit else ([], False)
    if all_there:
        yield from batches(in_order(block, join(held)))
        return
    if unsorted is not None:
        unsorted()
    while held:
        yield from batches(held.pop(0))
    for matches in found:
        yield from batches(matches)


def watched(found: Iterator[Matches], limit: int | None, progress: Progress | None) -> Iterator[Matches]:
    """The first matches, all without a limit; the search stops with them, and `progress` hears how many there are."""
    count = 0
    for matches in found:
        some = matches if limit is None else matches.part(0, min(len(matches), limit - count))
        count += len(some)
        if progress is not None:
            progress(count)
        yield some
        if limit is not None and count >= limit:
            return


def _up_to(found: Iterator[Matches], most: int) -> tuple[list[Matches], bool]:
    """Matches until they have more entries than may be held, and whether that is all of them."""
    held, size = [], 0
    for matches in found:
        held.append(matches)
        size += len(matches.events)
        if size > most:
            return held, False
    return held, True


def _counted(
    physical: Physical, stream: Stream, limit: int | None, foreseen: Callable[[Forecast], None] | None
) -> tuple[Block, Keys, Iterator[Matches]]:
    """The events and their matches; too many matches are refused, before they are found or when there are too many."""
    block, keys = build_block(physical, stream)
    if physical.graph is not None:
        trends = trends_of(physical.graph, block, physical.limits.memory)
        forecast = None if limit is not None else forecast_trends(trends)
        refuse_too_many_to_try(physical, forecast)
        found = trends.matches()
    else:
        if physical.plan.output is Trends.COMPLETE:
            refuse_endless_search(physical, block)
        found = _matches(physical, block)
        one_by_one = limit is None and physical.collapsing is None
        first, all_there = _up_to(found, FIRST_ENTRIES) if one_by_one else ([], True)
        forecast = None if all_there else forecast_matches(physical, block)
        found = _chained(first, found)
    refuse_too_many(physical, forecast)
    if forecast is not None and foreseen is not None:
        foreseen(forecast)
    return block, keys, found if limit is not None else _at_most(physical, found)


def _chained(first: list[Matches], more: Iterator[Matches]) -> Iterator[Matches]:
    while first:
        yield first.pop(0)
    yield from more


def _at_most(physical: Physical, found: Iterator[Matches]) -> Iterator[Matches]:
    count = 0
    for matches in found:
        count += len(matches)
        if count > physical.limits.trends:
            raise too_many(physical, f"more than {physical.limits.trends:,}")
        yield matches


def parts_of(matches: Matches, most_events: int = MOST_BATCHED) -> Iterator[Matches]:
    """Parts of bounded size: few rows, and few events in all unless one match alone has more."""
    begin = 0
    while begin < len(matches):
        end = int(np.searchsorted(matches.offsets, matches.offsets[begin] + most_events, side="right")) - 1
        end = min(max(end, begin + 1), begin + BATCH, len(matches))
        yield matches.part(begin, end)
        begin = end


def _with_ends(batch: pa.RecordBatch, block: Block, matches: Matches, names: tuple[str, str]) -> pa.RecordBatch:
    instants = [pa.array(block.instant[matches.first]), pa.array(block.instant[matches.last])]
    return pa.RecordBatch.from_arrays([*batch.columns, *instants], [*batch.schema.names, *names])


def partial(
    physical: Physical, stream: Stream, *, numeric: str = "exact", progress: Progress | None = None,
    keep: Keep | None = None, widening: OnWidening | None = None, decimals: bool = False,
) -> pa.Table | None:  # fmt: skip
    """The measures of an aggregating query over this stream; None where there is no match.

    `keep` picks the results to give out where others belong to another task, `widening` hears of long numbers before
    they are computed (one-step aggregates only). `decimals`: results are Spark's, so a number of matches that they
    cannot hold is refused before it is computed.
    """
    if physical.one_step:
        parts = _one_step(physical, stream, numeric, keep, widening, decimals)
    else:
        parts = _two_steps(physical, stream, progress)
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else merge_partials(physical.plan, parts)


def _one_step(
    physical: Physical, stream: Stream, numeric: str, keep: Keep | None, widening: OnWidening | None, decimals: bool
) -> list[pa.Table]:
    block, keys = build_block(physical, stream)
    widening = _refusing(physical.plan, stream, keys) if decimals else widening
    parts: list[pa.Table] = []
    for totals in aggregate(physical.aggregation, block, numeric, widening=widening):
        totals = totals if keep is None else keep(stream, keys, totals)
        if len(totals):
            parts.append(totals_table(physical, stream, keys, totals))
        if sum(part.num_rows for part in parts) > MOST_PARTIAL_ROWS:
            parts = [merge_partials(physical.plan, parts)]
    return parts


def _refusing(plan: Plan, stream: Stream, keys: Keys) -> OnWidening | None:
    """Refuses numbers of matches beyond Spark's decimals, where the rows give them away as they are."""
    assert isinstance(plan.output, Aggregation)
    counts = [v for v in plan.output.values if isinstance(v.expr, Total) and v.expr.positions is None]
    if not counts or plan.output.having is not None:
        return None

    def refuse(found: Widening) -> None:
        if found.matches > DECIMAL_BITS:
            row = pa.array([int(keys.rows[found.key])])
            groups = {name: stream.table[name].take(row) for name in plan.group_by}
            raise beyond_decimal(plan, counts[0], pa.table({WINDOW: [found.start], **groups}), 0)

    return refuse


def totals_table(physical: Physical, stream: Stream, keys: Keys, totals: Totals) -> pa.Table:
    """Totals as a partial table; `keys` are those of the stream."""
    plan = physical.plan
    rows = pa.array(keys.rows[totals.key])
    columns = {name: stream.table[name].take(rows).combine_chunks() for name in plan.group_by}
    if plan.window.sliding:
        columns[WINDOW] = pa.array(totals.start)
    for name, value in totals.values.items():
        columns |= amount_columns(name, value) if isinstance(value, Amounts) else {name: to_arrow(value)}
    table = pa.table(columns)
    whole = set(plan.partition) == set(plan.group_by) and physical.aggregation.pivot is None
    return table if whole else merge_partials(plan, [table])


def _two_steps(physical: Physical, stream: Stream, progress: Progress | None) -> list[pa.Table]:
    block, keys, found = detect(physical, stream)
    parts: list[pa.Table] = []
    count = 0
    for matches in found:
        parts.append(chunk_partial(physical, stream, block, keys.rows, matches))
        count += len(matches)
        check_limit(physical, count)
        if progress is not None:
            progress(count)
        if sum(part.num_rows for part in parts) > MOST_PARTIAL_ROWS:
            parts = [merge_partials(physical.plan, parts)]
    return [merge_partials(physical.plan, parts)] if parts else []
