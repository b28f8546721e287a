"""What the state of a live stream says of the events it keeps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.property.amounts import amount, thorough

from trendloom.engines.live.chunks import ChunkIndex, Holds
from trendloom.engines.looking.statistics.from_batches import statistics_of_batches
from trendloom.plan.statistics import Origin

BUCKETS = st.lists(st.lists(st.lists(st.integers(-50, 50), max_size=6), max_size=4), max_size=3)


@thorough(amount(100))
@given(BUCKETS)
def test_they_are_those_of_the_events_that_are_kept(buckets: list[list[list[int]]]) -> None:
    indexes = []
    for batches in buckets:
        index, _ = ChunkIndex("query", 1).with_chunk(Holds.SUMMARIES, -1000, 1000, 7)
        for times in batches:
            index, _ = index.with_chunk(Holds.EVENTS, min(times, default=0), max(times, default=0), len(times))
        indexes.append(index)
    kept = [time for batches in buckets for times in batches for time in times]
    found = statistics_of_batches(indexes)
    assert found.origin is Origin.BATCHES
    assert found.events == len(kept)
    assert (found.first, found.last) == ((min(kept), max(kept)) if kept else (None, None))
    assert not found.types
    assert not found.fitting
