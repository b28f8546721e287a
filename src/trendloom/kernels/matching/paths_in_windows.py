"""Complete matches in the windows that hold them, and the NOTs at their ends, which look at the rest of the window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trendloom.kernels.matching.gaps import Gaps
from trendloom.kernels.matching.matches import Matches
from trendloom.kernels.matching.partial_matches import Paths
from trendloom.kernels.matching.spec import Detection
from trendloom.kernels.matching.windows import surroundings, windows_of

Array = np.ndarray[Any, Any]


def in_windows(gaps: Gaps, paths: Paths, spec: Detection, rows: int = 1 << 16) -> Iterator[tuple[Paths, Array | None]]:
    """Complete matches per window that holds them, where leading and trailing NOTs agree."""
    for begin in range(0, len(paths), rows):
        some = paths.take(np.arange(begin, min(begin + rows, len(paths))))
        start = None
        if spec.window.sliding:
            time = some.block.time
            which, start = windows_of(time[some.events[:, 0]], time[some.events[:, -1]], spec.window)
            some = some.take(which)
        if looks_around(spec):
            low, high = surroundings(some.block, some.events[:, 0], some.events[:, -1], start, spec.window)
            numbered = Paths(gaps.machine, some.block, 0, 0, some.events, some.steps, np.arange(len(some)), {})
            kept = gaps.enclosed(numbered, low, high)
            some, start = kept, None if start is None else start[kept.root]
        yield some, start


def matches_of(paths: Paths, start: Array | None) -> Matches:
    """Matches of equal length as flat arrays."""
    rows, length = paths.events.shape
    offsets = np.arange(rows + 1, dtype=np.int64) * length
    positions = paths.machine.position_of[paths.steps].astype(np.int32)
    return Matches(offsets, paths.events.reshape(-1), positions.reshape(-1), start)


def looks_around(spec: Detection) -> bool:
    """Whether the pattern has leading or trailing NOTs."""
    return spec.scopes[0].open_ended
