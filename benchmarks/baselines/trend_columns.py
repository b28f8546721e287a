"""What the baselines for trends read and how they give out what they find.

Events are sorted by key and time, and an event may follow another by two integer columns. Trends leave through one
reused buffer, as they would to a consumer; a sum over every event of every trend shows that none was left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.harness.compiled import njit
from trendloom.kernels.contract.matches import Matches

Array = np.ndarray[Any, Any]

EQUAL, RISING = 0, 1
"""When an earlier event may stand before a later one: left[earlier] = right[later], or left[earlier] < right[later]."""

BUFFER = 1 << 18
"""Events that wait for their consumer: a megabyte, so that they stay in the processor's cache."""

TRENDS, EVENTS, CHECKSUM, AT, FILLED, FLUSHES = range(6)
"""Places in the state of what was given out: totals, and how far the buffer is filled."""


@dataclass(frozen=True)
class Columns:
    """Events sorted by key and time, the two columns that decide adjacency, and the ranges to evaluate each alone.

    A range is a window of a key, or all its events. `rows[i]`: the row of the table that event i was.
    """

    time: Array
    left: Array
    right: Array
    kind: int
    low: Array
    high: Array
    start: Array
    rows: Array


@dataclass(frozen=True)
class Found:
    """What was given out: numbers, the sum of all events of all trends, what the algorithm had to build for it.

    `built`: pointers, trends or runs. `by_range`: trends of each range. `offsets`, `members`: the last trends as they
    stand in the buffer, all of them if it was big enough (`whole`).
    """

    trends: int
    trend_events: int
    checksum: int
    built: int
    by_range: Array
    offsets: Array
    members: Array
    whole: bool

    def lists(self) -> list[tuple[int, ...]]:
        """All trends as tuples of event numbers."""
        if not self.whole:
            raise ValueError("the buffer was too small to hold all trends at once")
        ends = self.offsets.tolist()
        return [tuple(self.members[a:b].tolist()) for a, b in pairwise(ends)]


# ---------------------------------------------------------------------------------------------------------- columns


def check_columns(table: pa.Table, within: int | None = None, slide: int | None = None) -> Columns:
    """Uncovered deposits: the destination of one is the source of the next. Regions, if there are any, are keys."""
    rows = np.flatnonzero(table["status"].to_numpy() == "uncovered")
    key = table["region"].to_numpy()[rows] if "region" in table.column_names else np.zeros(len(rows), np.int64)
    left, right = table["destination"].to_numpy()[rows], table["source"].to_numpy()[rows]
    return _columns(rows, table["time"].to_numpy()[rows], key, (left, right), EQUAL, (within, slide))


def rising_columns(
    table: pa.Table, key: str, value: str, within: int | None = None, slide: int | None = None
) -> Columns:
    """All events of each key: the value of one is less than that of the next."""
    values = table[value].to_numpy()
    rows = np.arange(len(table))
    return _columns(rows, table["time"].to_numpy(), table[key].to_numpy(), (values, values), RISING, (within, slide))


def _columns(
    rows: Array, time: Array, key: Array, sides: tuple[Array, Array], kind: int, window: tuple[int | None, int | None]
) -> Columns:
    order = np.lexsort([time, key])
    time, key = time[order].astype(np.int64), key[order]
    codes = np.unique(np.concatenate(sides), return_inverse=True)[1].astype(np.int64)  # the order stays
    left, right = codes[: len(order)][order], codes[len(order) :][order]
    low, high, start = ranges(time, key, *window)
    return Columns(time, left, right, kind, low, high, start, rows[order])


def ranges(time: Array, key: Array, within: int | None, slide: int | None) -> tuple[Array, Array, Array]:
    """First and last (exclusive) event of every window of every key that is not empty, and when it starts."""
    bounds = np.flatnonzero(np.r_[True, key[1:] != key[:-1], True]) if len(key) else np.zeros(1, np.int64)
    if within is None or slide is None or len(key) == 0:
        return bounds[:-1], bounds[1:], np.zeros(len(bounds) - 1, np.int64)
    parts = []
    for begin, end in pairwise(bounds):
        some = time[begin:end]
        start = slide * np.arange((some[0] - within) // slide + 1, some[-1] // slide + 1)
        parts.append((begin + np.searchsorted(some, start), begin + np.searchsorted(some, start + within), start))
    low, high, start = (np.concatenate(one).astype(np.int64) for one in zip(*parts, strict=True))
    return low[low < high], high[low < high], start[low < high]


# ------------------------------------------------------------------------------------------------- giving out


def prepare(buffer: int, low: Array, high: Array) -> tuple[Array, Array, Array, Array]:
    """Totals, a buffer that holds the longest trend at least, the ends of trends in it, and trends by range."""
    buffer = max(buffer, int((high - low).max(initial=1)))
    counts = np.zeros(len(low), np.int64)
    return np.zeros(6, np.int64), np.zeros(buffer, np.int32), np.zeros(buffer + 1, np.int32), counts


@njit
def room(size: int, out: Any, state: Any) -> Any:
    """Where a trend of this size goes: behind the others, or, once they were taken away, to the front."""
    if state[AT] + size > len(out):
        state[AT] = state[FILLED] = 0
        state[FLUSHES] += 1
    return state[AT]


@njit
def count_one(size: int, ends: Any, state: Any) -> None:
    state[AT] += size
    state[FILLED] += 1
    ends[state[FILLED]] = state[AT]
    state[TRENDS] += 1
    state[EVENTS] += size


def found(state: Array, out: Array, ends: Array, counts: Array, built: int) -> Found:
    offsets = ends[: state[FILLED] + 1]
    trends, events, checksum = (int(state[place]) for place in (TRENDS, EVENTS, CHECKSUM))
    whole = bool(state[FLUSHES] == 0)
    return Found(trends, events, checksum, built, counts, offsets, out[: state[AT]], whole)


def taken(chunks: Iterable[Matches]) -> tuple[int, int]:
    """Take trends and drop them: how many, and how many events they have."""
    trends = events = 0
    for chunk in chunks:
        trends += len(chunk.offsets) - 1
        events += len(chunk.events)
    return trends, events


def summed(chunks: Iterable[Matches]) -> tuple[int, int, int]:
    """Trends, their events, and the sum of the numbers of these events."""
    trends = events = total = 0
    for chunk in chunks:
        trends += len(chunk.offsets) - 1
        events += len(chunk.events)
        total += int(np.sum(chunk.events, dtype=np.int64))
    return trends, events, total
