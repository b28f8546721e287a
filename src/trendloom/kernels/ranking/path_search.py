"""The best paths of a window through strata, one after the other: tables of partial paths, and Lawler's partition.

A sequence of single events is a path through strata: stratum t holds the events that fit position t. A table has a
value for each entry of a stratum, the least score of a path that ends with it. The partial paths that an event can
continue are a prefix of the table before, so a running minimum gives the best of them.

A path is a row of decisions, from its last event back. A *candidate* is a set of paths that agree on their last events
and take the event before those out of a range of entries; the tables give its best path. When that is taken, the rest
of the set falls apart into at most two ranges per decision, each again with a best path. No path is found twice, and
scores are exact: folding from left to right is monotone, also where sums are rounded.

Cost: one pass over the entries of a window; O(positions · (positions + FAN · log events)) for each path.
See "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern Queries over Event Streams", 3.2 (the pointers `hPtr` and
`vPtr` of a PQ-Array are `ends` and `best`).
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.ranking.graph import Strata, folded

FAN = 16
"""Entries of a table, or of a level above it, whose least value is one entry of the next level."""
LEVELS = 16
"""No table has more levels."""
NOTHING = np.int64(-1)
"""Before all events, and behind the last node of a path."""
ANY, UP_TO, BELOW = range(3)
"""Which scores are wanted: all, those up to a bound, or those below it."""


class PathTables(NamedTuple):
    """The tables of a window.

    By position: the window has the entries from `low` to `high`, those from `first` on end a path, `indexed` is 1 where
    the least values of ranges are there, and `ends` is set for entries before `joined`. By entry: `ends`, where those
    end in the stratum before that it can follow; `value`, the least score of a path that ends with it; `best`, the
    entry with the least one up to it. Behind the entries `value` has the least ones of FAN of them, then of FAN of
    those, and so on.
    """

    low: Array
    high: Array
    first: Array
    indexed: Array
    joined: Array
    ends: Array
    value: Array
    best: Array


class RankedPaths(NamedTuple):
    """Paths with their `scores` and their `events`, one column per position."""

    scores: Array
    events: Array


class Order(NamedTuple):
    """How weights are folded, how many paths are wanted, and the `bound` of their scores: see `kind`."""

    fold: int
    want: int
    kind: Array
    bound: Array


@njit(**INSIDE, forceinline=True)
def is_wanted(order: Order, score: Any) -> bool:
    kind = order.kind[0]
    return bool(kind == ANY or score < order.bound[0] or (kind == UP_TO and score == order.bound[0]))


@njit(**INSIDE, forceinline=True)
def set_bound(order: Order, kind: int, bound: Any) -> None:
    order.kind[0], order.bound[0] = kind, bound


# ------------------------------------------------------------------------------------------------ tables


@njit(nogil=True)
def empty_tables(strata: Strata) -> PathTables:
    """Room for the tables of all entries, and the whole strata as a window; `fill_joints` comes next."""
    positions, entries = len(strata.begin) - 1, len(strata.event)
    return PathTables(
        strata.begin[:-1].copy(), strata.begin[1:].copy(), np.zeros(positions, np.int64), np.zeros(positions, np.int64),
        np.zeros(positions, np.int64), np.empty(entries, np.int32),
        np.empty(entries + entries // (FAN - 1) + LEVELS, strata.weight.dtype), np.empty(entries, np.int32),
    )  # fmt: skip


@njit(**INSIDE)
def fill_joints(strata: Strata, tables: PathTables) -> None:
    """Set `ends` for a window, as far as it is not set for those before; these begin and end no later."""
    event, tie_end, ends = strata.event, strata.tie_end, tables.ends
    for t in range(1, len(tables.low)):
        high, before_high = tables.high[t], tables.high[t - 1]
        since, end = max(tables.low[t], min(tables.joined[t], high)), tables.low[t - 1]
        if since > tables.low[t]:
            end = max(end, np.int64(ends[since - 1]))
        for entry in range(since, high):
            while end < before_high and tie_end[event[end]] <= event[entry]:
                end += 1
            ends[entry] = end
        tables.joined[t] = max(tables.joined[t], high)


@njit(**INSIDE)
def set_window(strata: Strata, tables: PathTables, low: int, high: int, last: int) -> bool:
    """Take the events from `low` to `high` - 1 as the window, where paths end with no event before `last`.

    Returns whether all positions have events. O(log events moved by).
    """
    positions = len(tables.low)
    for t in range(positions):
        begin, end = strata.begin[t], strata.begin[t + 1]
        since = low if t < positions - 1 else max(low, last)
        tables.low[t] = first_entry(strata.event, begin, end, since, tables.low[t])
        tables.high[t] = first_entry(strata.event, begin, end, high, tables.high[t])
        if tables.low[t] >= tables.high[t]:
            return False
    return True


@njit(**INSIDE)
def first_entry(event: Array, begin: int, end: int, wanted: int, near: int) -> int:
    """The first entry from `begin` on whose event is not before `wanted`, looked for around `near`. O(log distance)."""
    low, high = begin, end
    at, far = min(max(near, begin), end), 1
    if at < end and event[at] < wanted:
        low = at + 1
        while low + far < end and event[low + far] < wanted:
            low, far = low + far + 1, 2 * far
        high = min(end, low + far)
    else:
        high = at
        while high - far >= begin and event[high - far] >= wanted:
            high, far = high - far, 2 * far
        low = max(begin, high - far)
    while low < high:
        middle = (low + high) // 2
        if event[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@njit(**INSIDE)
def fill_tables(strata: Strata, tables: PathTables, fold: int) -> None:
    """Fill the tables of a window. One pass over its entries."""
    weight, ends, values, best = strata.weight, tables.ends, tables.value, tables.best
    for t in range(len(tables.low)):
        first, high, before = tables.low[t], tables.high[t], tables.first[t - 1] if t > 0 else NOTHING
        while t > 0 and first < high and ends[first] <= before:
            first += 1
        tables.first[t], tables.indexed[t] = first, 0
        least_at = first
        for entry in range(first, high):
            value = folded(fold, values[best[ends[entry] - 1]], weight[entry]) if t > 0 else weight[entry]
            values[entry] = value
            if value < values[least_at]:
                least_at = entry
            best[entry] = least_at


@njit(**INSIDE)
def _least_in(tables: PathTables, t: int, low: int, high: int) -> Any:
    """The entry with the least value from `low` to `high` - 1; there is at least one, and all end paths."""
    if low <= tables.first[t]:
        return np.int64(tables.best[high - 1])
    entries = len(tables.best)
    if high - low > 2 * FAN and tables.indexed[t] == 0:
        _index_table(tables.value, entries, tables.first[t], tables.high[t])
        tables.indexed[t] = 1
    return _least(tables.value, entries, low, high)


@njit(**INSIDE)
def _index_table(values: Array, size: int, low: int, high: int) -> None:
    """Put the least values of whole groups of FAN entries, then of FAN of those and so on, behind all entries."""
    at = 0
    while True:
        low, high = (low + FAN - 1) // FAN, high // FAN
        if low >= high:
            return
        for group in range(low, high):
            least = values[at + group * FAN]
            for entry in range(at + group * FAN + 1, at + (group + 1) * FAN):
                least = min(least, values[entry])
            values[at + size + group] = least
        at, size = at + size, (size + FAN - 1) // FAN


@njit(**INSIDE)
def _least(values: Array, size: int, low: int, high: int) -> int:
    """Climb from level to level, looking at the ends of the range that do not fill a group; then go down again."""
    level, above, depth, least, least_at, least_depth = 0, size, 0, values[low], low, 0
    while high > low:
        inner_low, inner_high = (low + FAN - 1) // FAN, high // FAN
        climbs = high - low > 2 * FAN and inner_low < inner_high
        end = inner_low * FAN if climbs else high
        for number in range(low, end):
            if values[level + number] < least:
                least, least_at, least_depth = values[level + number], number, depth
        if not climbs:
            break
        for number in range(inner_high * FAN, high):
            if values[level + number] < least:
                least, least_at, least_depth = values[level + number], number, depth
        low, high, depth = inner_low, inner_high, depth + 1
        level, above = level + above, (above + FAN - 1) // FAN
    while least_depth > 0:
        least_depth -= 1
        level, above = 0, size
        for _ in range(least_depth):
            level, above = level + above, (above + FAN - 1) // FAN
        least_at *= FAN
        while values[level + least_at] != least:
            least_at += 1
    return least_at


# ------------------------------------------------------------------------------------------------ search


@njit(**INSIDE)
def collect_paths(strata: Strata, tables: PathTables, found: RankedPaths, size: int, order: Order) -> Any:
    """Append the best paths of a window whose scores are wanted, best first; returns `found` and its size.

    A candidate is a score, a position, a range of its entries, the best of these, and the node of the event after it.
    A node is an entry, and the node of the event after that.
    """
    last, end = len(tables.low) - 1, size + order.want
    low, high = tables.first[last], tables.high[last]
    if low >= high:
        return found, size
    choice = _least_in(tables, last, low, high)
    heap = [(tables.value[choice], last, low, high, choice, NOTHING)]
    entries, later = [choice], [NOTHING]
    while len(heap) > 0 and size < end:
        score, t, low, high, choice, node = heappop(heap)
        if not is_wanted(order, score):
            break
        while True:
            for begin, until in ((low, choice), (choice + 1, high)):
                if begin < until:
                    other = _least_in(tables, t, begin, until)
                    value, after = tables.value[other], node
                    while after >= 0:
                        value, after = folded(order.fold, value, strata.weight[entries[after]]), later[after]
                    if is_wanted(order, value):
                        heappush(heap, (value, t, begin, until, other, node))
            entries.append(choice)
            later.append(node)
            node = np.int64(len(entries) - 1)
            if t == 0:
                break
            low, high, t = tables.first[t - 1], np.int64(tables.ends[choice]), t - 1
            choice = _least_in(tables, t, low, high)
        if size == len(found.scores):
            found = with_room(found, 2 * size)
        found.scores[size] = score
        for at in range(last + 1):
            found.events[size, at] = strata.event[entries[node]]
            node = later[node]
        size += 1
    return found, size


@njit(nogil=True)
def with_room(found: RankedPaths, room: int) -> RankedPaths:
    """The same paths with room for more."""
    scores, events = np.empty(room, found.scores.dtype), np.empty((room, found.events.shape[1]), np.int32)
    scores[: len(found.scores)], events[: len(found.scores)] = found.scores, found.events
    return RankedPaths(scores, events)
