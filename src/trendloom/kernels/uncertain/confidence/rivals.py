"""The rivals of one signature, sorted by what they can do to it.

A rival that cannot lie in any gap where it matters is *idle*. One that matters in a single gap is *plain*: given the
ends of the gap, it is independent of all else. If something can excuse it there, it is *excusable*. All others, which
matter in several gaps or excuse somebody, are *tracked*: the sweep remembers by a bit whether they have occurred,
between the first and the last point where that matters. Two tracked rivals share a bit if they never need it together.

Cost: O(rivals · length) per signature, and O(tracked²).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.uncertain.confidence.boxes import TimeLimits
from trendloom.kernels.uncertain.confidence.points import FAR, HIGH, LOW, PointMasses

MOST_AT_ONCE = 12
"""Tracked rivals that matter at one point: each doubles what the sweep remembers."""

IDLE, PLAIN, EXCUSABLE, TRACKED = range(4)
"""Kinds of rivals."""

RIVALS, BITS, FLAGS, NEEDS_START, NEEDS_END = range(5)
"""What `tally` holds: rivals, bits of tracked ones, sets of excuses; whether the first event, and also the last one,
must be fixed since a gap ends where they say.
"""


EVENT, GAP, FORBIDDEN, EXCUSED_BY, EXCUSES = range(5)
"""Columns of rows."""

ROW, KIND, LINK, BIT, START, STOP = range(6)
"""What is known of a rival: its first row (the next one's is where they end), its kind, the next of its list or -1; of
tracked ones the bit, and the first and last point where they matter.
"""

FIRST_PLAIN, FIRST_EXCUSABLE, AVAILABLE, WANTED = range(4)
"""What is known of a gap: the first of its plain and of its excusable rivals, or -1; excuses that can be there, and
those that would be of use.
"""


class RivalRows(NamedTuple):
    """As `Rivals`, in whole words: those of signature s are `rows[offsets[s]:offsets[s + 1]]`."""

    offsets: Array
    rows: Array


class Watched(NamedTuple):
    """The rivals of a signature and its gaps, a row each, and their tally."""

    rivals: Array
    gaps: Array
    tally: Array


@njit(**INSIDE)
def empty_watch(most: int, length: int) -> Watched:
    """Room for the rivals of any signature."""
    return Watched(np.zeros((most + 1, 6), np.int64), np.zeros((length + 1, 4), np.int64), np.zeros(5, np.int64))


@njit(**INSIDE)
def sort_rivals(
    points: PointMasses, rows: RivalRows, number: int, length: int, box: Array, limits: TimeLimits, watched: Watched
) -> None:
    """Sort those of the signature with this number."""
    _split_by_event(rows, number, watched)
    _find_excuses(points, rows, number, length, box, limits, watched)
    tally = watched.tally
    tally[BITS:] = 0
    tally[FLAGS] = 1
    watched.gaps[: length + 1, : FIRST_EXCUSABLE + 1] = -1
    for rival in range(tally[RIVALS]):
        kind, gap = _kind_of(points, rows, rival, length, box, limits, watched)
        watched.rivals[rival, KIND] = kind
        if kind in (PLAIN, EXCUSABLE):
            head = FIRST_PLAIN if kind == PLAIN else FIRST_EXCUSABLE
            watched.rivals[rival, LINK], watched.gaps[gap, head] = watched.gaps[gap, head], rival
    for gap in range(1, length):
        while watched.gaps[gap, AVAILABLE] & watched.gaps[gap, WANTED] >= tally[FLAGS]:
            tally[FLAGS] *= 2
    _share_bits(watched)


@njit(**INSIDE)
def _split_by_event(rows: RivalRows, number: int, watched: Watched) -> None:
    count = 0
    for row in range(rows.offsets[number], rows.offsets[number + 1]):
        if row == rows.offsets[number] or rows.rows[row, EVENT] != rows.rows[row - 1, EVENT]:
            watched.rivals[count, ROW] = row
            count += 1
    watched.rivals[count, ROW] = rows.offsets[number + 1]
    watched.tally[RIVALS] = count


@njit(**INSIDE)
def reach_of(points: PointMasses, event: int, gap: int, length: int, box: Array, limits: TimeLimits) -> tuple[int, int]:
    """The first and the last point of an event that can lie in a gap; the last is the lesser one if there are none."""
    first, last = -FAR, FAR
    if gap > 0:
        first = box[gap - 1, LOW] + 1
    else:
        first = box[length - 1, LOW] - limits.span + 1 if limits.bare else limits.first
    if gap < length:
        last = box[gap, HIGH] - 1
    else:
        last = box[0, HIGH] + limits.span - 1 if limits.bare else limits.last
    return max(first, points.bounds[event, LOW]), min(last, points.bounds[event, HIGH])


@njit(**INSIDE)
def _find_excuses(
    points: PointMasses, rows: RivalRows, number: int, length: int, box: Array, limits: TimeLimits, watched: Watched
) -> None:
    watched.gaps[: length + 1, AVAILABLE:] = 0
    for row in range(rows.offsets[number], rows.offsets[number + 1]):
        gap = rows.rows[row, GAP]
        if 0 < gap < length and (rows.rows[row, EXCUSES] != 0 or rows.rows[row, EXCUSED_BY] != 0):
            first, last = reach_of(points, rows.rows[row, EVENT], gap, length, box, limits)
            if first <= last:
                watched.gaps[gap, AVAILABLE] |= rows.rows[row, EXCUSES]
                if rows.rows[row, FORBIDDEN]:
                    watched.gaps[gap, WANTED] |= rows.rows[row, EXCUSED_BY]


@njit(**INSIDE)
def _kind_of(
    points: PointMasses, rows: RivalRows, rival: int, length: int, box: Array, limits: TimeLimits, watched: Watched
) -> tuple[int, int]:
    """The kind of a rival and a gap where it matters; notes from where to where it does, and what must be fixed."""
    gap, several, excuses, zero = -1, False, False, False
    can_be_excused = True
    start, stop = FAR, -FAR
    for row in range(watched.rivals[rival, ROW], watched.rivals[rival + 1, ROW]):
        here = rows.rows[row, GAP]
        useful = 0 < here < length and (rows.rows[row, EXCUSES] & watched.gaps[here, WANTED]) != 0
        if not (rows.rows[row, FORBIDDEN] or useful):
            continue
        first, last = reach_of(points, rows.rows[row, EVENT], here, length, box, limits)
        if first > last:
            continue
        several = several or (gap >= 0 and gap != here)
        gap, excuses, zero = here, excuses or useful, zero or here == 0
        if rows.rows[row, FORBIDDEN] and (rows.rows[row, EXCUSED_BY] & watched.gaps[here, AVAILABLE]) == 0:
            can_be_excused = False
        start, stop = min(start, first), max(stop, last)
        if limits.bare and (here == 0 or here == length):
            watched.tally[NEEDS_START] = 1
    watched.rivals[rival, START], watched.rivals[rival, STOP] = start, stop
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
            if watched.rivals[rival, KIND] == TRACKED and last_start < watched.rivals[rival, START] < start:
                start = watched.rivals[rival, START]
        if start == FAR:
            return
        for rival in range(tally[RIVALS]):
            if watched.rivals[rival, KIND] == TRACKED and watched.rivals[rival, START] == start:
                bit = 0
                while bit < tally[BITS] and ends[bit] >= start:
                    bit += 1
                if bit >= MOST_AT_ONCE:
                    tally[BITS] = MOST_AT_ONCE + 1
                    return
                tally[BITS] = max(tally[BITS], bit + 1)
                watched.rivals[rival, BIT], ends[bit] = bit, watched.rivals[rival, STOP]
        last_start = start


@njit(**INSIDE)
def is_blocked(rows: RivalRows, watched: Watched, rival: int, gap: int, flags: int) -> bool:
    """Whether a rival must not lie in a gap after these excuses. Each of its rows must be excused by itself."""
    for row in range(watched.rivals[rival, ROW], watched.rivals[rival + 1, ROW]):
        if rows.rows[row, GAP] == gap and rows.rows[row, FORBIDDEN] and (rows.rows[row, EXCUSED_BY] & flags) == 0:
            return True
    return False


@njit(**INSIDE)
def excuses_of(rows: RivalRows, watched: Watched, rival: int, gap: int) -> int:
    """The excuses of use that a rival gives in a gap."""
    found = 0
    for row in range(watched.rivals[rival, ROW], watched.rivals[rival + 1, ROW]):
        if rows.rows[row, GAP] == gap:
            found |= rows.rows[row, EXCUSES] & watched.gaps[gap, WANTED]
    return found


@njit(**INSIDE, forceinline=True)
def rival_event(rows: RivalRows, watched: Watched, rival: int) -> int:
    """The event that a rival is."""
    return rows.rows[watched.rivals[rival, ROW], EVENT]
