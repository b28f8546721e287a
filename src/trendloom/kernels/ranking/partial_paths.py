"""Tables of the best partial paths on one side of a pivot, and the best entry of any range of a table.

A sequence of single events is a path through strata: stratum t holds the events that fit position t. A pivot cuts the
events of a key in two. For every number of positions that lie before the pivot (the `root` of a table) and every
position t on a side, a table has one value per event: the least score of a path that ends with it and runs from there
to the pivot. The side after the pivot is read forwards and the side before it backwards, so that in both of them the
partial paths that an event can continue are a prefix of the table next to it: a running minimum finds the best.

Cost: a table is filled in one pass, O(events of the stratum); there are up to positions²/2 tables on a side. The best
entry of a range takes O(FAN · log events), after one more pass over its table (`index_table`).
See "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern Queries over Event Streams", 3.2 (the pointers `hPtr` and
`vPtr` of a PQ-Array are `ends` and `best`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit

SUM, GREATEST = 0, 1
"""How the weights of a path are folded to its score."""
FAN = 16
"""Entries of a table, or of a level above it, whose least value is one entry of the next level."""


class Strata(NamedTuple):
    """The events that fit each position of a sequence; less weight is better.

    Stratum t has the entries from `begin[t]` to `begin[t + 1]`: `event` (ascending) and `weight` (finite). `tie_end`:
    by event of the block, the first later one of its key.
    """

    begin: Array
    event: Array
    weight: Array
    tie_end: Array


AFTER, BEFORE = np.int64(0), np.int64(1)
"""The sides of a pivot; words, so that functions are compiled for both at once."""
BASE, SIZE = range(2)
"""By side and position: the entry of number 0, and how many numbers there are."""
AT, FIRST, INDEXED = range(3)
"""By side, root and position: where a table begins, the first number that has a path, whether ranges are indexed."""


class PartialPaths(NamedTuple):
    """The tables of both sides. Events of a position are numbered from the pivot on: v is the entry base ± v.

    `shape` and `place`: see above. By entry of all strata: `ends`, where those end in the stratum before that it can
    follow, and `begins`, where those begin in the next one that can follow it. `values`: tables of scores, `best`: the
    number with the least one up to each number. `room`: the entries of tables that a side has room for.
    """

    shape: Array
    place: Array
    ends: Array
    begins: Array
    values: Array
    best: Array
    room: int


@njit(**INSIDE, forceinline=True)
def folded(fold: int, left: Any, right: Any) -> Any:
    """Two scores as one."""
    return left + right if fold == SUM else max(left, right)


@njit(nogil=True)
def empty_paths(strata: Strata, most: int, sides: int, roots: int) -> PartialPaths:
    """Room for one or two sides of at most `most` entries in all strata, with the tables of so many roots.

    Before tables are filled, joints are: see `fill_joints`.
    """
    positions = len(strata.begin) - 1
    room = roots * (most + most // (FAN - 1) + positions * 24)
    ends, begins = np.empty(len(strata.event), np.int32), np.empty(len(strata.event), np.int32)
    return PartialPaths(
        np.zeros((2, 2, positions), np.int64), np.zeros((2, 3, positions + 1, positions), np.int64), ends, begins,
        np.empty(sides * room, strata.weight.dtype), np.empty(sides * room, np.int32), room,
    )  # fmt: skip


@njit(**INSIDE)
def fill_joints(strata: Strata, paths: PartialPaths) -> None:
    """Set `ends` and `begins`. One pass over all entries."""
    for t in range(len(strata.begin) - 2):
        _join_strata(strata, paths, (strata.begin[t], strata.begin[t + 1]), (strata.begin[t + 1], strata.begin[t + 2]))


@njit(**INSIDE)
def fill_joints_between(strata: Strata, paths: PartialPaths, low: int, high: int) -> None:
    """The same for the entries of the events from `low` to `high` - 1, which no event of equal time surrounds."""
    begin, event = strata.begin, strata.event
    first = first_entry(event, begin[0], begin[1], low, begin[0])
    end = first_entry(event, first, begin[1], high, first)
    for t in range(len(begin) - 2):
        next_first = first_entry(event, begin[t + 1], begin[t + 2], low, begin[t + 1])
        next_end = first_entry(event, next_first, begin[t + 2], high, next_first)
        _join_strata(strata, paths, (first, end), (next_first, next_end))
        first, end = next_first, next_end


@njit(**INSIDE)
def _join_strata(strata: Strata, paths: PartialPaths, some: tuple[int, int], later: tuple[int, int]) -> None:
    """Join entries of a stratum with entries of the next one."""
    event, tie_end, ends, begins = strata.event, strata.tie_end, paths.ends, paths.begins
    at, until = later
    for entry in range(some[0], some[1]):
        after = tie_end[event[entry]]
        while at < until and event[at] < after:
            ends[at] = entry
            at += 1
        begins[entry] = at
    ends[at:until] = some[1]


@njit(**INSIDE, forceinline=True)
def joined(paths: PartialPaths, side: int, t: int, number: int) -> int:
    """How many numbers of the next position towards the pivot an event can be joined to."""
    if side == AFTER:
        base = paths.shape[AFTER, BASE, t - 1]
        return min(int(paths.ends[paths.shape[AFTER, BASE, t] + number]) - base, paths.shape[AFTER, SIZE, t - 1])
    return paths.shape[BEFORE, BASE, t + 1] + 1 - int(paths.begins[paths.shape[BEFORE, BASE, t] - number])


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


@njit(**INSIDE, forceinline=True)
def set_events(events: Array, begin: int, end: int, starts_end: int, root: int, roots_end: int) -> None:
    """What `fill_side` takes."""
    events[0], events[1], events[2], events[3], events[4] = begin, end, starts_end, root, roots_end


@njit(**INSIDE)
def fill_side(strata: Strata, paths: PartialPaths, side: int, events: Array, fold: int) -> None:
    """Fill the tables of a side. One pass each.

    `events`: the side's first event, its end, where those that fit position 0 end, the first root and the end of roots.
    """
    positions = len(strata.begin) - 1
    shape, place = paths.shape[side], paths.place[side]
    for t in range(positions):
        near = shape[BASE, t]
        low = first_entry(strata.event, strata.begin[t], strata.begin[t + 1], events[0], near)
        high = first_entry(strata.event, low, strata.begin[t + 1], events[2 if t == 0 else 1], low + shape[SIZE, t])
        shape[BASE, t], shape[SIZE, t] = low if side == AFTER else high - 1, high - low
    used = side * paths.room
    step = 1 if side == AFTER else -1
    for root in range(events[3], events[4]):
        nearest = root if side == AFTER else root - 1
        t = nearest
        while 0 <= t < positions:
            place[AT, root, t], place[INDEXED, root, t] = used, 0
            if t == nearest:
                _fill_nearest(strata, paths, side, root, t)
            else:
                _fill_next(strata, paths, side, root, t, fold)
            size = shape[SIZE, t]
            used += size
            while size > FAN:
                size = (size + FAN - 1) // FAN
                used += size
            t += step


@njit(**INSIDE)
def _fill_nearest(strata: Strata, paths: PartialPaths, side: int, root: int, t: int) -> None:
    """The position next to the pivot: paths of one event."""
    weight, values, best = strata.weight, paths.values, paths.best
    at, base, size = paths.place[side, AT, root, t], paths.shape[side, BASE, t], paths.shape[side, SIZE, t]
    step = 1 if side == AFTER else -1
    paths.place[side, FIRST, root, t] = 0
    if size:
        least, least_at = weight[base], 0
        for v in range(size):
            value = weight[base + step * v]
            values[at + v] = value
            if value < least:
                least, least_at = value, v
            best[at + v] = least_at


@njit(**INSIDE)
def _fill_next(strata: Strata, paths: PartialPaths, side: int, root: int, t: int, fold: int) -> None:
    """The other positions: an event, and the best of the partial paths it can be joined to."""
    weight, values, best = strata.weight, paths.values, paths.best
    at, base, size = paths.place[side, AT, root, t], paths.shape[side, BASE, t], paths.shape[side, SIZE, t]
    joints, step, more = (paths.ends, 1, 0) if side == AFTER else (paths.begins, -1, 1)
    before, unlinked = paths.place[side, AT, root, t - step], paths.place[side, FIRST, root, t - step]
    origin, most = paths.shape[side, BASE, t - step], paths.shape[side, SIZE, t - step]
    first = 0
    while first < size and joined(paths, side, t, first) <= unlinked:
        first += 1
    paths.place[side, FIRST, root, t] = first
    if first < size:
        least, least_at = weight[base], -1
        for v in range(first, size):
            count = min(step * (int(joints[base + step * v]) - origin) + more, most)  # as `joined` says
            value = folded(fold, values[before + best[before + count - 1]], weight[base + step * v])
            values[at + v] = value
            if least_at < 0 or value < least:
                least, least_at = value, v
            best[at + v] = least_at


# ---------------------------------------------------------------------------------------------- ranges of tables


@njit(**INSIDE)
def _index_table(values: Array, at: int, size: int) -> None:
    """Put the least values of FAN entries each, then of FAN of those and so on, behind a table. O(its entries)."""
    while size > FAN:
        level, groups = at + size, (size + FAN - 1) // FAN
        for group in range(groups):
            begin, end = at + group * FAN, at + min(size, (group + 1) * FAN)
            least = values[begin]
            for entry in range(begin + 1, end):
                least = min(least, values[entry])
            values[level + group] = least
        at, size = level, groups


@njit(**INSIDE)
def least_in(paths: PartialPaths, side: int, root: int, t: int, low: int, high: int) -> int:
    """The number with the least value from `low` to `high` - 1; there is at least one, and all have paths."""
    at, size = paths.place[side, AT, root, t], paths.shape[side, SIZE, t]
    if low <= paths.place[side, FIRST, root, t]:
        return int(paths.best[at + high - 1])
    if high - low > 2 * FAN and paths.place[side, INDEXED, root, t] == 0:
        _index_table(paths.values, at, size)
        paths.place[side, INDEXED, root, t] = 1
    return _least(paths.values, at, size, low, high)


@njit(**INSIDE)
def _least(values: Array, at: int, size: int, low: int, high: int) -> int:
    """Climb from level to level, looking at the ends of the range that do not fill a group; then go down again."""
    level, above, depth, least, least_at, least_depth = at, size, 0, values[at + low], low, 0
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
        level, above = at, size
        for _ in range(least_depth):
            level, above = level + above, (above + FAN - 1) // FAN
        least_at *= FAN
        while values[level + least_at] != least:
            least_at += 1
    return least_at
