"""The k best matches of a sequence of single events, in windows that may overlap, or under a bound on their span.

Idea: a window that no other overlaps needs one pass over its events, which finds the best partial path up to each of
them (`partial_paths`); the k best paths come out of that one by one (`path_search`). Windows that overlap are put in
groups that share a pivot inside all of them: tables before and after the pivot, filled once, give the best paths of
every window of the group. And a window takes over what the one before it has found: all paths that score less than a
bound are known, so only those that end with a new event are looked for, and the list is made anew only when too few
are left in it. A bound on the span is a window per first event; only those first events are opened whose best path is
among the k best of the key.

Scores of doubles are exact: folding from left to right is monotone, so tables filled forwards hold the very doubles.
Tables of a pivot add in another order; what they say is right up to a slack of positions · 2⁻⁵¹ · (Σ greatest weights),
every path is scored anew, and if masses of scores lie within the slack, the windows are done one by one. Where all
weights are multiples of one power of two that is large enough, no sum is rounded and the slack is 0.

Cost: O(events · positions) without overlap, O(events · positions²) with it, whatever the overlap, and per path found
O(positions · (positions + log events)). The thesis: O(window · positions · k) for every window.
See "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern Queries over Event Streams", 3.2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.kernels.compiled import INSIDE, njit
from trendloom.kernels.ranking.partial_paths import (
    SUM,
    PartialPaths,
    Strata,
    empty_paths,
    fill_side,
    first_entry,
)
from trendloom.kernels.ranking.path_search import (
    FOUND,
    Order,
    PathSearch,
    RankedPaths,
    add_root,
    begin_search,
    collect_paths,
    empty_ranking,
    empty_search,
)

Array = np.ndarray[Any, Any]

WORTH_SHARING = 1.5
"""Tables of a pivot are filled where the windows of a group have so many times the events they cover, per root."""
NO_LIMIT = 1 << 62


class BestPaths(NamedTuple):
    """The rows of window (or key) w are those from `offsets[w]` to `offsets[w + 1]`, in order of their scores.

    `more[w]`: another path has the score of the last row.
    """

    offsets: Array
    scores: Array
    events: Array
    more: Array


class Groups(NamedTuple):
    """Windows that have a pivot in common: group g has the windows from `begin[g]` to `begin[g + 1]`.

    `pivot`: an event, -1 where each window is done alone. `most`: entries of the largest group. `overlaps`: whether
    windows have many events in common.
    """

    begin: Array
    pivot: Array
    most: int
    overlaps: bool


def best_paths(strata: Strata, low: Array, high: Array, k: int, fold: int) -> BestPaths:
    """The k best paths of the events from low[w] to high[w] - 1, for every window w.

    Windows lie inside one key each, do not cut through events of the same time, and come in order. Sums fit 62 bits.
    """
    groups = _groups(strata, low, high)
    some = k + k // 2 + 4 if groups.overlaps else k
    order = Order(fold, some + 1, NO_LIMIT, np.zeros(1, strata.weight.dtype))
    shared = order
    if fold == SUM and strata.weight.dtype.kind == "f" and np.any(groups.pivot >= 0):
        shared = order._replace(slack=np.array([_slack(strata)]), patience=4 * some + 64)
        if not np.isfinite(shared.slack[0]):
            groups = groups._replace(pivot=np.full_like(groups.pivot, -1))
    return BestPaths(*_rank_windows(strata, low, high, k, groups, order, shared))


# ------------------------------------------------------------------------------------------------ compiled


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


@njit(nogil=True)
def _groups(strata: Strata, low: Array, high: Array) -> Groups:
    """Put windows into groups. O(windows · positions)."""
    positions = len(strata.begin) - 1
    begin, pivot = np.empty(len(low) + 1, np.int64), np.empty(len(low), np.int64)
    count, most, w, events, covered, until = 0, 0, 0, 0, 0, 0
    near = strata.begin[:-1].copy()
    while w < len(low):
        chained = w > 0 and low[w] >= low[w - 1] and low[w] < high[w - 1] and high[w] >= high[w - 1]
        limit = min(high[w - 1], high[w] - 1) if chained else high[w] - 1
        last, total = w, high[w] - low[w]
        while last + 1 < len(low) and low[last] <= low[last + 1] <= limit and high[last] <= high[last + 1]:
            last += 1
            total += high[last] - low[last]
        events, covered = events + total, covered + high[last] - max(low[w], until)
        until = high[last]
        at = low[last]
        shares = last > w and total > WORTH_SHARING * (positions + 1) / 2 * (high[last] - low[w])
        begin[count], pivot[count] = w, -1
        if shares and (at == 0 or strata.tie_end[at - 1] <= at):
            pivot[count] = at
        entries = 0
        for t in range(positions):
            near[t] = first_entry(strata.event, strata.begin[t], strata.begin[t + 1], low[w], near[t])
            entries += first_entry(strata.event, near[t], strata.begin[t + 1], high[last], near[t]) - near[t]
        most = max(most, entries)
        count, w = count + 1, last + 1
    begin[count] = w
    return Groups(begin[: count + 1], pivot[:count], most, events > 2 * covered)


@njit(nogil=True)
def _rank_windows(
    strata: Strata, low: Array, high: Array, k: int, groups: Groups, alone: Order, shared: Order
) -> Any:
    """See `best_paths`: the windows of a group go by `shared`, others by `alone`."""
    positions = len(strata.begin) - 1
    shares = len(groups.pivot) > 0 and groups.pivot.max() >= 0
    before = empty_paths(strata, -1, groups.most if shares else 0, positions if shares else 0)
    after = empty_paths(strata, 1, groups.most, positions if shares else 1)
    search = empty_search(strata, 4 * positions + 16)
    found, kept, spare = empty_ranking(strata, alone.want), empty_ranking(strata, 2 * alone.want), empty_ranking(strata, 2 * alone.want)
    offsets, more, rows = np.zeros(len(low) + 1, np.int64), np.zeros(len(low), np.bool_), empty_ranking(strata, 64)
    known, bounded, bound, until, order = 0, False, found.scores[0], 0, alone
    for group in range(len(groups.pivot)):
        pivot, end = groups.pivot[group], groups.begin[group + 1]
        if pivot >= 0:
            first, order = groups.begin[group], shared
            fill_side(strata, before, (low[first], pivot, pivot), (1, positions + 1), order.fold)
            fill_side(strata, after, (pivot, high[end - 1], high[end - 1]), (0, positions), order.fold)
        for w in range(groups.begin[group], end):
            if pivot < 0:
                order = alone
                fill_side(strata, after, (low[w], high[w], high[w]), (0, 1), order.fold)
            known = _drop_before(kept, known, low[w]) if w > 0 and low[w - 1] <= low[w] < until <= high[w] else 0
            done = False
            if groups.overlaps and known > 0 and (not bounded or 2 * known > k):
                window = (low[w], high[w], until, pivot)
                search, more_bounded, more_bound, ended = _search_window(
                    strata, before, after, search, found, window, known, bounded, bound, order
                )
                done = ended and (not more_bounded or known + search.count[FOUND] > k)
                if done:
                    bounded, bound = more_bounded, more_bound
            while not done:
                known = 0
                window = (low[w], high[w], -1, pivot)
                search, bounded, bound, done = _search_window(
                    strata, before, after, search, found, window, known, False, bound, order
                )
                if not done:
                    pivot, order = -1, alone
                    fill_side(strata, after, (low[w], high[w], high[w]), (0, 1), order.fold)
            total = known + search.count[FOUND]
            known = _merge(kept, known, found, search.count[FOUND], spare)
            kept, spare = spare, kept
            if known < total:
                bounded, bound = True, min(bound, kept.scores[known - 1]) if bounded else kept.scores[known - 1]
            while bounded and known > 0 and kept.scores[known - 1] > bound:
                known -= 1
            until = high[w]
            rows = _emit(kept, known, k, rows, offsets, more, w)
    return offsets, rows.scores[: offsets[-1]], rows.events[: offsets[-1]], more


@njit(**INSIDE)
def _search_window(
    strata: Strata, before: PartialPaths, after: PartialPaths, search: PathSearch, found: RankedPaths, window: Any,
    known: int, bounded: bool, bound: Any, order: Order,
) -> Any:
    """The best paths of a window that end with an event not before `new` (-1: all paths); see `collect_paths`."""  # fmt: skip
    low, high, new, pivot = window
    last = len(strata.begin) - 2
    begin, end = after.base[last], after.base[last] + after.size[last]
    reach = first_entry(strata.event, begin, end, high, end) - begin
    reach_low = first_entry(strata.event, begin, begin + reach, new, begin + reach) - begin if new >= 0 else 0
    begin_search(search)
    search = add_root(strata, before, after, search, 0, (0, 0, reach_low, reach), order.fold)
    if pivot >= 0:
        end = before.base[0] + 1
        starts = end - first_entry(strata.event, end - before.size[0], end, low, end - before.size[0])
        for root in range(1, last + 1 if new >= 0 else last + 2):
            search = add_root(strata, before, after, search, root, (0, starts, reach_low, reach), order.fold)
    return collect_paths(strata, before, after, search, found, known, bounded, bound, order)


@njit(**INSIDE)
def _drop_before(kept: RankedPaths, known: int, low: int) -> int:
    """Drop the paths that begin before an event; how many are left."""
    left = 0
    for row in range(known):
        if kept.events[row, 0] >= low:
            if left < row:
                kept.scores[left], kept.events[left] = kept.scores[row], kept.events[row]
            left += 1
    return left


@njit(**INSIDE)
def _merge(one: RankedPaths, ones: int, other: RankedPaths, others: int, into: RankedPaths) -> int:
    """The best paths of two rankings, as many as there is room for; how many."""
    a, b, count = 0, 0, 0
    while count < len(into.scores) and a + b < ones + others:
        if b == others or (a < ones and one.scores[a] <= other.scores[b]):
            into.scores[count], into.events[count] = one.scores[a], one.events[a]
            a += 1
        else:
            into.scores[count], into.events[count] = other.scores[b], other.events[b]
            b += 1
        count += 1
    return count


@njit(**INSIDE)
def _emit(
    kept: RankedPaths, known: int, k: int, rows: RankedPaths, offsets: Array, more: Array, at: int
) -> RankedPaths:
    """Append the k best as the rows of window or key `at`."""
    begin, count = offsets[at], min(k, known)
    if begin + count > len(rows.scores):
        room = max(begin + count, 2 * len(rows.scores))
        scores = np.empty(room, rows.scores.dtype)
        events = np.empty((room, rows.events.shape[1]), rows.events.dtype)
        scores[:begin], events[:begin] = rows.scores[:begin], rows.events[:begin]
        rows = RankedPaths(scores, events)
    rows.scores[begin : begin + count], rows.events[begin : begin + count] = kept.scores[:count], kept.events[:count]
    offsets[at + 1] = begin + count
    more[at] = known > k and kept.scores[k] == kept.scores[k - 1]
    return rows
