"""M-CET: one complete trend at a time, depth first along the edges of the graph. Nothing is stored but the path.

Only places where the path branches are remembered, so a search goes back to the latest of them at once. Where a search
can fail (a bare WITHIN: a trend must reach far enough), events from which nothing was found are marked for its start.

Cost: O(1) per partial trend, and each trend is copied out: O(events of trends). Memory: the longest trend and a chunk.
The search can be resumed at any point. See Poppe, "Event Stream Analytics", 5.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.segments import copy_entries
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.matching.expansion import first_chunk
from trendloom.kernels.trends.complete.frames import FrameColumns, Frames
from trendloom.kernels.trends.complete.graph import EdgeLists, TrendGraph

# Buffers that trends are written to: small at first, so that whoever wants a few waits for a few; then larger.


class TrendBuffer(NamedTuple):
    """Room for trends: number i is `events[offsets[i]:offsets[i+1]]`."""

    offsets: Array
    events: Array


@dataclass
class Chunks:
    """`most`: entries of the largest buffer, `size`: of the last one."""

    most: int = 1 << 21
    size: int = 0

    def next(self, longest: int) -> TrendBuffer:
        """A fresh buffer; one trend of `longest` events fits in any case."""
        self.size = min(2 * self.size, self.most) if self.size else first_chunk(longest, self.most)
        size = max(self.size, longest)
        return TrendBuffer(np.zeros(size + 1, np.int64), np.empty(size, np.int32))


NEXT_START, DEPTH, BRANCHES, FRESH, GIVEN, CHAIN, CHAIN_GIVEN = range(7)
"""What `place` holds: how far the search has come, trends given out, where the chain since the last branch began."""


class WalkState(NamedTuple):
    """A search under way: the path, its branches, events from which nothing was found for a start, and `place`.

    `branch`: depths at which the path branches, with the edge to take next (`cursor`), and where the chain of events
    that leads there began and how many trends had been given out then.
    """

    path: Array
    branch: Array
    cursor: Array
    chain_of: Array
    given_at: Array
    dead: Array
    place: Array


def one_by_one(graph: TrendGraph, frames: Frames, starts: Array, chunks: Chunks) -> Iterator[tuple[Array, Array]]:
    """Offsets and events of the trends that begin at `starts`, a chunk at a time."""
    longest = int((frames.limit[starts] - starts).max(initial=0)) + 1
    dead, place = np.full(len(graph) if frames.window.spanning else 0, -1, np.int32), np.zeros(7, np.int64)
    path, branches = np.zeros(longest, np.int32), np.zeros((4, longest), np.int64)
    state = WalkState(path, branches[0], branches[1], branches[2], branches[3], dead, place)
    edges, columns = graph.lists, frames.columns
    while place[NEXT_START] < len(starts) or place[DEPTH] > 0:
        buffer = chunks.next(longest)
        count = _walk(edges, columns, starts, state, buffer)
        if count:
            yield buffer.offsets[: count + 1], buffer.events[: buffer.offsets[count]]


@njit(nogil=True)
def _walk(edges: EdgeLists, frames: FrameColumns, starts: Array, state: WalkState, buffer: TrendBuffer) -> int:
    """Go on from where the search was left until the buffer is full; returns the number of trends in it."""
    begin, target, offsets, events = edges.begin, edges.target, buffer.offsets, buffer.events
    from_, to, least, most, limit = frames.from_, frames.to, frames.least, frames.most, frames.limit
    path, branch, cursor, dead, place = state.path, state.branch, state.cursor, state.dead, state.place
    chain_of, given_at = state.chain_of, state.given_at
    count, used = 0, 0
    next_start, depth, branches, fresh = place[0], place[1], place[2], place[3]
    given, chain, chain_given = place[4], place[5], place[6]
    can_fail = len(dead) > 0
    while True:
        if depth == 0:
            if next_start >= len(starts):
                break
            path[0] = starts[next_start]
            next_start += 1
            depth, fresh, chain, chain_given = 1, 1, 0, given
        first = path[0]
        stop, low, high = limit[first], to[first], from_[first]
        while True:  # along the chain, to where it branches or ends
            e = path[depth - 1]
            if fresh == 1 and least[e] <= low and high <= most[e]:
                if used + depth > len(events):
                    place[0], place[1], place[2], place[3] = next_start, depth, branches, 1
                    place[4], place[5], place[6] = given, chain, chain_given
                    return count
                copy_entries(events, used, path, 0, depth)
                used += depth
                count += 1
                given += 1
                offsets[count] = used
            edge, last = begin[e], begin[e + 1]
            if can_fail:
                while edge < last and dead[target[edge]] == first:
                    edge += 1
            if edge >= last or target[edge] >= stop:
                break
            if edge + 1 < last and target[edge + 1] < stop:
                branch[branches], cursor[branches] = depth, edge + 1
                chain_of[branches], given_at[branches] = chain, chain_given
                branches += 1
                chain, chain_given = depth, given
            path[depth] = target[edge]
            depth += 1
            fresh = 1
        if can_fail and given == chain_given:
            for d in range(chain, depth):
                dead[path[d]] = first
        depth = 0
        while branches > 0:  # back to the latest branch that has an edge left
            top = branches - 1
            at, edge = branch[top], cursor[top]
            e = path[at - 1]
            last = begin[e + 1]
            if can_fail:
                while edge < last and dead[target[edge]] == first:
                    edge += 1
            if edge < last and target[edge] < stop:
                cursor[top] = edge + 1
                path[at] = target[edge]
                depth, fresh, chain, chain_given = at + 1, 1, at, given
                break
            branches = top
            if can_fail and given == given_at[top]:
                for d in range(chain_of[top], at):
                    dead[path[d]] = first
    place[0], place[1], place[2], place[3] = next_start, depth, branches, fresh
    place[4], place[5], place[6] = given, chain, chain_given
    return count
