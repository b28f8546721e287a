"""The rivals of one signature, sorted by what they can do to it.

A rival that cannot lie in any gap where it matters is *idle*. One that matters in a single gap is *plain*: given the
ends of the gap, it is independent of all else. If something can excuse it there, it is *excusable*. All others, which
matter in several gaps or excuse somebody, are *tracked*: the sweep remembers by a bit whether they have occurred,
between the first and the last point where that matters. Two tracked rivals share a bit if they never need it together.

Cost: O(rivals · length) per signature, and O(tracked²).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.kernels.compiled import INSIDE, njit
from trendloom.kernels.imprecise.confidence.boxes import FAR, Box, Limits
from trendloom.kernels.imprecise.confidence.points import PointMasses

Array = np.ndarray[Any, Any]

MOST_AT_ONCE = 12
"""Tracked rivals that matter at one point: each doubles what the sweep remembers."""

IDLE, PLAIN, EXCUSABLE, TRACKED = range(4)
"""Kinds of rivals."""

RIVALS, BITS, FLAGS, NEEDS_START, NEEDS_END = range(5)
"""What `tally` holds: rivals, bits of tracked ones, sets of excuses; whether the first event, and also the last one,
must be fixed since a gap ends where they say.
"""


class RivalRows(NamedTuple):
    """As `Rivals`, with whole words."""

    offsets: Array
    event: Array
    gap: Array
    forbidden: Array
    excused_by: Array
    excuses: Array


class Watched(NamedTuple):
    """Rival i has the rows from `begin[i]` up to `begin[i + 1]`.

    Plain and excusable ones are listed by gap: the first is `first[kind, gap]`, and after i comes `link[i]`; -1 ends a
    list. `available` and `wanted`: by gap the excuses that can be there, and those that are of use. Tracked ones have a
    `bit`, and matter from the point `start` to `stop`.
    """

    begin: Array
    kind: Array
    first: Array
    link: Array
    available: Array
    wanted: Array
    bit: Array
    start: Array
    stop: Array
    tally: Array


@njit(**INSIDE)
def empty_watch(most: int, length: int) -> Watched:
    """Room for the rivals of any signature."""
    words = np.zeros((6, most + 1), np.int64)
    gaps = np.zeros((4, length + 1), np.int64)
    return Watched(
        words[0], words[1], gaps[:2], words[2], gaps[2], gaps[3], words[3], words[4], words[5], np.zeros(5, np.int64)
    )


@njit(**INSIDE)
def sort_rivals(
    points: PointMasses, rows: RivalRows, number: int, length: int, box: Box, limits: Limits, watched: Watched
) -> None:
    """Sort those of the signature with this number."""
    _split_by_event(rows, number, watched)
    _find_excuses(points, rows, number, length, box, limits, watched)
    tally = watched.tally
    tally[BITS:] = 0
    tally[FLAGS] = 1
    watched.first[:, : length + 1] = -1
    for rival in range(tally[RIVALS]):
        kind, gap = _kind_of(points, rows, rival, length, box, limits, watched)
        watched.kind[rival] = kind
        if kind == PLAIN or kind == EXCUSABLE:
            place = kind - PLAIN
            watched.link[rival], watched.first[place, gap] = watched.first[place, gap], rival
    for gap in range(1, length):
        while watched.available[gap] & watched.wanted[gap] >= tally[FLAGS]:
            tally[FLAGS] *= 2
    _share_bits(watched)


@njit(**INSIDE)
def _split_by_event(rows: RivalRows, number: int, watched: Watched) -> None:
    count = 0
    for row in range(rows.offsets[number], rows.offsets[number + 1]):
        if row == rows.offsets[number] or rows.event[row] != rows.event[row - 1]:
            watched.begin[count] = row
            count += 1
    watched.begin[count] = rows.offsets[number + 1]
    watched.tally[RIVALS] = count


@njit(**INSIDE)
def reach_of(
    points: PointMasses, event: int, gap: int, length: int, box: Box, limits: Limits
) -> tuple[int, int]:
    """The first and the last point of an event that can lie in a gap; the last is the lesser one if there are none."""
    first, last = -FAR, FAR
    if gap > 0:
        first = box.low[gap - 1] + 1
    else:
        first = box.low[length - 1] - limits.span + 1 if limits.bare else limits.first
    if gap < length:
        last = box.high[gap] - 1
    else:
        last = box.high[0] + limits.span - 1 if limits.bare else limits.last
    return max(first, points.low[event]), min(last, points.high[event])


@njit(**INSIDE)
def _find_excuses(
    points: PointMasses, rows: RivalRows, number: int, length: int, box: Box, limits: Limits, watched: Watched
) -> None:
    watched.available[: length + 1] = 0
    watched.wanted[: length + 1] = 0
    for row in range(rows.offsets[number], rows.offsets[number + 1]):
        gap = rows.gap[row]
        if 0 < gap < length and (rows.excuses[row] != 0 or rows.excused_by[row] != 0):
            first, last = reach_of(points, rows.event[row], gap, length, box, limits)
            if first <= last:
                watched.available[gap] |= rows.excuses[row]
                if rows.forbidden[row]:
                    watched.wanted[gap] |= rows.excused_by[row]


@njit(**INSIDE)
def _kind_of(
    points: PointMasses, rows: RivalRows, rival: int, length: int, box: Box, limits: Limits, watched: Watched
) -> tuple[int, int]:
    """The kind of a rival and a gap where it matters; notes from where to where it does, and what must be fixed."""
    gap, several, excuses, zero = -1, False, False, False
    can_be_excused = True
    start, stop = FAR, -FAR
    for row in range(watched.begin[rival], watched.begin[rival + 1]):
        here = rows.gap[row]
        useful = 0 < here < length and (rows.excuses[row] & watched.wanted[here]) != 0
        if not (rows.forbidden[row] or useful):
            continue
        first, last = reach_of(points, rows.event[row], here, length, box, limits)
        if first > last:
            continue
        several = several or (gap >= 0 and gap != here)
        gap, excuses, zero = here, excuses or useful, zero or here == 0
        if rows.forbidden[row] and (rows.excused_by[row] & watched.available[here]) == 0:
            can_be_excused = False
        start, stop = min(start, first), max(stop, last)
        if limits.bare and (here == 0 or here == length):
            watched.tally[NEEDS_START] = 1
    watched.start[rival], watched.stop[rival] = start, stop
    if gap < 0:
        return IDLE, gap
    if several or excuses:
        if limits.bare and zero:
            watched.tally[NEEDS_END] = 1
        return TRACKED, gap
    return EXCUSABLE if can_be_excused else PLAIN, gap


@njit(**INSIDE)
def _share_bits(watched: Watched) -> None:
    """Give tracked rivals bits, in order of their starts; more bits than there may be are counted, not given."""
    tally, ends = watched.tally, np.zeros(MOST_AT_ONCE + 1, np.int64)
    last_start = -FAR
    while True:
        start = FAR
        for rival in range(tally[RIVALS]):
            if watched.kind[rival] == TRACKED and last_start < watched.start[rival] < start:
                start = watched.start[rival]
        if start == FAR:
            return
        for rival in range(tally[RIVALS]):
            if watched.kind[rival] == TRACKED and watched.start[rival] == start:
                bit = 0
                while bit < tally[BITS] and ends[bit] >= start:
                    bit += 1
                if bit >= MOST_AT_ONCE:
                    tally[BITS] = MOST_AT_ONCE + 1
                    return
                tally[BITS] = max(tally[BITS], bit + 1)
                watched.bit[rival], ends[bit] = bit, watched.stop[rival]
        last_start = start


@njit(**INSIDE)
def is_blocked(rows: RivalRows, watched: Watched, rival: int, gap: int, flags: int) -> bool:
    """Whether a rival must not lie in a gap after these excuses. Each of its rows must be excused by itself."""
    for row in range(watched.begin[rival], watched.begin[rival + 1]):
        if rows.gap[row] == gap and rows.forbidden[row] and (rows.excused_by[row] & flags) == 0:
            return True
    return False


@njit(**INSIDE)
def excuses_of(rows: RivalRows, watched: Watched, rival: int, gap: int) -> int:
    """The excuses of use that a rival gives in a gap."""
    found = 0
    for row in range(watched.begin[rival], watched.begin[rival + 1]):
        if rows.gap[row] == gap:
            found |= rows.excuses[row] & watched.wanted[gap]
    return found
