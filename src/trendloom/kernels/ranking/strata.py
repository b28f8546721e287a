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

from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.ranking.partial_paths import GREATEST, SUM, Strata
from trendloom.kernels.ranking.path_search import Order
from trendloom.kernels.ranking.spans_of_strata import rank_spans
from trendloom.kernels.ranking.windows_of_strata import Orders, groups_of, rank_windows

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
