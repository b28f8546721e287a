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

from trendloom.kernels.compiled import INSIDE, njit
from trendloom.kernels.ranking.partial_paths import PartialPaths, Strata, folded, least_in

Array = np.ndarray[Any, Any]

ROOT, DEPTH, PARENT, LOW, HIGH, CHOICE, REACH = range(7)
"""What a candidate is: the number of events before the pivot, of decisions made, whose they are, the range of the next
one, the best in there, and how many numbers of the last position the window reaches."""
WAITING, CANDIDATES, TAKEN, FOUND = range(4)
"""What `count` counts."""


class PathSearch(NamedTuple):
    """A search under way.

    `heap`: scores and candidates, the least score first. `choices`: the decisions of every path taken. `reach_low`: by
    root, the first number of the last position that a path may end with. Of the path taken last: its `entries`, and
    the scores of its events before the pivot (`prefix`). `count`: see above.
    """

    count: Array
    heap_score: Array
    heap: Array
    candidates: Array
    choices: Array
    reach_low: Array
    entries: Array
    prefix: Array


class RankedPaths(NamedTuple):
    """Paths in order of their `scores`, with their `events`."""

    scores: Array
    events: Array


class Order(NamedTuple):
    """What a search goes by: how scores are folded, how many paths it finds at most, and how often it may look.

    `slack`: one number, by how much scores of tables can be wrong.
    """

    fold: int
    want: int
    patience: int
    slack: Array


@njit(nogil=True)
def empty_search(strata: Strata, room: int) -> PathSearch:
    positions = len(strata.begin) - 1
    dtype = strata.weight.dtype
    return PathSearch(
        np.zeros(4, np.int64), np.empty(room, dtype), np.empty(room, np.int32), np.empty((room, 7), np.int32),
        np.empty((room, positions), np.int32), np.zeros(positions + 1, np.int64), np.zeros(positions, np.int64),
        np.zeros(positions + 1, dtype),
    )  # fmt: skip


@njit(nogil=True)
def empty_ranking(strata: Strata, room: int) -> RankedPaths:
    return RankedPaths(np.empty(room, strata.weight.dtype), np.empty((room, len(strata.begin) - 1), np.int32))


@njit(**INSIDE)
def begin_search(search: PathSearch) -> None:
    search.count[:] = 0
    search.reach_low[:] = 0


@njit(**INSIDE)
def add_root(
    strata: Strata, before: PartialPaths, after: PartialPaths, search: PathSearch, root: int, ranges: Any, fold: int
) -> PathSearch:
    """Look also for the paths with `root` events before the pivot.

    `ranges`: the first decision's low and high where it lies before the pivot, then low and high of the last position.
    """
    low, high, reach_low, reach = ranges
    positions = len(strata.begin) - 1
    if root < positions:
        reach_low = max(reach_low, after.first[root, positions - 1])
        search.reach_low[root] = reach_low
        if reach_low >= reach:
            return search
    if root == 0:
        low, high = reach_low, reach
    else:
        low = max(low, before.first[root, 0])
    return _push(strata, before, after, search, (root, 0, low, high, reach), fold)


@njit(**INSIDE)
def _push(
    strata: Strata, before: PartialPaths, after: PartialPaths, search: PathSearch, what: Any, fold: int
) -> PathSearch:
    """A candidate whose earlier decisions are those of the path taken last, unless its range is empty."""
    root, depth, low, high, reach = what
    if low >= high:
        return search
    positions = len(strata.begin) - 1
    taken = search.count[TAKEN]
    earlier = search.choices[taken - 1] if taken > 0 else search.choices[0]
    if depth < root:
        choice = least_in(before, root, depth, low, high)
        score = before.values[before.at[root, depth] + choice]
        if depth > 0:
            score = folded(fold, search.prefix[depth], score)
        if root < positions:
            last = positions - 1
            rest = least_in(after, root, last, search.reach_low[root], reach)
            score = folded(fold, score, after.values[after.at[root, last] + rest])
    else:
        t = positions - 1 - (depth - root)
        choice = least_in(after, root, t, low, high)
        score = after.values[after.at[root, t] + choice]
        if root > 0:
            score = folded(fold, search.prefix[root], score)
        for later in range(depth - 1, root - 1, -1):
            t += 1
            score = folded(fold, score, strata.weight[after.base[t] + earlier[later]])
    new, at = search.count[CANDIDATES], search.count[WAITING]
    if new >= len(search.candidates):
        search = _grown(search)
    one = search.candidates[new]
    one[ROOT], one[DEPTH], one[PARENT], one[LOW], one[HIGH] = root, depth, taken - 1, low, high
    one[CHOICE], one[REACH] = choice, reach
    search.count[CANDIDATES], search.count[WAITING] = new + 1, at + 1
    scores, heap = search.heap_score, search.heap
    while at > 0:
        parent = (at - 1) // 2
        if scores[parent] <= score:
            break
        scores[at], heap[at] = scores[parent], heap[parent]
        at = parent
    scores[at], heap[at] = score, new
    return search


@njit(**INSIDE)
def _grown(search: PathSearch) -> PathSearch:
    room = 2 * len(search.candidates)
    used, positions = search.count[CANDIDATES], search.choices.shape[1]
    heap_score, heap = np.empty(room, search.heap_score.dtype), np.empty(room, np.int32)
    candidates, choices = np.empty((room, 7), np.int32), np.empty((room, positions), np.int32)
    heap_score[:used], heap[:used] = search.heap_score[:used], search.heap[:used]
    candidates[:used], choices[:used] = search.candidates[:used], search.choices[:used]
    return PathSearch(
        search.count, heap_score, heap, candidates, choices, search.reach_low, search.entries, search.prefix
    )


@njit(**INSIDE)
def _pop(search: PathSearch) -> int:
    """The candidate with the least score, which is no longer waiting."""
    scores, heap = search.heap_score, search.heap
    found = heap[0]
    size = search.count[WAITING] - 1
    search.count[WAITING] = size
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


@njit(**INSIDE)
def _take(before: PartialPaths, after: PartialPaths, search: PathSearch, candidate: int) -> None:
    """Make all decisions of a candidate's best path."""
    one = search.candidates[candidate]
    root, depth, parent = one[ROOT], one[DEPTH], one[PARENT]
    choices = search.choices[search.count[TAKEN]]
    positions = len(choices)
    for d in range(depth):
        choices[d] = search.choices[parent, d]
    choices[depth] = one[CHOICE]
    for d in range(depth + 1, positions):
        if d < root:
            links = before.links[before.links_at[d - 1] + choices[d - 1]]
            choices[d] = before.best[before.at[root, d] + links - 1]
        elif d == root:
            choices[d] = least_in(after, root, positions - 1, search.reach_low[root], one[REACH])
        else:
            t = positions - 1 - (d - root)
            links = after.links[after.links_at[t + 1] + choices[d - 1]]
            choices[d] = after.best[after.at[root, t] + links - 1]
    search.count[TAKEN] += 1


@njit(**INSIDE)
def _split(
    strata: Strata, before: PartialPaths, after: PartialPaths, search: PathSearch, candidate: int, fold: int
) -> PathSearch:
    """Push what is left of a candidate without the path taken last."""
    one = search.candidates[candidate]
    root, depth, low, high, reach = one[ROOT], one[DEPTH], one[LOW], one[HIGH], one[REACH]
    choices = search.choices[search.count[TAKEN] - 1]
    positions = len(choices)
    for d in range(root):
        weight = strata.weight[before.base[d] - choices[d]]
        search.prefix[d + 1] = folded(fold, search.prefix[d], weight) if d > 0 else weight
    for d in range(depth, positions):
        if d > depth:
            if d < root:
                low, high = before.first[root, d], before.links[before.links_at[d - 1] + choices[d - 1]]
            elif d == root:
                low, high = search.reach_low[root], reach
            else:
                t = positions - 1 - (d - root)
                low, high = after.first[root, t], after.links[after.links_at[t + 1] + choices[d - 1]]
        search = _push(strata, before, after, search, (root, d, low, choices[d], reach), fold)
        search = _push(strata, before, after, search, (root, d, choices[d] + 1, high, reach), fold)
    return search


@njit(**INSIDE)
def _true_score(
    strata: Strata, before: PartialPaths, after: PartialPaths, search: PathSearch, root: int, fold: int
) -> Any:
    """The score of the path taken last, folded from the first position to the last; notes its entries."""
    choices, entries = search.choices[search.count[TAKEN] - 1], search.entries
    positions = len(choices)
    for d in range(root):
        entries[d] = before.base[d] - choices[d]
    for d in range(root, positions):
        t = positions - 1 - (d - root)
        entries[t] = after.base[t] + choices[d]
    score = strata.weight[entries[0]]
    for t in range(1, positions):
        score = folded(fold, score, strata.weight[entries[t]])
    return score


@njit(**INSIDE)
def collect_paths(
    strata: Strata, before: PartialPaths, after: PartialPaths, search: PathSearch, found: RankedPaths, kept: int,
    bounded: bool, bound: Any, order: Order,
) -> Any:
    """Put the best paths of a search into `found`: all that score less than `bound`, and some that equal it.

    While `kept` (paths the caller has) and those found are fewer than `order.want`, those that equal the bound are
    wanted too. A search that finds `order.want` paths lowers the bound. Returns the search, whether the bound holds,
    the bound, and whether this came to an end; if not, too many scores lie within the slack of one another.
    """  # fmt: skip
    fold, want, slack = order.fold, order.want, order.slack[0]
    count, positions = 0, len(strata.begin) - 1
    while search.count[WAITING] > 0:
        least = search.heap_score[0] - slack
        if bounded and (least > bound or (least == bound and kept + count >= want)):
            break
        if search.count[TAKEN] >= order.patience:
            search.count[FOUND] = count
            return search, bounded, bound, False
        candidate = _pop(search)
        if search.count[TAKEN] >= len(search.choices):
            search = _grown(search)
        root = search.candidates[candidate][ROOT]
        _take(before, after, search, candidate)
        score = _true_score(strata, before, after, search, root, fold)
        if not bounded or score < bound or (score == bound and kept + count < want):
            at = count if count < want else want - 1
            while at > 0 and found.scores[at - 1] > score:
                found.scores[at], found.events[at] = found.scores[at - 1], found.events[at - 1]
                at -= 1
            found.scores[at] = score
            for t in range(positions):
                found.events[at, t] = strata.event[search.entries[t]]
            count = min(count + 1, want)
            if count == want and (not bounded or found.scores[want - 1] < bound):
                bounded, bound = True, found.scores[want - 1]
                if slack == 0:
                    break
        search = _split(strata, before, after, search, candidate, fold)
    search.count[FOUND] = count
    return search, bounded, bound, True
