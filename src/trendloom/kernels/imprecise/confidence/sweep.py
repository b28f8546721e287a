"""Rivals that matter in several gaps, or that excuse others: a sweep that remembers which of them have occurred.

The state after the j-th event is its time and, of the tracked rivals that matter at that time, which have occurred:
one bit each. From there the sweep walks through the points of the gap. At every point the gap can end, and then rivals
at that very point are between nobody; or it goes on, and then rivals at the point lie in the gap, if they may. Excuses
raised in the gap so far are flags of the walk; they count from the next point on. Plain rivals multiply what leaves the
gap, and excusable ones multiply it when they are excused or the gap ends.

Cost: O(length · points² · 2^bits · (tracked + sets of excuses²)); bits: tracked rivals that matter at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.kernels.compiled import INSIDE, njit
from trendloom.kernels.imprecise.confidence.boxes import FAR
from trendloom.kernels.imprecise.confidence.points import HIGH, LOW, mass_at, mass_outside, mass_within
from trendloom.kernels.imprecise.confidence.quiet_gaps import Room, Scene, fill_quiet, quiet_at_end, quiet_ends
from trendloom.kernels.imprecise.confidence.watched import (
    BIT,
    BITS,
    FIRST_EXCUSABLE,
    FLAGS,
    KIND,
    LINK,
    RIVALS,
    START,
    STOP,
    TRACKED,
    excuses_of,
    is_blocked,
    rival_event,
)

Array = np.ndarray[Any, Any]


class Walk(NamedTuple):
    """Weights by sets of excuses and of occurred rivals: `now`, what they become (`then`), those that began a point with
    the same excuses (`some`), and what leaves the gap (`leaving`, by occurred rivals alone).
    """

    now: Array
    then: Array
    some: Array
    leaving: Array


@njit(**INSIDE)
def weigh_sweep(scene: Scene, room: Room) -> tuple[Any, int]:
    """The probability of a signature in a box, and the last time of its last event in worlds where it matches.

    Where a gap at either end depends on the first or the last event, the box has one point for that.
    """
    box, length = scene.box, len(scene.events)
    sets, flags, share = 1 << scene.watched.tally[BITS], scene.watched.tally[FLAGS], scene.points.share
    layers = np.zeros((2, len(room.vector), sets), share.dtype)
    layer, later = layers[0], layers[1]
    excused = np.zeros((3, flags, sets), share.dtype)
    walk = Walk(excused[0], excused[1], excused[2], np.zeros(sets, share.dtype))
    for point in range(box[0, LOW], box[0, HIGH] + 1):
        _open(scene, point, layer[point - box[0, LOW]])
    for gap in range(1, length):
        before, now = box[gap - 1], box[gap]
        later[: now[HIGH] - now[LOW] + 1] = 0
        fill_quiet(scene.points, scene.rows, scene.watched, box, gap, room)
        for point in range(before[LOW], before[HIGH] + 1):
            _walk_through(scene, gap, point, layer[point - before[LOW]], later, room.quiet[point - before[LOW]], walk)
        layer, later = later, layer
    last = box[length - 1]
    total, latest = share[0] * 0, last[LOW] - 1
    for point in range(last[LOW], last[HIGH] + 1):
        mass = _close(scene, point, layer[point - last[LOW]])
        if mass > 0:
            total += mass
            latest = point
    return total, latest


@njit(**INSIDE)
def _open(scene: Scene, point: int, weights: Array) -> None:
    """The weights when the first event lies at a point."""
    points, rows, watched, events, box, limits = scene
    weights[:] = 0
    weights[0] = mass_at(points, events[0], point)
    horizon = box[len(events) - 1, HIGH] - limits.span if limits.bare else limits.first - 1
    if not limits.bare:
        weights[0] *= quiet_at_end(points, rows, watched, 0, horizon, point)
    for rival in range(watched.tally[RIVALS]):
        if watched.rivals[rival, KIND] != TRACKED or watched.rivals[rival, START] > point:
            continue
        event = rival_event(rows, watched, rival)
        so_far = mass_within(points, event, -FAR, point)
        if is_blocked(rows, watched, rival, 0, 0):
            so_far = mass_within(points, event, -FAR, min(horizon, point - 1)) + mass_at(points, event, point)
        if watched.rivals[rival, STOP] <= point:
            weights *= so_far + mass_within(points, event, point + 1, FAR)
        else:
            _enter(weights, 1 << watched.rivals[rival, BIT], so_far)


@njit(**INSIDE)
def _close(scene: Scene, point: int, weights: Array) -> Any:
    """The whole weight when the last event lies at a point; spends the weights."""
    points, rows, watched, events, box, limits = scene
    length = len(events)
    end = box[0, LOW] + limits.span if limits.bare else limits.last + 1
    for rival in range(watched.tally[RIVALS]):
        if watched.rivals[rival, KIND] != TRACKED or watched.rivals[rival, STOP] <= point:
            continue
        event = rival_event(rows, watched, rival)
        rest = mass_within(points, event, point + 1, FAR)
        if is_blocked(rows, watched, rival, length, 0):
            rest = mass_within(points, event, max(end, point + 1), FAR)
        if watched.rivals[rival, START] > point:
            weights *= mass_within(points, event, -FAR, point) + rest
        else:
            _leave(weights, 1 << watched.rivals[rival, BIT], rest)
    return weights[0] * quiet_ends(points, rows, watched, length, box[0, LOW], point, limits)


@njit(**INSIDE)
def _walk_through(scene: Scene, gap: int, begin: int, weights: Array, later: Array, quiet: Array, walk: Walk) -> None:
    """Walk through a gap that begins at a point, and add what leaves it to the weights of the next event."""
    low, high, event = scene.box[gap, LOW], scene.box[gap, HIGH], scene.events[gap]
    if not _has_weight(weights):
        return
    walk.now[:] = 0
    walk.now[0] = weights
    for point in range(begin + 1, high + 1):
        for flags in range(len(walk.now)):
            _begin_point(scene, point, walk.now[flags])
        if point >= low:
            mass = mass_at(scene.points, event, point) * quiet[point - low]
            if mass > 0:
                _end_gap(scene, gap, begin, point, walk)
                _add(walk.leaving, mass, later[point - low])
        if point < high:
            _stay_in_gap(scene, gap, begin, point, walk)
            for flags in range(len(walk.now)):
                _end_point(scene, point, walk.now[flags])


@njit(**INSIDE)
def _begin_point(scene: Scene, point: int, weights: Array) -> None:
    """Take in the rivals that matter from a point on: before, they were free."""
    watched = scene.watched
    for rival in range(watched.tally[RIVALS]):
        if watched.rivals[rival, KIND] == TRACKED and watched.rivals[rival, START] == point:
            event = rival_event(scene.rows, watched, rival)
            _enter(weights, 1 << watched.rivals[rival, BIT], mass_within(scene.points, event, -FAR, point - 1))


@njit(**INSIDE)
def _end_point(scene: Scene, point: int, weights: Array) -> None:
    """Let go of the rivals that matter up to a point: from then on they are free."""
    watched = scene.watched
    for rival in range(watched.tally[RIVALS]):
        if watched.rivals[rival, KIND] == TRACKED and watched.rivals[rival, STOP] == point:
            event = rival_event(scene.rows, watched, rival)
            _leave(weights, 1 << watched.rivals[rival, BIT], mass_within(scene.points, event, point + 1, FAR))


@njit(**INSIDE)
def _end_gap(scene: Scene, gap: int, begin: int, point: int, walk: Walk) -> None:
    """What leaves a gap that ends at a point: rivals at that point lie in no gap."""
    points, rows, watched = scene.points, scene.rows, scene.watched
    walk.leaving[:] = 0
    for flags in range(len(walk.now)):
        if _has_weight(walk.now[flags]):
            _add(walk.now[flags], _excusable(scene, gap, flags, -1, begin, point), walk.leaving)
    for rival in range(watched.tally[RIVALS]):
        if (
            watched.rivals[rival, KIND] == TRACKED
            and watched.rivals[rival, START] <= point <= watched.rivals[rival, STOP]
        ):
            mass = mass_at(points, rival_event(rows, watched, rival), point)
            if mass > 0:
                _occur(walk.leaving, walk.leaving, 1 << watched.rivals[rival, BIT], mass)
    _end_point(scene, point, walk.leaving)


@njit(**INSIDE)
def _stay_in_gap(scene: Scene, gap: int, begin: int, point: int, walk: Walk) -> None:
    """Let rivals lie at a point of a gap, if the excuses from before allow it; they excuse from the next point on."""
    points, rows, watched = scene.points, scene.rows, scene.watched
    walk.then[:] = 0
    for flags in range(len(walk.now)):
        if not _has_weight(walk.now[flags]):
            continue
        walk.some[:] = 0
        walk.some[flags] = walk.now[flags]
        for rival in range(watched.tally[RIVALS]):
            if (
                watched.rivals[rival, KIND] != TRACKED
                or not watched.rivals[rival, START] <= point <= watched.rivals[rival, STOP]
            ):
                continue
            mass = mass_at(points, rival_event(rows, watched, rival), point)
            if mass > 0 and not is_blocked(rows, watched, rival, gap, flags):
                raised = excuses_of(rows, watched, rival, gap)
                for other in range(len(walk.some)):
                    _occur(walk.some[other], walk.some[other | raised], 1 << watched.rivals[rival, BIT], mass)
        for other in range(len(walk.some)):
            if _has_weight(walk.some[other]):
                _add(walk.some[other], _excusable(scene, gap, flags, other, begin, point + 1), walk.then[other])
    walk.now[:] = walk.then


@njit(**INSIDE)
def _excusable(scene: Scene, gap: int, flags: int, then: int, begin: int, end: int) -> Any:
    """How likely the excusable rivals of a gap keep out of it before a point, those that are blocked after some excuses
    and no longer after others; all that are blocked if those others are -1.
    """
    points, rows, watched = scene.points, scene.rows, scene.watched
    found = points.share[0] * 0 + 1
    rival = watched.gaps[gap, FIRST_EXCUSABLE]
    while rival >= 0:
        if is_blocked(rows, watched, rival, gap, flags) and (
            then < 0 or not is_blocked(rows, watched, rival, gap, then)
        ):
            found *= mass_outside(points, rival_event(rows, watched, rival), begin, end)
        rival = watched.rivals[rival, LINK]
    return found


@njit(**INSIDE)
def _has_weight(weights: Array) -> bool:
    for weight in weights:
        if weight > 0:
            return True
    return False


@njit(**INSIDE)
def _enter(weights: Array, bit: int, mass: Any) -> None:
    """A rival begins to matter: with this probability it has occurred already."""
    for occurred in range(len(weights)):
        if occurred & bit == 0:
            weights[occurred | bit] = weights[occurred] * mass


@njit(**INSIDE)
def _occur(weights: Array, into: Array, bit: int, mass: Any) -> None:
    """A rival that has not occurred may do so now."""
    for occurred in range(len(weights)):
        if occurred & bit == 0:
            into[occurred | bit] += weights[occurred] * mass


@njit(**INSIDE)
def _leave(weights: Array, bit: int, rest: Any) -> None:
    """A rival matters no more: it has occurred, or does with this probability later."""
    for occurred in range(len(weights)):
        if occurred & bit == 0:
            weights[occurred] = weights[occurred | bit] + weights[occurred] * rest
            weights[occurred | bit] = 0


@njit(**INSIDE)
def _add(weights: Array, mass: Any, into: Array) -> None:
    for occurred in range(len(weights)):
        into[occurred] += weights[occurred] * mass
