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
from trendloom.kernels.uncertain.confidence.boxes import TimeLimits
from trendloom.kernels.uncertain.confidence.in_order import go_on
from trendloom.kernels.uncertain.confidence.points import (
    HIGH,
    LOW,
    PointMasses,
    fill_from,
    fill_up_to,
    load_masses,
    mass_outside,
)
from trendloom.kernels.uncertain.confidence.rivals import FIRST_PLAIN, LINK, RivalRows, Watched, rival_event

KEPT = 1 << 22
"""Most numbers of tables over two neighbours that are kept from one box of a signature to the next."""


class BoxedSignature(NamedTuple):
    """A signature in a box, with its rivals; `whole` is where its events can lie at all."""

    points: PointMasses
    rows: RivalRows
    watched: Watched
    events: Array
    whole: Array
    box: Array
    limits: TimeLimits


class Room(NamedTuple):
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
def room_for(width: int, gaps: int, share: Array) -> Room:
    """Room for events of so many points and signatures of so many gaps, of the type of their shares."""
    vectors = np.zeros((4, width), share.dtype)
    tables = gaps if 0 < gaps * width * width <= KEPT else 1
    quiet = np.zeros((tables, width, width), share.dtype)
    return Room(vectors[0], vectors[1], vectors[2], vectors[3], quiet, np.zeros(tables, np.bool_))


@njit(**INSIDE)
def quiet_table(scene: BoxedSignature, gap: int, room: Room) -> Array:
    """For each pair of times, in the box, of the events around a gap: how likely its plain rivals are outside."""
    box, whole = scene.box, scene.whole
    if len(room.filled) == 1:
        fill_quiet(scene.points, scene.rows, scene.watched, box, gap, room, room.quiet[0])
        return room.quiet[0, 0:, 0:]
    if not room.filled[gap - 1]:
        fill_quiet(scene.points, scene.rows, scene.watched, whole, gap, room, room.quiet[gap - 1])
        room.filled[gap - 1] = True
    return room.quiet[gap - 1, box[gap - 1, LOW] - whole[gap - 1, LOW] :, box[gap, LOW] - whole[gap, LOW] :]


@njit(**INSIDE)
def fill_quiet(
    points: PointMasses, rows: RivalRows, watched: Watched, box: Array, gap: int, room: Room, quiet: Array
) -> None:
    """Fill the table of a gap in a box."""
    begin, end = box[gap - 1, LOW], box[gap, LOW]
    height, width = box[gap - 1, HIGH] - begin + 1, box[gap, HIGH] - end + 1
    quiet[:height, :width] = 1
    rival = watched.gaps[gap, FIRST_PLAIN]
    while rival >= 0:
        event = rival_event(rows, watched, rival)
        fill_up_to(points, event, begin, begin + height - 1, room.up_to)
        fill_from(points, event, end, end + width - 1, room.onwards)
        for one in range(height):
            before = room.up_to[one]
            for other in range(max(begin + one + 1 - end, 0), width):
                quiet[one, other] *= before + room.onwards[other]
        rival = watched.rivals[rival, LINK]


@njit(**INSIDE)
def quiet_at_end(points: PointMasses, rows: RivalRows, watched: Watched, gap: int, begin: int, end: int) -> Any:
    """How likely no plain rival of a gap lies between two points."""
    found = points.share[0] * 0 + 1
    rival = watched.gaps[gap, FIRST_PLAIN]
    while rival >= 0:
        found *= mass_outside(points, rival_event(rows, watched, rival), begin, end)
        rival = watched.rivals[rival, LINK]
    return found


@njit(**INSIDE)
def weigh_quiet(scene: BoxedSignature, room: Room) -> tuple[Any, int]:
    """The probability of a signature in a box, and the last time of its last event in worlds where it matches.

    Where a gap at either end depends on the first event, the box has one point for that.
    """
    points, rows, watched, events, _, box, limits = scene
    last, vector, spare = len(events) - 1, room.vector, room.spare
    load_masses(points, events[0], box[0, LOW], box[0, HIGH], vector)
    if not limits.bare and watched.gaps[0, FIRST_PLAIN] >= 0:
        for point in range(box[0, LOW], box[0, HIGH] + 1):
            vector[point - box[0, LOW]] *= quiet_at_end(points, rows, watched, 0, limits.first - 1, point)
    for j in range(1, last + 1):
        if watched.gaps[j, FIRST_PLAIN] < 0:
            before, now = (box[j - 1, LOW], box[j - 1, HIGH]), (box[j, LOW], box[j, HIGH])
            go_on(points, events[j], before, now, vector, spare)
        else:
            _go_on_quietly(points, events[j], box, j, quiet_table(scene, j, room), room.onwards, vector, spare)
        vector, spare = spare, vector
    ends = watched.gaps[last + 1, FIRST_PLAIN] >= 0 or watched.gaps[0, FIRST_PLAIN] >= 0
    total, latest = points.share[0] * 0, box[last, LOW] - 1
    for point in range(box[last, LOW], box[last, HIGH] + 1):
        mass = vector[point - box[last, LOW]]
        if ends and mass > 0:
            mass *= quiet_ends(points, rows, watched, last + 1, box[0, LOW], point, limits)
        if mass > 0:
            total += mass
            latest = point
    return total, latest


@njit(**INSIDE)
def quiet_ends(
    points: PointMasses, rows: RivalRows, watched: Watched, length: int, first: int, last: int, limits: TimeLimits
) -> Any:
    """How likely plain rivals keep out of the gap after the last event, and of that before the first if the last event
    says how far back it goes.
    """
    end = first + limits.span if limits.bare else limits.last + 1
    found = quiet_at_end(points, rows, watched, length, last, end)
    if limits.bare:
        found *= quiet_at_end(points, rows, watched, 0, last - limits.span, first)
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
