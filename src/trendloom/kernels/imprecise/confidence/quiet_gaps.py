"""Events in order, and no plain rival in the gap that it must keep out of: sums over pairs of neighbouring times.

    a_j(t') = p_j(t') · sum of a_{j-1}(t) · Q_j(t, t') over t < t',    Q_j(t, t') = product of P(f <= t) + P(f >= t')

over the plain rivals f of the gap. Gaps are open: a rival at the very time of an event is not between any. Gaps without
rivals take a running sum. Cost: O(length · points² · rivals of a gap).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.kernels.compiled import INSIDE, njit
from trendloom.kernels.imprecise.confidence.boxes import Box, Limits
from trendloom.kernels.imprecise.confidence.in_order import begin_order, go_on
from trendloom.kernels.imprecise.confidence.points import (
    PointMasses,
    fill_from,
    fill_up_to,
    mass_at,
    mass_outside,
)
from trendloom.kernels.imprecise.confidence.watched import RivalRows, Watched

Array = np.ndarray[Any, Any]


class Room(NamedTuple):
    """Vectors over the points of an event, and a matrix over those of two neighbours."""

    vector: Array
    spare: Array
    up_to: Array
    onwards: Array
    quiet: Array


@njit(**INSIDE)
def room_for(width: int, rivals: bool, share: Array) -> Room:
    """Room for events of so many points, of the type of their shares."""
    vectors = np.zeros((4, width), share.dtype)
    size = width if rivals else 0
    return Room(vectors[0], vectors[1], vectors[2], vectors[3], np.zeros((size, size), share.dtype))


@njit(**INSIDE)
def fill_quiet(points: PointMasses, rows: RivalRows, watched: Watched, box: Box, gap: int, room: Room) -> None:
    """For each pair of times of the events around a gap: how likely its plain rivals are not in between."""
    low, high, quiet = box.low, box.high, room.quiet
    begin, end = low[gap - 1], low[gap]
    quiet[: high[gap - 1] - begin + 1, : high[gap] - end + 1] = 1
    rival = watched.first[0, gap]
    while rival >= 0:
        event = rows.event[watched.begin[rival]]
        fill_up_to(points, event, begin, high[gap - 1], room.up_to)
        fill_from(points, event, end, high[gap], room.onwards)
        for one in range(high[gap - 1] - begin + 1):
            before = room.up_to[one]
            for other in range(max(begin + one + 1 - end, 0), high[gap] - end + 1):
                quiet[one, other] *= before + room.onwards[other]
        rival = watched.link[rival]


@njit(**INSIDE)
def quiet_at_end(
    points: PointMasses, rows: RivalRows, watched: Watched, gap: int, begin: int, end: int
) -> Any:
    """How likely no plain rival of a gap lies between two points."""
    found = points.share[0] * 0 + 1
    rival = watched.first[0, gap]
    while rival >= 0:
        found *= mass_outside(points, rows.event[watched.begin[rival]], begin, end)
        rival = watched.link[rival]
    return found


@njit(**INSIDE)
def weigh_quiet(
    points: PointMasses, rows: RivalRows, watched: Watched, events: Array, box: Box, limits: Limits, room: Room
) -> tuple[Any, int]:
    """The probability of a signature in a box, and the last time of its last event in worlds where it matches.

    Where a gap at either end depends on the first event, the box has one point for that.
    """
    low, high, length = box.low, box.high, len(events)
    vector, spare = room.vector, room.spare
    begin_order(points, events[0], low[0], high[0], vector)
    if not limits.bare:
        for point in range(low[0], high[0] + 1):
            vector[point - low[0]] *= quiet_at_end(points, rows, watched, 0, limits.first - 1, point)
    for j in range(1, length):
        if watched.first[0, j] < 0:
            go_on(points, events[j], (low[j - 1], high[j - 1]), (low[j], high[j]), vector, spare)
        else:
            fill_quiet(points, rows, watched, box, j, room)
            _go_on_quietly(points, events[j], box, j, room.quiet, vector, spare)
        vector, spare = spare, vector
    total, latest = points.share[0] * 0, -1
    for point in range(low[length - 1], high[length - 1] + 1):
        mass = vector[point - low[length - 1]]
        if mass > 0:
            mass *= quiet_ends(points, rows, watched, length, low[0], point, limits)
        if mass > 0:
            total += mass
            latest = point - low[length - 1]
    return total, low[length - 1] + latest


@njit(**INSIDE)
def quiet_ends(
    points: PointMasses, rows: RivalRows, watched: Watched, length: int, first: int, last: int, limits: Limits
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
    points: PointMasses, event: int, box: Box, j: int, quiet: Array, vector: Array, into: Array
) -> None:
    before, begin = box.low[j - 1], box.low[j]
    width = box.high[j] - begin + 1
    into[:width] = 0
    for one in range(box.high[j - 1] - before + 1):
        if vector[one] > 0:
            for other in range(max(before + one + 1 - begin, 0), width):
                into[other] += vector[one] * quiet[one, other]
    for other in range(width):
        into[other] *= mass_at(points, event, begin + other)
