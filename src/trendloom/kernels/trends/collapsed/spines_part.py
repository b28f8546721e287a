"""The spines of all matches, and where Kleene events before and after each may lie.

There are polynomially many: a spine has at most one event for each position outside Kleene variables. They are found
like matches of a pattern that has only these positions, and appear once for each window that holds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from trendloom.kernels.aggregate.spans import spans_of
from trendloom.kernels.columns.block import Block
from trendloom.kernels.match.expansion import enumerate_matches
from trendloom.kernels.matching.spec import Detection
from trendloom.kernels.matching.windows import surroundings
from trendloom.kernels.trends.collapsed.spec import Spine

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Spines:
    """Spines of equal length: `events[r, c]` at `positions[r, c]`. Kleene events have indices from low to high."""

    events: Array
    positions: Array
    low: Array
    high: Array
    start: Array | None

    def __len__(self) -> int:
        return len(self.low)

    def part(self, begin: int, end: int) -> Spines:
        some = slice(begin, end)
        start = None if self.start is None else self.start[some]
        return Spines(self.events[some], self.positions[some], self.low[some], self.high[some], start)


def spines_of(spine: Spine, detection: Detection, block: Block) -> Iterator[Spines]:
    """Chunks of spines that some match may have."""
    if spine.empty and not spine.anchored:
        yield _empty(detection, block)
    if spine.detection is None:
        return
    for found in enumerate_matches(spine.detection, block):
        events = found.events.reshape(len(found), -1)
        low, high = surroundings(block, events[:, 0], events[:, -1], found.window_start, detection.window)
        yield Spines(events, found.positions.reshape(events.shape), low, high, found.window_start)


def _empty(detection: Detection, block: Block) -> Spines:
    """No event outside Kleene variables: one spine for each key and window."""
    spans = spans_of(block, detection.window)
    nothing = np.zeros((len(spans), 0), np.int64)
    start = spans.start if detection.window.sliding else None
    return Spines(nothing, nothing.astype(np.int32), spans.low, spans.high, start)
