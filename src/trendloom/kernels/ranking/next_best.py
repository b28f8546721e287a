"""The k best paths of a window, one after the other: Recursive Enumeration over the cells of a sweep.

The next best path to a cell goes on either from another cell before it, or from the next best path to the same cell
before it. So every cell that lies on a path given out has a heap of candidates, filled when the next path to it is
first needed, and the next path to the end needs at most one next path to each cell of the path before it. A
candidate is not stored for every cell before: those that a FREE move leads from are a range, of which a tree of minima
gives the best, and taking it leaves two ranges; of others the next one in order is looked for.

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
from trendloom.kernels.ranking.sweeps import NONE, START, CellWindow, Ways, with_weight

UNKNOWN = -3
"""An entry, or a heap, that was not needed yet."""
LAST = -2
"""LAST − state is the move from a state that accepts to the end of all paths."""


BEFORE, MOVE, LOW, HIGH = range(4)
"""A path to a cell in numbers: the entry that it goes on from, and by which move and from which range of events further
ones come. NONE as the move: there are no further ones; only those of FREE moves come from a range."""
CELL, AFTER = 4, 5
"""And of an entry: its cell, and the next path to that."""
LEFT, RIGHT, DEPTH = 4, 5, 6
"""And of a candidate: its place in a leftist heap."""
MADE, ADDED = range(2)
"""What `counts` holds: how many entries and candidates there are."""


class CellSearch(NamedTuple):
    """A search under way. `trees`: by state the best cells of ranges of events. The end of all paths is cell `sink`.

    By cell: `after`, the next path after the best one, and the `root` of the heap of its candidates. Entries beyond the
    best ones have a `value` and numbers (`entries`), number n + i for n cells at i; so have candidates (`heap`).
    """

    graph: RankedGraph
    weights: EventWeights
    ways: Ways
    window: CellWindow
    sink: int
    trees: Array
    after: Array
    root: Array
    counts: Array
    value: Array
    entries: Array
    heap_value: Array
    heap: Array


class FoundPaths(NamedTuple):
    """Paths in order: number i has value i and the events and states from `offsets[i]` to `offsets[i + 1]`."""

    value: Array
    offsets: Array
    event: Array
    state: Array


@njit(nogil=True)
def next_best_paths(
    graph: RankedGraph, weights: EventWeights, ways: Ways, window: CellWindow, wanted: int, limit: Array
) -> FoundPaths:
    """The best paths of a window, best first, `wanted` at most.

    `ways` has room for one cell more, the end of all paths. `limit`: a value; worse paths are not wanted. Empty: all
    are.
    """
    search = _begin(graph, weights, ways, window)
    width = window.high - window.low
    values, offsets, events, states = [ways.value[0]][:0], [0], [0][:0], [0][:0]  # empty, of known types
    entry = search.sink if ways.before[search.sink] != NONE else NONE
    while entry != NONE and len(values) < wanted:
        value = _value(search, entry)
        if len(limit) > 0 and limit[0] < value:
            break
        at = _before(search, entry)
        while at != START:  # from the last event on
            cell = _cell(search, at)
            events.append(window.low + cell % width)
            states.append(cell // width)
            at = _before(search, at)
        values.append(value)
        offsets.append(len(events))
        if len(values) < wanted:
            search = _find_next(search, entry)
            entry = _after(search, entry)
    event, state = np.array(events, np.int64), np.array(states, np.int64)
    for number in range(len(values)):
        begin, end = offsets[number], offsets[number + 1]
        event[begin:end], state[begin:end] = event[begin:end][::-1].copy(), state[begin:end][::-1].copy()
    return FoundPaths(np.array(values, ways.value.dtype), np.array(offsets, np.int64), event, state)


@njit(**INSIDE)
def _begin(graph: RankedGraph, weights: EventWeights, ways: Ways, window: CellWindow) -> CellSearch:
    """A search whose best paths to cells are found, and the best one to the end of all paths."""
    width, states = window.high - window.low, len(graph.position)
    sink = states * width
    trees = np.empty((states, 2 * max(width, 1)), np.int64)
    ways.before[sink] = NONE
    for state in range(states):
        _fill_tree(trees[state], ways, state, width)
        if graph.accepts[state]:
            better = _better(ways.before[sink], _best_in(trees[state], 0, width, width, ways), ways)
            if better != ways.before[sink]:
                ways.before[sink], ways.value[sink], ways.move[sink] = better, ways.value[better], LAST - state
    return CellSearch(
        graph, weights, ways, window, sink, trees, np.full(sink + 1, UNKNOWN, np.int64),
        np.full(sink + 1, UNKNOWN, np.int64), np.zeros(2, np.int64), np.empty(64, ways.value.dtype),
        np.empty((64, 6), np.int64), np.empty(64, ways.value.dtype), np.empty((64, 7), np.int64),
    )  # fmt: skip


@njit(**INSIDE)
def _with_room(search: CellSearch, cells: int) -> CellSearch:
    """The same with room for one more entry, and the candidates that come with it, of so many cells."""
    made, added = search.counts[MADE], search.counts[ADDED]
    need = added + cells * (4 + 2 * (len(search.graph.way) + len(search.graph.position)))
    value, entries, heap_value, heap = search.value, search.entries, search.heap_value, search.heap
    if made + cells > len(value):
        size = 2 * (made + cells)
        value, entries = np.empty(size, value.dtype), np.empty((size, 6), np.int64)
        value[:made], entries[:made] = search.value[:made], search.entries[:made]
    if need > len(heap_value):
        heap_value, heap = np.empty(2 * need, value.dtype), np.empty((2 * need, 7), np.int64)
        heap_value[:added], heap[:added] = search.heap_value[:added], search.heap[:added]
    return CellSearch(
        search.graph, search.weights, search.ways, search.window, search.sink, search.trees, search.after, search.root,
        search.counts, value, entries, heap_value, heap,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------ entries


@njit(**INSIDE, forceinline=True)
def _value(search: CellSearch, entry: int) -> Any:
    return search.ways.value[entry] if entry <= search.sink else search.value[entry - search.sink - 1]


@njit(**INSIDE, forceinline=True)
def _cell(search: CellSearch, entry: int) -> int:
    return entry if entry <= search.sink else search.entries[entry - search.sink - 1, CELL]


@njit(**INSIDE, forceinline=True)
def _before(search: CellSearch, entry: int) -> int:
    return search.ways.before[entry] if entry <= search.sink else search.entries[entry - search.sink - 1, BEFORE]


@njit(**INSIDE, forceinline=True)
def _after(search: CellSearch, entry: int) -> int:
    """The next path to the cell of an entry: NONE, or UNKNOWN."""
    return search.after[entry] if entry <= search.sink else search.entries[entry - search.sink - 1, AFTER]


@njit(**INSIDE)
def _find_next(search: CellSearch, entry: int) -> CellSearch:
    """Find the next path after an entry, and before it those after the entries that it goes on from."""
    chain, at = [entry], _before(search, entry)
    while at != START and _after(search, at) == UNKNOWN:
        chain.append(at)
        at = _before(search, at)
    search = _with_room(search, len(chain))
    for number in range(len(chain) - 1, -1, -1):  # from the first event of the path on
        at = chain[number]
        _replace_taken(search, at)
        found = _taken(search, _cell(search, at))
        if at <= search.sink:
            search.after[at] = found
        else:
            search.entries[at - search.sink - 1, AFTER] = found
    return search


@njit(**INSIDE)
def _replace_taken(search: CellSearch, entry: int) -> None:
    """Add the candidates of a cell that an entry, which was one of them, stood for."""
    graph, cell, before = search.graph, _cell(search, entry), _before(search, entry)
    if search.root[cell] == UNKNOWN:
        _add_first(search, cell)
    if entry > search.sink:
        numbers = search.entries[entry - search.sink - 1]
        move = numbers[MOVE]
        if move >= 0 and graph.way[move] != FREE:
            _add(search, cell, _next_other(search, cell, before, move), move, 0, 0)
        elif move != NONE:
            _split(search, cell, before, move, numbers[LOW], numbers[HIGH])
    if before != START:
        _add(search, cell, _after(search, before), NONE, 0, 0)


@njit(**INSIDE)
def _taken(search: CellSearch, cell: int) -> int:
    """The best candidate of a cell, which becomes an entry; NONE: there is none."""
    top, made = search.root[cell], search.counts[MADE]
    if top == NONE:
        return NONE
    search.value[made] = search.heap_value[top]
    for column in range(CELL):
        search.entries[made, column] = search.heap[top, column]
    search.entries[made, CELL], search.entries[made, AFTER] = cell, UNKNOWN
    search.counts[MADE] = made + 1
    search.root[cell] = _merged(search.heap[top, LEFT], search.heap[top, RIGHT], search)
    return search.sink + 1 + made


# --------------------------------------------------------------------------------------------- candidates


@njit(**INSIDE)
def _add_first(search: CellSearch, cell: int) -> None:
    """Make a heap of all paths to a cell but the best one, where each goes on from the best path to another cell."""
    graph, ways, window = search.graph, search.ways, search.window
    width, taken = window.high - window.low, ways.before[cell]
    search.root[cell] = NONE
    if cell == search.sink:
        for state in range(len(graph.position)):
            if graph.accepts[state]:
                _add_range(search, cell, LAST - state, width)
        return
    state, f = cell // width, window.low + cell % width
    if graph.starts[state] and taken != START and (window.first < 0 or f == window.first):
        _add(search, cell, START, NONE, 0, 0)
    for at in range(graph.into_begin[state], graph.into_begin[state + 1]):
        move = graph.into[at]
        if graph.way[move] == FREE:
            _add_range(search, cell, move, max(graph.checks.tie_start[f] - window.low, 0))
        else:
            _add(search, cell, _next_other(search, cell, NONE, move), move, 0, 0)


@njit(**INSIDE)
def _add_range(search: CellSearch, cell: int, move: int, high: int) -> None:
    """Add the best of the cells of so many events that a FREE move leads from, besides the one on the best path."""
    if move == search.ways.move[cell]:
        _split(search, cell, search.ways.before[cell], move, 0, high)
    else:
        _add_best(search, cell, move, 0, high)


@njit(**INSIDE)
def _split(search: CellSearch, cell: int, taken: int, move: int, low: int, high: int) -> None:
    """Add the best of what a range holds before and after the cell that was taken from it."""
    middle = taken % (search.window.high - search.window.low)
    _add_best(search, cell, move, low, middle)
    _add_best(search, cell, move, middle + 1, high)


@njit(**INSIDE)
def _add_best(search: CellSearch, cell: int, move: int, low: int, high: int) -> None:
    """Add the best of a range of the events that a FREE move leads from."""
    state = LAST - move if move <= LAST else search.graph.source[move]
    width = search.window.high - search.window.low
    _add(search, cell, _best_in(search.trees[state], low, high, width, search.ways), move, low, high)


@njit(**INSIDE)
def _add(search: CellSearch, cell: int, before: int, move: int, low: int, high: int) -> None:
    """Add the path to a cell that goes on from an entry, if there is one; going on to the end adds nothing."""
    if before == NONE:
        return
    weights, low_event, added = search.weights, search.window.low, search.counts[ADDED]
    value = weights.unit[0] if before == START else _value(search, before)
    if cell != search.sink:
        width = search.window.high - low_event
        value = with_weight(value, cell // width, low_event + cell % width, weights)
    new = search.heap[added]
    search.heap_value[added], new[BEFORE], new[MOVE], new[LOW], new[HIGH] = value, before, move, low, high
    new[LEFT], new[RIGHT], new[DEPTH] = NONE, NONE, 1
    search.counts[ADDED] = added + 1
    search.root[cell] = _merged(search.root[cell], added, search)


@njit(**INSIDE)
def _merged(one: int, other: int, search: CellSearch) -> int:
    """Two heaps as one. O(log candidates): down the right spines, then up again."""
    if one < 0:
        return other
    if other < 0:
        return one
    value, heap = search.heap_value, search.heap
    path = np.empty(128, np.int64)
    depth = 0
    while one >= 0 and other >= 0:
        if value[other] < value[one]:
            one, other = other, one
        path[depth] = one
        depth += 1
        one = heap[one, RIGHT]
    merged = one if other < 0 else other
    for at in range(depth - 1, -1, -1):
        top = path[at]
        heap[top, RIGHT] = merged
        left = heap[top, LEFT]
        if left < 0 or heap[left, DEPTH] < heap[merged, DEPTH]:
            heap[top, LEFT], heap[top, RIGHT] = merged, left
        right = heap[top, RIGHT]
        heap[top, DEPTH] = 1 + (heap[right, DEPTH] if right >= 0 else 0)
        merged = top
    return merged


@njit(**INSIDE)
def _next_other(search: CellSearch, cell: int, than: int, move: int) -> int:
    """The next cell in order from which a move leads to a cell, besides the one on the best path to it."""
    found = _next_tested(search, cell, than, move)
    if found != NONE and move == search.ways.move[cell] and found == search.ways.before[cell]:
        found = _next_tested(search, cell, found, move)
    return found


@njit(**INSIDE)
def _next_tested(search: CellSearch, cell: int, than: int, move: int) -> int:
    """The best cell from which a move leads to a cell that comes after another in the order of values, then cells."""
    graph, ways, low = search.graph, search.ways, search.window.low
    width = search.window.high - low
    f, found, row = low + cell % width, NONE, graph.source[move] * width
    for e in range(graph.checks.tie_start[f] - 1, low - 1, -1):
        if graph.way[move] != STEP and first_cut(e, move, graph.cuts, graph.checks) <= f:
            break
        other = row + e - low
        if ways.before[other] == NONE:
            continue
        value = ways.value[other]
        if than != NONE and (value < ways.value[than] or (value == ways.value[than] and other <= than)):
            continue
        if found != NONE and (ways.value[found] < value or (ways.value[found] == value and found < other)):
            continue
        if graph.way[move] == STEP:
            first = graph.successor[graph.source[move], e]
            if first < 0 or f < first or f >= graph.checks.tie_end[first] or not possible(e, f, move, graph.checks):
                continue
        elif not pairs_hold(e, f, move, graph.checks):
            continue
        found = other
    return found


# -------------------------------------------------------------------------------------------------- trees


@njit(**INSIDE)
def _fill_tree(tree: Array, ways: Ways, state: int, width: int) -> None:
    """The best cell of each stretch of 2, 4, 8, ... events of a state: leaf i is at width + i."""
    row = state * width
    for i in range(width):
        tree[width + i] = row + i if ways.before[row + i] != NONE else NONE
    for at in range(width - 1, 0, -1):
        tree[at] = _better(tree[2 * at], tree[2 * at + 1], ways)


@njit(**INSIDE, forceinline=True)
def _better(one: int, other: int, ways: Ways) -> int:
    if one == NONE:
        return other
    if other == NONE or not ways.value[other] < ways.value[one]:
        return one
    return other


@njit(**INSIDE)
def _best_in(tree: Array, low: int, high: int, width: int, ways: Ways) -> int:
    """The best cell of the events from `low` up to `high`, counted from the start of the window."""
    found = NONE
    low, high = low + width, high + width
    while low < high:
        if low & 1:
            found = _better(found, tree[low], ways)
            low += 1
        if high & 1:
            high -= 1
            found = _better(found, tree[high], ways)
        low >>= 1
        high >>= 1
    return found
