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
from trendloom.kernels.ranking.few_paths import collect_few
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
    fill_joints,
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
from trendloom.kernels.ranking.promising_events import (
    FAR,
    PromisingEvents,
    choose_events,
    enter_window,
    lowest_score,
    make_first_guess,
    no_events_yet,
    remember_guess,
)
from trendloom.kernels.ranking.tries import (
    AMONG_FEW,
    BY_PIVOT,
    FROM_KNOWN,
    NEXT,
    PAUSE,
    is_due,
    no_tries_yet,
    note_try,
)

Array = np.ndarray[Any, Any]

WORTH_SHARING = 1.5
"""Tables around a pivot are filled where windows have so many times the events they cover, for each of their roots."""
GUESSES = 3
"""So many bounds are tried before all events are looked at."""
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
def rank_windows(
    strata: Strata, low: Array, high: Array, k: int, groups: Groups, alone: Order, shared: Order, margin: Array
) -> Any:
    """Paths are looked for among promising events, if there is a `margin`; else by pivots with `shared`, else `alone`."""
    positions = len(strata.begin) - 1
    shares = len(groups.pivot) > 0 and groups.pivot.max() >= 0
    paths = empty_paths(strata, groups.most, 2 if shares else 1, positions if shares else 1)
    takes = most_taken(groups.most, positions, max(alone.patience, shared.patience))
    search = empty_search(strata, positions + 1, takes)
    known = no_paths_yet(strata, min(alone.want, takes))
    some = no_events_yet(strata, groups.most, margin)
    rows, offsets, more = empty_ranking(strata, 64), np.zeros(len(low) + 1, np.int64), np.zeros(len(low), np.bool_)
    window, tries = np.zeros(5, np.int64), no_tries_yet()
    tries[AMONG_FEW, NEXT] = 0 if len(margin) else len(low)
    linked = False
    for group in range(len(groups.pivot)):
        pivot, end, filled = groups.pivot[group], groups.begin[group + 1], False
        for w in range(groups.begin[group], end):
            new = NOTHING
            if groups.overlaps and w > 0 and low[w - 1] <= low[w] < high[w - 1] <= high[w]:
                drop_before(known, low[w])
                new = high[w - 1]
            else:
                forget_paths(known)
            done, want = False, alone.want
            set_events(window, low[w], high[w], high[w], 0, 1)
            if is_due(tries, AMONG_FEW, w):
                done = _search_few(strata, some, search, known, window, new, k, alone)
                note_try(tries, AMONG_FEW, w, done)
            found_few = done
            if not done and not linked:
                fill_joints(strata, paths)
                linked = True
            if not done and pivot >= 0 and is_due(tries, BY_PIVOT, w) and (len(margin) == 0 or tries[AMONG_FEW, PAUSE] > 0):
                if not filled:
                    _fill_around(strata, paths, low[groups.begin[group]], pivot, high[end - 1], shared.fold)
                    filled = True
                done, want = (
                    _search_all(strata, paths, search, known, window, new, pivot, k, tries, w, shared),
                    shared.want,
                )
                note_try(tries, BY_PIVOT, w, done)
            if not done:
                filled, want = False, alone.want
                fill_side(strata, paths, AFTER, window, alone.fold)
                _search_all(strata, paths, search, known, window, new, NOTHING, k, tries, w, alone)
            merge_found(known, search, 2 * want)
            if not found_few and len(margin) and known.state[IS_BOUNDED] == 1:
                remember_guess(strata, some, low[w], high[w], known.bound[0], alone.fold)
            rows = append_best(known, k, rows, offsets, more, w)
    return offsets, rows.scores[: offsets[-1]], rows.events[: offsets[-1]], more


@njit(**INSIDE)
def _fill_around(strata: Strata, paths: PartialPaths, low: int, pivot: int, high: int, fold: int) -> None:
    """Fill the tables of both sides of a pivot."""
    events, positions = np.zeros(5, np.int64), len(strata.begin) - 1
    set_events(events, low, pivot, pivot, 1, positions + 1)
    fill_side(strata, paths, BEFORE, events, fold)
    set_events(events, pivot, high, high, 0, positions)
    fill_side(strata, paths, AFTER, events, fold)


@njit(**INSIDE)
def _search_few(
    strata: Strata,
    some: PromisingEvents,
    search: PathSearch,
    known: KnownPaths,
    window: Array,
    new: int,
    k: int,
    order: Order,
) -> bool:
    """Find the best paths of a window among promising events; if that is not possible, no paths are known."""
    left = known.state[KNOWN]
    if new >= 0 and known.state[IS_BOUNDED] == 1 and 2 * left > k:
        if not enter_window(strata, some, window[0], window[1], new):
            begin_search(search, left, 1, known.bound[0], order)
        elif choose_events(strata, some, known.bound[0], order.fold):
            _search_chosen(some, search, known, window, order)
        else:
            left = 0
        if left > 0 and left + search.tally[FOUND] > k:
            return True
    forget_paths(known)
    if not enter_window(strata, some, window[0], window[1], NOTHING):
        begin_search(search, 0, 0, known.bound[0], order)
        return True
    lowest = lowest_score(some, order.fold)
    if some.guess[0] < 0:
        make_first_guess(some)
    for _ in range(GUESSES):
        known.state[IS_BOUNDED], known.bound[0] = 1, lowest + some.guess[0]
        if not (0 <= some.guess[0] < FAR) or not choose_events(strata, some, known.bound[0], order.fold):
            break
        _search_chosen(some, search, known, window, order)
        if search.tally[FOUND] > k:
            some.guess[0] = 1.5 * (search.bound[0] - lowest)
            return True
        some.guess[0] *= 2
    forget_paths(known)
    return False


@njit(**INSIDE)
def _search_chosen(some: PromisingEvents, search: PathSearch, known: KnownPaths, window: Array, order: Order) -> None:
    """Find the best paths of the events that are chosen."""
    fill_side(some.strata, some.paths, AFTER, window, order.fold)
    begin_search(search, known.state[KNOWN], known.state[IS_BOUNDED], known.bound[0], order)
    if not collect_few(some.strata, some.paths, search, order):
        _search_window(some.strata, some.paths, search, known, window, NOTHING, NOTHING, order)


@njit(**INSIDE)
def _search_all(
    strata: Strata,
    paths: PartialPaths,
    search: PathSearch,
    known: KnownPaths,
    window: Array,
    new: int,
    pivot: int,
    k: int,
    tries: Array,
    w: int,
    order: Order,
) -> bool:
    """Find the best paths of a window by the tables of all its events; whether the search ended."""  # fmt: skip
    left = known.state[KNOWN]
    if new >= 0 and is_due(tries, FROM_KNOWN, w) and (2 * left > k or (left > 0 and known.state[IS_BOUNDED] == 0)):
        done = _search_window(strata, paths, search, known, window, new, pivot, order)
        done = done and (search.tally[BOUNDED] == 0 or left + search.tally[FOUND] > k)
        note_try(tries, FROM_KNOWN, w, done)
        if done:
            return True
    forget_paths(known)
    return bool(_search_window(strata, paths, search, known, window, NOTHING, pivot, order))


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
