"""Distribute events by key: sorting by key and time where times are in order already, by several threads.

Idea: a stream mostly comes in order of time, and then only has to be divided among its keys, in the order in which it
comes. Each thread counts the events of every key in its slice of the rows; from these counts follows where the events
of each key and slice belong, and each thread writes its own there. Two passes, no comparisons, and events that nobody
asks for are left out on the way. Where times are not in order, the events of each key are then sorted by time, some
keys by each thread (see `sort`).

Cost: O(n + keys · threads) where times are in order; else that and the sort of each key.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trendloom.expr.arrays import side_by_side, slices_of
from trendloom.kernels.columns.sort import FEW_KEYS, sorted_times
from trendloom.kernels.jit.compiled import njit

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

PARTS = 4
"""Parts of keys for every thread, at most: one that takes longer than the others keeps nobody waiting for long."""

_ALL: Flags = np.zeros(0, np.bool_)


@dataclass(frozen=True, eq=False)
class Distributed:
    """`rows` sorted by key and time, None: all rows, as they are; their times; how many each key has."""

    rows: Ints | None
    times: Ints
    sizes: Ints


def distribute(codes: Ints, times: Ints, kept: Flags | None, keys: int, threads: int) -> Distributed | None:
    """The events with a key (code not below 0) that are `kept`, sorted; None where another way is quicker."""
    if keys > FEW_KEYS:
        return None
    wanted = _ALL if kept is None else kept
    slices = slices_of(len(times), threads)
    alone = len(slices) == 1
    counted = side_by_side(lambda low, high: _counted(codes, times, wanted, low, high, keys, alone), slices, threads)
    counts, flags = np.array([one[0] for one in counted]), np.array([one[1] for one in counted])
    sizes = counts.sum(axis=0)
    ends = flags[flags[:, 2] >= 0, 2:]  # of slices without events nothing is known
    first, last = ends[1:, 0], ends[:-1, 1]
    timed = bool(flags[:, 0].all() and (times[last] <= times[first]).all())
    if not timed and alone:
        return None
    total = int(sizes.sum())
    if timed and total == len(times) and flags[:, 1].all() and (codes[last] <= codes[first]).all():
        return Distributed(None, times, sizes)
    place = np.cumsum(sizes) - sizes + np.cumsum(counts, axis=0) - counts
    rows, moved = np.empty(total, np.int64), np.empty(total, np.int64)

    def scatter(low: int, high: int, at: Ints) -> None:
        _scatter(codes, times, wanted, low, high, at, rows, moved)

    side_by_side(scatter, [(*bounds, at) for bounds, at in zip(slices, place, strict=True)], threads)
    if not timed:
        _sort_keys(rows, moved, sizes, threads)
    return Distributed(rows, moved, sizes)


def _sort_keys(rows: Ints, times: Ints, sizes: Ints, threads: int) -> None:
    """Sort the events of each key by time, in place; `rows` of one key ascend."""
    starts = np.r_[0, np.cumsum(sizes)]
    wanted = np.linspace(0, starts[-1], threads * PARTS + 1)
    bounds = np.unique(np.searchsorted(starts, wanted)).tolist()

    def sort(first: int, last: int) -> None:
        low, high = starts[first], starts[last]
        codes = np.repeat(np.arange(last - first), sizes[first:last])
        order, sorted_ = sorted_times(codes, times[low:high], last - first)
        if order is not None:
            times[low:high], rows[low:high] = sorted_, rows[low:high][order]

    side_by_side(sort, list(pairwise(bounds)), threads)


@njit(nogil=True)
def _counted(codes: Any, times: Any, kept: Any, low: Any, high: Any, keys: Any, only_in_time: Any) -> Any:
    """Events of each key in a slice; then whether they are in order of time, of key, and the first and last of them.

    `only_in_time`: nothing is asked of events that are not in order of time, so the first of these ends it.
    """
    counts = np.zeros(keys, np.int64)
    timed, keyed, first, last = 1, 1, -1, -1
    for row in range(low, high):
        code = codes[row]
        if code < 0 or (len(kept) > 0 and not kept[row]):
            continue
        counts[code] += 1
        if last < 0:
            first = row
        else:
            if times[row] < times[last]:
                timed = 0
                if only_in_time:
                    break
            if code < codes[last]:
                keyed = 0
        last = row
    return counts, np.array([timed, keyed, first, last])


@njit(nogil=True)
def _scatter(codes: Any, times: Any, kept: Any, low: Any, high: Any, place: Any, rows: Any, moved: Any) -> None:
    """Write the events of a slice where they belong: `place` is that of the next one of each key.

    Threads share `rows` and `moved`, so this must not be put back and repeated: it is called for so many events only
    that nobody interprets it before it is compiled.
    """
    for row in range(low, high):
        code = codes[row]
        if code < 0 or (len(kept) > 0 and not kept[row]):
            continue
        at = place[code]
        rows[at] = row
        moved[at] = times[row]
        place[code] = at + 1
