"""Tables of the best partial paths on one side of a pivot, and the best entry of any range of a table.

A sequence of single events is a path through strata: stratum t holds the events that fit position t. A pivot cuts the
events of a key in two. For every number of positions that lie before the pivot (the `root` of a table) and every
position t on a side, a table has one value per event: the least score of a path that ends with it and runs from there
to the pivot. The side after the pivot is read forwards and the side before it backwards, so that in both of them the
partial paths that an event can continue are a prefix of the table next to it: a running minimum finds the best.

Cost: a table is filled in one pass, O(events of the stratum); there are up to positions²/2 tables on a side. The best
entry of a range takes O(FAN · log events), after one more pass over its table (`index_table`).
See "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern Queries over Event Streams", 3.2 (the pointers `hPtr` and
`vPtr` of a PQ-Array are `links` and `best`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.kernels.compiled import INSIDE, njit

Array = np.ndarray[Any, Any]

SUM, GREATEST = 0, 1
"""How the weights of a path are folded to its score."""
FAN = 16
"""Entries of a table, or of a level above it, whose least value is one entry of the next level."""


class Strata(NamedTuple):
    """The events that fit each position of a sequence; less weight is better.

    Stratum t has the entries from `begin[t]` to `begin[t + 1]`: `event` (ascending) and `weight` (finite). `tie_end`: by
    event of the block, the first later one of its key.
    """

    begin: Array
    event: Array
    weight: Array
    tie_end: Array


class PartialPaths(NamedTuple):
    """The tables of one side. Number v of position t is the entry `base[t] + step * v`, counted away from the pivot.

    `size` by position. `links` (from `links_at[t]`): how many numbers of the position next to it, towards the pivot, an
    event can be joined to. By root and position: where its table begins in `values` and `best` (the number with the
    least value up to each one), the `first` number that has a path to the pivot, and whether ranges are `indexed`.
    """

    step: int
    base: Array
    size: Array
    links_at: Array
    links: Array
    at: Array
    first: Array
    indexed: Array
    values: Array
    best: Array


@njit(**INSIDE, forceinline=True)
def folded(fold: int, left: Any, right: Any) -> Any:
    """Two scores as one."""
    return left + right if fold == SUM else max(left, right)


@njit(nogil=True)
def empty_paths(strata: Strata, step: int, most: int, roots: int) -> PartialPaths:
    """Room for a side of at most `most` entries in all strata, with the tables of so many roots."""
    positions = len(strata.begin) - 1
    by_position = np.zeros((3, positions), np.int64)
    room = roots * (most + most // (FAN - 1) + positions * 24)
    return PartialPaths(
        step, by_position[0], by_position[1], by_position[2], np.empty(most + 1, np.int32),
        np.zeros((positions + 1, positions), np.int64), np.zeros((positions + 1, positions), np.int64),
        np.zeros((positions + 1, positions), np.bool_), np.empty(room, strata.weight.dtype), np.empty(room, np.int32),
    )  # fmt: skip


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
def fill_side(strata: Strata, side: PartialPaths, events: Any, roots: Any, fold: int) -> None:
    """Fill the tables of some roots (from the first of them to the one before the second). One pass each.

    `events`: the side's first event, its end, and where those that fit position 0 end.
    """
    begin, end, starts_end = events
    positions = len(strata.begin) - 1
    used = 0
    for t in range(positions):
        near = side.base[t]
        low = first_entry(strata.event, strata.begin[t], strata.begin[t + 1], begin, near)
        until = starts_end if t == 0 else end
        high = first_entry(strata.event, low, strata.begin[t + 1], until, low + side.size[t])
        side.base[t] = low if side.step > 0 else high - 1
        side.size[t], side.links_at[t] = high - low, used
        used += high - low
    for t in range(positions):
        if side.step > 0 and t > 0:
            _link_after(strata, side, t)
        elif side.step < 0 and t < positions - 1:
            _link_before(strata, side, t)
    used = 0
    for root in range(roots[0], roots[1]):
        t = root if side.step > 0 else root - 1
        nearest = True
        while 0 <= t < positions:
            side.at[root, t], side.indexed[root, t] = used, False
            if nearest:
                _fill_nearest(strata, side, root, t)
            else:
                _fill_next(strata, side, root, t, fold)
            size = side.size[t]
            used += size
            while size > FAN:
                size = (size + FAN - 1) // FAN
                used += size
            t, nearest = t + side.step, False


@njit(**INSIDE)
def _link_after(strata: Strata, side: PartialPaths, t: int) -> None:
    event, tie_end, links, at = strata.event, strata.tie_end, side.links, side.links_at[t]
    base, other, most, x = side.base[t], side.base[t - 1], side.size[t - 1], 0
    for v in range(side.size[t]):
        e = event[base + v]
        while x < most and tie_end[event[other + x]] <= e:
            x += 1
        links[at + v] = x


@njit(**INSIDE)
def _link_before(strata: Strata, side: PartialPaths, t: int) -> None:
    event, tie_end, links, at = strata.event, strata.tie_end, side.links, side.links_at[t]
    base, other, most, x = side.base[t], side.base[t + 1], side.size[t + 1], 0
    for v in range(side.size[t]):
        after = tie_end[event[base - v]]
        while x < most and event[other - x] >= after:
            x += 1
        links[at + v] = x


@njit(**INSIDE)
def _fill_nearest(strata: Strata, side: PartialPaths, root: int, t: int) -> None:
    """The position next to the pivot: paths of one event."""
    weight, values, best = strata.weight, side.values, side.best
    at, base, step, size = side.at[root, t], side.base[t], side.step, side.size[t]
    side.first[root, t] = 0
    if size:
        least, least_at = weight[base], 0
        for v in range(size):
            value = weight[base + step * v]
            values[at + v] = value
            if value < least:
                least, least_at = value, v
            best[at + v] = least_at


@njit(**INSIDE)
def _fill_next(strata: Strata, side: PartialPaths, root: int, t: int, fold: int) -> None:
    """The other positions: an event, and the best of the partial paths it can be joined to."""
    weight, values, best, links = strata.weight, side.values, side.best, side.links
    at, base, step, size, linked = side.at[root, t], side.base[t], side.step, side.size[t], side.links_at[t]
    before, unlinked = side.at[root, t - step], side.first[root, t - step]
    first = 0
    while first < size and links[linked + first] <= unlinked:
        first += 1
    side.first[root, t] = first
    if first < size:
        least, least_at = weight[base], -1
        for v in range(first, size):
            joined = values[before + best[before + links[linked + v] - 1]]
            value = folded(fold, joined, weight[base + step * v])
            values[at + v] = value
            if least_at < 0 or value < least:
                least, least_at = value, v
            best[at + v] = least_at


# ---------------------------------------------------------------------------------------------- ranges of tables


@njit(**INSIDE)
def index_table(side: PartialPaths, root: int, t: int) -> None:
    """Put the least values of FAN entries each, then of FAN of those and so on, behind a table. O(its entries)."""
    values, size = side.values, side.size[t]
    below = side.at[root, t]
    while size > FAN:
        level = below + size
        for group in range((size + FAN - 1) // FAN):
            begin, end = below + group * FAN, below + min(size, (group + 1) * FAN)
            least = values[begin]
            for at in range(begin + 1, end):
                least = min(least, values[at])
            values[level + group] = least
        below, size = level, (size + FAN - 1) // FAN
    side.indexed[root, t] = True


@njit(**INSIDE)
def least_in(side: PartialPaths, root: int, t: int, low: int, high: int) -> int:
    """The number with the least value from `low` to `high` - 1; there is at least one, and all have paths."""
    at, first = side.at[root, t], side.first[root, t]
    if low <= first:
        return side.best[at + high - 1]
    values = side.values
    if high - low > 2 * FAN and not side.indexed[root, t]:
        index_table(side, root, t)
    level, size, depth = at, side.size[t], 0
    least, least_at, least_depth = values[at + low], at + low, 0
    while True:
        inner_low, inner_high = (low + FAN - 1) // FAN, high // FAN
        if high - low <= 2 * FAN or inner_low >= inner_high:
            least, least_at, least_depth = _scan(values, level + low, level + high, least, least_at, least_depth, depth)
            break
        least, least_at, least_depth = _scan(
            values, level + low, level + inner_low * FAN, least, least_at, least_depth, depth
        )
        least, least_at, least_depth = _scan(
            values, level + inner_high * FAN, level + high, least, least_at, least_depth, depth
        )
        low, high, depth = inner_low, inner_high, depth + 1
        level, size = level + size, (size + FAN - 1) // FAN
    return _found_below(values, at, side.size[t], least, least_at, least_depth)


@njit(**INSIDE, forceinline=True)
def _scan(values: Array, begin: int, end: int, least: Any, least_at: int, least_depth: int, depth: int) -> Any:
    for at in range(begin, end):
        if values[at] < least:
            least, least_at, least_depth = values[at], at, depth
    return least, least_at, least_depth


@njit(**INSIDE)
def _found_below(values: Array, at: int, size: int, least: Any, least_at: int, depth: int) -> int:
    """The number in the table that a value of a level above it comes from."""
    while depth > 0:
        level, above = at, size
        for _ in range(depth - 1):
            level, above = level + above, (above + FAN - 1) // FAN
        number = (least_at - level - above) * FAN
        while values[level + number] != least:
            number += 1
        least_at, depth = level + number, depth - 1
    return least_at - at
