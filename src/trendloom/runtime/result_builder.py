"""What kernels give out becomes rows, or sums by group and window that are added up: the one place for all hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.expr.vectors import to_arrow
from trendloom.kernels.aggregate.results import Totals, join_totals
from trendloom.kernels.aggregate.widening import Amounts
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import Keys
from trendloom.kernels.matching.matches import Matches
from trendloom.logical.plan import Plan
from trendloom.planner.plan import Physical
from trendloom.runtime.blocks import Stream
from trendloom.runtime.budget import MOST_BATCHED
from trendloom.runtime.match_rows import match_rows
from trendloom.runtime.parallel import made_ahead
from trendloom.runtime.partial_aggregates import WINDOW, amount_columns, merge_partials
from trendloom.runtime.result_columns import EXACT_ON_SPARK, fitted, row_schema
from trendloom.runtime.two_step import check_limit, chunk_partial

Array = np.ndarray[Any, Any]
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
