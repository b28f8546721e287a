"""Rivals that matter in several gaps, or that excuse others: a sweep over time whose state is which have occurred.

The state after the j-th event is its time and, of the tracked rivals that matter at that time, which have occurred:
one bit each. From there the sweep walks through the points of the gap. At every point the gap can end, and then rivals
at that very point lie in no gap; or it goes on, and then rivals at the point lie in the gap, if they may. Excuses
raised in the gap so far are flags of the gap; they count from the next point on. Plain rivals multiply what leaves the
gap, and excusable ones multiply it when they are excused or the gap ends.

Cost: O(length · points² · 2^bits · tracked · sets of excuses²); bits: tracked rivals that matter at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.uncertain.confidence.in_order import FAR, HIGH, LOW, mass_at, mass_outside, mass_within
from trendloom.kernels.uncertain.confidence.quiet_gaps import (
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
    ContestedSignature,
    Workspace,
    excuses_of,
    is_blocked,
    quiet_at_end,
    quiet_ends,
    quiet_table,
    rival_event,
)

RIVAL, MASK, FROM, TO = range(4)
"""Columns of `Tracked.spans`: the number of the rival, its bit as a mask, the first and last point where it matters."""


class Tracked(NamedTuple):
    """The tracked rivals in one gap, a row each.

    `edges`: how likely one lies before the points where it matters, and after them. `masses`: how likely it lies at
    each point from the first that can be in the gap on. `allowed`: by sets of excuses, whether it may lie in the gap;
    `raised`: what it excuses there.
    """

    spans: Array
    edges: Array
    masses: Array
    allowed: Array
    raised: Array


class GapState(NamedTuple):
    """Weights by sets of excuses and of occurred rivals: `now`; what they become (`then`); those that begin a point
    with the same excuses (`some`); and what leaves the gap (`leaving`), where excuses are over.
    """

    now: Array
    then: Array
    some: Array
    leaving: Array


@njit(**INSIDE, _nrt=True)  # it allocates, as its callers do not
def weigh_sweep(contested: ContestedSignature, space: Workspace) -> tuple[Any, int]:
    """The probability of a signature in a box, and the last time of its last event in worlds where it matches.

    Where a gap at either end depends on the first or the last event, the box has one point for that.
    """
    box, length, share = contested.boxed.box, len(contested.boxed.events), contested.boxed.points.share
    sets, flags = 1 << contested.table.tally[BITS], contested.table.tally[FLAGS]
    tracked = _list_tracked(contested)
    layers = np.zeros((2, len(space.vector), sets), share.dtype)
    layer, later = layers[0], layers[1]
    excused = np.zeros((3, flags, sets), share.dtype)
    state = GapState(excused[0], excused[1], excused[2], np.zeros((1, sets), share.dtype))
    for point in range(box[0, LOW], box[0, HIGH] + 1):
        _open(contested, tracked, point, layer[point - box[0, LOW] : point - box[0, LOW] + 1])
    for gap in range(1, length):
        later[: box[gap, HIGH] - box[gap, LOW] + 1] = 0
        number, row, column = quiet_table(contested, gap, space)
        quiet = space.quiet[number, row:, column:]
        _enter_gap(contested, tracked, gap)
        for place in range(box[gap - 1, HIGH] - box[gap - 1, LOW] + 1):
            if _has_weight(layer[place]):
                state.now[:] = 0
                state.now[0] = layer[place]
                _cross_gap(contested, tracked, gap, place, quiet, state, later)
        layer, later = later, layer
    total, latest = share[0] * 0, -FAR
    for point in range(box[length - 1, LOW], box[length - 1, HIGH] + 1):
        place = point - box[length - 1, LOW]
        mass = _close(contested, tracked, point, layer[place : place + 1])
        if mass > 0:
            total += mass
            latest = point
    return total, latest


@njit(**INSIDE)
def _list_tracked(contested: ContestedSignature) -> Tracked:
    """Those of a signature, with space for what they do in a gap."""
    points, events, _, _, box = contested.boxed
    table, last = contested.table, len(events) - 1
    count, width = 0, 0
    for rival in range(table.tally[RIVALS]):
        count += int(table.rivals[rival, KIND] == TRACKED)
    for gap in range(1, last + 1):
        width = max(width, box[gap, HIGH] - box[gap - 1, LOW])
    spans, edges = np.zeros((count, 4), np.int64), np.zeros((count, 2), points.share.dtype)
    at = 0
    for rival in range(table.tally[RIVALS]):
        if table.rivals[rival, KIND] == TRACKED:
            start, stop = table.rivals[rival, START], table.rivals[rival, STOP]
            event = rival_event(contested, rival)
            spans[at, RIVAL], spans[at, MASK] = rival, 1 << table.rivals[rival, BIT]
            spans[at, FROM], spans[at, TO] = start, stop
            edges[at, 0] = mass_within(points, event, -FAR, start - 1)
            edges[at, 1] = mass_within(points, event, stop + 1, FAR)
            at += 1
    masses = np.zeros((count, width + 1), points.share.dtype)
    flags = table.tally[FLAGS]
    return Tracked(spans, edges, masses, np.zeros((count, flags), np.bool_), np.zeros(count, np.int64))


@njit(**INSIDE)
def _enter_gap(contested: ContestedSignature, tracked: Tracked, gap: int) -> None:
    """Note what tracked rivals do in a gap."""
    points, box = contested.boxed.points, contested.boxed.box
    first, last = box[gap - 1, LOW] + 1, box[gap, HIGH]
    for at in range(len(tracked.spans)):
        rival = tracked.spans[at, RIVAL]
        event = rival_event(contested, rival)
        for point in range(first, last + 1):
            matters = tracked.spans[at, FROM] <= point <= tracked.spans[at, TO]
            tracked.masses[at, point - first] = mass_at(points, event, point) if matters else 0
        for flags in range(tracked.allowed.shape[1]):
            tracked.allowed[at, flags] = not is_blocked(contested, rival, gap, flags)
        tracked.raised[at] = excuses_of(contested, rival, gap)


@njit(**INSIDE)
def _open(contested: ContestedSignature, tracked: Tracked, point: int, weights: Array) -> None:
    """The weights when the first event lies at a point."""
    points, events, limits, _, box = contested.boxed
    weights[:] = 0
    weights[0, 0] = mass_at(points, events[0], point)
    horizon = box[len(events) - 1, HIGH] - limits.span if limits.bare else limits.first - 1
    if not limits.bare:
        weights[0, 0] *= quiet_at_end(contested, 0, horizon, point)
    for at in range(len(tracked.spans)):
        if tracked.spans[at, FROM] > point:
            continue
        rival = tracked.spans[at, RIVAL]
        event = rival_event(contested, rival)
        so_far = mass_within(points, event, -FAR, point)
        if is_blocked(contested, rival, 0, 0):
            so_far = mass_within(points, event, -FAR, min(horizon, point - 1)) + mass_at(points, event, point)
        if tracked.spans[at, TO] <= point:
            weights *= so_far + mass_within(points, event, point + 1, FAR)
        else:
            _enter(weights, tracked.spans[at, MASK], so_far)


@njit(**INSIDE)
def _close(contested: ContestedSignature, tracked: Tracked, point: int, weights: Array) -> Any:
    """The whole weight when the last event lies at a point; spends the weights."""
    points, events, limits, _, box = contested.boxed
    end = box[0, LOW] + limits.span if limits.bare else limits.last + 1
    for at in range(len(tracked.spans)):
        if tracked.spans[at, TO] <= point:
            continue
        rival = tracked.spans[at, RIVAL]
        event = rival_event(contested, rival)
        rest = mass_within(points, event, point + 1, FAR)
        if is_blocked(contested, rival, len(events), 0):
            rest = mass_within(points, event, max(end, point + 1), FAR)
        if tracked.spans[at, FROM] > point:
            weights *= mass_within(points, event, -FAR, point) + rest
        else:
            _leave(weights, tracked.spans[at, MASK], rest)
    return weights[0, 0] * quiet_ends(contested, point)


@njit(**INSIDE)
def _cross_gap(
    contested: ContestedSignature, tracked: Tracked, gap: int, place: int, quiet: Array, state: GapState, later: Array
) -> None:
    """Go through a gap that begins at the point of this place, and add what leaves it to the weights of the next
    event.
    """
    points, events, _, _, box = contested.boxed
    first, low, high = box[gap - 1, LOW], box[gap, LOW], box[gap, HIGH]
    spans, begin, event = tracked.spans, first + place, events[gap]
    for point in range(begin + 1, high + 1):
        for at in range(len(spans)):
            if spans[at, FROM] == point:
                _enter(state.now, spans[at, MASK], tracked.edges[at, 0])
        if point >= low:
            mass = mass_at(points, event, point) * quiet[place, point - low]
            if mass > 0:
                _end_gap(contested, tracked, gap, begin, point, state)
                _add(state.leaving[0], mass, later[point - low])
        if point < high:
            if len(state.now) == 1:
                for at in range(len(spans)):
                    if tracked.allowed[at, 0] and tracked.masses[at, point - first - 1] > 0:
                        _occur(state.now[0], state.now[0], spans[at, MASK], tracked.masses[at, point - first - 1])
            else:
                _stay_in_gap(contested, tracked, gap, begin, point, state)
            for at in range(len(spans)):
                if spans[at, TO] == point:
                    _leave(state.now, spans[at, MASK], tracked.edges[at, 1])


@njit(**INSIDE)
def _end_gap(
    contested: ContestedSignature, tracked: Tracked, gap: int, begin: int, point: int, state: GapState
) -> None:
    """What leaves a gap that ends at a point: rivals at that point lie in no gap."""
    leaving, place = state.leaving, point - contested.boxed.box[gap - 1, LOW] - 1
    if len(state.now) == 1:
        leaving[0] = state.now[0]
    else:
        leaving[0] = 0
        for flags in range(len(state.now)):
            if _has_weight(state.now[flags]):
                _add(state.now[flags], _excusable(contested, gap, flags, -1, begin, point), leaving[0])
    for at in range(len(tracked.spans)):
        mask = tracked.spans[at, MASK]
        if tracked.masses[at, place] > 0:
            _occur(leaving[0], leaving[0], mask, tracked.masses[at, place])
        if tracked.spans[at, TO] == point:
            _leave(leaving, mask, tracked.edges[at, 1])


@njit(**INSIDE)
def _stay_in_gap(
    contested: ContestedSignature, tracked: Tracked, gap: int, begin: int, point: int, state: GapState
) -> None:
    """Let rivals lie at a point of a gap, if the excuses from before allow it; they excuse from the next point on."""
    place = point - contested.boxed.box[gap - 1, LOW] - 1
    state.then[:] = 0
    for flags in range(len(state.now)):
        if not _has_weight(state.now[flags]):
            continue
        state.some[:] = 0
        state.some[flags] = state.now[flags]
        for at in range(len(tracked.spans)):
            mass, mask = tracked.masses[at, place], tracked.spans[at, MASK]
            if mass > 0 and tracked.allowed[at, flags]:
                for other in range(len(state.some)):
                    _occur(state.some[other], state.some[other | tracked.raised[at]], mask, mass)
        for other in range(len(state.some)):
            if _has_weight(state.some[other]):
                _add(state.some[other], _excusable(contested, gap, flags, other, begin, point + 1), state.then[other])
    state.now[:] = state.then


@njit(**INSIDE)
def _excusable(contested: ContestedSignature, gap: int, flags: int, then: int, begin: int, end: int) -> Any:
    """How likely the excusable rivals of a gap keep out of it before a point, those that are blocked after some excuses
    and no longer after others; all that are blocked if those others are -1.
    """
    points, table = contested.boxed.points, contested.table
    found = points.share[0] * 0 + 1
    rival = table.gaps[gap, FIRST_EXCUSABLE]
    while rival >= 0:
        if is_blocked(contested, rival, gap, flags) and (then < 0 or not is_blocked(contested, rival, gap, then)):
            found *= mass_outside(points, rival_event(contested, rival), begin, end)
        rival = table.rivals[rival, LINK]
    return found


@njit(**INSIDE)
def _has_weight(weights: Array) -> bool:
    return weights.max() > 0


@njit(**INSIDE)
def _enter(weights: Array, mask: int, mass: Any) -> None:
    """A rival begins to matter: with this probability it has occurred already."""
    for flags in range(len(weights)):
        for occurred in range(weights.shape[1]):
            if occurred & mask == 0:
                weights[flags, occurred | mask] = weights[flags, occurred] * mass


@njit(**INSIDE)
def _leave(weights: Array, mask: int, rest: Any) -> None:
    """A rival matters no more: it has occurred, or does with this probability later."""
    for flags in range(len(weights)):
        for occurred in range(weights.shape[1]):
            if occurred & mask == 0:
                weights[flags, occurred] = weights[flags, occurred | mask] + weights[flags, occurred] * rest
                weights[flags, occurred | mask] = 0


@njit(**INSIDE)
def _occur(weights: Array, into: Array, mask: int, mass: Any) -> None:
    """A rival that has not occurred may do so now."""
    for occurred in range(len(weights)):
        if occurred & mask == 0:
            into[occurred | mask] += weights[occurred] * mass


@njit(**INSIDE)
def _add(weights: Array, mass: Any, into: Array) -> None:
    for occurred in range(len(weights)):
        into[occurred] += weights[occurred] * mass
