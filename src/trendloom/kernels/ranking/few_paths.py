"""All paths up to a bound, depth first from their last events: the shortest way where there are few of them.

Tables filled forwards tell the best score of every path that ends with some events, so no step leads to a dead end. The
bound falls as soon as enough paths are found. Paths come in any order, so that more of them may be looked at than are
kept; a search that meets too many gives up, and Lawler's partition (`path_search`) takes over.

Cost: O(positions · events) per path.
"""

from __future__ import annotations

from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.ranking.partial_paths import AFTER, AT, BASE, FIRST, SIZE, PartialPaths, Strata, folded, joined
from trendloom.kernels.ranking.path_search import BOUNDED, FOUND, Order, PathSearch, keep_path

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
