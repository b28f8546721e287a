"""The k best matches of a sequence of single events, in windows that may overlap, or under a bound on their span.

Idea: one pass over the events of a window finds the best partial path up to each of them, and the k best paths come out
of that one by one (`path_search`). Most windows need less: by the scores of the last one, few of their events can be in
the best paths (`promising_events`). Where that does not help (many equal weights, light events that do not fit
together), it is tried again after some windows only, more each time.

A bound on the span is a window per last event, which is the only one that its paths end with. The best path to every
last event from as far back as the spans of a whole group of them reach, found in one pass for all, is at least as good
as the best one within the span; so windows are opened from the best of these on, until none can be among the k best.

Cost: O(entries of a window · positions), mostly far less, and what `path_search` says of each path.
See "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern Queries over Event Streams", 3.2, which takes
O(window · positions · k) for every window.
"""

from __future__ import annotations

from heapq import heapify, heappop
from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.ranking.graph import SUM
from trendloom.kernels.ranking.path_search import (
    ANY,
    BELOW,
    NOTHING,
    UP_TO,
    Order,
    PathTables,
    RankedPaths,
    Strata,
    collect_paths,
    empty_tables,
    fill_joints,
    fill_tables,
    first_entry,
    is_wanted,
    set_bound,
    set_window,
)
from trendloom.kernels.ranking.promising_events import (
    FAR,
    PromisingEvents,
    can_be_few,
    choose_events,
    find_lowest,
    make_first_guess,
    no_events_yet,
)

ENOUGH_TO_GUESS = 4
"""In fewer windows, events are not summed up to find promising ones."""
GUESSES = 3
"""So many bounds are tried before all events are looked at."""
SURE = 1.5
"""How much further than in the last window the first of them is above the lowest score."""
LONGEST_PAUSE = 64
"""So many windows at most are searched without a guess before the next one is made."""


class BestPaths(NamedTuple):
    """The rows of window (or key) w are those from `offsets[w]` to `offsets[w + 1]`, in order of their scores.

    `events`: one column per position. `more[w]`: another path has the score of the last row.
    """

    offsets: Array
    scores: Array
    events: Array
    more: Array


def order_of(strata: Strata, k: int, fold: int) -> Order:
    """An order for the k best, and one more, which shows whether others have the score of the last."""
    return Order(fold, k + 1, np.zeros(1, np.int64), np.zeros(1, strata.weight.dtype))


def best_paths(strata: Strata, low: Array, high: Array, k: int, fold: int) -> BestPaths:
    """The k best paths of the events from low[w] to high[w] - 1, for every window w.

    Windows lie inside one key each, do not cut through events of the same time, and come in order; sums fit 62 bits.
    """
    margin = _margin(strata, fold) if len(low) >= ENOUGH_TO_GUESS else np.empty(0, strata.weight.dtype)
    return BestPaths(*rank_windows(strata, low, high, order_of(strata, k, fold), margin))


def best_spans(strata: Strata, key_starts: Array, horizon: Array, k: int, fold: int) -> BestPaths:
    """The k best paths of every key whose last event is before `horizon` of the first one.

    The horizon of an event is an event or the end of its key, not earlier than that of the event before it.
    """
    return BestPaths(*_rank_spans(strata, key_starts, horizon, order_of(strata, k, fold), _margin(strata, fold)))


def _margin(strata: Strata, fold: int) -> Array:
    """By how much a weight can differ from what a bound of sums says of it; nothing where sums have no bound."""
    kind = strata.weight.dtype
    if fold != SUM or kind.kind != "f":
        return np.zeros(1, kind)
    greatest = max(strata.weight.max(initial=0.0), -strata.weight.min(initial=0.0))
    positions = len(strata.begin) - 1
    margin = np.array([(positions + 3) * 2.0**-51 * positions * greatest])
    return margin if np.isfinite(margin[0]) else margin[:0]


@njit(**INSIDE)
def _search_all(strata: Strata, tables: PathTables, found: RankedPaths, size: int, order: Order) -> Any:
    """Append the best paths of a window by tables of all its events."""
    fill_tables(strata, tables, order.fold)
    return collect_paths(strata, tables, found, size, order)


@njit(**INSIDE)
def _append(rows: Any, at: int, begin: int, size: int, order: Order) -> int:
    """Note the rows from `begin` to `size` - 1 as those of window or key `at`, without the one that is one too many."""
    found, offsets, more = rows
    end = min(size, begin + order.want - 1)
    more[at] = end < size and begin < end and found.scores[end] == found.scores[end - 1]
    offsets[at + 1] = end
    return end


@njit(nogil=True)
def _no_rows(strata: Strata, boards: int) -> Any:
    scores, events = np.empty(64, strata.weight.dtype), np.empty((64, len(strata.begin) - 1), np.int32)
    return RankedPaths(scores, events), np.zeros(boards + 1, np.int64), np.zeros(boards, np.bool_)


# ------------------------------------------------------------------------------------------------ windows


@njit(nogil=True)
def rank_windows(strata: Strata, low: Array, high: Array, order: Order, margin: Array) -> Any:
    """Paths are looked for among promising events if there is a `margin`, else in all events."""
    tables, size, due, pause, has_joints = empty_tables(strata), 0, 0, 0, False
    some = no_events_yet(strata, _most_entries(strata, tables, low, high), margin)
    found, offsets, more = _no_rows(strata, len(low))
    for w in range(len(low)):
        begin, done = size, False
        if set_window(strata, tables, low[w], high[w], NOTHING):
            if can_be_few(some) and w >= due:
                found, size, done = _search_by_guess(strata, tables, some, found, begin, order)
                pause = 0 if done else min(2 * pause + 1, LONGEST_PAUSE)
                due = w + 1 + pause
            if not done:
                if not has_joints:
                    fill_joints(strata, tables)
                    has_joints = True
                set_bound(order, ANY, order.bound[0])
                found, size = _search_all(strata, tables, found, begin, order)
                if can_be_few(some) and size - begin == order.want:
                    some.guess[0] = found.scores[size - 1] - find_lowest(strata, tables, some, order.fold)
        size = _append((found, offsets, more), w, begin, size, order)
    return offsets, found.scores[:size], found.events[:size], more


@njit(**INSIDE)
def _most_entries(strata: Strata, tables: PathTables, low: Array, high: Array) -> int:
    """The greatest number of entries of a window."""
    most = 0
    for w in range(len(low)):
        if set_window(strata, tables, low[w], high[w], NOTHING):
            most = max(most, np.sum(tables.high - tables.low))
    return most


@njit(**INSIDE)
def _search_by_guess(
    strata: Strata, tables: PathTables, some: PromisingEvents, found: RankedPaths, begin: int, order: Order
) -> Any:
    """Append the paths that score at most what is guessed, and whether they are as many as are wanted."""
    lowest, guess = find_lowest(strata, tables, some, order.fold), some.guess
    if guess[0] < 0:
        make_first_guess(tables, some)
    for _ in range(GUESSES):
        if not 0 <= guess[0] < FAR:
            break
        set_bound(order, UP_TO, lowest + guess[0])
        if not choose_events(strata, tables, some, order.bound[0], order.fold):
            break
        found, size = _search_all(some.strata, some.tables, found, begin, order)
        if size - begin == order.want:
            guess[0] = SURE * (found.scores[size - 1] - lowest)
            return found, size, True
        if guess[0] > 0:
            guess[0] *= 2
        else:  # the best paths of the last window all had the lowest score there is
            make_first_guess(tables, some)
    return found, begin, False


# ------------------------------------------------------------------------------------------------ spans


@njit(nogil=True)
def _rank_spans(strata: Strata, key_starts: Array, horizon: Array, order: Order, margin: Array) -> Any:
    """See `best_spans`; paths are looked for among promising events once there are as many as are wanted."""
    tables, size, keys, last = empty_tables(strata), 0, len(key_starts) - 1, len(strata.begin) - 2
    some = no_events_yet(strata, len(strata.event), margin)
    found, offsets, more = _no_rows(strata, keys)
    fill_joints(strata, tables)
    entry = strata.begin[last]
    for key in range(keys):
        begin, end = size, entry
        while end < strata.begin[last + 1] and strata.event[end] < key_starts[key + 1]:
            end += 1
        set_bound(order, ANY, order.bound[0])
        if entry < end:
            heap = _bounds_of_ends(strata, tables, horizon, (key_starts[key], entry, end), order.fold)
            while len(heap) > 0:
                bound, at = heappop(heap)
                if not is_wanted(order, bound):
                    break
                event = np.int64(strata.event[at])
                if set_window(strata, tables, _since(horizon, key_starts[key], event), event + 1, event):
                    found, size = _search_span(strata, tables, some, found, size, order)
                if size - begin >= order.want + (order.want // 2 if order.kind[0] == BELOW else 0):
                    size = _keep_best(found, begin, size, order.want)
                    set_bound(order, BELOW, found.scores[size - 1])
            size = _append((found, offsets, more), key, begin, _keep_best(found, begin, size, order.want), order)
        offsets[key + 1], entry = size, end
    return offsets, found.scores[:size], found.events[:size], more


@njit(**INSIDE)
def _bounds_of_ends(strata: Strata, tables: PathTables, horizon: Array, ends: Any, fold: int) -> Any:
    """A heap of last events of a key that end a path, each with a score that no path in its span is better than."""
    start, entry, until = ends
    last = len(tables.low) - 1
    heap = [(strata.weight[0], entry) for _ in range(0)]
    while entry < until:
        event = np.int64(strata.event[entry])
        if set_window(strata, tables, _since(horizon, start, event), max(horizon[event], event + 1), event):
            fill_tables(strata, tables, fold)
            for at in range(tables.first[last], tables.high[last]):
                heap.append((tables.value[at], at))
        entry = first_entry(strata.event, entry, until, max(horizon[event], event + 1), entry)
    heapify(heap)
    return heap


@njit(**INSIDE)
def _since(horizon: Array, start: int, event: int) -> int:
    """The first event from `start` on whose horizon is behind an event."""
    low, high = start, event + 1
    while low < high:
        middle = (low + high) // 2
        if horizon[middle] <= event:
            low = middle + 1
        else:
            high = middle
    return low


@njit(**INSIDE)
def _search_span(
    strata: Strata, tables: PathTables, some: PromisingEvents, found: RankedPaths, size: int, order: Order
) -> Any:
    """Append the best paths of a window whose scores are wanted."""
    if order.kind[0] == BELOW and can_be_few(some):
        find_lowest(strata, tables, some, order.fold)
        if choose_events(strata, tables, some, order.bound[0], order.fold):
            return _search_all(some.strata, some.tables, found, size, order)
    return _search_all(strata, tables, found, size, order)


@njit(**INSIDE)
def _keep_best(found: RankedPaths, begin: int, size: int, want: int) -> int:
    """Put the paths from `begin` on in order and keep so many; returns the new size."""
    order = np.argsort(found.scores[begin:size], kind="mergesort")[:want]
    end = begin + len(order)
    found.scores[begin:end] = found.scores[begin:size][order]
    found.events[begin:end] = found.events[begin:size][order]
    return end
