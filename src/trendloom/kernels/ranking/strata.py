"""The k best matches of a sequence of single events, in windows that may overlap, or under a bound on their span.

Idea: one pass over the events of a window finds the best partial path up to each of them, and the k best paths come out
of that one by one (`path_search`). Most windows need less, as a bound of scores leaves few *promising* events: a path
has at least the least weight of each position, so an event whose weight is further above that of its position than the
bound is above the fold of them all is in no path that is good enough. Some dozens of thousands are left, and these are
strata again. The bound is that of the paths found, or a guess: as far above the least weights as in the last window. If
enough paths score no more than a guess, they are the best; if not, the guess was too low. Where that does not help
(many equal weights, light events that do not fit together), it is tried again after some windows only, more each time.
The least weights of FAN entries, and of FAN · FAN, are found once and serve all windows.

A bound on the span is a window per last event, which is the only one that its paths end with. The best path to every
last event from as far back as the spans of a whole group of them reach, found in one pass for all, is at least as good
as the best one within the span; so windows are opened from the best of these on, until none can be among the k best.

Cost: O(entries of a window), or O(entries / FAN²) and O(FAN) for each promising event, and what `path_search` says of
each path.
See "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern Queries over Event Streams", 3.2, which takes
O(window · positions · k) for every window.
"""

from __future__ import annotations

from heapq import heapify, heappop
from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.ranking.graph import SUM, Strata, folded
from trendloom.kernels.ranking.path_search import (
    ANY,
    BELOW,
    FAN,
    NOTHING,
    UP_TO,
    Order,
    PathTables,
    RankedPaths,
    collect_paths,
    empty_tables,
    fill_joints,
    fill_tables,
    first_entry,
    is_wanted,
    set_bound,
    set_window,
)

ENOUGH_TO_GUESS = 4
"""In fewer windows, events are not summed up to find promising ones."""
GUESSES = 3
"""So many bounds are tried before all events are looked at."""
SURE = 1.5
"""How much further than in the last window the first of them is above the lowest score."""
LONGEST_PAUSE = 64
"""So many windows at most are searched without a guess before the next one is made."""
SHARE = 4
"""More than one of so many events of a window are not few."""
SAMPLE = 64
"""Events of a position by which it is judged."""
FAR = 2.0**60
"""Bounds that are further above the least weights are not used: integers might overflow."""


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
    tables, size, due, pause = empty_tables(strata), 0, 0, 0
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
                fill_joints(strata, tables)
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
    heap = [(strata.weight[0], entry)][:0]
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
        if not is_wanted(order, find_lowest(strata, tables, some, order.fold)):
            return found, size
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


# ------------------------------------------------------------------------------------------------ promising events


class PromisingEvents(NamedTuple):
    """Room for the promising events of a window. `margin`: by how much weights can be wrong because sums are rounded.

    `least`, `least_of_many`: of FAN and FAN² entries of the whole block. `floor`: by position the least weight in the
    window. `guess`: how far the bound may be above the lowest score, negative if that is not known. `strata`, `tables`:
    of the promising events alone.
    """

    margin: Array
    least: Array
    least_of_many: Array
    floor: Array
    guess: Array
    strata: Strata
    tables: PathTables


@njit(nogil=True)
def no_events_yet(strata: Strata, most: int, margin: Array) -> PromisingEvents:
    """For windows of at most so many entries. One pass over all entries, unless there is no use in them."""
    positions, use = len(strata.begin) - 1, len(margin) > 0 and not _many_are_least(strata)
    room = most // SHARE + FAN * positions if use else 0
    begin = np.zeros(positions + 1, np.int64)
    some = Strata(begin, np.empty(room, np.int32), np.empty(room, strata.weight.dtype), strata.tie_end)
    least = _least_of_groups(strata.weight[: len(strata.weight) if use else 0])
    floor, guess = np.empty(positions, strata.weight.dtype), np.full(1, -1, strata.weight.dtype)
    return PromisingEvents(margin, least, _least_of_groups(least), floor, guess, some, empty_tables(some))


@njit(nogil=True)
def can_be_few(some: PromisingEvents) -> bool:
    return len(some.least) > 0


@njit(**INSIDE)
def _many_are_least(strata: Strata) -> bool:
    """Whether so many events of a position have its least weight that promising ones are not few, by a sample."""
    for t in range(len(strata.begin) - 1):
        step = max(1, (strata.begin[t + 1] - strata.begin[t]) // SAMPLE)
        some = strata.weight[strata.begin[t] : strata.begin[t + 1] : step]
        if len(some) >= SAMPLE and np.sum(some == some.min()) * SHARE > len(some):
            return True
    return False


@njit(**INSIDE)
def _least_of_groups(values: Array) -> Array:
    found = np.empty((len(values) + FAN - 1) // FAN, values.dtype)
    for group in range(len(found)):
        least = values[group * FAN]
        for at in range(group * FAN + 1, min(len(values), (group + 1) * FAN)):
            least = min(least, values[at])
        found[group] = least
    return found


@njit(**INSIDE)
def find_lowest(strata: Strata, window: PathTables, some: PromisingEvents, fold: int) -> Any:
    """Set `floor` for a window; no path in it has less than the score that is returned."""
    for t in range(len(some.floor)):
        some.floor[t] = _least_weight(strata.weight, some, window.low[t], window.high[t])
    return lowest_score(some, fold)


@njit(**INSIDE)
def _least_weight(weight: Array, some: PromisingEvents, begin: int, end: int) -> Any:
    """The least weight of a range of entries. O(FAN + entries / FAN²)."""
    least, at = weight[begin], begin
    while at < end:
        if at % FAN or at + FAN > end:
            least, at = min(least, weight[at]), at + 1
        elif at % (FAN * FAN) or at + FAN * FAN > end:
            least, at = min(least, some.least[at // FAN]), at + FAN
        else:
            least, at = min(least, some.least_of_many[at // (FAN * FAN)]), at + FAN * FAN
    return least


@njit(**INSIDE)
def lowest_score(some: PromisingEvents, fold: int) -> Any:
    score = some.floor[0]
    for t in range(1, len(some.floor)):
        score = folded(fold, score, some.floor[t])
    return score


@njit(**INSIDE)
def choose_events(strata: Strata, window: PathTables, some: PromisingEvents, bound: Any, fold: int) -> bool:
    """Put all events of a window that are in paths with at most this score into `some.strata`; whether they are few."""
    above, size = bound - lowest_score(some, fold), 0
    if above > FAR:
        return False
    chosen, entries, last = some.strata, np.sum(window.high - window.low), len(some.floor)
    room = min(len(chosen.event), entries // SHARE + FAN)
    for t in range(last):
        chosen.begin[t] = size
        most = some.floor[t] + above + some.margin[0] if fold == SUM else bound
        at, end = window.low[t], window.high[t]
        while at < end:
            if at % (FAN * FAN) == 0 and some.least_of_many[at // (FAN * FAN)] > most:
                at += FAN * FAN
                continue
            until = min(end, (at // FAN + 1) * FAN)
            if some.least[at // FAN] <= most:
                if size + FAN > room:
                    return False
                for entry in range(at, until):
                    chosen.event[size], chosen.weight[size] = strata.event[entry], strata.weight[entry]
                    size += strata.weight[entry] <= most
            at = until
    chosen.begin[last] = size
    some.tables.low[:], some.tables.high[:], some.tables.joined[:] = chosen.begin[:-1], chosen.begin[1:], 0
    fill_joints(chosen, some.tables)
    return True


@njit(**INSIDE)
def make_first_guess(window: PathTables, some: PromisingEvents) -> None:
    """Guess how far the lightest of FAN events are above the lightest of all, on average. O(entries / FAN)."""
    total, count = 0.0, 0
    for t in range(len(some.floor)):
        for group in range(window.low[t] // FAN, (window.high[t] - 1) // FAN + 1):
            total += max(0.0, float(some.least[group]) - float(some.floor[t]))
            count += 1
    some.guess[0] = min(total / (2 * count), FAR)
