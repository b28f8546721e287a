"""The best sequences of every window by a monotone function of their parts, for few large windows and many small ones.

Windows with few sequences are listed, many windows at a time; the others are ranked one after the other, each from
where the one before it was left if it overlaps with it (see `parts`).

Cost: sequences of small windows, vectorised; of a large window as in `parts`, and some milliseconds for each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.ranking.joins.components import ranges
from trendloom.kernels.ranking.joins.parts import Parts, PartsRanking
from trendloom.kernels.ranking.joins.rank_join import MOST, RankedRows

LISTED = 1 << 12
"""Choices of events, in order or not, up to which a window is listed."""
TOGETHER = 1 << 19
"""Choices of all windows that are listed at a time."""


class RankedWindows(NamedTuple):
    """The best sequences of window w are the rows from `offsets[w]` to `offsets[w + 1]`, best first.

    `more[w]`: there are others with the score of its last row.
    """

    offsets: Array
    scores: Array
    events: Array
    more: Array


def best_of_parts(
    parts: Parts, low: Array, high: Array, k: int, *, ties: bool = False, most: int = MOST, listed: int = LISTED
) -> RankedWindows:
    """The k best of the events from `low` to `high` of each window; with `ties` all others that equal the last."""
    begin = np.stack([np.searchsorted(events, low) for events in parts.events])
    end = np.maximum(begin, np.stack([np.searchsorted(events, high) for events in parts.events]))
    choices = np.prod((end - begin).astype(np.float64), axis=0)
    found: dict[int, RankedRows] = {}
    ranking, before = None, -1
    for window in np.flatnonzero(choices > listed).tolist():
        if ranking is not None and low[before] <= low[window] < high[before] <= high[window]:
            ranking.slide(int(low[window]), int(high[window]))
        else:
            ranking = PartsRanking(parts, int(low[window]), int(high[window]))
        found[window], before = ranking.best(k, ties=ties, most=most), window
    small = np.flatnonzero((choices > 0) & (choices <= listed))
    number = np.cumsum(choices[small]) // TOGETHER
    pieces = [small[number == one] for one in np.unique(number)]
    lists = [_listed(parts, begin[:, some], end[:, some], k, most if ties else k) for some in pieces]
    return _together(parts, len(low), found, list(zip(pieces, lists, strict=True)))


def _listed(parts: Parts, begin: Array, end: Array, k: int, most: int) -> RankedWindows:
    """The best sequences of several windows, by listing all of theirs."""
    count = begin.shape[1]
    window = np.repeat(np.arange(count), end[0] - begin[0])
    places = [ranges(begin[0], end[0])]
    for position in range(1, parts.positions):
        later = parts.tie_end[parts.events[position - 1][places[-1]]]
        first = np.searchsorted(parts.events[position], later)
        first = np.minimum(np.maximum(first, begin[position][window]), end[position][window])
        sizes = end[position][window] - first
        added = ranges(first, end[position][window])
        places = [*(np.repeat(each, sizes) for each in places), added]
        window = np.repeat(window, sizes)
    scores = parts.score([values[each] for values, each in zip(parts.values, places, strict=True)])
    order = np.lexsort((scores, window))
    window, scores = window[order], scores[order]
    starts = np.searchsorted(window, np.arange(count + 1))
    sizes = np.diff(starts)
    rank = np.arange(len(window)) - starts[:-1][window]
    last = starts[:-1] + np.minimum(k, sizes) - 1
    good = (rank < k) | (scores <= scores[last[window]])
    kept = good & (rank < max(k, most))
    more = np.bincount(window[good], minlength=count) > np.bincount(window[kept], minlength=count)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(window[kept], minlength=count))])
    chosen = order[kept]
    events = [each[place[chosen]] for each, place in zip(parts.events, places, strict=True)]
    return RankedWindows(offsets, scores[kept], np.column_stack(events).astype(np.int64, copy=False), more)


def _together(
    parts: Parts, windows: int, found: dict[int, RankedRows], lists: list[tuple[Array, RankedWindows]]
) -> RankedWindows:
    """All windows in their order."""
    more = np.zeros(windows, np.bool_)
    owners, scores, events = [], [parts.score([values[:0] for values in parts.values])], [_no_rows(parts)]
    for some, ranked in lists:
        more[some] = ranked.more
        owners.append(np.repeat(some, np.diff(ranked.offsets)))
        scores.append(ranked.scores)
        events.append(ranked.events)
    for window, rows in found.items():
        more[window] = rows.more
        owners.append(np.full(len(rows.scores), window))
        scores.append(rows.scores)
        events.append(rows.events)
    owner = np.concatenate([np.zeros(0, np.int64), *owners])
    order = np.argsort(owner, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=windows))])
    return RankedWindows(offsets, np.concatenate(scores)[order], np.concatenate(events)[order], more)


def _no_rows(parts: Parts) -> Array:
    return np.zeros((0, parts.positions), np.int64)
