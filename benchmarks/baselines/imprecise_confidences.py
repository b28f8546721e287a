"""Confidences of matches of imprecise time by trying all points, and what the searches of the baselines share.

`enumerated`: algorithms 3 and 5 of H. Zhang, "High-Performance Complex Event Processing for Decision Analytics", with
the window that algorithm 5 leaves out, and gaps that are open at both ends. The valid bounds of a match are revised in
passes (3.4.1): lower bounds forwards, upper bounds backwards, upper bounds by the window, and lower bounds by the
window, a pass that the text leaves out. Under skip-till-next-match events fit one component each: gaps that rivals
leave free are factors, one for every pair of neighbouring points.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchmarks.cases.imprecise import Uncertain
from benchmarks.harness.compiled import njit

Array = np.ndarray[Any, Any]

FAR = 2**62


class Signatures(NamedTuple):
    """Matches: an event for each component, how likely it is, and the times it covers."""

    events: Array
    confidence: Array
    low: Array
    high: Array

    def sorted(self) -> Signatures:
        """In the order of their events."""
        order = np.lexsort(self.events.T[::-1])
        return Signatures(*(column[order] for column in self))

    def at_least(self, confidence: float) -> Signatures:
        kept = self.confidence >= confidence
        return Signatures(*(column[kept] for column in self))


def same_signatures(one: Signatures, other: Signatures) -> bool:
    """Whether two ways found the same: confidences up to rounding."""
    one, other = one.sorted(), other.sorted()
    if not np.array_equal(one.events, other.events):
        return False
    times = np.array_equal(one.low, other.low) and np.array_equal(one.high, other.high)
    return times and np.allclose(one.confidence, other.confidence, rtol=1e-9, atol=0)


def enumerated(stream: Uncertain, events: Array, within: int, *, following: bool = False) -> Signatures:
    """Confidences by enumeration of points, those of probability zero left out. O(points ^ length) each."""
    confidence, low, high = _enumerated(stream, events, within, following)
    kept = confidence > 0
    return Signatures(events[kept], confidence[kept], low[kept], high[kept])


def latest_next(stream: Uncertain, following: bool) -> Array:
    """Per component and event: the latest time of the event that follows it (NELT): the least end among the events of
    the next component that begin after it is surely over. `FAR` where all follow.
    """
    length = stream.of_key.shape[1]
    latest = np.full((length, len(stream.low) if following else 1), FAR)
    if following:
        _set_latest_next(stream, latest)
    return latest


@njit
def _set_latest_next(stream: Any, latest: Array) -> None:
    keys, length = stream.of_key.shape
    for key in range(keys - 1):
        for position in range(length - 1):
            begin, end = stream.of_key[key, position + 1], stream.of_key[key + 1, position + 1]
            least = np.full(end - begin + 1, FAR)
            for index in range(end - begin - 1, -1, -1):
                least[index] = min(least[index + 1], stream.high[stream.member[begin + index]])
            for index in range(stream.of_key[key, position], stream.of_key[key + 1, position]):
                event = stream.member[index]
                latest[position, event] = least[first_from(stream, begin, end, stream.high[event] + 1) - begin]


@njit
def first_from(stream: Any, begin: int, end: int, time: int) -> int:
    """The first of these members that begins at a time or after it."""
    while begin < end:
        middle = (begin + end) // 2
        if stream.low[stream.member[middle]] < time:
            begin = middle + 1
        else:
            end = middle
    return begin


@njit
def longer(rows: Array) -> Array:
    """The same rows, with room for as many again."""
    longer = np.empty((2 * len(rows), *rows.shape[1:]), rows.dtype)
    longer[: len(rows)] = rows
    return longer


# ------------------------------------------------------------------------------------------------------- bounds


@njit
def revise(stream: Any, picked: Array, within: int, latest: Array, lower: Array, upper: Array) -> bool:
    """The valid bounds of a partial match (-1: not bound yet) in four passes; whether none is empty."""
    length, first, last = len(picked), -1, -1
    for p in range(length):
        if picked[p] < 0:
            continue
        lower[p] = stream.low[picked[p]]
        if last >= 0:
            lower[p] = max(lower[p], lower[last] + p - last)
        if lower[p] > stream.high[picked[p]]:
            return False
        if last == p - 1 and p > 0 and len(latest[p]) > 1 and lower[p] > latest[last, picked[last]]:
            return False
        first, last = p if first < 0 else first, p
    room = within - 1 - first - (length - 1 - last)
    for span in range(2):  # upper bounds, without and with the window
        limit = stream.high[picked[last]] if span == 0 else min(upper[last], upper[first] + room)
        behind = last
        for p in range(last, first - 1, -1):
            if picked[p] < 0:
                continue
            upper[p] = min(stream.high[picked[p]], limit if p == last else upper[behind] - (behind - p))
            if upper[p] < lower[p]:
                return False
            behind = p
        if upper[last] <= upper[first] + room:
            break
    before = first
    lower[first] = max(lower[first], lower[last] - room)
    for p in range(first + 1, last + 1):  # lower bounds by the window
        if picked[p] >= 0:
            lower[p] = max(lower[p], lower[before] + p - before)
            before = p
    return bool(lower[first] <= upper[first] and room >= last - first)


@njit
def free_of_rivals(stream: Any, key: int, position: int, event: int, before: int, after: int) -> float:
    """How likely no other event of a component lies strictly between two times."""
    free = 1.0
    if after - before < 2:
        return free
    begin, end = stream.of_key[key, position], stream.of_key[key + 1, position]
    for index in range(first_from(stream, begin, end, before + 2 - stream.most), end):
        other = stream.member[index]
        low, high = stream.low[other], stream.high[other]
        if low >= after:
            break
        if other != event and high > before:
            outside = max(0, before - low + 1) + max(0, high - after + 1)
            free *= outside / (high - low + 1)
    return free


# -------------------------------------------------------------------------------------------------- enumeration


@njit
def _enumerated(stream: Any, events: Array, within: int, following: bool) -> Any:
    count, length = events.shape
    confidence = np.zeros(count)
    lows, highs = np.full(count, FAR), np.full(count, -FAR)
    nobody = np.full((length, 1), FAR)
    lower, upper = np.empty(length, np.int64), np.empty(length, np.int64)
    free = np.ones((length, stream.most, stream.most))
    key = 0
    for row in range(count):
        picked = events[row]
        if not revise(stream, picked, within, nobody, lower, upper):
            continue
        if following:
            key = _key_of(stream, key, picked[0])
            _set_free(stream, key, picked, lower, upper, free)
        each = 1.0
        for event in picked:
            each /= stream.high[event] - stream.low[event] + 1
        total, low, high = _sum_of_points(lower, upper, within, free, following)
        confidence[row], lows[row], highs[row] = each * total, low, high
    return confidence, lows, highs


@njit
def _key_of(stream: Any, guess: int, event: int) -> int:
    """The key of an event that fits the first component."""
    keys = len(stream.of_key) - 1
    for step in range(keys):
        key = (guess + step) % keys
        begin, end = stream.of_key[key, 0], stream.of_key[key + 1, 0]
        if begin < end and stream.member[begin] <= event <= stream.member[end - 1]:
            return key
    return -1


@njit
def _set_free(stream: Any, key: int, picked: Array, lower: Array, upper: Array, free: Array) -> None:
    """Per gap and pair of points of its ends: how likely no rival lies in it."""
    for p in range(1, len(picked)):
        for before in range(lower[p - 1], upper[p - 1] + 1):
            for after in range(max(before + 1, lower[p]), upper[p] + 1):
                here = free_of_rivals(stream, key, p, picked[p], before, after)
                free[p, before - lower[p - 1], after - lower[p]] = here


@njit
def _sum_of_points(lower: Array, upper: Array, within: int, free: Array, following: bool) -> Any:
    """The sum of the factors of all sequences of points, and the least and latest times of those above zero."""
    length = len(lower)
    times, weight = lower - 1, np.ones(length + 1)
    total, low, high, depth = 0.0, FAR, -FAR, 0
    while depth >= 0:
        times[depth] += 1
        time = times[depth]
        if time > upper[depth] or time - times[0] >= within:
            depth -= 1
            continue
        weight[depth + 1] = weight[depth]
        if following and depth > 0:
            weight[depth + 1] *= free[depth, times[depth - 1] - lower[depth - 1], time - lower[depth]]
            if weight[depth + 1] == 0.0:
                continue
        if depth < length - 1:
            depth += 1
            times[depth] = max(lower[depth], time + 1) - 1
            continue
        total += weight[length]
        low, high = min(low, times[0]), max(high, time)
    return total, low, high
