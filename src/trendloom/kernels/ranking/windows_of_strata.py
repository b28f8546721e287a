"""The k best paths of windows that may overlap: tables around pivots, and what the window before has found.

Windows are put in groups with a pivot inside all of them: the begin of the group's last window. Tables before and after
it, filled once, give the best paths of every window of the group. From window to window all paths that
score less than a bound are known. Those that begin too early are dropped, those that end with a new event are looked
for, and when fewer than k are left, all are looked for again: most paths are found once, in however many windows.

Cost: see `strata`. The thesis keeps its k best as well (k-DSSP), but fills the tables of every window anew.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.kernels.compiled import INSIDE, njit
from trendloom.kernels.ranking.known_paths import (
    IS_BOUNDED,
    KNOWN,
    KnownPaths,
    append_best,
    drop_before,
    forget_paths,
    merge_found,
    no_paths_yet,
)
from trendloom.kernels.ranking.partial_paths import (
    AFTER,
    BASE,
    BEFORE,
    SIZE,
    PartialPaths,
    Strata,
    empty_paths,
    fill_side,
    first_entry,
    set_events,
)
from trendloom.kernels.ranking.path_search import (
    BOUNDED,
    FOUND,
    Order,
    PathSearch,
    add_root,
    begin_search,
    collect_paths,
    empty_ranking,
    empty_search,
    most_taken,
)

Array = np.ndarray[Any, Any]

WORTH_SHARING = 1.5
"""Tables around a pivot are filled where windows have so many times the events they cover, for each of their roots."""
NOTHING = np.int64(-1)
"""Before all events."""


class Groups(NamedTuple):
    """Windows that have a pivot in common: group g has the windows from `begin[g]` to `begin[g + 1]`.

    `pivot`: an event, -1 where each window is done alone. `most`: entries of the largest group. `overlaps`: whether
    windows have many events in common.
    """

    begin: Array
    pivot: Array
    most: int
    overlaps: bool


@njit(nogil=True)
def groups_of(strata: Strata, low: Array, high: Array) -> Groups:
    """Put windows into groups. O(windows · positions)."""
    positions = len(strata.begin) - 1
    begin, pivot = np.empty(len(low) + 1, np.int64), np.empty(len(low), np.int64)
    count, most, w, events, covered, until = 0, 0, 0, 0, 0, 0
    near = strata.begin[:-1].copy()
    while w < len(low):
        follows = w > 0 and low[w - 1] <= low[w] < high[w - 1] <= high[w]
        limit = min(high[w - 1], high[w] - 1) if follows else high[w] - 1
        last, total = w, high[w] - low[w]
        while last + 1 < len(low) and low[last] <= low[last + 1] <= limit and high[last] <= high[last + 1]:
            last += 1
            total += high[last] - low[last]
        events, covered = events + total, covered + high[last] - max(low[w], until if follows else 0)
        until, at = high[last], low[last]
        shares = last > w and total > WORTH_SHARING * (positions + 1) / 2 * (high[last] - low[w])
        aligned = at == 0 or strata.tie_end[at - 1] <= at
        begin[count], pivot[count] = w, at if shares and aligned else -1
        entries = 0
        for t in range(positions):
            near[t] = first_entry(strata.event, strata.begin[t], strata.begin[t + 1], low[w], near[t])
            entries += first_entry(strata.event, near[t], strata.begin[t + 1], high[last], near[t]) - near[t]
        most = max(most, entries)
        count, w = count + 1, last + 1
    begin[count] = w
    return Groups(begin[: count + 1], pivot[:count], most, events > 3 * covered)


@njit(nogil=True)
def rank_windows(strata: Strata, low: Array, high: Array, k: int, groups: Groups, alone: Order, shared: Order) -> Any:
    """Windows of a group with a pivot go by `shared`, others by `alone`.

    What did not help is tried again only after some groups (`trust`) or windows (`hope`), more each time.
    """
    positions = len(strata.begin) - 1
    shares = len(groups.pivot) > 0 and groups.pivot.max() >= 0
    paths = empty_paths(strata, groups.most, 2 if shares else 1, positions if shares else 1)
    takes = most_taken(groups.most, positions, max(alone.patience, shared.patience))
    search = empty_search(strata, positions + 1, takes)
    known = no_paths_yet(strata, min(alone.want, takes))
    rows, offsets, more = empty_ranking(strata, 64), np.zeros(len(low) + 1, np.int64), np.zeros(len(low), np.bool_)
    window = np.zeros(5, np.int64)
    trust, doubt, hope, pause = 0, 1, 0, 1
    for group in range(len(groups.pivot)):
        pivot, end = groups.pivot[group] if group >= trust else -1, groups.begin[group + 1]
        order = shared if pivot >= 0 else alone
        if pivot >= 0:
            set_events(window, low[groups.begin[group]], pivot, pivot, 1, positions + 1)
            fill_side(strata, paths, BEFORE, window, order.fold)
            set_events(window, pivot, high[end - 1], high[end - 1], 0, positions)
            fill_side(strata, paths, AFTER, window, order.fold)
        for w in range(groups.begin[group], end):
            set_events(window, low[w], high[w], high[w], 0, 1)
            if pivot < 0:
                fill_side(strata, paths, AFTER, window, order.fold)
            done = False
            if groups.overlaps and w > 0 and low[w - 1] <= low[w] < high[w - 1] <= high[w]:
                drop_before(known, low[w])
                left = known.state[KNOWN]
                if w >= hope and (2 * left > k or (left > 0 and known.state[IS_BOUNDED] == 0)):
                    done = _search_window(strata, paths, search, known, window, high[w - 1], pivot, order)
                    done = done and (search.tally[BOUNDED] == 0 or left + search.tally[FOUND] > k)
                    pause = 1 if done else min(2 * pause, 16)
                    hope = w + pause
            while not done:
                forget_paths(known)
                done = _search_window(strata, paths, search, known, window, NOTHING, pivot, order)
                if not done:
                    pivot, order, trust, doubt = -1, alone, group + 1 + doubt, min(2 * doubt, 64)
                    fill_side(strata, paths, AFTER, window, order.fold)
            merge_found(known, search, 2 * order.want)
            rows = append_best(known, k, rows, offsets, more, w)
    return offsets, rows.scores[: offsets[-1]], rows.events[: offsets[-1]], more


@njit(**INSIDE)
def _search_window(
    strata: Strata,
    paths: PartialPaths,
    search: PathSearch,
    known: KnownPaths,
    window: Array,
    new: int,
    pivot: int,
    order: Order,
) -> bool:
    """Find the best paths of a window that do not end before `new`; whether the search ended."""  # fmt: skip
    last, after, before = len(strata.begin) - 2, paths.shape[AFTER], paths.shape[BEFORE]
    begin, end = after[BASE, last], after[BASE, last] + after[SIZE, last]
    reach = first_entry(strata.event, begin, end, window[1], end) - begin
    reach_low = first_entry(strata.event, begin, begin + reach, new, begin + reach) - begin
    begin_search(search, known.state[KNOWN], known.state[IS_BOUNDED], known.bound[0], order)
    starts, roots = np.int64(0), 1
    if pivot >= 0:
        begin, end = before[BASE, 0] - before[SIZE, 0] + 1, before[BASE, 0] + 1
        starts = end - first_entry(strata.event, begin, end, window[0], begin)
        roots = last + 1 if new >= 0 else last + 2
    for root in range(roots):
        add_root(strata, paths, search, root, (np.int64(0), starts), (reach_low, reach), order.fold)
    return collect_paths(strata, paths, search, order)
