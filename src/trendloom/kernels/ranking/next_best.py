"""The k best paths of a window, one after the other: Recursive Enumeration over the cells of a sweep.

The next best path to a cell goes on either from another cell before it, or from the next best path to the same cell
before it. So every cell that lies on a path given out has a heap of candidates, filled when the next path to it is
first asked for, and the next path to the end asks at most once for the next path to each cell of the path before it. A
candidate is not stored for every cell before: those that a FREE move leads from are a range, of which a tree of minima
knows the best, and taking it leaves two ranges; of others the next one in order is looked for.

An *entry* is a path to a cell: its value, the entry that it goes on from, and the entry after it. The best path to a
cell is the entry with the number of the cell.

Cost after the sweep: O(length · log(events)) for each path, O(length · events) where moves are not FREE.
See Jiménez and Marzal, "Computing the K Shortest Paths: A New Algorithm and an Experimental Comparison".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.matching.reachability import first_cut
from trendloom.kernels.matching.tables import pairs_hold, possible
from trendloom.kernels.ranking.graph import FREE, STEP, EventWeights, RankedGraph
from trendloom.kernels.ranking.sweeps import NONE, START, Ways, with_weight

UNKNOWN = -3
"""An entry, or a heap, that nobody has asked for."""
LAST = -2
"""LAST − state is the move from a state that accepts to the end of all paths."""


class PathEntries(NamedTuple):
    """Paths to cells beyond the best ones: number n + i for n cells is at i; see `Candidates`."""

    value: Array
    cell: Array
    before: Array
    after: Array
    low: Array
    high: Array
    move: Array


class Candidates(NamedTuple):
    """Leftist heaps: `value` of the path, the entry `before` it, and by which `move` further ones come.

    Those of a FREE move are among the events from `low` up to `high`. NONE: there are no further ones.
    """

    value: Array
    before: Array
    low: Array
    high: Array
    move: Array
    left: Array
    right: Array
    depth: Array


class CellWindow(NamedTuple):
    """The events from `low` up to `high`; paths start at event `first` (−1: anywhere) and end in the cell `sink`."""

    low: int
    high: int
    first: int
    sink: int


@njit(**INSIDE)
def _fill_tree(tree: Array, ways: Ways, state: int, width: int, sign: int) -> None:
    """The best cell of each stretch of 2, 4, 8, ... events of a state: leaf i is at width + i."""
    row = state * width
    for i in range(width):
        tree[width + i] = row + i if ways.before[row + i] != NONE else NONE
    for at in range(width - 1, 0, -1):
        tree[at] = _better(tree[2 * at], tree[2 * at + 1], ways, sign)


@njit(**INSIDE, forceinline=True)
def _better(one: int, other: int, ways: Ways, sign: int) -> int:
    if one == NONE:
        return other
    if other == NONE or not ways.value[other] * sign < ways.value[one] * sign:
        return one
    return other


@njit(**INSIDE)
def _best_in(tree: Array, low: int, high: int, width: int, ways: Ways, sign: int) -> int:
    """The best cell of the events from `low` up to `high`, counted from the start of the window."""
    found = NONE
    low, high = low + width, high + width
    while low < high:
        if low & 1:
            found = _better(found, tree[low], ways, sign)
            low += 1
        if high & 1:
            high -= 1
            found = _better(found, tree[high], ways, sign)
        low >>= 1
        high >>= 1
    return found


@njit(**INSIDE)
def _next_tested(graph: RankedGraph, ways: Ways, low: int, width: int, f: int, move: int, than: int, sign: int) -> int:
    """The best cell from which a move leads to event f that comes after another in the order of values, then cells."""
    found, row = NONE, graph.source[move] * width
    for e in range(graph.checks.tie_start[f] - 1, low - 1, -1):
        if graph.way[move] != STEP and first_cut(e, move, graph.cuts, graph.checks) <= f:
            break
        cell = row + e - low
        if ways.before[cell] == NONE:
            continue
        value = ways.value[cell] * sign
        if than != NONE:
            limit = ways.value[than] * sign
            if value < limit or (value == limit and cell <= than):
                continue
        if found != NONE:
            best = ways.value[found] * sign
            if best < value or (best == value and found < cell):
                continue
        if graph.way[move] == STEP:
            first = graph.successor[graph.source[move], e]
            if first < 0 or f < first or f >= graph.checks.tie_end[first] or not possible(e, f, move, graph.checks):
                continue
        elif not pairs_hold(e, f, move, graph.checks):
            continue
        found = cell
    return found


@njit(**INSIDE)
def _merged(one: int, other: int, heap: Candidates, sign: int) -> int:
    """Two heaps as one. O(log candidates): down the right spines, then up again."""
    if one < 0:
        return other
    if other < 0:
        return one
    path = np.empty(128, np.int64)
    depth = 0
    while one >= 0 and other >= 0:
        if heap.value[other] * sign < heap.value[one] * sign:
            one, other = other, one
        path[depth] = one
        depth += 1
        one = heap.right[one]
    merged = one if other < 0 else other
    for at in range(depth - 1, -1, -1):
        top = path[at]
        heap.right[top] = merged
        left = heap.left[top]
        if left < 0 or heap.depth[left] < heap.depth[merged]:
            heap.left[top], heap.right[top] = merged, left
        right = heap.right[top]
        heap.depth[top] = 1 + (heap.depth[right] if right >= 0 else 0)
        merged = top
    return merged


@njit(**INSIDE)
def _added(
    root: int, at: int, value: Any, before: int, low: int, high: int, move: int, heap: Candidates, sign: int
) -> int:
    """A heap with one more candidate, whose number is `at`."""
    heap.value[at], heap.before[at] = value, before
    heap.low[at], heap.high[at], heap.move[at] = low, high, move
    heap.left[at], heap.right[at], heap.depth[at] = NONE, NONE, 1
    return _merged(root, at, heap, sign)


@njit(nogil=True)
def _longer(array: Array, size: int) -> Array:
    found = np.empty(size, array.dtype)
    found[: len(array)] = array
    return found


@njit(nogil=True)
def _more_candidates(heap: Candidates, size: int) -> Candidates:
    return Candidates(
        _longer(heap.value, size), _longer(heap.before, size), _longer(heap.low, size), _longer(heap.high, size),
        _longer(heap.move, size), _longer(heap.left, size), _longer(heap.right, size), _longer(heap.depth, size),
    )  # fmt: skip


@njit(nogil=True)
def _more_entries(entries: PathEntries, size: int) -> PathEntries:
    return PathEntries(
        _longer(entries.value, size), _longer(entries.cell, size), _longer(entries.before, size),
        _longer(entries.after, size), _longer(entries.low, size), _longer(entries.high, size),
        _longer(entries.move, size),
    )  # fmt: skip


@njit(**INSIDE)
def _candidate(
    root: int, at: int, cell: int, best: int, low: int, high: int, move: int, ways: Ways, weights: EventWeights,
    window: CellWindow, heap: Candidates,
) -> int:  # fmt: skip
    """A heap with the path to a cell that goes on from the best path to another, if there is one."""
    if best == NONE:
        return root
    value = _gone_on(ways.value[best], cell, weights, window)
    return _added(root, at, value, best, low, high, move, heap, weights.sign)


@njit(**INSIDE, forceinline=True)
def _gone_on(value: Any, cell: int, weights: EventWeights, window: CellWindow) -> Any:
    """The value of a path that goes on to a cell; going on to the end adds nothing."""
    width = window.high - window.low
    return value if cell == window.sink else with_weight(value, cell // width, window.low + cell % width, weights)


@njit(**INSIDE)
def _first_candidates(
    cell: int, added: int, graph: RankedGraph, weights: EventWeights, ways: Ways, trees: Array, window: CellWindow,
    heap: Candidates,
) -> tuple[int, int]:  # fmt: skip
    """A heap of all paths to a cell but the best one, where each goes on from the best path to another cell."""
    width, sign = window.high - window.low, weights.sign
    root, taken, by = NONE, ways.before[cell], ways.move[cell]
    if cell == window.sink:
        for state in range(len(graph.position)):
            if graph.accepts[state]:
                move = LAST - state
                if move == by:
                    root, added = _split(
                        root, added, cell, taken, 0, width, move, state, ways, weights, trees, window, heap
                    )
                else:
                    best = _best_in(trees[state], 0, width, width, ways, sign)
                    root = _candidate(root, added, cell, best, 0, width, move, ways, weights, window, heap)
                    added += 1
        return root, added
    state, f = cell // width, window.low + cell % width
    if graph.starts[state] and taken != START and (window.first < 0 or f == window.first):
        value = _gone_on(weights.unit[0], cell, weights, window)
        root = _added(root, added, value, START, 0, 0, NONE, heap, sign)
        added += 1
    for at in range(graph.into_begin[state], graph.into_begin[state + 1]):
        move = graph.into[at]
        if graph.way[move] != FREE:
            best = _next_other(graph, ways, cell, NONE, move, window, sign)
            root = _candidate(root, added, cell, best, 0, 0, move, ways, weights, window, heap)
            added += 1
            continue
        source, end = graph.source[move], graph.checks.tie_start[f] - window.low
        if move == by:
            root, added = _split(root, added, cell, taken, 0, end, move, source, ways, weights, trees, window, heap)
        else:
            best = _best_in(trees[source], 0, max(end, 0), width, ways, sign)
            root = _candidate(root, added, cell, best, 0, end, move, ways, weights, window, heap)
            added += 1
    return root, added


@njit(**INSIDE)
def _split(
    root: int, added: int, cell: int, taken: int, low: int, high: int, move: int, state: int, ways: Ways,
    weights: EventWeights, trees: Array, window: CellWindow, heap: Candidates,
) -> tuple[int, int]:  # fmt: skip
    """A heap with the best of what a range holds before and after the cell that was taken from it."""
    width = window.high - window.low
    middle = taken % width
    best = _best_in(trees[state], low, middle, width, ways, weights.sign)
    root = _candidate(root, added, cell, best, low, middle, move, ways, weights, window, heap)
    best = _best_in(trees[state], middle + 1, high, width, ways, weights.sign)
    root = _candidate(root, added + 1, cell, best, middle + 1, high, move, ways, weights, window, heap)
    return root, added + 2


@njit(**INSIDE)
def _next_other(graph: RankedGraph, ways: Ways, cell: int, than: int, move: int, window: CellWindow, sign: int) -> int:
    """The next cell in order from which a move leads to a cell, besides the one on the best path to it."""
    width = window.high - window.low
    f = window.low + cell % width
    found = _next_tested(graph, ways, window.low, width, f, move, than, sign)
    if found != NONE and move == ways.move[cell] and found == ways.before[cell]:
        found = _next_tested(graph, ways, window.low, width, f, move, found, sign)
    return found


@njit(nogil=True)
def next_best_paths(
    graph: RankedGraph, weights: EventWeights, ways: Ways, window: CellWindow, wanted: int, limit: Array
) -> tuple[Array, Array, Array, Array]:
    """The values, offsets, events and states of the best paths of a window, best first, `wanted` at most.

    `ways` has room for one cell more, the end of all paths. `limit`: a value; worse paths are not wanted. Empty: all
    are.
    """
    low, width, states, sign = window.low, window.high - window.low, len(graph.position), weights.sign
    sink, firsts = window.sink, window.sink + 1
    trees = np.empty((states, 2 * max(width, 1)), np.int64)
    ways.before[sink] = NONE
    for state in range(states):
        _fill_tree(trees[state], ways, state, width, sign)
        if graph.accepts[state]:
            better = _better(ways.before[sink], _best_in(trees[state], 0, width, width, ways, sign), ways, sign)
            if better != ways.before[sink]:
                ways.before[sink], ways.value[sink], ways.move[sink] = better, ways.value[better], LAST - state
    after, root = np.full(firsts, UNKNOWN, np.int64), np.full(firsts, UNKNOWN, np.int64)
    kind, numbers = ways.value.dtype, np.int64
    room = 64
    entries = PathEntries(
        np.empty(room, kind), np.empty(room, numbers), np.empty(room, numbers), np.empty(room, numbers),
        np.empty(room, numbers), np.empty(room, numbers), np.empty(room, numbers),
    )  # fmt: skip
    heap = Candidates(
        np.empty(room, kind), np.empty(room, numbers), np.empty(room, numbers), np.empty(room, numbers),
        np.empty(room, numbers), np.empty(room, numbers), np.empty(room, numbers), np.empty(room, numbers),
    )  # fmt: skip
    values, offsets = np.empty(room, kind), np.zeros(room + 1, numbers)
    events, path_states, chain = np.empty(room, numbers), np.empty(room, numbers), np.empty(room, numbers)
    made, added, count, used = 0, 0, 0, 0
    entry = sink if ways.before[sink] != NONE else NONE
    while entry != NONE and count < wanted:
        value = ways.value[entry] if entry < firsts else entries.value[entry - firsts]
        if len(limit) > 0 and limit[0] * sign < value * sign:
            break
        # write the path down, and note which entries of it have no next one yet
        length, at = 0, ways.before[entry] if entry < firsts else entries.before[entry - firsts]
        depth, open_ = 1, True
        chain[0] = entry
        first_before = at
        while at != START:
            length += 1
            if open_:
                known = after[at] if at < firsts else entries.after[at - firsts]
                open_ = known == UNKNOWN
                if open_:
                    if depth >= len(chain):
                        chain = _longer(chain, 2 * len(chain))
                    chain[depth] = at
                    depth += 1
            at = ways.before[at] if at < firsts else entries.before[at - firsts]
        if count + 1 >= len(values):
            offsets, values = _longer(offsets, 2 * len(values) + 1), _longer(values, 2 * len(values))
        if used + length > len(events):
            size = 2 * (used + length)
            events, path_states = _longer(events, size), _longer(path_states, size)
        at, place = first_before, used + length - 1
        while at != START:
            cell = at if at < firsts else entries.cell[at - firsts]
            events[place], path_states[place] = low + cell % width, cell // width
            place -= 1
            at = ways.before[at] if at < firsts else entries.before[at - firsts]
        values[count] = value
        used, count = used + length, count + 1
        offsets[count] = used
        if count == wanted:
            break
        while depth > 0:  # from the first event of the path on
            depth -= 1
            at = chain[depth]
            cell = at if at < firsts else entries.cell[at - firsts]
            before = ways.before[at] if at < firsts else entries.before[at - firsts]
            need = added + 4 + 2 * len(graph.way) + 2 * states
            if need > len(heap.value):
                heap = _more_candidates(heap, 2 * need)
            if made >= len(entries.value):
                entries = _more_entries(entries, 2 * made)
            if root[cell] == UNKNOWN:
                root[cell], added = _first_candidates(cell, added, graph, weights, ways, trees, window, heap)
            if at >= firsts:
                move = entries.move[at - firsts]
                if move >= 0 and graph.way[move] != FREE:
                    best = _next_other(graph, ways, cell, before, move, window, sign)
                    root[cell] = _candidate(root[cell], added, cell, best, 0, 0, move, ways, weights, window, heap)
                    added += 1
                elif move != NONE:
                    state = LAST - move if move <= LAST else graph.source[move]
                    begin, end = entries.low[at - firsts], entries.high[at - firsts]
                    root[cell], added = _split(
                        root[cell], added, cell, before, begin, end, move, state, ways, weights, trees, window, heap
                    )
            if before != START:
                then = after[before] if before < firsts else entries.after[before - firsts]
                if then != NONE:
                    value = ways.value[then] if then < firsts else entries.value[then - firsts]
                    value = _gone_on(value, cell, weights, window)
                    root[cell] = _added(root[cell], added, value, then, 0, 0, NONE, heap, sign)
                    added += 1
            top, found = root[cell], NONE
            if top != NONE:
                found = firsts + made
                entries.value[made], entries.cell[made], entries.before[made] = heap.value[top], cell, heap.before[top]
                entries.low[made], entries.high[made], entries.move[made] = (
                    heap.low[top],
                    heap.high[top],
                    heap.move[top],
                )
                entries.after[made] = UNKNOWN
                made += 1
                root[cell] = _merged(heap.left[top], heap.right[top], heap, sign)
            if at < firsts:
                after[at] = found
            else:
                entries.after[at - firsts] = found
        entry = after[entry] if entry < firsts else entries.after[entry - firsts]
    return values[:count], offsets[: count + 1], events[:used], path_states[:used]
