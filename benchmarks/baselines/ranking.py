"""Ranked sequences as others find them, over the strata that the kernel uses: what the kernel is measured by.

`enumerate_all` looks at every match and keeps the k best in a bounded list. `ranked_by_spurs` finds the next best path
as Yen does: it leaves every path found at each of its events, for the best path that goes on otherwise (a spur). With
`STRATIFIED` spurs that is k-SSP of "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern Queries over Event
Streams" (figures 3.4 to 3.6): one pass over the window, with pointers to the latest event before each one and to the
best up to each one; with `DIJKSTRA` it is Yen's algorithm. A path is left only where it differs from those before, so
no candidate is found twice. `dynamic`: what was found stays while windows slide, and only paths through new last events
are added (k-DSSP, figure 3.8; D-Yen, 4.3). All are written as well as the algorithms allow, and compiled. They take one
key; weights are doubles that are not negative, which Dijkstra's algorithm needs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness.compiled import njit
from trendloom.kernels.ranking.graph import Strata

Array = np.ndarray[Any, Any]

STRATIFIED, DIJKSTRA = range(2)
OLD, NEW = range(2)
"""Two sources of paths: those that end with an old event, and those that end with a new one."""
LISTED, READ, LEFT, WAITING, LEAVE_AT = range(5)
"""Of a source: paths listed, read, left at their events, candidates, and where the path listed last is to be left."""


class Graph(NamedTuple):
    """Strata with pointers. `after`: the first entry of the next stratum that can follow; `before`: the end of those
    of the stratum before that can precede. `least`, `best`, `mark`: room for searches. `heap`: for Dijkstra's."""

    begin: Array
    event: Array
    weight: Array
    after: Array
    before: Array
    least: Array
    best: Array
    mark: Array
    heap_score: Array
    heap: Array


class Sources(NamedTuple):
    """Paths found by source, and candidates for the next one. `low`, `high`: ranges of strata by source."""

    state: Array
    paths: Array
    scores: Array
    candidates: Array
    candidate_scores: Array
    leave_at: Array
    low: Array
    high: Array


def enumerate_all(strata: Strata, low: Array, high: Array, k: int) -> Array:
    """The k best scores of every window, NaN where there are fewer. O(matches)."""
    found: Array = _enumerate(_graph(strata), low, high, k)
    return found


def ranked_by_spurs(strata: Strata, low: Array, high: Array, k: int, way: int, *, dynamic: bool) -> Array:
    """The k best scores of every window, NaN where there are fewer. O(k · positions) spurs per window."""
    found: Array = _rank(_graph(strata), low, high, k, way, dynamic)
    return found


@njit
def _graph(strata: Any) -> Any:
    entries, positions = len(strata.event), len(strata.begin) - 1
    after, before = np.zeros(entries, np.int64), np.zeros(entries, np.int64)
    for t in range(positions - 1):
        at = strata.begin[t + 1]
        for entry in range(strata.begin[t], strata.begin[t + 1]):
            while at < strata.begin[t + 2] and strata.event[at] < strata.tie_end[strata.event[entry]]:
                before[at] = entry
                at += 1
            after[entry] = at
        for entry in range(at, strata.begin[t + 2]):
            before[entry] = strata.begin[t + 1]
    return Graph(
        strata.begin, strata.event, strata.weight, after, before, np.empty(entries), np.empty(entries, np.int64),
        np.zeros(entries, np.int64), np.empty(entries + 1), np.empty(entries + 1, np.int64),
    )  # fmt: skip


@njit
def _range(graph: Any, t: int, low: int, high: int) -> Any:
    some = graph.event[graph.begin[t] : graph.begin[t + 1]]
    return graph.begin[t] + np.searchsorted(some, low), graph.begin[t] + np.searchsorted(some, high)


def count_matches(strata: Strata, low: Array, high: Array) -> float:
    """How many matches all windows have together. O(events of windows)."""
    return float(_count(_graph(strata), low, high))


@njit
def _count(graph: Any, low: Array, high: Array) -> float:
    total, positions = 0.0, len(graph.begin) - 1
    for w in range(len(low)):
        for t in range(positions):
            begin, end = _range(graph, t, low[w], high[w])
            sums = 0.0
            former, _ = _range(graph, max(t - 1, 0), low[w], high[w])
            for entry in range(begin, end):
                if t == 0:
                    sums += 1.0
                elif graph.before[entry] > former:
                    sums += graph.least[graph.before[entry] - 1]
                graph.least[entry] = sums
            if t == positions - 1:
                total += sums
    return total


# ------------------------------------------------------------------------------------------- every match


@njit
def _enumerate(graph: Any, low: Array, high: Array, k: int) -> Any:
    positions = len(graph.begin) - 1
    found = np.full((len(low), k), np.nan)
    ends, at, sums = np.zeros(positions, np.int64), np.zeros(positions, np.int64), np.zeros(positions + 1)
    best = np.empty(k)
    for w in range(len(low)):
        for t in range(positions):
            at[t], ends[t] = _range(graph, t, low[w], high[w])
        count, t, last = 0, 0, positions - 1
        while t >= 0:
            if t == last:
                for entry in range(at[t], ends[t]):
                    score = sums[t] + graph.weight[entry] if t else graph.weight[entry]
                    if count < k or score < best[k - 1]:
                        place = min(count, k - 1)
                        while place > 0 and best[place - 1] > score:
                            best[place] = best[place - 1]
                            place -= 1
                        best[place] = score
                        count = min(count + 1, k)
                t -= 1
            elif at[t] < ends[t]:
                entry = at[t]
                at[t] += 1
                sums[t + 1] = sums[t] + graph.weight[entry] if t else graph.weight[entry]
                t += 1
                at[t] = graph.after[entry]
            else:
                t -= 1
        found[w, :count] = best[:count]
    return found


# ------------------------------------------------------------------------------------------- spurs


@njit
def _stratified(graph: Any, path: Array, t: int, score: float, low: Array, high: Array, mark: int) -> float:
    """The best way from the first t events of a path to its end, in one pass; inf if there is none."""
    begin = max(low[t], graph.after[path[t - 1]]) if t else low[t]
    last = len(path) - 1
    for j in range(t, last + 1):
        least, best = np.inf, -1
        first = -1
        for entry in range(begin, high[j]):
            if j == t:
                if graph.mark[entry] != mark:
                    value = score + graph.weight[entry] if t else graph.weight[entry]
                    if value < least:
                        least, best = value, entry
            else:
                value = graph.least[graph.before[entry] - 1] + graph.weight[entry]
                if value < least:
                    least, best = value, entry
            if best >= 0 and first < 0:
                first = entry
            graph.least[entry], graph.best[entry] = least, best
        if first < 0:
            return np.inf
        if j < last:
            begin = max(low[j + 1], graph.after[first])
    entry = high[last] - 1
    total = graph.least[entry]
    for j in range(last, t - 1, -1):
        path[j] = graph.best[entry]
        entry = graph.before[path[j]] - 1
    return total


@njit
def _dijkstra(graph: Any, path: Array, t: int, score: float, low: Array, high: Array, mark: int) -> float:
    """The same by Dijkstra's algorithm: events in order of their distance, edges as they are met.

    Those before an event are all in one stratum and come in order, so what reaches it first is the best way to it.
    """
    last, size, scores, heap = len(path) - 1, 0, graph.heap_score, graph.heap
    for j in range(t, last + 1):
        graph.least[low[j] : high[j]] = np.inf
    begin = max(low[t], graph.after[path[t - 1]]) if t else low[t]
    entry, j = -1, t - 1
    while True:
        for other in range(begin, high[j + 1]):
            if j + 1 == t and graph.mark[other] == mark:
                continue
            value = score + graph.weight[other] if j >= 0 else graph.weight[other]
            if value < graph.least[other]:
                at = size
                size += 1
                graph.least[other], graph.best[other] = value, entry
                while at > 0 and scores[(at - 1) // 2] > value:
                    scores[at], heap[at] = scores[(at - 1) // 2], heap[(at - 1) // 2]
                    at = (at - 1) // 2
                scores[at], heap[at] = value, other
        if size == 0:
            return np.inf
        entry, score = heap[0], scores[0]
        size -= 1
        moved, value, at = heap[size], scores[size], 0
        while 2 * at + 1 < size:
            child = 2 * at + 1
            if child + 1 < size and scores[child + 1] < scores[child]:
                child += 1
            if scores[child] >= value:
                break
            scores[at], heap[at] = scores[child], heap[child]
            at = child
        scores[at], heap[at] = value, moved
        j = np.searchsorted(graph.begin, entry, side="right") - 1
        if j == last:
            break
        begin = max(low[j + 1], graph.after[entry])
    for j in range(last, t - 1, -1):
        path[j] = entry
        entry = graph.best[entry]
    return score


@njit
def _add_spur(graph: Any, sources: Any, source: int, number: int, t: int, way: int, marks: Array) -> None:
    """A candidate that leaves a listed path after its first t events, as no path listed does."""
    state, path = sources.state[source], sources.paths[source, number]
    marks[0] += 1
    for other in range(state[LISTED]):
        same = True
        for j in range(t):
            same = same and sources.paths[source, other, j] == path[j]
        if same:
            graph.mark[sources.paths[source, other, t]] = marks[0]
    candidate = sources.candidates[source, state[WAITING]]
    score = 0.0
    for j in range(t):
        candidate[j] = path[j]
        score = score + graph.weight[path[j]] if j else graph.weight[path[j]]
    low, high = sources.low[source], sources.high[source]
    if way == STRATIFIED:
        score = _stratified(graph, candidate, t, score, low, high, marks[0])
    else:
        score = _dijkstra(graph, candidate, t, score, low, high, marks[0])
    if score < np.inf:
        sources.candidate_scores[source, state[WAITING]] = score
        sources.leave_at[source, state[WAITING]] = t
        state[WAITING] += 1


@njit
def _has_next(graph: Any, sources: Any, source: int, way: int, marks: Array) -> bool:
    """Whether a source has a path that was not read; finds the next best if need be."""
    state, positions = sources.state[source], sources.paths.shape[2]
    if state[READ] < state[LISTED]:
        return True
    if state[LEFT] == 0 and state[LISTED] == 0:
        _add_spur(graph, sources, source, 0, 0, way, marks)
    for number in range(state[LEFT], state[LISTED]):
        leave_at = 0
        if state[LEAVE_AT] >= 0:
            leave_at = state[LEAVE_AT]
        else:
            for other in range(number):
                common = 0
                while sources.paths[source, other, common] == sources.paths[source, number, common]:
                    common += 1
                leave_at = max(leave_at, common + 1)
        for t in range(leave_at, positions):
            _add_spur(graph, sources, source, number, t, way, marks)
    state[LEFT] = state[LISTED]
    if state[WAITING] == 0:
        return False
    scores = sources.candidate_scores[source]
    best = 0
    for candidate in range(1, state[WAITING]):
        if scores[candidate] < scores[best]:
            best = candidate
    sources.paths[source, state[LISTED]] = sources.candidates[source, best]
    sources.scores[source, state[LISTED]] = scores[best]
    state[LEAVE_AT] = sources.leave_at[source, best]
    state[LISTED] += 1
    state[WAITING] -= 1
    final = state[WAITING]
    sources.candidates[source, best] = sources.candidates[source, final]
    scores[best], sources.leave_at[source, best] = scores[final], sources.leave_at[source, final]
    return True


@njit
def _rank(graph: Any, low: Array, high: Array, k: int, way: int, dynamic: bool) -> Any:
    positions = len(graph.begin) - 1
    found = np.full((len(low), k), np.nan)
    room = (k + 2) * positions + 2
    sources = Sources(
        np.zeros((2, 5), np.int64), np.zeros((2, k + 1, positions), np.int64), np.zeros((2, k + 1)),
        np.zeros((2, room, positions), np.int64), np.zeros((2, room)), np.zeros((2, room), np.int64),
        np.zeros((2, positions), np.int64), np.zeros((2, positions), np.int64),
    )  # fmt: skip
    kept, count, marks = np.zeros((k, positions), np.int64), 0, np.zeros(1, np.int64)
    for w in range(len(low)):
        sources.state[:] = 0
        for t in range(positions):
            sources.low[:, t], sources.high[:, t] = _range(graph, t, low[w], high[w])
        old_end = sources.low[NEW, positions - 1]
        if dynamic and w > 0:
            old_end = max(old_end, _range(graph, positions - 1, low[w], high[w - 1])[1])
            for row in range(count):
                if graph.event[kept[row, 0]] >= low[w]:
                    sources.scores[OLD, sources.state[OLD, LISTED]] = found[w - 1, row]
                    sources.paths[OLD, sources.state[OLD, LISTED]] = kept[row]
                    sources.state[OLD, LISTED] += 1
            sources.state[OLD, LEAVE_AT] = -1
        sources.high[OLD, positions - 1] = old_end
        sources.low[NEW, positions - 1] = old_end
        count = 0
        while count < k:
            has_old = _has_next(graph, sources, OLD, way, marks)
            has_new = _has_next(graph, sources, NEW, way, marks)
            if not (has_old or has_new):
                break
            source = OLD if has_old else NEW
            if has_old and has_new:
                old, new = sources.scores[OLD, sources.state[OLD, READ]], sources.scores[NEW, sources.state[NEW, READ]]
                source = OLD if old <= new else NEW
            number = sources.state[source, READ]
            found[w, count], kept[count] = sources.scores[source, number], sources.paths[source, number]
            sources.state[source, READ] += 1
            count += 1
    return found
