"""The k best paths of windows that may overlap: among few events, by tables around pivots, and from what was found.

A window is first looked at through its promising events, by a bound that the last window suggests; as long as that
works, no table of all events is filled. Where it does not (many equal weights, light events that do not fit together),
windows are put in groups with a pivot inside all of them: the begin of the group's last window. Tables before and after
it, filled once, give the best paths of every window of the group. From window to window all paths that
score less than a bound are known. Those that begin too early are dropped, those that end with a new event are looked
for, and when fewer than k are left, all are looked for again: most paths are found once, in however many windows.

Cost: see `strata`. The thesis keeps its k best as well (k-DSSP), but fills the tables of every window anew.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.ranking.partial_paths import (
    AFTER,
    BASE,
    BEFORE,
    SIZE,
    PartialPaths,
    Strata,
    empty_paths,
    fill_joints_between,
    fill_side,
    first_entry,
    set_events,
)
from trendloom.kernels.ranking.path_search import (
    BOUNDED,
    FOUND,
    IS_BOUNDED,
    KNOWN,
    KnownPaths,
    Order,
    PathSearch,
    add_root,
    append_best,
    begin_search,
    collect_few,
    collect_paths,
    drop_before,
    empty_ranking,
    empty_search,
    forget_paths,
    lower_bound,
    merge_found,
    most_taken,
    no_paths_yet,
)
from trendloom.kernels.ranking.promising_events import (
    FAR,
    PromisingEvents,
    can_be_few,
    choose_events,
    enter_window,
    lowest_score,
    make_first_guess,
    no_events_yet,
    remember_guess,
)

AMONG_FEW, BY_PIVOT, FROM_KNOWN = range(3)
"""Ways to find the paths of a window: among promising events, by tables around a pivot, from those of the last one."""
NEXT, PAUSE = range(2)
"""Of a way: the window from which on it is tried, and after how many it is tried when it fails again."""
LONGEST_PAUSE = 64


@njit(nogil=True)
def no_tries_yet() -> Array:
    """All ways are tried from the first window on."""
    return np.zeros((3, 2), np.int64)


@njit(**INSIDE, forceinline=True)
def is_due(tries: Array, way: int, window: int) -> bool:
    return bool(window >= tries[way, NEXT])


@njit(**INSIDE, forceinline=True)
def note_try(tries: Array, way: int, window: int, helped: bool) -> None:
    pause = 0 if helped else min(2 * tries[way, PAUSE] + 1, LONGEST_PAUSE)
    tries[way, PAUSE], tries[way, NEXT] = pause, window + 1 + pause


WORTH_SHARING = 1.5
"""Tables around a pivot are filled where windows have so many times the events they cover, for each of their roots."""
GUESSES = 3
"""So many bounds are tried before all events are looked at."""
SURE = 1.5
"""How much further than in the last window the first of them is above the lowest score."""
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


class Orders(NamedTuple):
    """What searches go by: among promising events, by tables of one window, and by tables around a pivot."""

    few: Order
    alone: Order
    shared: Order


class WindowSearch(NamedTuple):
    """What is needed to rank windows one after the other.

    `paths`: tables of all events, `some`: promising ones, `tries`: what has helped so far. `at`: the window, the end of
    the one before if its paths are known, the pivot of its group, and whether tables around that are filled.
    `events`: for `fill_side`.
    """

    paths: PartialPaths
    some: PromisingEvents
    search: PathSearch
    known: KnownPaths
    tries: Array
    at: Array
    events: Array


NUMBER, NEW, PIVOT, FILLED, JOINED_FROM, JOINED_TO = range(6)
"""What `at` holds; joints are filled for the events from JOINED_FROM to JOINED_TO - 1."""


@njit(nogil=True)
def rank_windows(strata: Strata, low: Array, high: Array, k: int, groups: Groups, orders: Orders, margin: Array) -> Any:
    """Paths are looked for among promising events if there is a `margin`, else in all events."""
    here = _no_windows_yet(strata, groups, orders, margin)
    known, at = here.known, here.at
    rows, offsets, more = empty_ranking(strata, 64), np.zeros(len(low) + 1, np.int64), np.zeros(len(low), np.bool_)
    for group in range(len(groups.pivot)):
        begin, end = groups.begin[group], groups.begin[group + 1]
        at[PIVOT], at[FILLED] = groups.pivot[group], 0
        for w in range(begin, end):
            at[NUMBER], at[NEW] = w, NOTHING
            if groups.overlaps and w > 0 and low[w - 1] <= low[w] < high[w - 1] <= high[w]:
                drop_before(known, low[w])
                at[NEW] = high[w - 1]
            else:
                forget_paths(known)
            set_events(here.events, low[w], high[w], high[w], 0, 1)
            if not _search_few(strata, here, k, orders.few):
                _search_all(strata, here, low[begin], high[end - 1], k, orders)
            rows = append_best(known, k, rows, offsets, more, w)
    return offsets, rows.scores[: offsets[-1]], rows.events[: offsets[-1]], more


@njit(nogil=True)
def _no_windows_yet(strata: Strata, groups: Groups, orders: Orders, margin: Array) -> WindowSearch:
    positions = len(strata.begin) - 1
    shares = len(groups.pivot) > 0 and groups.pivot.max() >= 0
    takes = most_taken(groups.most, positions, max(orders.few.patience, orders.shared.patience))
    return WindowSearch(
        empty_paths(strata, groups.most, 2 if shares else 1, positions if shares else 1),
        no_events_yet(strata, groups.most, margin), empty_search(strata, positions + 1, takes),
        no_paths_yet(strata, min(orders.few.want, takes)), no_tries_yet(), np.zeros(6, np.int64), np.zeros(5, np.int64),
    )  # fmt: skip


@njit(**INSIDE)
def _search_few(strata: Strata, here: WindowSearch, k: int, order: Order) -> bool:
    """Find the best paths of a window among promising events, if it is likely that these are few."""
    if not can_be_few(here.some) or not is_due(here.tries, AMONG_FEW, here.at[NUMBER]):
        return False
    done = _search_few_new(strata, here, k, order) or _search_by_guess(strata, here, k, order)
    note_try(here.tries, AMONG_FEW, here.at[NUMBER], done)
    if done:
        merge_found(here.known, here.search, 2 * order.want)
    return done


@njit(**INSIDE)
def _search_few_new(strata: Strata, here: WindowSearch, k: int, order: Order) -> bool:
    """Find the paths that end with a new event and can be among the best; whether enough are known then."""
    some, known, events = here.some, here.known, here.events
    if here.at[NEW] < 0 or known.state[IS_BOUNDED] == 0 or 2 * known.state[KNOWN] <= k:
        return False
    if not enter_window(strata, some, events[0], events[1], here.at[NEW]):
        begin_search(here.search, known.state[KNOWN], 1, known.bound[0], order)
        return bool(known.state[KNOWN] > k)
    lower_bound(known, lowest_score(some, order.fold) + some.guess[0])
    if not choose_events(strata, some, known.bound[0], order.fold):
        return False
    _search_chosen(here, order)
    return bool(known.state[KNOWN] + here.search.tally[FOUND] > k)


@njit(**INSIDE)
def _search_by_guess(strata: Strata, here: WindowSearch, k: int, order: Order) -> bool:
    """Find the paths that score at most what is guessed; whether they are enough. If not, no paths are known."""
    some, known, guess = here.some, here.known, here.some.guess
    forget_paths(known)
    if not enter_window(strata, some, here.events[0], here.events[1], NOTHING):
        begin_search(here.search, 0, 0, known.bound[0], order)
        return True
    lowest = lowest_score(some, order.fold)
    if guess[0] < 0:
        make_first_guess(some)
    for _ in range(GUESSES):
        if not 0 <= guess[0] < FAR:
            break
        known.state[IS_BOUNDED], known.bound[0] = 1, lowest + guess[0]
        if not choose_events(strata, some, known.bound[0], order.fold):
            break
        _search_chosen(here, order)
        if here.search.tally[FOUND] > k:
            guess[0] = SURE * (here.search.bound[0] - lowest)
            return True
        if guess[0] > 0:
            guess[0] *= 2
        else:  # the best paths of the last window all had the lowest score there is
            make_first_guess(some)
    forget_paths(known)
    return False


@njit(**INSIDE)
def _search_chosen(here: WindowSearch, order: Order) -> None:
    """Find the best paths of the events that are chosen."""
    some, known = here.some, here.known
    fill_side(some.strata, some.paths, AFTER, here.events, order.fold)
    begin_search(here.search, known.state[KNOWN], known.state[IS_BOUNDED], known.bound[0], order)
    if not collect_few(some.strata, some.paths, here.search, order):
        _search_window(some.strata, some.paths, here.search, known, here.events, NOTHING, NOTHING, order)


@njit(**INSIDE)
def _search_all(strata: Strata, here: WindowSearch, low: int, high: int, k: int, orders: Orders) -> None:
    """Find the best paths of a window by tables of all its events, around a pivot if that has helped so far.

    `low`, `high`: where the windows of its group begin and end.
    """
    at, tries, want = here.at, here.tries, orders.shared.want
    _fill_new_joints(strata, here.paths, at, low, high)
    done, guesses = False, can_be_few(here.some)
    if at[PIVOT] >= 0 and is_due(tries, BY_PIVOT, at[NUMBER]) and (not guesses or tries[AMONG_FEW, PAUSE] > 0):
        if at[FILLED] == 0:
            _fill_around(strata, here.paths, low, at[PIVOT], high, orders.shared.fold)
            at[FILLED] = 1
        done = _search_tables(strata, here, at[PIVOT], k, orders.shared)
        if not done:
            note_try(tries, BY_PIVOT, at[NUMBER], False)
    if not done:
        at[FILLED], want = 0, orders.alone.want
        fill_side(strata, here.paths, AFTER, here.events, orders.alone.fold)
        _search_tables(strata, here, NOTHING, k, orders.alone)
    merge_found(here.known, here.search, 2 * want)
    if guesses and here.known.state[IS_BOUNDED] == 1:
        remember_guess(strata, here.some, here.events[0], here.events[1], here.known.bound[0], orders.few.fold)


@njit(**INSIDE)
def _fill_new_joints(strata: Strata, paths: PartialPaths, at: Array, low: int, high: int) -> None:
    """Fill the joints of some events, less those that were filled for the events before."""
    if low < at[JOINED_FROM] or low > at[JOINED_TO]:
        at[JOINED_FROM], at[JOINED_TO] = low, low
    if high > at[JOINED_TO]:
        fill_joints_between(strata, paths, at[JOINED_TO], high)
        at[JOINED_TO] = high


@njit(**INSIDE)
def _fill_around(strata: Strata, paths: PartialPaths, low: int, pivot: int, high: int, fold: int) -> None:
    """Fill the tables of both sides of a pivot."""
    events, positions = np.zeros(5, np.int64), len(strata.begin) - 1
    set_events(events, low, pivot, pivot, 1, positions + 1)
    fill_side(strata, paths, BEFORE, events, fold)
    set_events(events, pivot, high, high, 0, positions)
    fill_side(strata, paths, AFTER, events, fold)


@njit(**INSIDE)
def _search_tables(strata: Strata, here: WindowSearch, pivot: int, k: int, order: Order) -> bool:
    """Find the best paths by tables that are filled, beginning with those known; whether the search ended."""
    known, at, tries = here.known, here.at, here.tries
    left = known.state[KNOWN]
    helps = 2 * left > k or (left > 0 and known.state[IS_BOUNDED] == 0)
    if helps and at[NEW] >= 0 and is_due(tries, FROM_KNOWN, at[NUMBER]):
        done = _search_window(strata, here.paths, here.search, known, here.events, at[NEW], pivot, order)
        done = done and (here.search.tally[BOUNDED] == 0 or left + here.search.tally[FOUND] > k)
        note_try(tries, FROM_KNOWN, at[NUMBER], done)
        if done:
            return True
    forget_paths(known)
    return bool(_search_window(strata, here.paths, here.search, known, here.events, NOTHING, pivot, order))


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
