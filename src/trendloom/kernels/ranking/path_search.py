"""Paths in order of their scores, each when it is asked for: Lawler's partition over tables of partial paths.

A path is a row of decisions: first its events before the pivot, from the first one on, then those after it, from the
last one back. A *candidate* is a set of paths that agree on some decisions and make the next one inside a range of
events; the tables tell its best path. When that is taken, the rest of the set falls apart into at most two ranges per
decision, each again with a best path. No path is ever found twice.

Scores of tables that were folded in another order than that of the pattern differ from the true ones by at most a
`slack`; a search goes on until nothing that is left can be better than what it has found.

Cost: O(positions · (positions + FAN · log events)) per path taken, and O(log candidates) per candidate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.ranking.partial_paths import (
    AFTER,
    AT,
    BASE,
    BEFORE,
    FIRST,
    SIZE,
    PartialPaths,
    Strata,
    folded,
    joined,
    least_in,
)

ROOT, DEPTH, PARENT, LOW, HIGH, CHOICE, REACH = range(7)
"""What a candidate is: the number of events before the pivot, of decisions made, whose they are, the range of the next
one, the best in there, and how many numbers of the last position the window reaches."""
WAITING, CANDIDATES, TAKEN, FOUND, KEPT, BOUNDED, REACH_LOW = range(7)
"""What `tally` counts: candidates in the heap, all of them, paths taken and found, paths that the caller has, and
whether scores are bounded; from REACH_LOW on, by root, the first number that paths may end with."""


class RankedPaths(NamedTuple):
    """Paths in order of their `scores`, with their `events`."""

    scores: Array
    events: Array


class PathSearch(NamedTuple):
    """A search under way. `heap`: scores and candidates, the least score first. `tally`: see above.

    `choices`: the decisions of every path taken. Of the path under way: its `entries`, and the scores of its first
    events (`prefix`). `found`: the paths found; all that score less than `bound[0]` are wanted, and scores of tables
    can be wrong by `bound[1]`.
    """

    tally: Array
    heap_score: Array
    heap: Array
    candidates: Array
    choices: Array
    entries: Array
    prefix: Array
    bound: Array
    found: RankedPaths


class Order(NamedTuple):
    """What a search goes by: how scores are folded, how many paths it finds, and how many it may look at.

    `slack`: one number, by how much scores of tables can be wrong.
    """

    fold: int
    want: int
    patience: int
    slack: Array


@njit(nogil=True)
def empty_search(strata: Strata, roots: int, takes: int) -> PathSearch:
    """Room for so many candidates to begin with, and so many paths to take."""
    positions = len(strata.begin) - 1
    room = roots + 2 * positions * takes
    return PathSearch(
        np.zeros(REACH_LOW + positions + 1, np.int64), np.empty(room, strata.weight.dtype), np.empty(room, np.int64),
        np.empty((room, 7), np.int64), np.empty((takes + 1, positions), np.int64), np.empty(positions, np.int64),
        np.empty(positions + 1, strata.weight.dtype), np.zeros(2, strata.weight.dtype),
        empty_ranking(strata, takes + 1),
    )  # fmt: skip


@njit(nogil=True)
def empty_ranking(strata: Strata, room: int) -> RankedPaths:
    return RankedPaths(np.empty(room, strata.weight.dtype), np.empty((room, len(strata.begin) - 1), np.int32))


@njit(**INSIDE, forceinline=True)
def copy_path(source: RankedPaths, row: int, target: RankedPaths, at: int) -> None:
    target.scores[at] = source.scores[row]
    for t in range(source.events.shape[1]):
        target.events[at, t] = source.events[row, t]


@njit(nogil=True)
def most_taken(entries: int, positions: int, wanted: int) -> int:
    """How many paths a search can take: there are at most (entries / positions) ^ positions."""
    return int(min(float(wanted), (entries / positions + 1.0) ** positions + 1.0))


@njit(**INSIDE)
def begin_search(search: PathSearch, kept: int, bounded: int, bound: Any, order: Order) -> None:
    search.tally[:] = 0
    search.bound[1] = order.slack[0]
    search.tally[KEPT], search.tally[BOUNDED], search.bound[0] = kept, bounded, bound


@njit(**INSIDE)
def add_root(
    strata: Strata, paths: PartialPaths, search: PathSearch, root: int, first: Any, last: Any, fold: int
) -> None:
    """Look also for the paths with `root` events before the pivot.

    `first`: low and high of the numbers of the first event, if it lies before the pivot; `last`: of the last event.
    """
    low, high = first
    reach_low, reach = last
    positions = len(strata.begin) - 1
    if root < positions:
        reach_low = max(reach_low, paths.place[AFTER, FIRST, root, positions - 1])
        search.tally[REACH_LOW + root] = reach_low
        if reach_low >= reach:
            return
    if root == 0:
        low, high = reach_low, reach
    else:
        low = max(low, paths.place[BEFORE, FIRST, root, 0])
    _push(strata, paths, search, (root, np.int64(0), low, high, reach), fold)


@njit(**INSIDE, forceinline=True)
def _push(strata: Strata, paths: PartialPaths, search: PathSearch, what: Any, fold: int) -> None:
    """A candidate whose earlier decisions are those of the path under way, unless its range is empty."""
    root, depth, low, high, reach = what
    if low >= high:
        return
    last, taken = len(strata.begin) - 2, search.tally[TAKEN]
    side, t = (BEFORE, depth) if depth < root else (AFTER, last - depth + root)
    choice = least_in(paths, side, root, t, low, high)
    score = paths.values[paths.place[side, AT, root, t] + choice]
    before = min(depth, root)
    if before > 0:
        score = folded(fold, search.prefix[before], score)
    if depth >= root:
        for later in range(depth - 1, root - 1, -1):
            t += 1
            entry = paths.shape[AFTER, BASE, t] + search.choices[taken, later]
            score = folded(fold, score, strata.weight[entry])
    elif root <= last:
        rest = least_in(paths, AFTER, root, last, search.tally[REACH_LOW + root], reach)
        score = folded(fold, score, paths.values[paths.place[AFTER, AT, root, last] + rest])
    if search.tally[BOUNDED] == 1 and score - search.bound[1] > search.bound[0]:
        return
    new, at = search.tally[CANDIDATES], search.tally[WAITING]
    one = search.candidates[new]
    one[ROOT], one[DEPTH], one[PARENT], one[LOW], one[HIGH] = root, depth, taken, low, high
    one[CHOICE], one[REACH] = choice, reach
    search.tally[CANDIDATES], search.tally[WAITING] = new + 1, at + 1
    scores, heap = search.heap_score, search.heap
    while at > 0 and scores[(at - 1) // 2] > score:
        scores[at], heap[at] = scores[(at - 1) // 2], heap[(at - 1) // 2]
        at = (at - 1) // 2
    scores[at], heap[at] = score, new


@njit(**INSIDE, forceinline=True)
def _pop(search: PathSearch) -> int:
    """The candidate with the least score, which is no longer waiting."""
    scores, heap = search.heap_score, search.heap
    found, size = heap[0], search.tally[WAITING] - 1
    search.tally[WAITING] = size
    score, last = scores[size], heap[size]
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and scores[child + 1] < scores[child]:
            child += 1
        if scores[child] >= score:
            break
        scores[at], heap[at] = scores[child], heap[child]
        at = child
    scores[at], heap[at] = score, last
    return found


@njit(**INSIDE, forceinline=True)
def _range_after(paths: PartialPaths, search: PathSearch, root: int, depth: int, reach: int) -> Any:
    """The range of a decision, given those before it of the path under way."""
    choices = search.choices[search.tally[TAKEN]]
    if depth == root:
        return search.tally[REACH_LOW + root], reach
    last = len(choices) - 1
    side, t, former = (
        (BEFORE, depth, depth - 1) if depth < root else (AFTER, last - depth + root, last - depth + root + 1)
    )
    return paths.place[side, FIRST, root, t], joined(paths, side, former, choices[depth - 1])


@njit(**INSIDE, forceinline=True)
def _take(strata: Strata, paths: PartialPaths, search: PathSearch, candidate: int, fold: int) -> Any:
    """Make all decisions of a candidate's best path; returns its score, folded from the first position to the last."""
    one, choices, entries = search.candidates[candidate], search.choices[search.tally[TAKEN]], search.entries
    root, depth, last = one[ROOT], one[DEPTH], len(choices) - 1
    for d in range(depth):
        choices[d] = search.choices[one[PARENT], d]
    choices[depth] = one[CHOICE]
    for d in range(last + 1):
        side, t = (BEFORE, d) if d < root else (AFTER, last - d + root)
        if d > depth:
            low, high = _range_after(paths, search, root, d, one[REACH])
            choices[d] = least_in(paths, side, root, t, low, high)
        entries[t] = paths.shape[side, BASE, t] + (choices[d] if side == AFTER else -choices[d])
    score = strata.weight[entries[0]]
    search.prefix[1] = score
    for t in range(1, last + 1):
        score = folded(fold, score, strata.weight[entries[t]])
        search.prefix[t + 1] = score
    return score


@njit(**INSIDE, forceinline=True)
def _split(strata: Strata, paths: PartialPaths, search: PathSearch, candidate: int, fold: int) -> None:
    """Push what is left of a candidate without its best path, which becomes one that is taken."""
    one, choices = search.candidates[candidate], search.choices[search.tally[TAKEN]]
    root, depth, low, high, reach = one[ROOT], one[DEPTH], one[LOW], one[HIGH], one[REACH]
    for d in range(depth, len(choices)):
        if d > depth:
            low, high = _range_after(paths, search, root, d, reach)
        choice = choices[d]
        for half in range(2):
            begin, end = (low, choice) if half == 0 else (choice + 1, high)
            _push(strata, paths, search, (root, d, begin, end, reach), fold)
    search.tally[TAKEN] += 1


@njit(**INSIDE, forceinline=True)
def keep_path(strata: Strata, search: PathSearch, score: Any, want: int) -> None:
    """Put the path under way among those found; the last one leaves if there are enough."""
    found, at = search.found, min(search.tally[FOUND], want - 1)
    while at > 0 and found.scores[at - 1] > score:
        copy_path(found, at - 1, found, at)
        at -= 1
    found.scores[at] = score
    for t in range(len(search.entries)):
        found.events[at, t] = strata.event[search.entries[t]]
    search.tally[FOUND] = min(search.tally[FOUND] + 1, want)


@njit(**INSIDE)
def collect_paths(strata: Strata, paths: PartialPaths, search: PathSearch, order: Order) -> bool:
    """Find the best paths of a search: all that score less than its bound, and some that equal it.

    Those that equal the bound are wanted while the paths kept and found are fewer than `order.want`; a search that
    finds so many lowers the bound. Returns whether this came to an end; if not, too many scores lie within the slack.
    """
    tally, found, want, slack = search.tally, search.found, order.want, search.bound[1]
    while tally[WAITING] > 0:
        least = search.heap_score[0] - slack
        full = tally[KEPT] + tally[FOUND] >= want
        if tally[BOUNDED] == 1 and (least > search.bound[0] or (full and least == search.bound[0])):
            return True
        if tally[TAKEN] >= order.patience:
            return False
        candidate = _pop(search)
        score = _take(strata, paths, search, candidate, order.fold)
        if tally[BOUNDED] == 0 or score < search.bound[0] or (not full and score == search.bound[0]):
            keep_path(strata, search, score, want)
            if tally[FOUND] == want and (tally[BOUNDED] == 0 or found.scores[want - 1] < search.bound[0]):
                tally[BOUNDED], search.bound[0] = 1, found.scores[want - 1]
                if slack == 0:
                    return True
        _split(strata, paths, search, candidate, order.fold)
    return True


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


MOST_KEPT = 64
"""More paths than that are not kept in order by moving them one by one."""
MOST_MET = 8
"""A search meets at most so many paths for each that it keeps."""


@njit(**INSIDE)
def collect_few(strata: Strata, paths: PartialPaths, search: PathSearch, order: Order) -> bool:
    """Find all paths of a window whose score is at most the bound, or the best of them; whether that came to an end.

    Tables are filled for this window alone, and the search has begun with a bound.
    """
    tally, found, bound, last = search.tally, search.found, search.bound, len(strata.begin) - 2
    place, values = paths.place[AFTER], paths.values
    number, until, weight = search.choices[0], search.choices[1], search.prefix
    left, t = MOST_MET * order.want, last
    if order.want > MOST_KEPT:
        return False
    number[last], until[last] = place[FIRST, 0, last], paths.shape[AFTER, SIZE, last]
    while t <= last:
        at, end, table, full = number[t], until[t], place[AT, 0, t], tally[FOUND] == order.want
        score = bound[0]
        while at < end:
            score = values[table + at]
            for later in range(t + 1, last + 1):
                score = folded(order.fold, score, weight[later])
            if score < bound[0] or (score == bound[0] and not full):
                break
            at += 1
        number[t] = at + 1
        if at == end:
            t += 1
            continue
        entry = paths.shape[AFTER, BASE, t] + at
        search.entries[t] = entry
        if t > 0:
            weight[t] = strata.weight[entry]
            number[t - 1], until[t - 1] = place[FIRST, 0, t - 1], joined(paths, AFTER, t, at)
            t -= 1
            continue
        left -= 1
        if left == 0:
            return False
        keep_path(strata, search, score, order.want)
        if tally[FOUND] == order.want:
            tally[BOUNDED], bound[0] = 1, found.scores[order.want - 1]
    return True
