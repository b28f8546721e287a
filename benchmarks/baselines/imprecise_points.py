"""The point-based framework: every event becomes a point event for each time that it may have.

After H. Zhang, "High-Performance Complex Event Processing for Decision Analytics", 3.3: sequences of point events are
found under skip-till-any-match, in order of time, and those of one signature are added up in a hash table. Under
skip-till-next-match what comes too late for sure is left out (NELT), and each point match is weighed by the chance that
no rival lies in its gaps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchmarks.baselines.imprecise_confidences import Signatures, free_of_rivals, latest_next, longer
from benchmarks.cases.imprecise import Uncertain
from benchmarks.harness.compiled import njit

Array = np.ndarray[Any, Any]


def by_points(stream: Uncertain, within: int, *, following: bool = False) -> Signatures:
    """All point matches, collapsed. `following`: skip-till-next-match. O(point matches)."""
    return Signatures(*_by_points(stream, within, latest_next(stream, following), following))


class Points(NamedTuple):
    """Point events of a key: those of component p are `time[begin[p]:begin[p + 1]]`, in order of time."""

    begin: Array
    time: Array
    event: Array


@njit
def _points(stream: Any, key: int) -> Any:
    length = stream.of_key.shape[1]
    begin = np.zeros(length + 1, np.int64)
    for p in range(length):
        begin[p + 1] = begin[p]
        for index in range(stream.of_key[key, p], stream.of_key[key + 1, p]):
            event = stream.member[index]
            begin[p + 1] += stream.high[event] - stream.low[event] + 1
    time, event_of = np.empty(begin[-1], np.int64), np.empty(begin[-1], np.int64)
    for p in range(length):
        at = begin[p]
        for index in range(stream.of_key[key, p], stream.of_key[key + 1, p]):
            event = stream.member[index]
            for point in range(stream.low[event], stream.high[event] + 1):
                time[at], event_of[at] = point, event
                at += 1
        order = np.argsort(time[begin[p] : begin[p + 1]], kind="mergesort")
        time[begin[p] : begin[p + 1]] = time[begin[p] : begin[p + 1]][order]
        event_of[begin[p] : begin[p + 1]] = event_of[begin[p] : begin[p + 1]][order]
    return Points(begin, time, event_of)


@njit
def _by_points(stream: Any, within: int, latest: Array, following: bool) -> Any:
    keys, length = stream.of_key.shape
    events, weights = np.empty((64, length), np.int64), np.zeros(64)
    lows, highs = np.empty(64, np.int64), np.empty(64, np.int64)
    slots, count = np.full(256, -1), 0
    picked, times = np.empty(length, np.int64), np.empty(length, np.int64)
    cursor, weight = np.empty(length, np.int64), np.ones(length + 1)
    for key in range(keys - 1):
        points = _points(stream, key)
        depth = 0
        cursor[0] = points.begin[0]
        while depth >= 0:
            at = cursor[depth]
            if at == points.begin[depth + 1] or (depth > 0 and points.time[at] - times[0] >= within):
                depth -= 1
                continue
            cursor[depth] += 1
            event, time = points.event[at], points.time[at]
            if depth > 0 and not _may_follow(picked, depth, event, time, latest, following):
                continue
            factor = 1.0 / (stream.high[event] - stream.low[event] + 1)
            if following and depth > 0:
                factor *= free_of_rivals(stream, key, depth, event, times[depth - 1], time)
            if factor == 0.0:
                continue
            picked[depth], times[depth], weight[depth + 1] = event, time, weight[depth] * factor
            if depth < length - 1:
                depth += 1
                cursor[depth] = _after(points.time, points.begin[depth], points.begin[depth + 1], time)
                continue
            row = _slot(slots, events, picked)
            if slots[row] < 0:
                if count == len(events):
                    events, weights, lows, highs = longer(events), longer(weights), longer(lows), longer(highs)
                slots[row] = count
                events[count], weights[count], lows[count], highs[count] = picked, 0.0, times[0], time
                count += 1
                if 2 * count > len(slots):
                    slots = _rehashed(events[:count])
                    row = _slot(slots, events, picked)
            row = slots[row]
            weights[row] += weight[length]
            lows[row], highs[row] = min(lows[row], times[0]), max(highs[row], time)
    return events[:count], weights[:count], lows[:count], highs[:count]


@njit
def _may_follow(picked: Array, depth: int, event: int, time: int, latest: Array, following: bool) -> bool:
    if following:
        return bool(time <= latest[depth - 1, picked[depth - 1]])
    for other in picked[:depth]:  # noqa: SIM110 (Numba compiles a loop faster than a generator)
        if other == event:
            return False
    return True


@njit
def _after(times: Array, begin: int, end: int, time: int) -> int:
    while begin < end:
        middle = (begin + end) // 2
        if times[middle] <= time:
            begin = middle + 1
        else:
            end = middle
    return begin


@njit(wraps=True)
def _slot(slots: Array, events: Array, picked: Array) -> int:
    """Where a signature is, or would be."""
    code = np.uint64(1469598103934665603)
    for event in picked:
        code = (code ^ np.uint64(event)) * np.uint64(1099511628211)
        code ^= code >> np.uint64(29)
    place = np.int64(code & np.uint64(len(slots) - 1))
    while slots[place] >= 0:
        row, equal = slots[place], True
        for position in range(len(picked)):
            equal = equal and events[row, position] == picked[position]
        if equal:
            break
        place = (place + 1) & (len(slots) - 1)
    return place


@njit
def _rehashed(events: Array) -> Array:
    slots = np.full(4 * _power(len(events)), -1)
    for row in range(len(events)):
        slots[_slot(slots, events, events[row])] = row
    return slots


@njit
def _power(count: int) -> int:
    power = 1
    while power < count:
        power *= 2
    return power
