"""Events in order, and no plain rival in the gap that it must keep out of: sums over pairs of neighbouring times.

    a_j(t') = p_j(t') · sum of a_{j-1}(t) · Q_j(t, t') over t < t',    Q_j(t, t') = product of P(f <= t) + P(f >= t')

over the plain rivals f of the gap. Gaps are open: a rival at the very time of an event is not between any. Gaps without
rivals take a running sum. Cost: O(length · points² · rivals of a gap) for a signature, and O(length · points²) for each
of its boxes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.uncertain.confidence.in_order import (
    FAR,
    HIGH,
    LOW,
    PointMasses,
    TimeLimits,
    fill_from,
    fill_up_to,
    go_on,
    load_masses,
    mass_outside,
)

# ------------------------------------------------------------------------------------------------------------------
# The rivals of one signature, sorted by what they can do to it.
#
# A rival that cannot lie in any gap where it matters is *idle*. One that matters in a single gap is *plain*: given the
# ends of the gap, it is independent of all else. If something can excuse it there, it is *excusable*. All others, which
# matter in several gaps or excuse somebody, are *tracked*: the sweep remembers by a bit whether they have occurred,
# between the first and last point where that matters. Two tracked rivals share a bit if they never need it together.
#
# Cost: O(rivals · length) per signature, and O(tracked²).


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


class RivalTable(NamedTuple):
    """The rivals of a signature and its gaps, a row each, and their tally."""

    rivals: Array
    gaps: Array
    tally: Array


@njit(**INSIDE)
def empty_rival_table(most: int, length: int) -> RivalTable:
    """Workspace for the rivals of any signature."""
    return RivalTable(np.zeros((most + 1, 6), np.int64), np.zeros((length + 1, 4), np.int64), np.zeros(5, np.int64))


@njit(**INSIDE)
def sort_rivals(
    points: PointMasses,
    rows: RivalRows,
    number: int,
    length: int,
    box: Array,
    limits: TimeLimits,
    table: RivalTable,
) -> None:
    """Sort those of the signature with this number."""
    _split_by_event(rows, number, table)
    _find_excuses(points, rows, number, length, box, limits, table)
    tally = table.tally
    tally[BITS:] = 0
    tally[FLAGS] = 1
    table.gaps[: length + 1, : FIRST_EXCUSABLE + 1] = -1
    for rival in range(tally[RIVALS]):
        kind, gap = _kind_of(points, rows, rival, length, box, limits, table)
        table.rivals[rival, KIND] = kind
        if kind in (PLAIN, EXCUSABLE):
            head = FIRST_PLAIN if kind == PLAIN else FIRST_EXCUSABLE
            table.rivals[rival, LINK], table.gaps[gap, head] = table.gaps[gap, head], rival
    for gap in range(1, length):
        while table.gaps[gap, AVAILABLE] & table.gaps[gap, WANTED] >= tally[FLAGS]:
            tally[FLAGS] *= 2
    _share_bits(table)


@njit(**INSIDE)
def _split_by_event(rows: RivalRows, number: int, table: RivalTable) -> None:
    count = 0
    for row in range(rows.offsets[number], rows.offsets[number + 1]):
        if row == rows.offsets[number] or rows.rows[row, EVENT] != rows.rows[row - 1, EVENT]:
            table.rivals[count, ROW] = row
            count += 1
    table.rivals[count, ROW] = rows.offsets[number + 1]
    table.tally[RIVALS] = count


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
    points: PointMasses,
    rows: RivalRows,
    number: int,
    length: int,
    box: Array,
    limits: TimeLimits,
    table: RivalTable,
) -> None:
    table.gaps[: length + 1, AVAILABLE:] = 0
    for row in range(rows.offsets[number], rows.offsets[number + 1]):
        gap = rows.rows[row, GAP]
        if 0 < gap < length and (rows.rows[row, EXCUSES] != 0 or rows.rows[row, EXCUSED_BY] != 0):
            first, last = reach_of(points, rows.rows[row, EVENT], gap, length, box, limits)
            if first <= last:
                table.gaps[gap, AVAILABLE] |= rows.rows[row, EXCUSES]
                if rows.rows[row, FORBIDDEN]:
                    table.gaps[gap, WANTED] |= rows.rows[row, EXCUSED_BY]


@njit(**INSIDE)
def _kind_of(
    points: PointMasses,
    rows: RivalRows,
    rival: int,
    length: int,
    box: Array,
    limits: TimeLimits,
    table: RivalTable,
) -> tuple[int, int]:
    """The kind of a rival and a gap where it matters; notes from where to where it does, and what must be fixed."""
    gap, several, excuses, zero = -1, False, False, False
    can_be_excused = True
    start, stop = FAR, -FAR
    for row in range(table.rivals[rival, ROW], table.rivals[rival + 1, ROW]):
        here = rows.rows[row, GAP]
        useful = 0 < here < length and (rows.rows[row, EXCUSES] & table.gaps[here, WANTED]) != 0
        if not (rows.rows[row, FORBIDDEN] or useful):
            continue
        first, last = reach_of(points, rows.rows[row, EVENT], here, length, box, limits)
        if first > last:
            continue
        several = several or (gap >= 0 and gap != here)
        gap, excuses, zero = here, excuses or useful, zero or here == 0
        if rows.rows[row, FORBIDDEN] and (rows.rows[row, EXCUSED_BY] & table.gaps[here, AVAILABLE]) == 0:
            can_be_excused = False
        start, stop = min(start, first), max(stop, last)
        if limits.bare and (here == 0 or here == length):
            table.tally[NEEDS_START] = 1
    table.rivals[rival, START], table.rivals[rival, STOP] = start, stop
    if gap < 0:
        return IDLE, gap
    if several or excuses:
        if limits.bare and zero:
            table.tally[NEEDS_END] = 1
        return TRACKED, gap
    return EXCUSABLE if can_be_excused else PLAIN, gap


@njit(**INSIDE)
def _share_bits(table: RivalTable) -> None:
    """Give tracked rivals bits, in order of their starts; more bits than there may be are counted, not given."""
    tally, ends = table.tally, np.zeros(MOST_AT_ONCE + 1, np.int64)
    last_start = -FAR
    while True:
        start = FAR
        for rival in range(tally[RIVALS]):
            if table.rivals[rival, KIND] == TRACKED and last_start < table.rivals[rival, START] < start:
                start = table.rivals[rival, START]
        if start == FAR:
            return
        for rival in range(tally[RIVALS]):
            if table.rivals[rival, KIND] == TRACKED and table.rivals[rival, START] == start:
                bit = 0
                while bit < tally[BITS] and ends[bit] >= start:
                    bit += 1
                if bit >= MOST_AT_ONCE:
                    tally[BITS] = MOST_AT_ONCE + 1
                    return
                tally[BITS] = max(tally[BITS], bit + 1)
                table.rivals[rival, BIT], ends[bit] = bit, table.rivals[rival, STOP]
        last_start = start


@njit(**INSIDE)
def is_blocked(rows: RivalRows, table: RivalTable, rival: int, gap: int, flags: int) -> bool:
    """Whether a rival must not lie in a gap after these excuses. Each of its rows must be excused by itself."""
    for row in range(table.rivals[rival, ROW], table.rivals[rival + 1, ROW]):
        if rows.rows[row, GAP] == gap and rows.rows[row, FORBIDDEN] and (rows.rows[row, EXCUSED_BY] & flags) == 0:
            return True
    return False


@njit(**INSIDE)
def excuses_of(rows: RivalRows, table: RivalTable, rival: int, gap: int) -> int:
    """The excuses of use that a rival gives in a gap."""
    found = 0
    for row in range(table.rivals[rival, ROW], table.rivals[rival + 1, ROW]):
        if rows.rows[row, GAP] == gap:
            found |= rows.rows[row, EXCUSES] & table.gaps[gap, WANTED]
    return found


@njit(**INSIDE, forceinline=True)
def rival_event(rows: RivalRows, table: RivalTable, rival: int) -> int:
    """The event that a rival is."""
    return rows.rows[table.rivals[rival, ROW], EVENT]


KEPT = 1 << 22
"""Most numbers of tables over two neighbours that are kept from one box of a signature to the next."""


class BoxedSignature(NamedTuple):
    """A signature in a box, with its rivals; `whole` is where its events can lie at all."""

    points: PointMasses
    rows: RivalRows
    table: RivalTable
    events: Array
    whole: Array
    box: Array
    limits: TimeLimits


class Workspace(NamedTuple):
    """Vectors over the points of an event, and matrices over those of two neighbours: one for each gap that a signature
    may have, `filled` or not, or a single one for all.
    """

    vector: Array
    spare: Array
    up_to: Array
    onwards: Array
    quiet: Array
    filled: Array


@njit(**INSIDE)
def workspace_for(width: int, gaps: int, share: Array) -> Workspace:
    """Workspace for events of so many points and signatures of so many gaps, of the type of their shares."""
    vectors = np.zeros((4, width), share.dtype)
    tables = gaps if 0 < gaps * width * width <= KEPT else 1
    quiet = np.zeros((tables, width, width), share.dtype)
    return Workspace(vectors[0], vectors[1], vectors[2], vectors[3], quiet, np.zeros(tables, np.bool_))


@njit(**INSIDE)
def quiet_table(boxed: BoxedSignature, gap: int, space: Workspace) -> Array:
    """For each pair of times, in the box, of the events around a gap: how likely its plain rivals are outside."""
    box, whole = boxed.box, boxed.whole
    if len(space.filled) == 1:
        fill_quiet(boxed.points, boxed.rows, boxed.table, box, gap, space, space.quiet[0])
        return space.quiet[0, 0:, 0:]
    if not space.filled[gap - 1]:
        fill_quiet(boxed.points, boxed.rows, boxed.table, whole, gap, space, space.quiet[gap - 1])
        space.filled[gap - 1] = True
    return space.quiet[gap - 1, box[gap - 1, LOW] - whole[gap - 1, LOW] :, box[gap, LOW] - whole[gap, LOW] :]


@njit(**INSIDE)
def fill_quiet(
    points: PointMasses,
    rows: RivalRows,
    table: RivalTable,
    box: Array,
    gap: int,
    space: Workspace,
    quiet: Array,
) -> None:
    """Fill the table of a gap in a box."""
    begin, end = box[gap - 1, LOW], box[gap, LOW]
    height, width = box[gap - 1, HIGH] - begin + 1, box[gap, HIGH] - end + 1
    quiet[:height, :width] = 1
    rival = table.gaps[gap, FIRST_PLAIN]
    while rival >= 0:
        event = rival_event(rows, table, rival)
        fill_up_to(points, event, begin, begin + height - 1, space.up_to)
        fill_from(points, event, end, end + width - 1, space.onwards)
        for one in range(height):
            before = space.up_to[one]
            for other in range(max(begin + one + 1 - end, 0), width):
                quiet[one, other] *= before + space.onwards[other]
        rival = table.rivals[rival, LINK]


@njit(**INSIDE)
def quiet_at_end(points: PointMasses, rows: RivalRows, table: RivalTable, gap: int, begin: int, end: int) -> Any:
    """How likely no plain rival of a gap lies between two points."""
    found = points.share[0] * 0 + 1
    rival = table.gaps[gap, FIRST_PLAIN]
    while rival >= 0:
        found *= mass_outside(points, rival_event(rows, table, rival), begin, end)
        rival = table.rivals[rival, LINK]
    return found


@njit(**INSIDE)
def weigh_quiet(boxed: BoxedSignature, space: Workspace) -> tuple[Any, int]:
    """The probability of a signature in a box, and the last time of its last event in worlds where it matches.

    Where a gap at either end depends on the first event, the box has one point for that.
    """
    points, rows, table, events, _, box, limits = boxed
    last, vector, spare = len(events) - 1, space.vector, space.spare
    load_masses(points, events[0], box[0, LOW], box[0, HIGH], vector)
    if not limits.bare and table.gaps[0, FIRST_PLAIN] >= 0:
        for point in range(box[0, LOW], box[0, HIGH] + 1):
            vector[point - box[0, LOW]] *= quiet_at_end(points, rows, table, 0, limits.first - 1, point)
    for j in range(1, last + 1):
        if table.gaps[j, FIRST_PLAIN] < 0:
            before, now = (box[j - 1, LOW], box[j - 1, HIGH]), (box[j, LOW], box[j, HIGH])
            go_on(points, events[j], before, now, vector, spare)
        else:
            _go_on_quietly(points, events[j], box, j, quiet_table(boxed, j, space), space.onwards, vector, spare)
        vector, spare = spare, vector
    ends = table.gaps[last + 1, FIRST_PLAIN] >= 0 or table.gaps[0, FIRST_PLAIN] >= 0
    total, latest = points.share[0] * 0, box[last, LOW] - 1
    for point in range(box[last, LOW], box[last, HIGH] + 1):
        mass = vector[point - box[last, LOW]]
        if ends and mass > 0:
            mass *= quiet_ends(points, rows, table, last + 1, box[0, LOW], point, limits)
        if mass > 0:
            total += mass
            latest = point
    return total, latest


@njit(**INSIDE)
def quiet_ends(
    points: PointMasses,
    rows: RivalRows,
    table: RivalTable,
    length: int,
    first: int,
    last: int,
    limits: TimeLimits,
) -> Any:
    """How likely plain rivals keep out of the gap after the last event, and of that before the first if the last event
    says how far back it goes.
    """
    end = first + limits.span if limits.bare else limits.last + 1
    found = quiet_at_end(points, rows, table, length, last, end)
    if limits.bare:
        found *= quiet_at_end(points, rows, table, 0, last - limits.span, first)
    return found


@njit(**INSIDE)
def _go_on_quietly(
    points: PointMasses, event: int, box: Array, j: int, quiet: Array, masses: Array, vector: Array, into: Array
) -> None:
    before, begin = box[j - 1, LOW], box[j, LOW]
    width = box[j, HIGH] - begin + 1
    load_masses(points, event, begin, box[j, HIGH], masses)
    into[:width] = 0
    for one in range(box[j - 1, HIGH] - before + 1):
        mass = vector[one]
        for other in range(max(before + one + 1 - begin, 0), width):
            into[other] += mass * quiet[one, other]
    for other in range(width):
        into[other] *= masses[other]
