"""Where to cut the graph: the plan of least time among those that fit the memory.

Costs of a plan are sums over its graphlets, so `cpu[i, j]` and `mem[i, j]` of the graphlet from cut i up to cut j say
everything. *Branch and bound* goes through the cuts from left to right and keeps, for each, the plans up to there
that can still lead to the best one. Three principles prune, as in Poppe, "Event Stream Analytics", 7.1:

- infeasible: even the leanest way on would not fit the memory;
- inefficient: even the fastest way on would be slower than a plan that is known;
- dominated: another plan up to the same cut is no slower and takes no more memory (there the paper keeps balanced
  plans only, which is right for graphs that look alike everywhere; this is right for all).

The result is the optimum. Cost: O(cuts² · plans kept); if more than `MOST_PLANS` would be kept at a cut, the search
gives up and says so, and *greedy* serves: of the balanced plans, one for each number of graphlets, the fastest that
fits. It is usually close: where pieces cost time to store, a few graphlets are best, not one.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from trendloom.kernels.jit.compiled import njit

Array = np.ndarray[Any, Any]
Cuts = list[int]

MOST_PLANS = 4096


class TooManyPlans(Exception):
    """Branch and bound would have to keep more plans than it may."""


def branch_and_bound(cpu: Array, mem: Array, limit: float) -> Cuts | None:
    """The inner cuts of the plan of least time within the memory limit; None if no plan fits."""
    fastest, leanest = _ways_on(cpu), _ways_on(mem)
    if not leanest[0] <= limit:
        return None
    known = greedy(cpu, mem, limit)
    best = _cost(cpu, known) if known is not None else np.inf
    found = _search(cpu, mem, float(limit), fastest, leanest, best, MOST_PLANS)
    if found[0] == -2:
        raise TooManyPlans
    return known if found[0] == -1 else [int(cut) for cut in found]


def greedy(cpu: Array, mem: Array, limit: float) -> Cuts | None:
    """The inner cuts of the fastest balanced plan that fits; None if none does. O(cuts²)."""
    cuts = len(cpu) - 1
    plans = [_balanced(cuts, level) for level in range(1, cuts + 1)]
    fitting = [plan for plan in plans if _cost(mem, plan) <= limit]
    return min(fitting, key=lambda plan: _cost(cpu, plan), default=None)


def _balanced(cuts: int, graphlets: int) -> Cuts:
    return [round(cuts * number / graphlets) for number in range(1, graphlets)]


def _cost(costs: Array, plan: Cuts) -> float:
    bounds = [0, *plan, len(costs) - 1]
    return float(sum(costs[a, b] for a, b in pairwise(bounds)))


@njit(nogil=True)
def _ways_on(costs: Array) -> Array:
    """The least cost from each cut to the end."""
    cuts = len(costs) - 1
    least = np.full(cuts + 1, np.inf)
    least[cuts] = 0.0
    for i in range(cuts - 1, -1, -1):
        for j in range(i + 1, cuts + 1):
            least[i] = min(least[i], costs[i, j] + least[j])
    return least


@njit(nogil=True)
def _search(cpu: Array, mem: Array, limit: float, fastest: Array, leanest: Array, best: float, most: int) -> Array:
    """The inner cuts of the optimum; [−1] if nothing is better than `best`, [−2] if too many plans are open."""
    cuts = len(cpu) - 1
    time, space = np.empty((cuts + 1, most)), np.empty((cuts + 1, most))
    from_cut, from_plan = np.empty((cuts + 1, most), np.int64), np.empty((cuts + 1, most), np.int64)
    kept = np.zeros(cuts + 1, np.int64)
    time[0, 0], space[0, 0], kept[0] = 0.0, 0.0, 1
    for j in range(1, cuts + 1):
        size = 0
        for i in range(j):
            size += kept[i]
        new_time, new_space = np.empty(size), np.empty(size)
        origin = np.empty((size, 2), np.int64)
        count = 0
        for i in range(j):
            for plan in range(kept[i]):
                t, s = time[i, plan] + cpu[i, j], space[i, plan] + mem[i, j]
                if s + leanest[j] <= limit and t + fastest[j] < best:
                    new_time[count], new_space[count] = t, s
                    origin[count, 0], origin[count, 1] = i, plan
                    count += 1
        order = np.argsort(new_time[:count])
        least = np.inf
        for at in order:
            if new_space[at] < least:
                if kept[j] == most:
                    return np.full(1, -2, np.int64)
                least = new_space[at]
                time[j, kept[j]], space[j, kept[j]] = new_time[at], least
                from_cut[j, kept[j]], from_plan[j, kept[j]] = origin[at, 0], origin[at, 1]
                kept[j] += 1
    if kept[cuts] == 0:
        return np.full(1, -1, np.int64)
    found = np.empty(cuts, np.int64)
    size, cut, plan = 0, cuts, 0
    while from_cut[cut, plan] > 0:
        cut, plan = from_cut[cut, plan], from_plan[cut, plan]
        found[size] = cut
        size += 1
    return found[:size][::-1].copy()
