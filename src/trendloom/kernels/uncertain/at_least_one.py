"""The probability that a sequence happens at all, in some stretch of time points.

Idea: if each event stands at one place of the sequence only, take the first event of place 1, then the first event of
place 2 after it, and so on: the sequence happens if this goes through. When the first event of a place comes depends on
the time of the one before it, and on nothing else before. So the distribution of each such *first time* follows from
the one of the place before:

    P(first = t) = sum over t' < t of P(first before = t') · P(some event is at t, none in between)

With R_e(t) = P(e is not in (t', t]) = P(e <= t') + P(e > t), the last factor is the product of all R_e(t - 1) less that
of all R_e(t). It is computed as a sum of positive numbers, event by event: nothing cancels.

Cost: O(points of a place · points of the next until one of its events must have come · events that can be there), for
each place, key and window. It is bounded: more than `MOST_STEPS` are not taken.

Error: with e events and n points, a relative one of at most (4 e + 2 n) · 2^-53 for each place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.numbers import BORROWED, LEAN
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.uncertain.densities import LikelyPoints, mass_after, mass_at, mass_until

MOST_STEPS = 10_000_000_000
"""Events looked at for one probability: some ten seconds."""


class StretchesOfPoints(NamedTuple):
    """Events from `begin` to `end` can be in the window from point `first` to point `last`; one row per result."""

    begin: Array
    end: Array
    first: Array
    last: Array


class FirstTimes(NamedTuple):
    """When the first event of a place can come, given that those before it have: points and their probabilities."""

    point: Array
    chance: Array


class AwaitedEvents(NamedTuple):
    """Events of a place that may come: all `members`; those that can be at a point (`active`), and the probability of
    each that it was too early (`missed`).
    """

    members: Array
    active: Array
    missed: Array


@njit(nogil=True)
def at_least_one(events: LikelyPoints, stretches: StretchesOfPoints, places: int, most: int) -> tuple[Array, Array]:
    """The probability of each stretch that a sequence happens in it, and whether it took more than `most` steps."""
    found = np.zeros(len(stretches.first), events.even.dtype)
    refused = np.zeros(len(found), np.bool_)
    for number in range(len(found)):
        first, last = stretches.first[number], stretches.last[number]
        point, chance = np.empty(1, np.int64), np.empty(1, events.even.dtype)
        point[0], chance[0] = first - 1, 1
        times, steps = FirstTimes(point, chance), 0
        for place in range(places):
            members = _members(events, stretches.begin[number], stretches.end[number], place, first, last)
            points = np.empty(_list_points(events, members, first, last, members[:0]), np.int64)
            _list_points(events, members, first, last, points)
            after = FirstTimes(points, np.zeros(len(points), events.even.dtype))
            buffers = np.empty(len(members), np.int64), np.empty(len(members), events.even.dtype)
            steps = _follow(events, AwaitedEvents(members, buffers[0], buffers[1]), times, after, steps, most)
            times = after
        refused[number] = steps > most
        for at in range(len(times.point)):
            found[number] += times.chance[at]
    return found, refused


@njit(nogil=True)
def _members(events: LikelyPoints, begin: int, end: int, place: int, first: int, last: int) -> Array:
    """The events of a place that can be between two points, in the order of their first points."""
    found = np.empty(end - begin, np.int64)
    count = 0
    for event in range(begin, end):
        if events.place[event] == place and events.first[event] <= last and events.last[event] >= first:
            found[count] = event
            count += 1
    return found[:count]


@njit(**LEAN)
def _list_points(events: LikelyPoints, members: Array, first: int, last: int, found: Array) -> int:
    """Every point from `first` to `last` that an event can be at, once, rising; they are counted, and listed in `found`
    unless it is empty.
    """
    size, covered = 0, first - 1
    for number in range(len(members)):
        event = members[number]
        begin, end = max(events.first[event], covered + 1), min(events.last[event], last)
        if len(found) > 0:
            for point in range(begin, end + 1):
                found[size + point - begin] = point
        size += max(end + 1 - begin, 0)
        covered = max(covered, end)
    return size


@njit(**LEAN)
def _follow(
    events: LikelyPoints, waiting: AwaitedEvents, before: FirstTimes, after: FirstTimes, steps: int, most: int
) -> int:
    """The first times of a place from those of the place before; gives the steps taken so far."""
    past, begin = 0, 0
    for at in range(len(before.point)):
        origin = before.point[at]
        while begin < len(after.point) and after.point[begin] <= origin:
            begin += 1
        while past < len(waiting.members) and events.last[waiting.members[past]] <= origin:
            past += 1
        if before.chance[at] > 0 and steps <= most:
            steps += _follow_one(events, waiting, past, origin, before.chance[at], after, begin)
    return steps


@njit(**BORROWED)
def _follow_one(
    events: LikelyPoints,
    waiting: AwaitedEvents,
    following: int,
    origin: int,
    weight: Any,
    after: FirstTimes,
    begin: int,
) -> int:
    """The same for one time of the event before. `weight` is its probability, times that of the events whose last point
    is over to have been too early.
    """
    count, steps = 0, 0
    for at in range(begin, len(after.point)):
        point = after.point[at]
        while following < len(waiting.members) and events.first[waiting.members[following]] <= point:
            event = waiting.members[following]
            if events.last[event] > origin:
                waiting.active[count], waiting.missed[count] = event, mass_until(events, event, origin)
                count += 1
            following += 1
        steps += count
        arrived, none, over = 0 * weight, weight, 0 * weight + 1
        number = 0
        while number < count:
            event, missed = waiting.active[number], waiting.missed[number]
            mass, later = mass_at(events, event, point), mass_after(events, event, point)
            arrived = arrived * (missed + (later + mass)) + none * mass
            none = none * (missed + later)
            if events.last[event] == point:
                over = over * missed
                count -= 1
                waiting.active[number], waiting.missed[number] = waiting.active[count], waiting.missed[count]
            else:
                number += 1
        after.chance[at] += arrived
        weight = weight * over
        if not weight > 0:
            break
    return steps
