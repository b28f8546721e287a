"""The best paths of many windows, and the first of those that tie: loops over windows in compiled code.

A *board* is what is ranked together: the matches of a window and key, or of a key. With a bound on spans every start is
a window of its own. The best way on from a start inside the panes around it, found for all starts in two sweeps over
the events, bounds what its window can give; starts are opened from the best bound on, and only as long as one is better
than what is found already.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block, horizons, numbers_of_windows
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.ranking.graph import EventWeights, RankedGraph
from trendloom.kernels.ranking.next_best import CellWindow, next_best_paths
from trendloom.kernels.ranking.sweeps import Offers, Ways, is_cell, sweep_backwards, sweep_forwards, with_weight
from trendloom.kernels.ranking.ties import FirstMatches, Standings, TieBounds, keep_first, no_matches
from trendloom.model.time import Window


class PathsOfBoards(NamedTuple):
    """PathsOfBoards of boards: number i has value i and the entries from `offsets[i]` to `offsets[i + 1]`."""

    board: Array
    value: Array
    offsets: Array
    event: Array
    state: Array


class Ranges(NamedTuple):
    """Windows of events, from `low` up to `high`, one after the other."""

    low: Array
    high: Array


class SpanBoards(NamedTuple):
    """Keys as slices of events; matches of a start end before its `limit`. Panes: windows of one pane and the next.

    `pane_end` is where the starts of a pane end.
    """

    key_starts: Array
    limit: Array
    pane_low: Array
    pane_end: Array
    pane_high: Array


@njit(nogil=True)
def no_paths(value: Array) -> PathsOfBoards:
    return PathsOfBoards(
        np.empty(64, np.int64), np.empty(64, value.dtype), np.zeros(65, np.int64), np.empty(64, np.int64),
        np.empty(64, np.int64),
    )  # fmt: skip


@njit(nogil=True)
def _with_room(paths: PathsOfBoards, count: int, used: int) -> PathsOfBoards:
    """The same with room for so many paths and entries."""
    board, value, offsets = paths.board, paths.value, paths.offsets
    event, state = paths.event, paths.state
    if count > len(board):
        board, value, offsets = (
            np.empty(2 * count, np.int64),
            np.empty(2 * count, value.dtype),
            np.zeros(2 * count + 1, np.int64),
        )
        board[: len(paths.board)], value[: len(paths.value)] = paths.board, paths.value
        offsets[: len(paths.offsets)] = paths.offsets
    if used > len(event):
        event, state = np.empty(2 * used, np.int64), np.empty(2 * used, np.int64)
        event[: len(paths.event)], state[: len(paths.state)] = paths.event, paths.state
    return PathsOfBoards(board, value, offsets, event, state)


@njit(nogil=True)
def _ways(states: int, width: int, value: Array) -> Ways:
    """Room for the cells of a window, and the end of all paths."""
    cells = states * width + 1
    return Ways(np.empty(cells, value.dtype), np.empty(cells, np.int64), np.empty(cells, np.int64))


@njit(nogil=True)
def paths_of_windows(
    graph: RankedGraph, weights: EventWeights, ranges: Ranges, wanted: int, longest: int, offers: Offers
) -> tuple[PathsOfBoards, int]:
    """The best paths of every window, one more than wanted if there is one: whether its value ties is to be seen.

    Returns the paths and their number.
    """
    states = len(graph.position)
    ways, paths = _ways(states, longest, weights.value), no_paths(weights.value)
    count, used = 0, 0
    limit = np.empty(0, weights.value.dtype)
    for board in range(len(ranges.low)):
        low, high = ranges.low[board], ranges.high[board]
        if low >= high:
            continue
        sweep_forwards(ways, graph, weights, low, high, -1, offers, board)
        window = CellWindow(low, high, -1, states * (high - low))
        values, offsets, events, path_states = next_best_paths(graph, weights, ways, window, wanted + 1, limit)
        paths = _with_room(paths, count + len(values), used + len(events))
        for at in range(len(values)):
            paths.board[count], paths.value[count] = board, values[at]
            count += 1
            paths.offsets[count] = used + offsets[at + 1]
        paths.event[used : used + len(events)], paths.state[used : used + len(events)] = events, path_states
        used += len(events)
    return paths, count


@njit(nogil=True)
def bound_starts(
    graph: RankedGraph, weights: EventWeights, spans: SpanBoards, longest: int, offers: Offers
) -> tuple[Array, Array]:
    """By event where a match can start, and a bound of the values of those that do, from two panes each. O(cells)."""
    states, sign = len(graph.position), weights.sign
    events = len(graph.fits)
    possible, bound = np.zeros(events, np.bool_), np.empty(events, weights.value.dtype)
    rest, there = np.empty(states * longest + 1, weights.value.dtype), np.empty(states * longest + 1, np.bool_)
    for pane in range(len(spans.pane_low)):
        low, high = spans.pane_low[pane], spans.pane_high[pane]
        sweep_backwards(rest, there, graph, weights, low, high, offers, pane)
        for e in range(low, spans.pane_end[pane]):
            for state in range(states):
                cell = state * (high - low) + e - low
                if graph.starts[state] and there[cell] and is_cell(state, e, graph, weights):
                    value = with_weight(rest[cell], state, e, weights)
                    if not possible[e] or value * sign < bound[e] * sign:
                        possible[e], bound[e] = True, value
    return possible, bound


@njit(**INSIDE)
def _sink_down(heap: Array, size: int, sign: int) -> None:
    """Restore a heap of values whose top, the worst of them, was replaced."""
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and heap[child] * sign < heap[child + 1] * sign:
            child += 1
        if not heap[at] * sign < heap[child] * sign:
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child


@njit(**INSIDE)
def _swim_up(heap: Array, at: int, sign: int) -> None:
    """Restore a heap of values to which one was added at its end."""
    while at > 0 and heap[(at - 1) // 2] * sign < heap[at] * sign:
        heap[at], heap[(at - 1) // 2] = heap[(at - 1) // 2], heap[at]
        at = (at - 1) // 2


@njit(nogil=True)
def paths_of_spans(
    graph: RankedGraph, weights: EventWeights, spans: SpanBoards, possible: Array, bound: Array, slack: float,
    wanted: int, longest: int, offers: Offers,
) -> tuple[PathsOfBoards, int, int]:  # fmt: skip
    """The best paths of every key, one more than wanted if there is one, and others that are not among the best.

    Returns the paths, their number, and how many starts were opened.
    """
    states, sign = len(graph.position), weights.sign
    ways, paths = _ways(states, longest, weights.value), no_paths(weights.value)
    count, used, opened, stamp = 0, 0, 0, 0
    for key in range(len(spans.key_starts) - 1):
        begin, end = spans.key_starts[key], spans.key_starts[key + 1]
        starts = begin + np.flatnonzero(possible[begin:end])
        starts = starts[np.argsort(bound[starts] * sign, kind="mergesort")]
        heap = np.empty(min(wanted + 1, 64), weights.value.dtype)  # the best values so far, the worst of them on top
        size = 0
        for first in starts:
            limit = np.empty(0, weights.value.dtype)
            if size == wanted + 1:
                if heap[0] * sign + slack < bound[first] * sign:
                    break
                limit = heap[:1].copy()
            high = spans.limit[first]
            stamp += 1
            opened += 1
            sweep_forwards(ways, graph, weights, first, high, first, offers, stamp)
            window = CellWindow(first, high, first, states * (high - first))
            values, offsets, events, path_states = next_best_paths(graph, weights, ways, window, wanted + 1, limit)
            paths = _with_room(paths, count + len(values), used + len(events))
            for at in range(len(values)):
                paths.board[count], paths.value[count] = key, values[at]
                count += 1
                paths.offsets[count] = used + offsets[at + 1]
                if size <= wanted:
                    if size == len(heap):
                        longer = np.empty(min(2 * size, wanted + 1), heap.dtype)
                        longer[:size] = heap
                        heap = longer
                    heap[size] = values[at]
                    _swim_up(heap, size, sign)
                    size += 1
                elif values[at] * sign < heap[0] * sign:
                    heap[0] = values[at]
                    _sink_down(heap, size, sign)
            paths.event[used : used + len(events)], paths.state[used : used + len(events)] = events, path_states
            used += len(events)
    return paths, count, opened


@njit(nogil=True)
def first_of_windows(
    graph: RankedGraph, weights: EventWeights, ranges: Ranges, limits: tuple[Array, Array, Array], blank: Array,
    slack: float, standings: Standings, longest: int, offers: Offers,
) -> tuple[PathsOfBoards, int]:  # fmt: skip
    """By window the first matches with values between two bounds; `limits`: best, worst, and how many are wanted."""
    states = len(graph.position)
    best, worst, wanted = limits
    rest, there = np.empty(states * longest + 1, weights.value.dtype), np.empty(states * longest + 1, np.bool_)
    paths, count = no_paths(weights.value), 0
    for board in range(len(ranges.low)):
        low, high = ranges.low[board], ranges.high[board]
        if low >= high or wanted[board] <= 0:
            continue
        asked = TieBounds(best[board : board + 1], worst[board : board + 1], slack, blank)
        sweep_backwards(rest, there, graph, weights, low, high, offers, board)
        kept = keep_first(
            no_matches(min(wanted[board], 64)), graph, weights, rest, there, low, high, -1, asked, standings,
            wanted[board],
        )  # fmt: skip
        paths, count = _noted(paths, count, kept, board)
    return paths, count


@njit(nogil=True)
def first_of_spans(
    graph: RankedGraph, weights: EventWeights, spans: SpanBoards, possible: Array, bound: Array,
    limits: tuple[Array, Array, Array], blank: Array, slack: float, standings: Standings, longest: int, offers: Offers,
) -> tuple[PathsOfBoards, int]:  # fmt: skip
    """The same by key, where every start is a window of its own."""
    states, sign = len(graph.position), weights.sign
    best, worst, wanted = limits
    rest, there = np.empty(states * longest + 1, weights.value.dtype), np.empty(states * longest + 1, np.bool_)
    paths, count, stamp = no_paths(weights.value), 0, 0
    for key in range(len(spans.key_starts) - 1):
        if wanted[key] <= 0:
            continue
        asked = TieBounds(best[key : key + 1], worst[key : key + 1], slack, blank)
        kept = no_matches(min(wanted[key], 64))
        for first in range(spans.key_starts[key], spans.key_starts[key + 1]):
            if not possible[first] or worst[key] * sign + slack < bound[first] * sign:
                continue
            if kept.place[0] == wanted[key]:
                last = kept.events[kept.place[1], 0]
                if standings.moment[first] > standings.moment[last]:
                    break
            stamp += 1
            high = spans.limit[first]
            sweep_backwards(rest, there, graph, weights, first, high, offers, stamp)
            kept = keep_first(
                kept, graph, weights, rest, there, first, high, first, asked, standings, wanted[key]
            )  # fmt: skip
        paths, count = _noted(paths, count, kept, key)
    return paths, count


@njit(nogil=True)
def _noted(paths: PathsOfBoards, count: int, kept: FirstMatches, board: int) -> tuple[PathsOfBoards, int]:
    """PathsOfBoards with the matches that were kept for a board; their values are not needed any more."""
    used = paths.offsets[count]
    for row in range(kept.place[0]):
        length = kept.length[row]
        paths = _with_room(paths, count + 1, used + length)
        for at in range(length):
            paths.event[used + at], paths.state[used + at] = kept.events[row, at], kept.states[row, at]
        used += length
        paths.board[count] = board
        count += 1
        paths.offsets[count] = used
    return paths, count


def ranges_of(block: Block, window: Window) -> tuple[Ranges, Array | None]:
    """The windows that hold events, by key and start, and their starts; without windows the keys."""
    if window.slide is None:
        return Ranges(block.key_starts[:-1], block.key_starts[1:]), None
    assert window.within is not None
    low, count = numbers_of_windows(block.time, block.time, window)
    last = low + count - 1
    same = np.r_[False, block.key[1:] == block.key[:-1]]
    begin = np.where(same, np.maximum(low, np.r_[0, last[:-1]] + 1), low)
    count = np.maximum(last - begin + 1, 0)
    which = np.repeat(np.arange(len(block)), count)
    number = begin[which] + np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    start, key = number * window.slide, block.key[which]
    return Ranges(block.not_before(key, start), block.not_before(key, start + window.within)), start


def spans_of(block: Block, window: Window) -> tuple[SpanBoards, int]:
    """Keys, the limits of their starts and the panes in which these lie; and the most events of a span."""
    assert window.within is not None
    limit = horizons(block, window)
    assert limit is not None
    pane = np.floor_divide(block.time, window.within)
    fresh = (pane[1:] != pane[:-1]) | (block.key[1:] != block.key[:-1])
    low = np.flatnonzero(np.r_[True, fresh][: len(block)])
    end = np.r_[low[1:], len(block)]
    high = block.not_before(block.key[low], (pane[low] + 2) * window.within)
    return SpanBoards(block.key_starts, limit, low, end, high), int((limit - np.arange(len(block))).max(initial=1))
