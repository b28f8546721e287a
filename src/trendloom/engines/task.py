"""One columnar call: a table of events in, result batches out. The local engine makes one, Spark one per task."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from trendloom.engines.events import Stream, build_block
from trendloom.engines.results import row_schema
from trendloom.engines.rows import in_order, match_rows, only_complete
from trendloom.engines.totals import chunk_partial, merge_partials
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import Keys
from trendloom.kernels.detection import kernel
from trendloom.kernels.detection.matches import Matches, join
from trendloom.lang.tree import Trends
from trendloom.physical.plan import Physical

Progress = Callable[[int], None]

MOST_SORTED = 50_000_000
"""Entries (events of matches) that are held and sorted; beyond that rows leave in the order they are found."""
BATCH = 1 << 16
"""Rows of a result batch."""
BATCH_EVENTS = 1 << 22
"""Events of matches in a result batch."""


def detect(physical: Physical, stream: Stream) -> tuple[Block, Keys, Iterator[Matches]]:
    """Sort the events and start the kernel; matches come in chunks as they are found."""
    block, keys = build_block(physical, stream)
    _, state = kernel.step(kernel.start(physical.kernel), block, None)
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
    complete = physical.plan.output is Trends.COMPLETE

    def batches(matches: Matches) -> Iterator[pa.RecordBatch]:
        for some in parts_of(matches):
            batch = match_rows(physical, stream, block, keys, some).cast(schema)
            yield batch if with_times is None else _with_times(batch, block, some, with_times)

    if not (ordered or complete or limit):
        for matches in found:
            yield from batches(matches)
        return
    held: list[Matches] = []
    size, count, fits = 0, 0, True
    for matches in found:
        if limit is not None and not complete and count + len(matches) > limit:
            matches = matches.part(0, limit - count)
        count += len(matches)
        size += len(matches.events)
        held.append(matches)
        if progress is not None:
            progress(count)
        if limit is not None and not complete and count >= limit:
            break
        if size > MOST_SORTED and not complete:
            fits = False
            if unsorted is not None:
                unsorted()
                unsorted = None
            for chunk in held:
                yield from batches(chunk)
            held = []
    whole = join(held)
    if complete:
        whole = only_complete(block, whole)
    if len(whole) and fits:
        whole = in_order(block, whole)
    if complete and limit is not None:
        whole = whole.part(0, min(limit, len(whole)))
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


def partial(physical: Physical, stream: Stream, *, progress: Progress | None = None) -> pa.Table | None:
    """The measures of an aggregating query over this stream; None where there is no match."""
    block, keys, found = detect(physical, stream)
    parts: list[pa.Table] = []
    count = 0
    for matches in found:
        parts.append(chunk_partial(physical, stream, block, keys.rows, matches))
        count += len(matches)
        if progress is not None:
            progress(count)
        if sum(part.num_rows for part in parts) > 1_000_000:
            parts = [merge_partials(physical.plan, parts)]
    return merge_partials(physical.plan, parts) if parts else None
