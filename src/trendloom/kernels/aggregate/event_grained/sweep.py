"""The compiled sweep: what reaches every item of a batch, in order of time.

Events of one time never follow each other, so they are handled in two phases: all of them gather from what is earlier,
then all become visible. A lane (one span of the batch) opens at its first event and closes at its last: matches start
in open lanes only, and a lane is read off when it closes, so what later events do to it is never seen.

When the bar of a move rises, the values before it must go from the move's structures: they are emptied by walking over
what was inserted, and what lies after the bar is inserted again. Bars rise past an event once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.event_grained.batches import Batches, Items
from trendloom.kernels.aggregate.event_grained.interpreted_sweep import sweep_interpreted
from trendloom.kernels.aggregate.event_grained.moves import FREE, NEVER, EventTerms, MoveGraph
from trendloom.kernels.aggregate.event_grained.structures import HASH, SUM, Arms
from trendloom.kernels.aggregate.event_grained.tree_places import (
    Places,
    erase_item,
    gather_item,
    insert_item,
    place_arm,
)
from trendloom.kernels.aggregate.measures import ABSENT, EMPTY, Spans, SpanTotals
from trendloom.kernels.columns.fenwick import Cells, merge, merge_lane, wipe
from trendloom.kernels.columns.numbers import (
    BORROWED,
    LEAN,
    Limbs,
    add,
    add_lane,
    add_times,
    add_unit,
    forgive,
    is_zero,
    spilled,
)
from trendloom.kernels.jit.compiled import INSIDE, implements, lacks, njit, operation
from trendloom.kernels.matching.tables import pairs_hold


class Work(NamedTuple):
    """What a sweep changes. `values`: one cell per item of the batch (`kept`), or of the events of one time.

    `lanes`: how many have closed, how many have opened; `origin`: the batch's first item. By state, as ordinals: the
    items of the batch are `first` to `last`, those before `inserted` are visible. By move: `floor` is the first item
    that its bar, `passed`, lets through.
    """

    nodes: Cells
    values: Cells
    total: Cells
    kept: bool
    lanes: Array
    origin: Array
    first: Array
    last: Array
    inserted: Array
    floor: Array
    passed: Array


class SweepPart(NamedTuple):
    """Which batches to sweep, and which items of them: a batch can be swept in several parts.

    `truth[at[t, i] + k]`: whether the tests of tested move t let the i-th item swept follow the k-th item of the batch
    in the state the move comes from.
    """

    begin: int
    end: int
    low: int
    high: int
    at: Array
    truth: Array


def _sweep_part(
    graph: Any, terms: Any, items: Any, arms: Any, places: Any, batches: Any, low: Any, high: Any, work: Any, part: Any,
    found: Any,
) -> None:  # fmt: skip
    """Sweep a part; `low` and `high` are the spans' events."""
    swept = 0
    for batch in range(part.begin, part.end):
        span = batches.span[batch]
        if part.low <= batches.low[batch]:
            _open(graph, items, arms, places, batches.low[batch], batches.high[batch], work)
        item, stop = max(part.low, batches.low[batch]), min(part.high, batches.high[batch])
        while item < stop:
            event, after = items.event[item], item
            while after < stop and items.event[after] < items.tie_end[event]:
                after += 1
            _move_lanes(low, high, span, event, work, found)
            cell = item - batches.low[batch] if work.kept else 0
            for one in range(item, after):
                _reach(graph, items, arms, places, low, span, work, part, one, cell + one - item, swept + one - item)
                _add_own(graph, terms, items, work, one, cell + one - item)
                _end(graph, items, high, span, work, one, cell + one - item)
            for one in range(item, after):
                _show(graph, items, arms, places, work, one, cell + one - item)
            swept += after - item
            item = after
        if part.high >= batches.high[batch]:
            _close(arms, places, span, work, found)


def _sweep_interpreted(
    graph: Any, terms: Any, items: Any, arms: Any, places: Any, batches: Any, low: Any, high: Any, work: Any, part: Any,
    found: Any,
) -> None:  # fmt: skip
    if not sweep_interpreted(graph, terms, items, arms, batches, low, high, part, found):
        _sweep_part(graph, terms, items, arms, places, batches, low, high, work, part, found)


# Without a runtime for allocation Numba does not count references to the arrays of a tuple each time one is read: that
# would be three quarters of the time here. `Limbs` need scratch memory, so they have the runtime.
_sweep_borrowing = njit(**LEAN, interpreted=_sweep_interpreted)(_sweep_part)
_sweep_allocating = njit(nogil=True, interpreted=_sweep_interpreted)(_sweep_part)


def sweep_part(
    graph: MoveGraph, terms: EventTerms, items: Items, arms: Arms, places: Places, batches: Batches, spans: Spans,
    work: Work, part: SweepPart, found: SpanTotals,
) -> None:  # fmt: skip
    """Sweep some items of some batches of the spans."""
    compiled = _sweep_allocating if isinstance(found.numbers, Limbs) else _sweep_borrowing
    compiled(graph, terms, items, arms, places, batches, spans.low, spans.high, work, part, found)


# ---------------------------------------------------------------------------------------- batches and lanes


@njit(**INSIDE, inline="always")
def _open(graph: Any, items: Any, arms: Any, places: Any, low: Any, high: Any, work: Any) -> None:
    """Begin a batch of the items from `low` to `high`: nothing is visible, no lane is open."""
    for state in range(len(work.first)):
        mine = items.of_state[items.begin[state] : items.begin[state + 1]]
        work.first[state] = work.inserted[state] = _not_before(mine, low)
        work.last[state] = _not_before(mine, high)
    for move in range(len(work.floor)):
        work.floor[move], work.passed[move] = work.first[graph.source[move]], -1
    forgive(work.nodes.numbers)
    forgive(work.values.numbers)
    forgive(work.total.numbers)
    for arm in range(len(arms.kind)):
        used = place_arm(arms, places, arm, work.first, work.last)
        for node in range(places.base[arm], places.base[arm] + used):
            wipe(work.nodes, node)
    wipe(work.total, 0)
    work.lanes[:], work.origin[0] = 0, low


@njit(**INSIDE)
def _not_before(items: Any, bound: Any) -> Any:
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) >> 1
        if items[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low


@njit(**INSIDE, inline="always")
def _move_lanes(low: Any, high: Any, span: Any, event: Any, work: Any, found: Any) -> None:
    """Close the lanes that end before an event, open those that begin at it. Spans of a key are in order."""
    lanes = work.total.least.shape[1]
    while work.lanes[0] < lanes and high[span + work.lanes[0]] <= event:
        _read_off(span, work, found)
    while work.lanes[1] < lanes and low[span + work.lanes[1]] <= event:
        work.lanes[1] += 1


@njit(**INSIDE)
def _read_off(span: Any, work: Any, found: Any) -> None:
    """The result of the first lane that is not closed, and close it."""
    lane = work.lanes[0]
    for m in range(work.total.width):
        add_lane(found.numbers, span + lane, m, work.total.numbers, m, lane)
    for x in range(found.least.shape[1]):
        found.least[span + lane, x] = work.total.least[0, lane, x]
    found.spilled[span + lane] = (
        spilled(work.nodes.numbers, lane) or spilled(work.values.numbers, lane) or spilled(work.total.numbers, lane)
    )
    work.lanes[0] += 1


@njit(**INSIDE, inline="always")
def _close(arms: Any, places: Any, span: Any, work: Any, found: Any) -> None:
    """End a batch: read off what is open, and leave sums and tables empty (trees are emptied when placed)."""
    while work.lanes[0] < work.total.least.shape[1]:
        _read_off(span, work, found)
    for arm in range(len(arms.kind)):
        source = arms.source[arm]
        if arms.kind[arm] == SUM:
            wipe(work.nodes, places.base[arm])
        elif arms.kind[arm] == HASH:
            for ordinal in range(work.first[source], work.inserted[source]):
                erase_item(arms, places, arm, ordinal, ordinal - work.first[source], work.nodes)


# ------------------------------------------------------------------------------------------------ one item


@njit(**INSIDE, inline="always")
def _reach(
    graph: Any, items: Any, arms: Any, places: Any, low: Any, span: Any, work: Any, part: Any, item: Any, cell: Any,
    swept: Any,
) -> None:  # fmt: skip
    """All partial matches that an item can end, without what it adds itself: those it starts, those it follows."""
    state, event = items.state[item], items.event[item]
    wipe(work.values, cell)
    _start(graph, items, low, span, work, state, event, cell)
    ordinal = items.ordinal[item]
    for at in range(graph.into_begin[state], graph.into_begin[state + 1]):
        move = graph.into[at]
        if graph.bar[move] != FREE:
            raise_bar(graph, items, arms, places, work, move, items.tie_start[event])
        if graph.scanned[move]:
            scan(graph, items, work, part, move, event, cell, swept)
        else:
            for which in range(graph.arms_begin[move], graph.arms_begin[move + 1]):
                arm, here = graph.arms[which], ordinal - work.first[state]
                gather_item(arms, places, arm, ordinal, here, work.nodes, work.values, cell)


@njit(**INSIDE, inline="always")
def _start(graph: Any, items: Any, low: Any, span: Any, work: Any, state: Any, event: Any, cell: Any) -> None:
    """Start a match in every open lane whose leading NOTs hold."""
    lead = graph.lead[state]
    if lead == NEVER:
        return
    bar = np.int64(-1) if lead == FREE else bar_at(graph, lead, items.tie_start[event])
    for lane in range(work.lanes[0], work.lanes[1]):
        if bar < low[span + lane]:
            add_unit(work.values.numbers, cell * work.values.width, lane, 1)
            for x in range(work.values.least.shape[2]):
                work.values.least[cell, lane, x] = EMPTY


@operation
def scan(
    graph: MoveGraph, items: Items, work: Work, part: SweepPart, move: int, event: int, cell: int, swept: int
) -> None:
    """Try every visible predecessor."""


@implements(scan, BORROWED)
def _scan(graph: Any, items: Any, work: Any, part: Any, move: Any, event: Any, cell: Any, swept: Any) -> Any:
    def plain(graph: Any, items: Any, work: Any, part: Any, move: Any, event: Any, cell: Any, swept: Any) -> None:
        pass

    def scanned(graph: Any, items: Any, work: Any, part: Any, move: Any, event: Any, cell: Any, swept: Any) -> None:
        source, test = graph.source[move], graph.tested[move]
        mine = items.of_state[items.begin[source] : items.begin[source + 1]]
        truth = part.at[test, swept] - work.first[source] if test >= 0 else 0
        for ordinal in range(work.floor[move], work.inserted[source]):
            if test >= 0 and not part.truth[truth + ordinal]:
                continue
            if pairs_hold(items.event[mine[ordinal]], event, move, graph.checks):
                merge(work.values, cell, work.values, mine[ordinal] - work.origin[0])

    return plain if lacks(graph, "checks") else scanned


@operation
def bar_at(graph: MoveGraph, row: int, event: int) -> int:
    """A bar before an event."""
    raise NotImplementedError


@implements(bar_at, BORROWED)
def _bar_at(graph: Any, row: Any, event: Any) -> Any:
    def plain(graph: Any, row: Any, event: Any) -> Any:
        return np.int64(-1)

    def barred(graph: Any, row: Any, event: Any) -> Any:
        return graph.bars[row, event]

    return plain if lacks(graph, "bars") else barred


@operation
def raise_bar(graph: MoveGraph, items: Items, arms: Arms, places: Places, work: Work, move: int, event: int) -> None:
    """Forget the predecessors that a NOT of the move now forbids, if it forbids more of them before an event."""


@implements(raise_bar, BORROWED)
def _raise_bar(graph: Any, items: Any, arms: Any, places: Any, work: Any, move: Any, event: Any) -> Any:
    def plain(graph: Any, items: Any, arms: Any, places: Any, work: Any, move: Any, event: Any) -> None:
        pass

    def barred(graph: Any, items: Any, arms: Any, places: Any, work: Any, move: Any, event: Any) -> None:
        bar = graph.bars[graph.bar[move], event]
        if bar > work.passed[move]:
            _forget(graph, items, arms, places, work, move, bar)

    return plain if lacks(graph, "bars") else barred


@njit(**INSIDE)
def _forget(graph: Any, items: Any, arms: Any, places: Any, work: Any, move: Any, bar: Any) -> None:
    work.passed[move] = bar
    source, old = graph.source[move], work.floor[move]
    mine = items.of_state[items.begin[source] : items.begin[source + 1]]
    floor, visible = old, work.inserted[source]
    while floor < visible and items.tie_end[items.event[mine[floor]]] <= bar:
        floor += 1
    if floor == old:
        return
    work.floor[move] = floor
    for at in range(graph.arms_begin[move], graph.arms_begin[move + 1]):
        arm = graph.arms[at]
        for ordinal in range(old, visible):
            erase_item(arms, places, arm, ordinal, ordinal - work.first[source], work.nodes)
        for ordinal in range(floor, visible):
            cell, item = mine[ordinal] - work.origin[0], ordinal - work.first[source]
            insert_item(arms, places, arm, ordinal, item, work.nodes, work.values, cell)


@njit(**INSIDE, inline="always")
def _add_own(graph: Any, terms: Any, items: Any, work: Any, item: Any, cell: Any) -> None:
    """What the item itself adds to every partial match that it ends."""
    event, position, values = items.event[item], graph.position[items.state[item]], work.values
    row = cell * values.width
    for m in range(len(terms.weight_of)):
        if terms.weighs[m, position]:
            if terms.weight_of[m] < 0:
                add(values.numbers, row + 1 + m, values.numbers, row)
            elif terms.weights[terms.weight_of[m], event] != 0:  # nothing, even where the count is infinite
                add_times(values.numbers, row + 1 + m, values.numbers, row, terms.weights[terms.weight_of[m], event])
    for x in range(values.least.shape[2]):
        if terms.valued[x, position]:
            for lane in range(values.least.shape[1]):
                if values.least[cell, lane, x] != ABSENT:
                    values.least[cell, lane, x] = min(values.least[cell, lane, x], terms.values[x, event])


@njit(**INSIDE, inline="always")
def _end(graph: Any, items: Any, high: Any, span: Any, work: Any, item: Any, cell: Any) -> None:
    """Add the matches that end here to the total of every open lane whose trailing NOTs hold."""
    trail = graph.trail[items.state[item]]
    if trail == FREE:
        merge(work.total, 0, work.values, cell)
    elif trail != NEVER:
        after = items.tie_end[items.event[item]]
        for lane in range(work.lanes[0], work.lanes[1]):
            if bar_at(graph, trail, high[span + lane]) < after:
                merge_lane(work.total, 0, work.values, cell, lane)


@njit(**INSIDE, inline="always")
def _show(graph: Any, items: Any, arms: Any, places: Any, work: Any, item: Any, cell: Any) -> None:
    """Let later events follow the item, if any partial match ends there."""
    state, ordinal = items.state[item], items.ordinal[item]
    work.inserted[state] = ordinal + 1
    reached, row = False, cell * work.values.width
    for lane in range(work.total.least.shape[1]):
        reached = reached or not is_zero(work.values.numbers, row, lane)
    if reached:
        for at in range(graph.out_begin[state], graph.out_begin[state + 1]):
            here = ordinal - work.first[state]
            insert_item(arms, places, graph.out[at], ordinal, here, work.nodes, work.values, cell)
