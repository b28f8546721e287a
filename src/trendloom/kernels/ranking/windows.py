"""The best paths of many windows, and the first of those that tie: loops over windows in compiled code.

A *board* is what is ranked together: the matches of a window and key, or of a key. An *opening* is a window of events
in which matches of a board are looked for. Windows have one each; with a bound on spans every start has its own. The
best way on from a start inside the panes around it, found for all starts in two sweeps over the events, bounds what its
window can give; starts are opened from the best bound on, and only as long as one is better than what is found already.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block, horizons, numbers_of_windows
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.ranking.graph import EventWeights, RankedGraph
from trendloom.kernels.ranking.next_best import next_best_paths
from trendloom.kernels.ranking.sweeps import (
    CellWindow,
    Offers,
    empty_ways,
    is_cell,
    no_completions,
    offers_for,
    sweep_backwards,
    sweep_forwards,
    with_weight,
)
from trendloom.kernels.ranking.ties import COUNT, LAST, FirstMatches, Standings, TieBounds, keep_first, no_matches
from trendloom.model.time import Window


class PathsOfBoards(NamedTuple):
    """Paths of boards: number i has value i and the entries from `offsets[i]` to `offsets[i + 1]`."""

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


class Openings(NamedTuple):
    """Those of board b are from `begin[b]` to `begin[b + 1]`, in the order of their events: see `CellWindow`.

    `bound`: no match is better than that; without starts there is none.
    """

    begin: Array
    low: Array
    high: Array
    first: Array
    bound: Array


class TiesOfBoards(NamedTuple):
    """By board which matches tie: see `TieBounds`; those of boards of which none are wanted are not looked at."""

    best: Array
    worst: Array
    wanted: Array
    slack: float
    blank: Array


def openings_of_windows(ranges: Ranges, weights: EventWeights) -> Openings:
    """The windows themselves."""
    number = len(ranges.low)
    bound = np.zeros(number, weights.value.dtype)
    return Openings(np.arange(number + 1), ranges.low, ranges.high, np.full(number, -1), bound)


def openings_of_spans(graph: RankedGraph, weights: EventWeights, spans: SpanBoards) -> Openings:
    """Events with which a match can start, and the best that each can give, by panes."""
    longest = int((spans.pane_high - spans.pane_low).max(initial=1))
    possible, bound = _bounds_of_starts(graph, weights, spans, longest, offers_for(graph, longest))
    first = np.flatnonzero(possible)
    return Openings(np.searchsorted(first, spans.key_starts), first, spans.limit[first], first, bound[first])


def paths_of_boards(
    graph: RankedGraph, weights: EventWeights, openings: Openings, wanted: int, slack: float
) -> PathsOfBoards:
    """The best paths of every board, at least so many if there are, and others that are not among the best.

    `slack`: by how much bounds can be wrong.
    """
    offers = offers_for(graph, _longest(openings))
    paths, count = _paths_of_boards(graph, weights, openings, wanted, slack, offers)
    return _cut(paths, count)


def first_of_boards(
    graph: RankedGraph, weights: EventWeights, openings: Openings, ties: TiesOfBoards, standings: Standings
) -> PathsOfBoards:
    """The first of the matches that tie, by board. Their values are not set."""
    paths, count = _first_of_boards(graph, weights, openings, ties, standings, offers_for(graph, _longest(openings)))
    return _cut(paths, count)


def _longest(openings: Openings) -> int:
    return int((openings.high - openings.low).max(initial=1))


def _cut(paths: PathsOfBoards, count: int) -> PathsOfBoards:
    """The same without the room for more."""
    used = paths.offsets[count]
    return PathsOfBoards(
        paths.board[:count], paths.value[:count], paths.offsets[: count + 1], paths.event[:used], paths.state[:used]
    )


@njit(nogil=True)
def _paths_of_boards(
    graph: RankedGraph, weights: EventWeights, openings: Openings, wanted: int, slack: float, offers: Offers
) -> Any:
    longest = np.max(openings.high - openings.low) if len(openings.low) > 0 else 1
    ways, paths, count = empty_ways(len(graph.position), longest, weights.value), _no_paths(weights.value), 0
    for board in range(len(openings.begin) - 1):
        best = [weights.unit[0]][:0]  # a heap of the best values so far turned around
        open_ = [(weights.unit[0], openings.begin[board])][:0]
        for number in range(openings.begin[board], openings.begin[board + 1]):
            open_.append((openings.bound[number], number))
        heapify(open_)
        while len(open_) > 0:
            bound, number = heappop(open_)
            limit = np.empty(0, weights.value.dtype)
            if len(best) == wanted:
                if -best[0] + slack < bound:
                    break
                limit = np.full(1, -best[0])
            window = CellWindow(openings.low[number], openings.high[number], openings.first[number])
            if window.low >= window.high:
                continue
            sweep_forwards(ways, graph, weights, window, offers)
            found = next_best_paths(graph, weights, ways, window, wanted, limit)
            used = paths.offsets[count]
            paths = _with_room(paths, count + len(found.value), used + len(found.event))
            paths.event[used : used + len(found.event)] = found.event
            paths.state[used : used + len(found.event)] = found.state
            for at in range(len(found.value)):
                paths.board[count], paths.value[count] = board, found.value[at]
                count += 1
                paths.offsets[count] = used + found.offsets[at + 1]
                if len(best) < wanted:
                    heappush(best, -found.value[at])
                elif -found.value[at] > best[0]:
                    heapreplace(best, -found.value[at])
    return paths, count


@njit(nogil=True)
def _bounds_of_starts(
    graph: RankedGraph, weights: EventWeights, spans: SpanBoards, longest: int, offers: Offers
) -> tuple[Array, Array]:
    """By event where a match can start, and a bound of the values of those that do, from two panes each. O(cells)."""
    states, events = len(graph.position), len(graph.fits)
    possible, bound = np.zeros(events, np.bool_), np.empty(events, weights.value.dtype)
    after = no_completions(states, longest, weights.value)
    for pane in range(len(spans.pane_low)):
        low, high = spans.pane_low[pane], spans.pane_high[pane]
        sweep_backwards(after, graph, weights, low, high, offers)
        for e in range(low, spans.pane_end[pane]):
            for state in range(states):
                cell = state * (high - low) + e - low
                if graph.starts[state] and after.there[cell] and is_cell(state, e, graph, weights):
                    value = with_weight(after.rest[cell], state, e, weights)
                    if not possible[e] or value < bound[e]:
                        possible[e], bound[e] = True, value
    return possible, bound


@njit(nogil=True)
def _first_of_boards(
    graph: RankedGraph, weights: EventWeights, openings: Openings, ties: TiesOfBoards, standings: Standings,
    offers: Offers,
) -> Any:  # fmt: skip
    longest = np.max(openings.high - openings.low) if len(openings.low) > 0 else 1
    after, paths, count = no_completions(len(graph.position), longest, weights.value), _no_paths(weights.value), 0
    for board in range(len(openings.begin) - 1):
        most = ties.wanted[board]
        if most <= 0:
            continue
        wanted = TieBounds(ties.best[board], ties.worst[board], ties.slack, ties.blank, most)
        kept = no_matches(min(most, 64))
        for number in range(openings.begin[board], openings.begin[board + 1]):
            window = CellWindow(openings.low[number], openings.high[number], openings.first[number])
            if window.low >= window.high:
                continue
            if window.first >= 0:
                if wanted.worst + wanted.slack < openings.bound[number]:
                    continue
                last = kept.events[kept.place[LAST], 0]
                if kept.place[COUNT] == most and standings.moment[window.first] > standings.moment[last]:
                    break
            sweep_backwards(after, graph, weights, window.low, window.high, offers)
            kept = keep_first(kept, graph, weights, after, window, wanted, standings)
        paths, count = _with_first(paths, count, kept, board)
    return paths, count


@njit(nogil=True)
def _no_paths(value: Array) -> PathsOfBoards:
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


@njit(**INSIDE)
def _with_first(paths: PathsOfBoards, count: int, kept: FirstMatches, board: int) -> Any:
    """Paths with the matches that were kept for a board, and their number."""
    used = paths.offsets[count]
    for row in range(kept.place[COUNT]):
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


def spans_of(block: Block, window: Window) -> SpanBoards:
    """Keys, the limits of their starts and the panes in which these lie."""
    assert window.within is not None
    limit = horizons(block, window)
    assert limit is not None
    pane = np.floor_divide(block.time, window.within)
    fresh = (pane[1:] != pane[:-1]) | (block.key[1:] != block.key[:-1])
    low = np.flatnonzero(np.r_[True, fresh][: len(block)])
    end = np.r_[low[1:], len(block)]
    high = block.not_before(block.key[low], (pane[low] + 2) * window.within)
    return SpanBoards(block.key_starts, limit, low, end, high)


def events_of(low: Array, high: Array, events: int) -> Array:
    """Which of so many events lie in some windows."""
    change = np.zeros(events + 1, np.int64)
    np.add.at(change, low, 1)
    np.add.at(change, high, -1)
    found: Array = np.cumsum(change)[:-1] > 0
    return found
