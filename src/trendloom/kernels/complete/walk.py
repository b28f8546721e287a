"""M-CET: one complete trend at a time, depth first along the edges of the graph. Nothing is stored but the path.

Cost: O(1) per partial trend, and each trend is copied out: O(events of trends). Memory: the longest trend and a chunk.
The search can be resumed at any point. See Poppe, "Event Stream Analytics", 5.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numba
import numpy as np

from trendloom.kernels.complete.chunks import Chunks
from trendloom.kernels.complete.frames import Frames
from trendloom.kernels.complete.graph import Graph

Array = np.ndarray[Any, Any]


def one_by_one(graph: Graph, frames: Frames, starts: Array, chunks: Chunks) -> Iterator[tuple[Array, Array]]:
    """Offsets and events of the trends that begin at `starts`, a chunk at a time."""
    longest = int((frames.limit[starts] - starts).max(initial=0)) + 1
    path = np.zeros((3, longest), np.int64)
    place = np.zeros(3, np.int64)
    dead = np.full(len(graph), -1, np.int32)
    while place[0] < len(starts) or place[1] > 0:
        offsets, events = chunks.next(longest)
        count = _walk(
            graph.begin, graph.target, starts, frames.from_, frames.to, frames.least, frames.most, frames.limit,
            path[0], path[1], path[2], dead, place, offsets, events,
        )  # fmt: skip
        if count:
            yield offsets[: count + 1], events[: offsets[count]]


@numba.njit(cache=True, nogil=True)
def _walk(
    begin: Array, target: Array, starts: Array, from_: Array, to: Array, least: Array, most: Array, limit: Array,
    path: Array, cursor: Array, found: Array, dead: Array, place: Array, offsets: Array, events: Array,
) -> int:  # fmt: skip
    """Go on from `place` (next start, depth, whether the top is new) until the chunk is full.

    An event from which no trend of this start was found is `dead` for it and not visited again.
    """
    count, used = 0, 0
    next_start, depth, fresh = place[0], place[1], place[2]
    while True:
        if depth == 0:
            if next_start >= len(starts):
                break
            path[0] = starts[next_start]
            next_start += 1
            depth, fresh = 1, 1
        first = path[0]
        top = depth - 1
        e = path[top]
        if fresh == 1:
            if least[e] <= to[first] and from_[first] <= most[e]:
                if used + depth > len(events):
                    break
                for d in range(depth):
                    events[used + d] = path[d]
                used += depth
                count += 1
                offsets[count] = used
                found[top] = -1
            else:
                found[top] = 0
            cursor[top] = begin[e]
            fresh = 0
        stop = begin[e + 1]
        at = cursor[top]
        while at < stop and dead[target[at]] == first:
            at += 1
        if at < stop and target[at] < limit[first]:
            cursor[top] = at + 1
            path[depth] = target[at]
            depth += 1
            fresh = 1
            continue
        if found[top] == 0:
            dead[e] = first
        depth = top
        if top > 0 and found[top] != 0:
            found[top - 1] = -1
    place[0], place[1], place[2] = next_start, depth, fresh
    return count
