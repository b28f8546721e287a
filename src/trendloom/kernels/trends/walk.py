"""Walk the trend graph: one complete trend at a time (M-CET), or by graphlets whose pieces are stored (T-CET, H-CET).

M-CET goes depth first along the edges and stores nothing but the path. Only places where the path branches are kept,
so a search goes back to the latest of them at once. Where a search can fail (a bare WITHIN: a trend must reach far
enough), events from which nothing was found are marked for its start.

H-CET cuts the graph into graphlets. A trend passes through each graphlet in one piece: from an event where trends can
enter it (one that an edge leads to from an earlier graphlet, or that begins trends) to one where they can leave it (an
edge leads on, or trends end). All such pieces of a graphlet are stored; a trend is then a few pieces copied one after
another instead of many steps from edge to edge. With one graphlet (T-CET) all trends are stored.

Cost: O(1) per partial trend, for H-CET only once inside a graphlet and then per piece that is appended; and each trend
is copied out: O(events of trends). Memory: the longest trend, a chunk, and the pieces. Both searches can be resumed at
any point. See Poppe, "Event Stream Analytics", 5.2 and 5.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.segments import copy_entries
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.matching.expansion import first_chunk
from trendloom.kernels.trends.graph import EdgeLists, Frames, TrendGraph


class TrendBuffer(NamedTuple):
    """Space for trends: number i is `events[offsets[i]:offsets[i+1]]`."""

    offsets: Array
    events: Array


@dataclass
class Chunks:
    """Buffers, small at first, so that the first few trends are found soon; then larger.

    `most`: entries of the largest buffer, `size`: of the last one.
    """

    most: int = 1 << 21
    size: int = 0

    def next(self, longest: int) -> TrendBuffer:
        """A fresh buffer; one trend of `longest` events fits in any case."""
        self.size = min(2 * self.size, self.most) if self.size else first_chunk(longest, self.most)
        size = max(self.size, longest)
        return TrendBuffer(np.zeros(size + 1, np.int64), np.empty(size, np.int32))


# ------------------------------------------------------------------------------------------- one trend at a time


NEXT_START, DEPTH, BRANCHES, FRESH, GIVEN, CHAIN, CHAIN_GIVEN = range(7)
"""Entries of `place`: the next start, the length of the path and its branches, whether its last event is new, how many
trends were given out, where the chain since the last branch began and how many had been given out then.
"""


class WalkState(NamedTuple):
    """A search under way: the path, its branches, events from which nothing was found for a start, and `place`.

    `branch`: depths at which the path branches, with the edge to take next (`cursor`), and where the chain of events
    that leads there began (`chain_of`) and how many trends had been given out then (`given_at`).
    """

    path: Array
    branch: Array
    cursor: Array
    chain_of: Array
    given_at: Array
    dead: Array
    place: Array


def one_by_one(graph: TrendGraph, starts: Array, chunks: Chunks) -> Iterator[tuple[Array, Array]]:
    """Offsets and events of the trends that begin at `starts`, a chunk at a time."""
    longest = graph.longest(starts)
    dead, place = np.full(len(graph) if graph.window.spanning else 0, -1, np.int32), np.zeros(7, np.int64)
    branch, cursor, chain_of, given_at = np.zeros((4, longest), np.int64)
    state = WalkState(np.zeros(longest, np.int32), branch, cursor, chain_of, given_at, dead, place)
    while place[NEXT_START] < len(starts) or place[DEPTH] > 0:
        buffer = chunks.next(longest)
        count = _walk(graph.lists, graph.frames, starts, state, buffer)
        if count:
            yield buffer.offsets[: count + 1], buffer.events[: buffer.offsets[count]]


@njit(nogil=True)
def _walk(edges: EdgeLists, frames: Frames, starts: Array, state: WalkState, buffer: TrendBuffer) -> int:
    """Go on from where the search was left until the buffer is full; returns the number of trends in it."""
    begin, target, offsets, events = edges.begin, edges.target, buffer.offsets, buffer.events
    from_, to, least, most, limit = frames.from_, frames.to, frames.least, frames.most, frames.limit
    path, branch, cursor, chain_of, given_at, dead, place = state
    count, used, full = 0, 0, False
    next_start, depth, branches, fresh = place[NEXT_START], place[DEPTH], place[BRANCHES], place[FRESH]
    given, chain, chain_given = place[GIVEN], place[CHAIN], place[CHAIN_GIVEN]
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
                    full = True
                    break
                copy_entries(events, used, path, 0, depth)
                used += depth
                count += 1
                given += 1
                offsets[count] = used
            edge, last = begin[e], begin[e + 1]
            if can_fail:
                edge = _first_alive(target, dead, first, edge, last)
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
        if full:
            break
        if can_fail and given == chain_given:
            for d in range(chain, depth):
                dead[path[d]] = first
        depth = 0
        while branches > 0:  # back to the latest branch that has an edge left
            top = branches - 1
            at, edge = branch[top], cursor[top]
            last = begin[path[at - 1] + 1]
            if can_fail:
                edge = _first_alive(target, dead, first, edge, last)
            if edge < last and target[edge] < stop:
                cursor[top] = edge + 1
                path[at] = target[edge]
                depth, fresh, chain, chain_given = at + 1, 1, at, given
                break
            branches = top
            if can_fail and given == given_at[top]:
                for d in range(chain_of[top], at):
                    dead[path[d]] = first
    place[NEXT_START], place[DEPTH], place[BRANCHES], place[FRESH] = next_start, depth, branches, fresh
    place[GIVEN], place[CHAIN], place[CHAIN_GIVEN] = given, chain, chain_given
    return count


@njit(**INSIDE, forceinline=True)
def _first_alive(target: Array, dead: Array, first: int, edge: int, last: int) -> int:
    """The first of some edges to an event from which a trend that begins at `first` may still be found."""
    while edge < last and dead[target[edge]] == first:
        edge += 1
    return edge


# ------------------------------------------------------------------------------------------------- by graphlets


class Graphlets(NamedTuple):
    """The graphlets of the events from `low` on: where that of each event begins and ends."""

    low: int
    begin_of: Array
    end_of: Array


class TrendPieces(NamedTuple):
    """Pieces of trends in the events from `low` up to `high`.

    Those that begin at event `low + i` are numbers `of[i]` up to `of[i+1]`; piece p is
    `events[offsets[p]:offsets[p+1]]`. `onward[i]`: the first edge of event `low + i` that leaves its graphlet.
    """

    low: int
    of: Array
    offsets: Array
    events: Array
    onward: Array

    @property
    def bytes(self) -> int:
        return sum(one.nbytes for one in (self.of, self.offsets, self.events, self.onward))


class StitchState(NamedTuple):
    """A search under way: the trend so far, its levels, events from which nothing was found for a start, and `place`.

    A level is an event where trends enter a graphlet: the next piece from there, the next edge onward from the end of
    the piece under way (−1: none under way), the length of the trend before it, and whether a trend was found. `place`:
    the next start, and the number of levels.
    """

    path: Array
    entry: Array
    piece: Array
    edge: Array
    length: Array
    found: Array
    dead: Array
    place: Array


def pieces_of(graph: TrendGraph, bounds: Array) -> TrendPieces:
    """The pieces of the graphlets between neighbouring `bounds` (indices of events)."""
    low, high = int(bounds[0]), int(bounds[-1])
    sizes = np.diff(bounds)
    graphlets = Graphlets(low, np.repeat(bounds[:-1], sizes), np.repeat(bounds[1:], sizes))
    count, length = _measure(graph.lists, graph.frames, graphlets)
    of, onward = np.zeros(high - low + 1, np.int64), np.empty(high - low, np.int64)
    pieces = TrendPieces(low, of, np.zeros(count + 1, np.int64), np.empty(length, np.int32), onward)
    scratch = np.zeros((2, int(sizes.max(initial=0)) + 1), np.int64)
    _fill(graph.lists, graph.frames, graphlets, scratch, pieces)
    return pieces


def stitched(graph: TrendGraph, pieces: TrendPieces, starts: Array, chunks: Chunks) -> Iterator[tuple[Array, Array]]:
    """Offsets and events of the trends that begin at `starts`, a chunk at a time."""
    longest = graph.longest(starts)
    dead, place = np.full(len(pieces.onward), -1, np.int32), np.zeros(2, np.int64)
    entry, piece, edge, length, found = np.zeros((5, longest + 1), np.int64)
    state = StitchState(np.zeros(longest, np.int32), entry, piece, edge, length, found, dead, place)
    while place[0] < len(starts) or place[1] > 0:
        buffer = chunks.next(longest)
        count = _stitch(graph.lists, graph.frames, starts, pieces, state, buffer)
        if count:
            yield buffer.offsets[: count + 1], buffer.events[: buffer.offsets[count]]


@njit(nogil=True)
def _measure(edges: EdgeLists, frames: Frames, graphlets: Graphlets) -> tuple[int, int]:
    """How many pieces there are, and how many events they have in all."""
    begin, target, into, source = edges
    low, begin_of, end_of = graphlets
    begins, ends = frames.begins, frames.ends
    count, length = np.zeros(len(end_of), np.int64), np.zeros(len(end_of), np.int64)
    pieces, events = 0, 0
    for at in range(len(end_of)):
        v = low + at
        enters = begins[v]
        paths, steps = 0, 0
        for edge in range(into[v], into[v + 1]):
            if source[edge] < begin_of[at]:
                enters = enters or source[edge] >= low
            else:
                paths += count[source[edge] - low]
                steps += length[source[edge] - low]
        if enters:
            paths += 1
        count[at], length[at] = paths, steps + paths
        leaves = ends[v] or (begin[v + 1] > begin[v] and target[begin[v + 1] - 1] >= end_of[at])
        if leaves:
            pieces += paths
            events += steps + paths
    return pieces, events


@njit(nogil=True)
def _fill(edges: EdgeLists, frames: Frames, graphlets: Graphlets, scratch: Array, pieces: TrendPieces) -> None:
    """Walk each graphlet depth first from every event where trends enter it. `scratch`: two rows, for a path."""
    begin, target, into, source = edges
    low, begin_of, end_of = graphlets
    begins, ends = frames.begins, frames.ends
    _, of, offsets, events, onward = pieces
    path, cursor = scratch[0], scratch[1]
    piece, used = 0, 0
    for at in range(len(end_of)):
        v = low + at
        edge = begin[v]
        while edge < begin[v + 1] and target[edge] < end_of[at]:
            edge += 1
        onward[at] = edge
    for at in range(len(end_of)):
        v = low + at
        of[at] = piece
        enters = begins[v]
        for edge in range(into[v], into[v + 1]):
            enters = enters or (low <= source[edge] < begin_of[at])
        if not enters:
            continue
        path[0], cursor[0] = v, begin[v]
        depth, fresh = 1, True
        while depth > 0:
            top = depth - 1
            e = path[top]
            if fresh:
                if ends[e] or onward[e - low] < begin[e + 1]:
                    for d in range(depth):
                        events[used + d] = path[d]
                    used += depth
                    piece += 1
                    offsets[piece] = used
                fresh = False
            if cursor[top] < onward[e - low]:
                path[depth] = target[cursor[top]]
                cursor[depth] = begin[path[depth]]
                cursor[top] += 1
                depth += 1
                fresh = True
            else:
                depth = top
    of[len(end_of)] = piece


@njit(nogil=True)
def _stitch(
    edges: EdgeLists, frames: Frames, starts: Array, pieces: TrendPieces, state: StitchState, buffer: TrendBuffer
) -> int:
    """Go on from where the search was left until the buffer is full; returns the number of trends in it."""
    begin, target, offsets, events = edges.begin, edges.target, buffer.offsets, buffer.events
    from_, to, least, most, limit = frames.from_, frames.to, frames.least, frames.most, frames.limit
    low, of, piece_at, piece_events, onward = pieces
    path, entry, piece, edge, length, found, dead, place = state
    count, used = 0, 0
    next_start, depth = place[0], place[1]
    while True:
        if depth == 0:
            if next_start >= len(starts):
                break
            entry[0] = starts[next_start]
            piece[0], edge[0], length[0], found[0] = of[entry[0] - low], -1, 0, 0
            next_start += 1
            depth = 1
        first = entry[0]
        stop = limit[first]
        top = depth - 1
        if edge[top] >= 0:  # the piece before the next one is under way
            p = piece[top] - 1
            v = piece_events[piece_at[p + 1] - 1]
            at = edge[top]
            while at < begin[v + 1] and target[at] < stop and dead[target[at] - low] == first:
                at += 1
            if at < begin[v + 1] and target[at] < stop:
                edge[top] = at + 1
                u = target[at]
                entry[depth] = u
                piece[depth], edge[depth], found[depth] = of[u - low], -1, 0
                length[depth] = length[top] + piece_at[p + 1] - piece_at[p]
                depth += 1
                continue
            edge[top] = -1
        p, last = piece[top], of[entry[top] - low + 1]
        so_far = length[top]
        full = False
        while p < last:
            begin_p, end_p = piece_at[p], piece_at[p + 1]
            v = piece_events[end_p - 1]
            if v >= stop:
                p += 1
                continue
            if least[v] <= to[first] and from_[first] <= most[v]:
                size = end_p - begin_p
                if used + so_far + size > len(events):
                    full = True
                    break
                copy_entries(events, used, path, 0, so_far)
                copy_entries(events, used + so_far, piece_events, begin_p, size)
                used += so_far + size
                count += 1
                offsets[count] = used
                found[top] = 1
            p += 1
            on = onward[v - low]
            if on < begin[v + 1] and target[on] < stop:
                copy_entries(path, so_far, piece_events, begin_p, end_p - begin_p)
                edge[top] = on
                break
        piece[top] = p
        if full:
            break
        if edge[top] >= 0:
            continue
        if found[top] == 0:
            dead[entry[top] - low] = first
        elif top > 0:
            found[top - 1] = 1
        depth = top
    place[0], place[1] = next_start, depth
    return count
