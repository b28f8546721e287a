"""The k best paths of each key whose last event comes before the horizon of the first one.

Every first event has a window of its own. Those that begin before the horizon of the first of them share tables around
it: the best path of each first event is looked up in them, and a search is begun only with those that can be among the
k best of the key so far.

Cost: O(events · positions²), and what is found: see `strata`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.ranking.known_paths import (
    IS_BOUNDED,
    KNOWN,
    KnownPaths,
    append_best,
    forget_paths,
    merge_found,
    no_paths_yet,
)
from trendloom.kernels.ranking.partial_paths import (
    AFTER,
    AT,
    BASE,
    BEFORE,
    FIRST,
    SIZE,
    PartialPaths,
    Strata,
    empty_paths,
    fill_joints,
    fill_side,
    first_entry,
    folded,
    set_events,
)
from trendloom.kernels.ranking.path_search import (
    Order,
    PathSearch,
    add_root,
    begin_search,
    collect_paths,
    empty_ranking,
    empty_search,
    most_taken,
)


class Openings(NamedTuple):
    """By number of a first event: the best `score` of its paths, and how many numbers of the last position it reaches.

    `reach` is -1 where there is no path.
    """

    score: Array
    reach: Array


@njit(nogil=True)
def rank_spans(strata: Strata, key_starts: Array, horizon: Array, k: int, alone: Order, shared: Order) -> Any:
    """First events that share tables go by `shared`; where that does not come to an end, each goes by `alone`."""
    positions, keys = len(strata.begin) - 1, len(key_starts) - 1
    most = _most_entries(strata, horizon)
    paths = empty_paths(strata, most, 2, positions)
    fill_joints(strata, paths)
    takes = most_taken(most, positions, max(alone.patience, shared.patience))
    search, known = empty_search(strata, positions * most, takes), no_paths_yet(strata, alone.want)
    rows, offsets, more = empty_ranking(strata, 64), np.zeros(keys + 1, np.int64), np.zeros(keys, np.bool_)
    openings = Openings(np.empty(most, strata.weight.dtype), np.empty(most, np.int64))
    begin, span = strata.begin[0], np.zeros(5, np.int64)
    for key in range(keys):
        forget_paths(known)
        while begin < strata.begin[1] and strata.event[begin] < key_starts[key + 1]:
            pivot, end = _next_group(strata, horizon, begin)
            openings.reach[: end - begin] = 0
            done = False
            if strata.tie_end[pivot - 1] <= pivot and np.isfinite(shared.slack[0]):
                set_events(span, strata.event[begin], pivot, pivot, 1, positions + 1)
                fill_side(strata, paths, BEFORE, span, shared.fold)
                set_events(span, pivot, horizon[strata.event[end - 1]], 0, 1, positions)
                fill_side(strata, paths, AFTER, span, shared.fold)
                _look_up(strata, paths, horizon, openings, shared.fold)
                done = _open_best(strata, paths, search, known, openings, shared)
            else:
                openings.score[: end - begin] = known.bound[0]
            if not done:
                for entry in range(begin, end):
                    number = end - 1 - entry
                    wanted = known.state[IS_BOUNDED] == 0 or openings.score[number] - shared.slack[0] <= known.bound[0]
                    if openings.reach[number] >= 0 and wanted:
                        _open_alone(strata, paths, search, known, span, entry, horizon, alone)
            begin = end
        rows = append_best(known, k, rows, offsets, more, key)
    return offsets, rows.scores[: offsets[-1]], rows.events[: offsets[-1]], more


@njit(**INSIDE)
def _next_group(strata: Strata, horizon: Array, begin: int) -> tuple[int, int]:
    """The pivot of the first events from an entry on, which is the horizon of the first of them, and their end."""
    event = np.int64(strata.event[begin])
    pivot = max(horizon[event], event + 1)
    return pivot, first_entry(strata.event, begin, strata.begin[1], pivot, begin)


@njit(nogil=True)
def _most_entries(strata: Strata, horizon: Array) -> int:
    """The greatest number of entries that the first events of a group reach."""
    most, begin = 0, strata.begin[0]
    near = strata.begin[:-1].copy()
    while begin < strata.begin[1]:
        _, end = _next_group(strata, horizon, begin)
        entries = end - begin
        for t in range(1, len(near)):
            near[t] = first_entry(
                strata.event, strata.begin[t], strata.begin[t + 1], np.int64(strata.event[begin]), near[t]
            )
            until = horizon[strata.event[end - 1]]
            entries += first_entry(strata.event, near[t], strata.begin[t + 1], until, near[t]) - near[t]
        most, begin = max(most, entries), end
    return most


@njit(**INSIDE)
def _look_up(strata: Strata, paths: PartialPaths, horizon: Array, openings: Openings, fold: int) -> None:
    """The best score of every first event of a group. O(first events · positions), and one pass over the last ones."""
    last, before, after = len(strata.begin) - 2, paths.shape[BEFORE], paths.shape[AFTER]
    reach = 0
    for number in range(before[SIZE, 0] - 1, -1, -1):
        until = horizon[strata.event[before[BASE, 0] - number]]
        while reach < after[SIZE, last] and strata.event[after[BASE, last] + reach] < until:
            reach += 1
        openings.reach[number] = -1
        for root in range(1, last + 2):
            if _has_path(paths, root, number, reach, last):
                score = _best_score(paths, root, number, reach, last, fold)
                if openings.reach[number] < 0 or score < openings.score[number]:
                    openings.score[number], openings.reach[number] = score, reach


@njit(**INSIDE, forceinline=True)
def _has_path(paths: PartialPaths, root: int, number: int, reach: int, last: int) -> bool:
    before = paths.place[BEFORE, FIRST, root, 0]
    return number >= before and (root > last or reach > paths.place[AFTER, FIRST, root, last])


@njit(**INSIDE, forceinline=True)
def _best_score(paths: PartialPaths, root: int, number: int, reach: int, last: int, fold: int) -> Any:
    score = paths.values[paths.place[BEFORE, AT, root, 0] + number]
    if root <= last:
        at = paths.place[AFTER, AT, root, last]
        score = folded(fold, score, paths.values[at + paths.best[at + reach - 1]])
    return score


@njit(**INSIDE)
def _open_best(
    strata: Strata, paths: PartialPaths, search: PathSearch, known: KnownPaths, openings: Openings, order: Order
) -> bool:
    """Search from the first events of a group that can have paths among the best; whether that came to an end."""
    last, size = len(strata.begin) - 2, paths.shape[BEFORE, SIZE, 0]
    bounded, bound, slack = known.state[IS_BOUNDED] == 1, known.bound[0], order.slack[0]
    open_count = 0
    for number in range(size):
        if openings.reach[number] >= 0 and (not bounded or openings.score[number] - slack <= bound):
            open_count += 1
    if open_count > order.want:
        scores = openings.score[:size][openings.reach[:size] >= 0]
        limit = np.partition(scores, order.want - 1)[order.want - 1] + slack
        bounded, bound = True, min(limit, bound) if bounded else limit
    begin_search(search, known.state[KNOWN], known.state[IS_BOUNDED], known.bound[0], order)
    for number in range(size if open_count > 0 else 0):
        reach = openings.reach[number]
        if reach >= 0 and (not bounded or openings.score[number] - slack <= bound):
            for root in range(1, last + 2):
                if _has_path(paths, root, number, reach, last):
                    add_root(strata, paths, search, root, (number, number + 1), (np.int64(0), reach), order.fold)
    done = collect_paths(strata, paths, search, order)
    if done:
        merge_found(known, search, order.want)
    return done


@njit(**INSIDE)
def _open_alone(
    strata: Strata,
    paths: PartialPaths,
    search: PathSearch,
    known: KnownPaths,
    span: Array,
    entry: int,
    horizon: Array,
    order: Order,
) -> None:
    """Search from one first event, over tables filled forwards."""  # fmt: skip
    event, zero = np.int64(strata.event[entry]), np.int64(0)
    set_events(span, event, horizon[event], event + 1, 0, 1)
    fill_side(strata, paths, AFTER, span, order.fold)
    begin_search(search, known.state[KNOWN], known.state[IS_BOUNDED], known.bound[0], order)
    reach = paths.shape[AFTER, SIZE, len(strata.begin) - 2]
    add_root(strata, paths, search, zero, (zero, zero), (zero, reach), order.fold)
    collect_paths(strata, paths, search, order)
    merge_found(known, search, order.want)
