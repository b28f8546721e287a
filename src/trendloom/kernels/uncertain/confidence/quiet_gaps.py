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
from trendloom.kernels.columns.numbers import BORROWED
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.uncertain.confidence.in_order import (
    CALLED,
    FAR,
    HIGH,
    LOW,
    BoxedSignature,
    fill_from,
    fill_up_to,
    go_on,
    load_masses,
    mass_outside,
)
from trendloom.kernels.uncertain.signatures import EVENT, EXCUSED_BY, EXCUSES, FORBIDDEN, GAP, Rivals

# ------------------------------------------------------------------------------------------------------------------
# The rivals of one signature, sorted by what they can do to it.
#
# A rival that cannot lie in any gap where it matters is *idle*. One that matters in a single gap is *plain*: given the
# ends of the gap, it is independent of all else. If something can excuse it there, it is *excusable*. All others, which
# matter in several gaps or excuse others, are *tracked*: the sweep has a bit that says whether they have occurred,
# between the first and last point where that matters. Two tracked rivals share a bit if they never need it together.
#
# Cost: O(rivals · length) per signature, and O(tracked²).


MOST_AT_ONCE = 12
"""Tracked rivals that matter at one point: each doubles the states of the sweep."""

IDLE, PLAIN, EXCUSABLE, TRACKED = range(4)
"""Kinds of rivals."""

RIVALS, BITS, FLAGS, NEEDS_START, NEEDS_END = range(5)
"""What `tally` holds: rivals, bits of tracked ones, sets of excuses; whether the first event, and also the last one,
must be fixed since it bounds a gap.
"""


ROW, KIND, LINK, BIT, START, STOP = range(6)
"""Columns of rivals: the first row (the next one's is where they end), the kind, the next of its list or -1; of tracked
ones the bit, and the first and last point where they matter.
"""

FIRST_PLAIN, FIRST_EXCUSABLE, AVAILABLE, USEFUL = range(4)
"""Columns of gaps: the first of the plain and of the excusable rivals, or -1; excuses that can be there, and those that
would be of use.
"""


class RivalTable(NamedTuple):
    """The rivals of a signature and its gaps, a row each, and their tally; by bit, where its last rival `ends`."""

    rivals: Array
    gaps: Array
    tally: Array
    ends: Array


class ContestedSignature(NamedTuple):
    """A signature in a box, with its rivals: `number` is that of its rows in `rivals`."""

    boxed: BoxedSignature
    number: int
    rivals: Rivals
    table: RivalTable


def empty_rival_table(most: int, length: int) -> RivalTable:
    """Space for so many rivals, of signatures of so many events."""
    rivals, gaps = np.zeros((most + 1, 6), np.int64), np.zeros((length + 1, 4), np.int64)
    return RivalTable(rivals, gaps, np.zeros(5, np.int64), np.zeros(MOST_AT_ONCE + 1, np.int64))


@njit(**CALLED)
def sort_rivals(contested: ContestedSignature) -> bool:
    """Fill the table with the rivals of a signature, and its gaps, by where its events can lie at all.

    Returns whether some rival matters.
    """
    table, length, matters = contested.table, len(contested.boxed.events), False
    tally = table.tally
    _split_by_event(contested)
    _find_excuses(contested)
    tally[BITS:] = 0
    tally[FLAGS] = 1
    table.gaps[: length + 1, : FIRST_EXCUSABLE + 1] = -1
    for rival in range(tally[RIVALS]):
        kind, gap = _kind_of(contested, rival)
        table.rivals[rival, KIND] = kind
        matters = matters or kind != IDLE
        if kind in (PLAIN, EXCUSABLE):
            head = FIRST_PLAIN if kind == PLAIN else FIRST_EXCUSABLE
            table.rivals[rival, LINK], table.gaps[gap, head] = table.gaps[gap, head], rival
    for gap in range(1, length):
        while table.gaps[gap, AVAILABLE] & table.gaps[gap, USEFUL] >= tally[FLAGS]:
            tally[FLAGS] *= 2
    _share_bits(table)
    return matters


@njit(**CALLED)
def _split_by_event(contested: ContestedSignature) -> None:
    (offsets, rows), table, count = contested.rivals, contested.table, 0
    begin, end = offsets[contested.number], offsets[contested.number + 1]
    for row in range(begin, end):
        if row == begin or rows[row, EVENT] != rows[row - 1, EVENT]:
            table.rivals[count, ROW] = row
            count += 1
    table.rivals[count, ROW] = end
    table.tally[RIVALS] = count


@njit(**CALLED)
def _reach_of(boxed: BoxedSignature, event: int, gap: int) -> tuple[int, int]:
    """The first and the last point of an event that can lie in a gap; the last is the lesser one if there are none."""
    whole, limits, length = boxed.whole, boxed.limits, len(boxed.events)
    if gap > 0:
        first = whole[gap - 1, LOW] + 1
    else:
        first = whole[length - 1, LOW] - limits.span + 1 if limits.bare else limits.first
    if gap < length:
        last = whole[gap, HIGH] - 1
    else:
        last = whole[0, HIGH] + limits.span - 1 if limits.bare else limits.last
    return max(first, boxed.points.bounds[event, LOW]), min(last, boxed.points.bounds[event, HIGH])


@njit(**CALLED)
def _find_excuses(contested: ContestedSignature) -> None:
    (offsets, rows), gaps, length = contested.rivals, contested.table.gaps, len(contested.boxed.events)
    gaps[: length + 1, AVAILABLE:] = 0
    for row in range(offsets[contested.number], offsets[contested.number + 1]):
        gap = rows[row, GAP]
        if 0 < gap < length and (rows[row, EXCUSES] != 0 or rows[row, EXCUSED_BY] != 0):
            first, last = _reach_of(contested.boxed, rows[row, EVENT], gap)
            if first <= last:
                gaps[gap, AVAILABLE] |= rows[row, EXCUSES]
                if rows[row, FORBIDDEN]:
                    gaps[gap, USEFUL] |= rows[row, EXCUSED_BY]


@njit(**CALLED)
def _kind_of(contested: ContestedSignature, rival: int) -> tuple[int, int]:
    """The kind of a rival and a gap where it matters; notes from where to where it does, and what must be fixed."""
    rows, table, length = contested.rivals.rows, contested.table, len(contested.boxed.events)
    bare = contested.boxed.limits.bare
    gap, several, excuses, zero = -1, False, False, False
    can_be_excused = True
    start, stop = FAR, -FAR
    for row in range(table.rivals[rival, ROW], table.rivals[rival + 1, ROW]):
        here, forbidden = rows[row, GAP], rows[row, FORBIDDEN] != 0
        useful = 0 < here < length and (rows[row, EXCUSES] & table.gaps[here, USEFUL]) != 0
        if not (forbidden or useful):
            continue
        first, last = _reach_of(contested.boxed, rows[row, EVENT], here)
        if first > last:
            continue
        several = several or (gap >= 0 and gap != here)
        gap, excuses, zero = here, excuses or useful, zero or here == 0
        if forbidden and (rows[row, EXCUSED_BY] & table.gaps[here, AVAILABLE]) == 0:
            can_be_excused = False
        start, stop = min(start, first), max(stop, last)
        if bare and (here == 0 or here == length):
            table.tally[NEEDS_START] = 1
    table.rivals[rival, START], table.rivals[rival, STOP] = start, stop
    if gap < 0:
        return IDLE, gap
    if several or excuses:
        if bare and zero:
            table.tally[NEEDS_END] = 1
        return TRACKED, gap
    return EXCUSABLE if can_be_excused else PLAIN, gap


@njit(**CALLED)
def _share_bits(table: RivalTable) -> None:
    """Give tracked rivals bits, in order of their starts; more bits than there may be are counted, not given."""
    tally, ends, last_start = table.tally, table.ends, -FAR
    ends[:] = 0
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


@njit(**CALLED)
def is_blocked(contested: ContestedSignature, rival: int, gap: int, flags: int) -> bool:
    """Whether a rival must not lie in a gap after these excuses. Each of its rows must be excused by itself."""
    rows, starts = contested.rivals.rows, contested.table.rivals
    for row in range(starts[rival, ROW], starts[rival + 1, ROW]):
        if rows[row, GAP] == gap and rows[row, FORBIDDEN] and (rows[row, EXCUSED_BY] & flags) == 0:
            return True
    return False


@njit(**CALLED)
def excuses_of(contested: ContestedSignature, rival: int, gap: int) -> int:
    """The excuses of use that a rival gives in a gap."""
    rows, starts, found = contested.rivals.rows, contested.table.rivals, 0
    for row in range(starts[rival, ROW], starts[rival + 1, ROW]):
        if rows[row, GAP] == gap:
            found |= rows[row, EXCUSES] & contested.table.gaps[gap, USEFUL]
    return found


@njit(**BORROWED)
def rival_event(contested: ContestedSignature, rival: int) -> int:
    """The event that a rival is."""
    return contested.rivals.rows[contested.table.rivals[rival, ROW], EVENT]


KEPT = 1 << 22
"""Most numbers of tables over two neighbours that are kept from one box of a signature to the next."""


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


def workspace_for(width: int, gaps: int, kind: Any) -> Workspace:
    """Workspace for events of so many points and signatures of so many gaps, with numbers of some type."""
    vectors = np.zeros((4, width), kind)
    tables = gaps if 0 < gaps * width * width <= KEPT else 1
    quiet = np.zeros((tables, width, width), kind)
    return Workspace(vectors[0], vectors[1], vectors[2], vectors[3], quiet, np.zeros(tables, np.bool_))


@njit(**CALLED)
def quiet_table(contested: ContestedSignature, gap: int, space: Workspace) -> tuple[int, int, int]:
    """Fill the table of a gap in `space.quiet`: for each pair of times of the events around it, how likely its plain
    rivals are outside. Returns its number, and the row and column of the first times in the box.
    """
    box, whole = contested.boxed.box, contested.boxed.whole
    if len(space.filled) == 1:
        _fill_quiet(contested, box, gap, space, space.quiet[0])
        return 0, 0, 0
    if not space.filled[gap - 1]:
        _fill_quiet(contested, whole, gap, space, space.quiet[gap - 1])
        space.filled[gap - 1] = True
    return gap - 1, box[gap - 1, LOW] - whole[gap - 1, LOW], box[gap, LOW] - whole[gap, LOW]


@njit(**CALLED)
def _fill_quiet(contested: ContestedSignature, box: Array, gap: int, space: Workspace, quiet: Array) -> None:
    """Fill the table of a gap in a box."""
    points, table = contested.boxed.points, contested.table
    begin, end = box[gap - 1, LOW], box[gap, LOW]
    height, width = box[gap - 1, HIGH] - begin + 1, box[gap, HIGH] - end + 1
    quiet[:height, :width] = 1
    rival = table.gaps[gap, FIRST_PLAIN]
    while rival >= 0:
        event = rival_event(contested, rival)
        fill_up_to(points, event, begin, begin + height - 1, space.up_to)
        fill_from(points, event, end, end + width - 1, space.onwards)
        for one in range(height):
            before = space.up_to[one]
            for other in range(max(begin + one + 1 - end, 0), width):
                quiet[one, other] *= before + space.onwards[other]
        rival = table.rivals[rival, LINK]


@njit(**CALLED)
def quiet_at_end(contested: ContestedSignature, gap: int, begin: int, end: int) -> Any:
    """How likely no plain rival of a gap lies between two points."""
    points, table = contested.boxed.points, contested.table
    found = points.share[0] * 0 + 1
    rival = table.gaps[gap, FIRST_PLAIN]
    while rival >= 0:
        found *= mass_outside(points, rival_event(contested, rival), begin, end)
        rival = table.rivals[rival, LINK]
    return found


@njit(**CALLED)
def weigh_quiet(contested: ContestedSignature, space: Workspace) -> tuple[Any, int]:
    """The probability of a signature in a box, and the last time of its last event in worlds where it matches.

    Where a gap at either end depends on the first event, the box has one point for that.
    """
    points, events, limits, _, box = contested.boxed
    table, last, vector, spare = contested.table, len(events) - 1, space.vector, space.spare
    load_masses(points, events[0], box[0, LOW], box[0, HIGH], vector)
    if not limits.bare and table.gaps[0, FIRST_PLAIN] >= 0:
        for point in range(box[0, LOW], box[0, HIGH] + 1):
            vector[point - box[0, LOW]] *= quiet_at_end(contested, 0, limits.first - 1, point)
    for j in range(1, last + 1):
        if table.gaps[j, FIRST_PLAIN] < 0:
            before, now = (box[j - 1, LOW], box[j - 1, HIGH]), (box[j, LOW], box[j, HIGH])
            go_on(points, events[j], before, now, vector, spare)
        else:
            number, row, column = quiet_table(contested, j, space)
            quiet = space.quiet[number, row:, column:]
            _go_on_quietly(contested.boxed, j, quiet, space.onwards, vector, spare)
        vector, spare = spare, vector
    ends = table.gaps[last + 1, FIRST_PLAIN] >= 0 or table.gaps[0, FIRST_PLAIN] >= 0
    total, latest = points.share[0] * 0, box[last, LOW] - 1
    for point in range(box[last, LOW], box[last, HIGH] + 1):
        mass = vector[point - box[last, LOW]]
        if ends and mass > 0:
            mass *= quiet_ends(contested, point)
        if mass > 0:
            total += mass
            latest = point
    return total, latest


@njit(**CALLED)
def quiet_ends(contested: ContestedSignature, last: int) -> Any:
    """How likely plain rivals keep out of the gap after the last event, which lies at the point `last`, and of that
    before the first event if the last event bounds it.
    """
    limits, first, length = contested.boxed.limits, contested.boxed.box[0, LOW], len(contested.boxed.events)
    end = first + limits.span if limits.bare else limits.last + 1
    found = quiet_at_end(contested, length, last, end)
    if limits.bare:
        found *= quiet_at_end(contested, 0, last - limits.span, first)
    return found


@njit(**CALLED)
def _go_on_quietly(boxed: BoxedSignature, j: int, quiet: Array, masses: Array, vector: Array, into: Array) -> None:
    box = boxed.box
    before, begin = box[j - 1, LOW], box[j, LOW]
    width = box[j, HIGH] - begin + 1
    load_masses(boxed.points, boxed.events[j], begin, box[j, HIGH], masses)
    into[:width] = 0
    for one in range(box[j - 1, HIGH] - before + 1):
        mass = vector[one]
        for other in range(max(before + one + 1 - begin, 0), width):
            into[other] += mass * quiet[one, other]
    for other in range(width):
        into[other] *= masses[other]
