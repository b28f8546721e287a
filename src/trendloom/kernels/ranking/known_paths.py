"""The best paths known of a window or a key, in order of their scores, and the rows that are given out of them.

All paths that score less than the bound are among them, if there is one, and perhaps some that equal it; without a
bound they are all paths there are. Cost: O(paths known) per operation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.ranking.partial_paths import Strata
from trendloom.kernels.ranking.path_search import BOUNDED, FOUND, PathSearch, RankedPaths, copy_path, empty_ranking

KNOWN, IS_BOUNDED = range(2)
"""What `state` holds: how many paths there are, and whether there is a bound (1) or not (0)."""


class KnownPaths(NamedTuple):
    """See above. `bound`: one number."""

    state: Array
    bound: Array
    paths: RankedPaths


@njit(nogil=True)
def no_paths_yet(strata: Strata, want: int) -> KnownPaths:
    """Room for three times the paths that one search finds."""
    return KnownPaths(np.zeros(2, np.int64), np.zeros(1, strata.weight.dtype), empty_ranking(strata, 3 * want))


@njit(**INSIDE)
def forget_paths(known: KnownPaths) -> None:
    known.state[:] = 0


@njit(**INSIDE)
def drop_before(known: KnownPaths, event: int) -> None:
    """Drop the paths that begin before an event."""
    left = 0
    for row in range(known.state[KNOWN]):
        if known.paths.events[row, 0] >= event:
            if left < row:
                copy_path(known.paths, row, known.paths, left)
            left += 1
    known.state[KNOWN] = left


@njit(**INSIDE)
def lower_bound(known: KnownPaths, bound: Any) -> None:
    """Drop the paths that score more than a bound, which becomes that of the others, unless there is a lower one."""
    if known.state[IS_BOUNDED] == 0 or bound < known.bound[0]:
        known.state[IS_BOUNDED], known.bound[0] = 1, bound
    while known.state[KNOWN] > 0 and known.paths.scores[known.state[KNOWN] - 1] > known.bound[0]:
        known.state[KNOWN] -= 1


@njit(**INSIDE)
def merge_found(known: KnownPaths, search: PathSearch, most: int) -> None:
    """Add what a search has found, which began with their bound, and keep at most so many."""
    paths, found = known.paths, search.found
    old, new = known.state[KNOWN], search.tally[FOUND]
    size = old + new
    for at in range(size - 1, -1, -1):
        if new == 0:
            break
        if old > 0 and paths.scores[old - 1] > found.scores[new - 1]:
            old -= 1
            copy_path(paths, old, paths, at)
        else:
            new -= 1
            copy_path(found, new, paths, at)
    known.state[IS_BOUNDED], known.bound[0], known.state[KNOWN] = (
        search.tally[BOUNDED],
        search.bound[0],
        min(size, most),
    )
    if size >= most:
        lower_bound(known, paths.scores[most - 1])
    elif known.state[IS_BOUNDED] == 1:
        lower_bound(known, known.bound[0])


@njit(**INSIDE)
def append_best(known: KnownPaths, k: int, rows: RankedPaths, offsets: Array, more: Array, at: int) -> RankedPaths:
    """Append the k best as the rows of window or key `at`."""
    begin, size = offsets[at], known.state[KNOWN]
    count = min(k, size)
    if begin + count > len(rows.scores):
        room = max(begin + count, 2 * len(rows.scores))
        wider = RankedPaths(np.empty(room, rows.scores.dtype), np.empty((room, rows.events.shape[1]), np.int32))
        for row in range(begin):
            copy_path(rows, row, wider, row)
        rows = wider
    for row in range(count):
        copy_path(known.paths, row, rows, begin + row)
    offsets[at + 1] = begin + count
    more[at] = size > k and known.paths.scores[k] == known.paths.scores[k - 1]
    return rows
