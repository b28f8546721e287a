"""Batches: spans of one key that overlap are swept together, one lane each, so that what they share is done once.

A batch is a run of spans that all overlap its first one. So the union of their events is less than twice the longest
span, and at least half of the work in every lane counts. Spans that overlap none are batches of one lane.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.kernels.aggregate.event_grained.events_by_state import Items
from trendloom.kernels.aggregate.measures import Spans
from trendloom.kernels.jit.compiled import njit

Array = np.ndarray[Any, Any]


class Batches(NamedTuple):
    """Batches with `lanes` spans each: the first span, and the items `low` to `high` of all its spans."""

    span: Array
    low: Array
    high: Array
    first_event: Array
    last_event: Array
    lanes: int


def batches_of(spans: Spans, items: Items, most_lanes: int) -> list[Batches]:
    """All spans in batches, those with equally many lanes together."""
    first = _firsts(spans.key, spans.low, spans.high, most_lanes)
    width = np.diff(np.append(first, len(spans)))
    found = []
    for lanes in np.unique(width).tolist():
        some = first[width == lanes]
        low, high = spans.low[some], spans.high[some + lanes - 1]
        found.append(
            Batches(some, np.searchsorted(items.event, low), np.searchsorted(items.event, high), low, high, lanes)
        )
    return found


@njit(nogil=True)
def _firsts(key: Any, low: Any, high: Any, most_lanes: Any) -> Any:
    """The first span of every batch."""
    found = np.empty(len(key), np.int64)
    count, first = 0, -1
    for span in range(len(key)):
        fresh = first < 0 or key[span] != key[first] or span - first >= most_lanes or low[span] >= high[first]
        if fresh:
            found[count] = first = span
            count += 1
    return found[:count].copy()
