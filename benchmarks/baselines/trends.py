"""Complete trends as others find them, on the columns that the kernels use: what the kernels are measured by.

`baseline_trends` keeps every trend (Poppe, "Event Stream Analytics", Algorithm 3), `sase_stack_trends`
keeps events with pointers and walks them for every window (the same author's account of SASE). Both are written as
well as the algorithm allows: events are numbers, tests are integer comparisons, trends leave through one reused
buffer, as they would to a consumer, and a checksum of every event of every trend shows that none was left out.
`exhaustive_partitioning` tries every plan to cut a graph: what the search for a plan is measured by.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.baselines.trend_columns import (
    BUFFER,
    CHECKSUM,
    EQUAL,
    TRENDS,
    Columns,
    Found,
    count_one,
    found,
    prepare,
    room,
)
from benchmarks.harness.compiled import njit

Array = np.ndarray[Any, Any]

MOST_CELLS = 1 << 28
"""Events of all trends that the first baseline may keep: a gigabyte."""


# ------------------------------------------------------------------------------------------- all trends, kept


def baseline_trends(columns: Columns, *, buffer: int = BUFFER, most_cells: int = MOST_CELLS) -> Found:
    """Algorithm 3: keep all complete trends; an event extends the longest prefix of each that it fits.

    Cost: O(n · y · l) for n events, y trends of length l in a window, and y · l memory. The paper eliminates incomplete
    trends by comparing them in pairs, O(y² · l) for each event. Here it takes O(y · l): a new trend (p, e) is part of
    another one just if the last event of p stands *inside* the prefix of another new trend.
    """
    state, out, ends, counts = prepare(buffer, columns.low, columns.high)
    built = np.int64(0)
    for number in range(len(columns.low)):
        before = state[TRENDS]
        cells, length, kept = _keep_all(*_events(columns, number), most_cells)
        if kept < 0:
            raise MemoryError(f"a window has more trends than {most_cells:,} events can hold")
        built += kept
        _give_rows(cells, length, kept, columns.low[number], out, ends, state)
        counts[number] = state[TRENDS] - before
    return found(state, out, ends, counts, int(built))


def _events(columns: Columns, number: int) -> tuple[Array, Array, Array, int]:
    part = slice(columns.low[number], columns.high[number])
    return columns.time[part], columns.left[part], columns.right[part], columns.kind


@njit
def _keep_all(time: Any, left: Any, right: Any, kind: int, most_cells: int) -> Any:
    """All complete trends of one range: one row of `cells` each. Less than 0 of them: there was no room."""
    cells, length = np.empty((64, 16), np.int32), np.zeros(64, np.int32)
    prefix, inside = np.empty(64, np.int32), np.full(len(time), -1, np.int32)
    seen_by, seen = np.full(128, -1, np.int64), np.empty(128, np.int64)
    kept = 0
    for event in range(len(time)):
        if 2 * kept + 1 > len(length):
            cells, length, prefix = _more_rows(cells, length, kept)
            seen_by, seen = np.full(2 * len(length), -1, np.int64), np.empty(2 * len(length), np.int64)
        if kept * cells.shape[1] > most_cells:
            return cells, length, -1
        fits, longest = _prefixes((time, left, right, kind), event, cells, length, kept, prefix, inside)
        if longest + 1 > cells.shape[1]:
            cells = _wider(cells, kept)
        if fits:
            kept = _extend(cells, length, kept, event, prefix, inside, seen_by, seen)
        else:
            cells[kept, 0], length[kept] = event, 1
            kept += 1
    return cells, length, kept


@njit
def adjacent(time: Any, left: Any, right: Any, kind: int, earlier: Any, later: Any) -> Any:
    """Whether two events may stand side by side in a trend."""
    if time[earlier] >= time[later]:
        return False
    return left[earlier] == right[later] if kind == EQUAL else left[earlier] < right[later]


@njit
def _prefixes(rule: Any, event: int, cells: Any, length: Any, kept: int, prefix: Any, inside: Any) -> Any:
    """The length of the longest prefix of each trend that the event fits, and a mark on all events before its last."""
    time, left, right, kind = rule
    fits, longest = False, 1
    for row in range(kept):
        size = length[row]
        while size > 0 and not adjacent(time, left, right, kind, cells[row, size - 1], event):
            size -= 1
        prefix[row] = size
        if size > 0:
            fits = True
            longest = max(longest, size)
            for place in range(size - 1):
                inside[cells[row, place]] = event
    return fits, longest


@njit
def _extend(cells: Any, length: Any, kept: int, event: int, prefix: Any, inside: Any, seen_by: Any, seen: Any) -> Any:
    """Append the event to whole trends in place and to other prefixes in new rows, once to each prefix."""
    total, mask = kept, len(seen) - 1
    for row in range(kept):
        size = prefix[row]
        if size == 0 or inside[cells[row, size - 1]] == event:
            continue
        if size == length[row]:
            cells[row, size] = event
            length[row] += 1
            continue
        code = np.uint64(size)
        for place in range(size):
            code = (code ^ np.uint64(cells[row, place])) * np.uint64(0x9E3779B97F4A7C15)
        slot = np.int64(code >> np.uint64(20)) & mask
        while seen_by[slot] == event and not _same_prefix(cells, prefix, seen[slot], row):
            slot = (slot + 1) & mask
        if seen_by[slot] == event:
            continue
        seen_by[slot], seen[slot] = event, row
        for place in range(size):
            cells[total, place] = cells[row, place]
        cells[total, size], length[total] = event, size + 1
        total += 1
    return total


@njit
def _same_prefix(cells: Any, prefix: Any, one: int, other: int) -> bool:
    if prefix[one] != prefix[other]:
        return False
    for place in range(prefix[one]):  # noqa: SIM110 (Numba compiles a loop faster than a generator)
        if cells[one, place] != cells[other, place]:
            return False
    return True


@njit
def _more_rows(cells: Any, length: Any, kept: int) -> Any:
    """Room for twice the trends, as much as one event can make of them; a power of two."""
    room_for = len(cells)
    while room_for < 2 * kept + 1:
        room_for *= 2
    rows = np.empty((room_for, cells.shape[1]), np.int32)
    sizes = np.zeros(len(rows), np.int32)
    for row in range(kept):
        sizes[row] = length[row]
        for place in range(length[row]):
            rows[row, place] = cells[row, place]
    return rows, sizes, np.empty(len(rows), np.int32)


@njit
def _wider(cells: Any, kept: int) -> Any:
    """Room for trends of twice the length."""
    wide = np.empty((len(cells), 2 * cells.shape[1]), np.int32)
    for row in range(kept):
        for place in range(cells.shape[1]):
            wide[row, place] = cells[row, place]
    return wide


@njit
def _give_rows(cells: Any, length: Any, kept: int, low: int, out: Any, ends: Any, state: Any) -> None:
    for row in range(kept):
        size = length[row]
        at = room(size, out, state)
        for place in range(size):
            event = cells[row, place] + low
            out[at + place] = event
            state[CHECKSUM] += event
        count_one(size, ends, state)


# ------------------------------------------------------------------------- stacks of events, walked for every window


def sase_stack_trends(columns: Columns, *, buffer: int = BUFFER) -> Found:
    """SASE: each event of a window knows the events that can stand right before it; at its end, depth-first search.

    Cost: O(n² + n · edges) to compare each event with all earlier ones of its window, of which it keeps those that no
    longer path leads to; then O(l) for each trend of length l, of which only the part before the last branching is
    walked again and the rest is copied. Nothing is shared between windows. Memory: edges and one trend.
    """
    state, out, ends, counts = prepare(buffer, columns.low, columns.high)
    built = np.int64(0)
    for number in range(len(columns.low)):
        before = state[TRENDS]
        first, pointers, last = stack_pointers(*_events(columns, number))
        walk_stack(first, pointers, last, int(columns.low[number]), out, ends, state)
        built += first[-1]
        counts[number] = state[TRENDS] - before
    return found(state, out, ends, counts, int(built))


@njit
def stack_pointers(time: Any, left: Any, right: Any, kind: int) -> Any:
    """Pointers of event e: `pointers[first[e] : first[e + 1]]`; `last[e]`: nothing points to e.

    Earlier events are visited from the latest on. One that reaches the new event through a later one is marked by that
    one, is not a predecessor itself, and marks its own.
    """
    size = len(time)
    first, pointers = np.zeros(size + 1, np.int64), np.empty(max(16, 4 * size), np.int32)
    marked, last = np.full(size, -1, np.int32), np.ones(size, np.bool_)
    total, earlier_end = 0, 0
    for event in range(size):
        while time[earlier_end] < time[event]:
            earlier_end += 1
        if total + earlier_end > len(pointers):
            pointers = _longer(pointers, total, earlier_end)
        value = right[event]
        for other in range(earlier_end - 1, -1, -1):
            if marked[other] != event:
                if not (left[other] == value if kind == EQUAL else left[other] < value):
                    continue
                pointers[total] = other
                last[other] = False
                total += 1
            for place in range(first[other], first[other + 1]):
                marked[pointers[place]] = event
        first[event + 1] = total
    return first, pointers, last


@njit
def _longer(pointers: Any, total: int, more: int) -> Any:
    long = np.empty(2 * len(pointers) + more, np.int32)
    for place in range(total):
        long[place] = pointers[place]
    return long


@njit
def walk_stack(first: Any, pointers: Any, last: Any, low: int, out: Any, ends: Any, state: Any) -> None:
    """Every path from a last event back to a first one, written in time order.

    The path is filled from its end, so that it can be copied as it stands; only places where it branches are
    remembered, so that a search goes back to the latest of them at once.
    """
    size = len(last)
    path, sums = np.empty(size + 1, np.int32), np.zeros(size + 1, np.int64)
    branch, cursor = np.empty(size, np.int64), np.empty(size, np.int64)
    for end in range(size):
        if not last[end]:
            continue
        event, top, branches = end, size, 0
        while True:
            while True:
                top -= 1
                path[top], sums[top] = event + low, sums[top + 1] + event + low
                begin, stop = first[event], first[event + 1]
                if begin == stop:
                    break
                if stop - begin > 1:
                    branch[branches], cursor[branches] = top, begin + 1
                    branches += 1
                event = pointers[begin]
            at = room(size - top, out, state)
            for place in range(size - top):
                out[at + place] = path[top + place]
            state[CHECKSUM] += sums[top]
            count_one(size - top, ends, state)
            if branches == 0:
                break
            top, begin = branch[branches - 1], cursor[branches - 1]
            event = pointers[begin]
            if begin + 1 == first[path[top] - low + 1]:
                branches -= 1
            else:
                cursor[branches - 1] = begin + 1


# ------------------------------------------------------------------------------------------- plans to cut a graph


def exhaustive_partitioning(cpu: Array, mem: Array, limit: float) -> list[int] | None:
    """The inner cuts of the plan of least `cpu` within the limit on `mem`, by trying all 2^(k-1) plans; None: none.

    `cpu[i, j]`, `mem[i, j]`: the cost of the graphlet from cut i up to cut j, for 0 <= i < j <= k. Plans with a common
    beginning share its sum, so a plan costs two additions.
    """
    costs, sizes = np.ascontiguousarray(cpu, np.float64), np.ascontiguousarray(mem, np.float64)
    cuts = _try_all(costs, sizes, float(limit))
    return None if cuts[0] < 0 else [int(cut) for cut in cuts[1 : 1 + cuts[0]]]


@njit
def _try_all(cpu: Any, mem: Any, limit: float) -> Any:
    """The number of cuts, then the cuts; -1: no plan fits."""
    last = len(cpu) - 1
    best, best_cpu = np.zeros(last + 1, np.int64), np.inf
    best[0] = -1
    cut, following = np.zeros(last + 1, np.int64), np.zeros(last + 1, np.int64)
    spent, held = np.zeros(last + 1), np.zeros(last + 1)
    following[0], depth = 1, 0
    while depth >= 0:
        here, there = cut[depth], following[depth]
        if there < last:
            following[depth] = there + 1
            spent[depth + 1] = spent[depth] + cpu[here, there]
            held[depth + 1] = held[depth] + mem[here, there]
            depth += 1
            cut[depth], following[depth] = there, there + 1
            continue
        total = spent[depth] + cpu[here, last]
        if total < best_cpu and held[depth] + mem[here, last] <= limit:
            best_cpu, best[0] = total, depth
            for place in range(depth):
                best[1 + place] = cut[1 + place]
        depth -= 1
    return best
