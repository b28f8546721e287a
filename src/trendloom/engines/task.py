"""One columnar call: a table of events in, result batches out. The local engine makes one, Spark one per task."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from trendloom.engines.events import Stream, build_block
from trendloom.engines.partials import WINDOW, amount_columns, merge_partials
from trendloom.engines.results import row_schema
from trendloom.engines.rows import in_order, match_rows
from trendloom.engines.two_step import check_limit, chunk_partial
from trendloom.expr.vectors import to_arrow
from trendloom.kernels.aggregation.aggregate import Totals, aggregate
from trendloom.kernels.aggregation.widen import Amounts
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import Keys
from trendloom.kernels.detection.matches import Matches, join
from trendloom.physical.plan import Physical

Progress = Callable[[int], None]
Keep = Callable[[Stream, Keys, Totals], Totals]

MOST_SORTED = 50_000_000
"""Entries (events of matches) that are held and sorted; beyond that rows leave in the order they are found."""
MOST_PARTIAL_ROWS = 1_000_000
"""Rows of partial results that are held before they are merged."""
BATCH = 1 << 16
"""Rows of a result batch."""
BATCH_EVENTS = 1 << 22
"""Events of matches in a result batch."""


def detect(physical: Physical, stream: Stream) -> tuple[Block, Keys, Iterator[Matches]]:
    """Sort the events and start the kernel; matches come in chunks as they are found."""
    block, keys = build_block(physical, stream)
    kernel = physical.kernel
    _, state = kernel.step(kernel.start(), block, None)
    return block, keys, kernel.finish(state)


def rows(
    physical: Physical, stream: Stream, *, limit: int | None = None, progress: Progress | None = None,
    unsorted: Callable[[], None] | None = None, with_times: tuple[str, str] | None = None, ordered: bool = True,
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    """Rows per match, `ordered` where they fit in memory (else `unsorted` is told); `limit` stops the search.

    `with_times` names two more columns for the times of the first and last event, for whoever sorts later.
    """
    block, keys, found = detect(physical, stream)
    schema = row_schema(physical.plan, stream.table.schema)

    def batches(matches: Matches) -> Iterator[pa.RecordBatch]:
        for some in parts_of(matches):
            batch = match_rows(physical, stream, block, keys, some).cast(schema)
            yield batch if with_times is None else _with_times(batch, block, some, with_times)

    if not (ordered or limit):
        for matches in found:
            yield from batches(matches)
        return
    held: list[Matches] = []
    size, count, fits = 0, 0, True
    for matches in found:
        if limit is not None and count + len(matches) > limit:
            matches = matches.part(0, limit - count)
        count += len(matches)
        size += len(matches.events)
        held.append(matches)
        if progress is not None:
            progress(count)
        if limit is not None and count >= limit:
            break
        if size > MOST_SORTED:
            fits = False
            if unsorted is not None:
                unsorted()
                unsorted = None
            for chunk in held:
                yield from batches(chunk)
            held = []
    whole = join(held)
    if len(whole) and fits:
        whole = in_order(block, whole)
    yield from batches(whole)


def parts_of(matches: Matches) -> Iterator[Matches]:
    """Parts of bounded size: few rows, and few events in all unless one match alone has more."""
    begin = 0
    while begin < len(matches):
        end = int(np.searchsorted(matches.offsets, matches.offsets[begin] + BATCH_EVENTS, side="right")) - 1
        end = min(max(end, begin + 1), begin + BATCH, len(matches))
        yield matches.part(begin, end)
        begin = end


def _with_times(batch: pa.RecordBatch, block: Block, matches: Matches, names: tuple[str, str]) -> pa.RecordBatch:
    times = [pa.array(block.time[matches.first]), pa.array(block.time[matches.last])]
    return pa.RecordBatch.from_arrays([*batch.columns, *times], [*batch.schema.names, *names])


def partial(
    physical: Physical, stream: Stream, *, numeric: str = "exact", progress: Progress | None = None,
    keep: Keep | None = None,
) -> pa.Table | None:  # fmt: skip
    """The measures of an aggregating query over this stream; None where there is no match.

    `keep` picks the results to give out where others belong to another task (one-step aggregates only).
    """
    parts = _one_step(physical, stream, numeric, keep) if physical.one_step else _two_steps(physical, stream, progress)
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else merge_partials(physical.plan, parts)


def _one_step(physical: Physical, stream: Stream, numeric: str, keep: Keep | None) -> list[pa.Table]:
    block, keys = build_block(physical, stream)
    parts: list[pa.Table] = []
    for totals in aggregate(physical.aggregation, block, numeric):
        totals = totals if keep is None else keep(stream, keys, totals)
        if len(totals):
            parts.append(totals_table(physical, stream, keys, totals))
        if sum(part.num_rows for part in parts) > MOST_PARTIAL_ROWS:
            parts = [merge_partials(physical.plan, parts)]
    return parts


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
