"""The k best matches of a sequence of single events, in windows that may overlap, or under a bound on their span.

Idea: a window that no other overlaps needs one pass over its events, which finds the best partial path up to each of
them (`partial_paths`); the k best paths come out of that one by one (`path_search`). Of many windows most need less: by
the scores of the last one, few of their events can be in the best paths (`promising_events`), and few paths are found
depth first (`few_paths`). Else windows that overlap share tables around a pivot; in any case a window takes over what
the one before it has found (`windows_of_strata`). A bound on the span is a window per first event;
only those first events are opened whose best path is among the k best (`spans_of_strata`).

Scores of doubles are exact: folding from left to right is monotone, so tables filled forwards hold the very doubles.
Tables before a pivot add in another order; what they say is right up to a slack of positions · 2⁻⁵¹ · (Σ greatest
weights), every path is scored anew, and if masses of scores lie within the slack, windows are done one by one. Where
all weights are multiples of one power of two that is large enough, no sum is rounded and the slack is 0.

Cost: O(events · positions) without overlap, O(events · positions²) with it, whatever the overlap, and per path found
O(positions · (positions + log events)). The thesis: O(window · positions · k) for every window.
See "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern Queries over Event Streams", 3.2.
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
    GREATEST,
    SIZE,
    SUM,
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
    IS_BOUNDED,
    KNOWN,
    KnownPaths,
    Order,
    PathSearch,
    add_root,
    append_best,
    begin_search,
    collect_paths,
    empty_ranking,
    empty_search,
    forget_paths,
    merge_found,
    most_taken,
    no_paths_yet,
)
from trendloom.kernels.ranking.windows_of_strata import Orders, groups_of, rank_windows


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


__all__ = ["GREATEST", "SUM", "BestPaths", "Strata", "best_paths", "best_spans"]


ENOUGH_TO_GUESS = 4
"""In fewer windows, events are not summed up to find promising ones."""


class BestPaths(NamedTuple):
    """The rows of window (or key) w are those from `offsets[w]` to `offsets[w + 1]`, in order of their scores.

    `events`: one column per position. `more[w]`: another path has the score of the last row.
    """

    offsets: Array
    scores: Array
    events: Array
    more: Array


def best_paths(strata: Strata, low: Array, high: Array, k: int, fold: int) -> BestPaths:
    """The k best paths of the events from low[w] to high[w] - 1, for every window w.

    Windows lie inside one key each, do not cut through events of the same time, and come in order; sums fit 62 bits.
    """
    groups = groups_of(strata, low, high)
    some = k + k // 2 + 5 if groups.overlaps else k + 1
    few = shared = Order(fold, some, some + 1, np.zeros(1, strata.weight.dtype))
    if np.any(groups.pivot >= 0):
        shared = _for_pivots(strata, few)
        if not np.isfinite(shared.slack[0]):
            groups = groups._replace(pivot=np.full_like(groups.pivot, -1))
    margin = _margin(strata, fold) if len(low) >= ENOUGH_TO_GUESS else np.empty(0, strata.weight.dtype)
    return BestPaths(*rank_windows(strata, low, high, k, groups, Orders(few, few._replace(want=k + 1), shared), margin))


def best_spans(strata: Strata, key_starts: Array, horizon: Array, k: int, fold: int) -> BestPaths:
    """The k best paths of every key whose last event is before `horizon` of the first one.

    The horizon of an event is an event or the end of its key, not earlier than that of the event before it.
    """
    alone = Order(fold, k + 1, k + 2, np.zeros(1, strata.weight.dtype))
    return BestPaths(*rank_spans(strata, key_starts, horizon, k, alone, _for_pivots(strata, alone)))


def _margin(strata: Strata, fold: int) -> Array:
    """By how much a weight can differ from what a bound of sums says of it; nothing where sums have no bound."""
    kind = strata.weight.dtype
    if fold != SUM or kind.kind != "f":
        return np.zeros(1, kind)
    greatest = max(strata.weight.max(initial=0.0), -strata.weight.min(initial=0.0))
    positions = len(strata.begin) - 1
    margin = np.array([(positions + 3) * 2.0**-51 * positions * greatest])
    return margin if np.isfinite(margin[0]) else margin[:0]


def _for_pivots(strata: Strata, order: Order) -> Order:
    """The same order for tables that add in another one than the pattern's."""
    if order.fold != SUM or strata.weight.dtype.kind != "f":
        return order
    slack = _slack(strata)
    return order if slack == 0.0 else order._replace(slack=np.array([slack]), patience=2 * order.want + 16)


@njit(nogil=True)
def _slack(strata: Strata) -> float:
    """By how much a sum of weights can differ from the same weights added in another order. O(entries)."""
    total = 0.0
    for t in range(len(strata.begin) - 1):
        greatest = 0.0
        for entry in range(strata.begin[t], strata.begin[t + 1]):
            greatest = max(greatest, abs(strata.weight[entry]))
        total += greatest
    if total == 0.0 or not np.isfinite(total):
        return total
    # if total <= 2^e and all weights are multiples of 2^(e - 53), sums of them fit the 53 bits of a double
    unit, least = 1.0, total * 2.0**-53
    while unit > 2.0 * least and unit > 2.0**-1000:
        unit *= 0.5
    while unit < least:
        unit *= 2.0
    for entry in range(len(strata.weight)):
        multiple = strata.weight[entry] / unit
        if multiple != np.floor(multiple):
            return (len(strata.begin) - 1) * 2.0**-51 * total
    return 0.0
