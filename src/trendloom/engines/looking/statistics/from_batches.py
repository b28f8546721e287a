"""Statistics of a live stream without reading its state: what the indexes of its buckets say of chunks of events.

They are about the events that are kept, those of open windows, which is what the next step looks at. Summaries do not
know how many events they stand for, and are left out. Cost: O(chunks).
"""

from __future__ import annotations

from collections.abc import Iterable

from trendloom.engines.live.chunks import ChunkIndex, Holds
from trendloom.plan.statistics import Origin, Statistics


def statistics_of_batches(indexes: Iterable[ChunkIndex]) -> Statistics:
    """What earlier micro-batches left of one query, in all its buckets."""
    chunks = [chunk for index in indexes for chunk in index.of(Holds.EVENTS) if chunk.rows]
    return Statistics(
        Origin.BATCHES,
        sum(chunk.rows for chunk in chunks),
        0,
        first=min((chunk.low for chunk in chunks), default=None),
        last=max((chunk.high for chunk in chunks), default=None),
    )
