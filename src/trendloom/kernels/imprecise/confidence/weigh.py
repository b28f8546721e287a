"""The confidences and time ranges of many signatures, each by the plainest sum that gives it.

What depends on the first or the last event's time is summed over boxes where these are fixed: a span that binds, for
each start that it binds and once for all others; gaps at the ends under a bare WITHIN, for each start, and for each end
as well if a rival before the first event also matters elsewhere.

Cost: see `in_order`, `quiet_gaps`, `sweep`; times the number of boxes. Least starts are found by trying one after the
other where rivals are about, mostly once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.kernels.compiled import INSIDE, njit
from trendloom.kernels.imprecise.confidence.boxes import FAR, Box, Limits, narrow, tighten
from trendloom.kernels.imprecise.confidence.in_order import first_point, last_point, mass_in_order
from trendloom.kernels.imprecise.confidence.points import PointMasses, mass_at
from trendloom.kernels.imprecise.confidence.quiet_gaps import Room, room_for, weigh_quiet
from trendloom.kernels.imprecise.confidence.sweep import Scene, weigh_sweep
from trendloom.kernels.imprecise.confidence.watched import (
    BITS,
    FLAGS,
    MOST_AT_ONCE,
    NEEDS_END,
    NEEDS_START,
    PLAIN,
    RIVALS,
    RivalRows,
    Watched,
    empty_watch,
    sort_rivals,
)

Array = np.ndarray[Any, Any]

TINY = -900
"""The power of two below which a product of probabilities is left to fractions: doubles end at -1022."""

DONE, DELICATE, TOO_MANY = range(3)
"""What came of a signature: a number; numbers too small for doubles; more tracked rivals than there may be."""


class SignatureRows(NamedTuple):
    """Signatures as `Signatures` has them; `window` has no rows if there are none. `span`: `FAR` if there is none."""

    offsets: Array
    events: Array
    window: Array
    span: int


class Weights(NamedTuple):
    """Of each signature: its confidence, the points it covers, how often that was rounded at most, what came of it."""

    confidence: Array
    low: Array
    high: Array
    roundings: Array
    outcome: Array


class Desk(NamedTuple):
    """Where signatures are worked on, one after the other."""

    whole: Box
    box: Box
    room: Room
    watched: Watched


@njit(nogil=True)
def weigh(points: PointMasses, signatures: SignatureRows, rows: RivalRows, width: int) -> Weights:
    """All of them; `width`: the most points of an event."""
    offsets = signatures.offsets
    count = len(offsets) - 1
    weights = Weights(
        np.zeros(count, points.share.dtype), np.zeros(count, np.int64), np.zeros(count, np.int64),
        np.zeros(count, np.int64), np.zeros(count, np.int64),
    )  # fmt: skip
    longest, most = _largest(offsets), _largest(rows.offsets)
    words = np.zeros((4, longest + 1), np.int64)
    room = room_for(width, most > 0, points.share)
    desk = Desk(Box(words[0], words[1]), Box(words[2], words[3]), room, empty_watch(most, longest))
    for number in range(count):
        events = signatures.events[offsets[number] : offsets[number + 1]]
        first, last = -FAR, FAR
        if len(signatures.window):
            first, last = signatures.window[number, 0], signatures.window[number, 1]
        bare = len(signatures.window) == 0 and signatures.span < FAR
        _weigh_one(points, events, Limits(signatures.span, first, last, bare), rows, number, desk, weights)
    return weights


@njit(**INSIDE)
def _largest(offsets: Array) -> int:
    most = 0
    for number in range(len(offsets) - 1):
        most = max(most, offsets[number + 1] - offsets[number])
    return most


@njit(**INSIDE)
def _weigh_one(
    points: PointMasses, events: Array, limits: Limits, rows: RivalRows, number: int, desk: Desk, weights: Weights
) -> None:
    whole, length = desk.whole, len(events)
    for j in range(length):
        whole.low[j] = max(points.low[events[j]], limits.first)
        whole.high[j] = min(points.high[events[j]], limits.last)
    if not tighten(whole, length, limits.span):
        return
    watched = desk.watched
    watched.tally[:] = 0
    has_rivals = False
    if rows.offsets[number] < rows.offsets[number + 1]:
        sort_rivals(points, rows, number, length, whole, limits, watched)
        for rival in range(watched.tally[RIVALS]):
            has_rivals = has_rivals or watched.kind[rival] >= PLAIN
    if not has_rivals and _is_certain(points, events, whole, limits.span):
        weights.confidence[number] = 1
        weights.low[number], weights.high[number] = whole.low[0], whole.high[length - 1]
        return
    weights.roundings[number], weights.outcome[number] = _precision(points, events, rows, watched)
    if weights.outcome[number] != DONE:
        return
    scene = Scene(points, rows, watched, events, desk.box, limits)
    if has_rivals:
        found = _with_rivals(scene, whole, desk.room)
    else:
        found = _in_order(scene, whole, desk.room)
    if found[0] > 0:
        weights.confidence[number], weights.low[number], weights.high[number] = found


@njit(**INSIDE)
def _is_certain(points: PointMasses, events: Array, whole: Box, span: int) -> bool:
    """Whether events are in order in all worlds, and in their window and span."""
    length = len(events)
    for j in range(length):
        if whole.low[j] != points.low[events[j]] or whole.high[j] != points.high[events[j]]:
            return False
        if j > 0 and whole.low[j] <= whole.high[j - 1]:
            return False
    return whole.high[length - 1] - whole.low[0] < span


@njit(**INSIDE)
def _precision(points: PointMasses, events: Array, rows: RivalRows, watched: Watched) -> tuple[int, int]:
    """How many roundings lie between given masses and the confidence at most, and whether doubles are fit for it.

    An event's masses are summed and divided, its vector is summed and multiplied, and so are boxes: at most four
    roundings per point and four per event. A rival is rounded once more when it is multiplied into all else.
    """
    roundings, least = 8, 0.0
    for event in events:
        roundings += 4 * (points.high[event] - points.low[event] + 2) + watched.tally[FLAGS]
        least += points.least[event]
    for rival in range(watched.tally[RIVALS]):
        if watched.kind[rival] >= PLAIN:
            event = rows.event[watched.begin[rival]]
            roundings += 4 * (points.high[event] - points.low[event] + 3)
            least += points.least[event]
    if watched.tally[BITS] > MOST_AT_ONCE:
        return roundings, TOO_MANY
    return roundings, DELICATE if least < TINY else DONE


@njit(**INSIDE)
def _in_order(scene: Scene, whole: Box, room: Room) -> tuple[Any, int, int]:
    """Without rivals: confidence, least start and greatest end. What begins earlier or ends later is in order too."""
    points, events, box, span = scene.points, scene.events, scene.box, scene.limits.span
    last = len(events) - 1
    total, low, high = points.share[0] * 0, FAR, -FAR
    begin = whole.low[0]
    while begin <= whole.high[0]:
        end = begin if whole.high[last] - begin >= span else whole.high[0]
        ends = -FAR, min(begin + span - 1, FAR)
        if narrow(whole, box, last + 1, (begin, end), ends):
            mass = mass_in_order(points, events, box, room.vector, room.spare)
            if mass > 0:
                total += mass
                low = min(low, first_point(points, events[0], box.low[0], box.high[0]))
                high = max(high, last_point(points, events[last], box.low[last], box.high[last]))
        begin = end + 1
    return total, low, high


@njit(**INSIDE)
def _with_rivals(scene: Scene, whole: Box, room: Room) -> tuple[Any, int, int]:
    """The same with rivals."""
    points, last, span = scene.points, len(scene.events) - 1, scene.limits.span
    tally = scene.watched.tally
    total, low, high = points.share[0] * 0, FAR, -FAR
    begin = whole.low[0]
    while begin <= whole.high[0]:
        alone = tally[NEEDS_START] != 0 or whole.high[last] - begin >= span
        end = begin if alone else whole.high[0]
        first_end, last_end = whole.low[last], min(whole.high[last], begin + span - 1)
        while first_end <= last_end:
            ends = first_end, (first_end if tally[NEEDS_END] != 0 else last_end)
            mass, latest = _box_mass(scene, whole, room, (begin, end), ends)
            if mass > 0:
                total += mass
                high = max(high, latest)
                low = min(low, _least_start(scene, whole, room, (begin, end), ends))
            first_end = ends[1] + 1
        begin = end + 1
    return total, low, high


@njit(**INSIDE)
def _box_mass(
    scene: Scene, whole: Box, room: Room, starts: tuple[int, int], ends: tuple[int, int]
) -> tuple[Any, int]:
    if not narrow(whole, scene.box, len(scene.events), starts, ends):
        return scene.points.share[0] * 0, -FAR
    tally = scene.watched.tally
    if tally[BITS] == 0:
        return weigh_quiet(scene.points, scene.rows, scene.watched, scene.events, scene.box, scene.limits, room)
    return weigh_sweep(scene, room)


@njit(**INSIDE)
def _least_start(scene: Scene, whole: Box, room: Room, starts: tuple[int, int], ends: tuple[int, int]) -> int:
    """The least start in a box of weight."""
    for start in range(starts[0], starts[1]):
        if mass_at(scene.points, scene.events[0], start) > 0:
            mass, _ = _box_mass(scene, whole, room, (start, start), ends)
            if mass > 0:
                return start
    return starts[1]
