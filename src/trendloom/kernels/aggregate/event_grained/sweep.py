"""The compiled sweep: what reaches every item of a batch, in order of time.

A *batch* is a run of spans of one key that all overlap its first one: they are swept together, one lane each, so that
what they share is done once. So the union of their events is less than twice the longest span, and at least half of the
work in every lane counts. Spans that overlap none are batches of one lane.

Events of one time never follow each other, so they are handled in two phases: all of them gather from what is earlier,
then all become visible. A lane opens at its first event and closes at its last: matches start in open lanes only, and a
lane is read off when it closes, so what later events do to it is never seen.

When the bar of a move rises, the values before it must go from the move's structures: they are emptied by walking over
what was inserted, and what lies after the bar is inserted again. Bars rise past an event once.

Functions that take an argument which is None in a plain graph return at once: what they do is not compiled for it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.event_grained.interpreted_sweep import sweep_interpreted
from trendloom.kernels.aggregate.event_grained.structures import HASH, SUM, Arms, Items, MoveGraph
from trendloom.kernels.aggregate.event_grained.tree_places import (
    Places,
    erase_item,
    gather_item,
    insert_item,
    place_arm,
)
from trendloom.kernels.aggregate.measures import ABSENT, EMPTY, FREE, NEVER, EventTerms, Spans, SpanTotals
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
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.matching.tables import pairs_hold


class SweepTables(NamedTuple):
    """What a sweep reads of a block, whatever its spans."""

    graph: MoveGraph
    terms: EventTerms
    items: Items
    arms: Arms


class Batches(NamedTuple):
    """Batches with `lanes` spans each: the first span, the items `low` to `high` of all its spans, the first event.

    `opens`, `closes`: by span, its first event and the first after it.
    """

    span: Array
    low: Array
    high: Array
    first_event: Array
    opens: Array
    closes: Array
    lanes: int


def batches_of(spans: Spans, items: Items, most_lanes: int) -> list[Batches]:
    """All spans in batches, those with equally many lanes together."""
    first = _first_spans(spans.key, spans.low, spans.high, most_lanes)
    width = np.diff(np.append(first, len(spans)))
    found = []
    for lanes in np.unique(width).tolist():
        some = first[width == lanes]
        begin, end = spans.low[some], spans.high[some + lanes - 1]
        low, high = np.searchsorted(items.event, begin), np.searchsorted(items.event, end)
        found.append(Batches(some, low, high, begin, spans.low, spans.high, lanes))
    return found


@njit(nogil=True)
def _first_spans(key: Any, low: Any, high: Any, most_lanes: Any) -> Any:
    """The first span of every batch."""
    found = np.empty(len(key), np.int64)
    count, first = 0, -1
    for span in range(len(key)):
        fresh = first < 0 or key[span] != key[first] or span - first >= most_lanes or low[span] >= high[first]
        if fresh:
            found[count] = first = span
            count += 1
    return found[:count].copy()


class Work(NamedTuple):
    """What a sweep changes. `nodes`: the cells of the arms, which `places` lays out. `values`: one cell per item of the
    batch (`kept`), or of the events of one time.

    `lanes`: how many have closed, how many have opened; `origin`: the batch's first item. By state, as ordinals: the
    items of the batch are `first` to `last`, those before `inserted` are visible. By move: `floor` is the first item
    that its bar, `passed`, lets through.
    """

    places: Places
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


def _sweep_part(tables: Any, batches: Any, work: Any, part: Any, found: Any) -> None:
    """Sweep some items of some batches."""
    items, swept = tables.items, 0
    for batch in range(part.begin, part.end):
        span = batches.span[batch]
        if part.low <= batches.low[batch]:
            _open(tables, batches.low[batch], batches.high[batch], work)
        item, stop = max(part.low, batches.low[batch]), min(part.high, batches.high[batch])
        while item < stop:
            event, after = items.event[item], item
            while after < stop and items.event[after] < items.tie_end[event]:
                after += 1
            _move_lanes(batches, span, event, work, found)
            cell = item - batches.low[batch] if work.kept else 0
            for one in range(item, after):
                _reach(tables, batches, work, part, span, one, cell + one - item, swept + one - item)
                _add_own(tables, work, one, cell + one - item)
                _end(tables, batches, work, span, one, cell + one - item)
            for one in range(item, after):
                _show(tables, work, one, cell + one - item)
            swept += after - item
            item = after
        if part.high >= batches.high[batch]:
            _close(tables.arms, span, work, found)


def _sweep_interpreted(tables: Any, batches: Any, work: Any, part: Any, found: Any) -> None:
    if not sweep_interpreted(tables, batches, part, found):
        _sweep_part(tables, batches, work, part, found)


# Without a runtime for allocation Numba does not count references to the arrays of a tuple each time one is read: that
# would be three quarters of the time here. `Limbs` need scratch memory, so they have the runtime.
_sweep_borrowing = njit(**LEAN, interpreted=_sweep_interpreted)(_sweep_part)
_sweep_allocating = njit(nogil=True, interpreted=_sweep_interpreted)(_sweep_part)


def sweep_part(tables: SweepTables, batches: Batches, work: Work, part: SweepPart, found: SpanTotals) -> None:
    """Sweep some items of some batches."""
    compiled = _sweep_allocating if isinstance(found.numbers, Limbs) else _sweep_borrowing
    compiled(tables, batches, work, part, found)


# ---------------------------------------------------------------------------------------- batches and lanes


@njit(**INSIDE, inline="always")
def _open(tables: Any, low: Any, high: Any, work: Any) -> None:
    """Begin a batch of the items from `low` to `high`: nothing is visible, no lane is open."""
    items, arms, places = tables.items, tables.arms, work.places
    for state in range(len(work.first)):
        mine = items.of_state[items.begin[state] : items.begin[state + 1]]
        work.first[state] = work.inserted[state] = _not_before(mine, low)
        work.last[state] = _not_before(mine, high)
    for move in range(len(work.floor)):
        work.floor[move], work.passed[move] = work.first[tables.graph.source[move]], -1
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
def _move_lanes(batches: Any, span: Any, event: Any, work: Any, found: Any) -> None:
    """Close the lanes that end before an event, open those that begin at it. Spans of a key are in order."""
    lanes = work.total.least.shape[1]
    while work.lanes[0] < lanes and batches.closes[span + work.lanes[0]] <= event:
        _read_off(span, work, found)
    while work.lanes[1] < lanes and batches.opens[span + work.lanes[1]] <= event:
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
def _close(arms: Any, span: Any, work: Any, found: Any) -> None:
    """End a batch: read off what is open, and leave sums and tables empty (trees are emptied when placed)."""
    while work.lanes[0] < work.total.least.shape[1]:
        _read_off(span, work, found)
    for arm in range(len(arms.kind)):
        source = arms.source[arm]
        if arms.kind[arm] == SUM:
            wipe(work.nodes, work.places.base[arm])
        elif arms.kind[arm] == HASH:
            for ordinal in range(work.first[source], work.inserted[source]):
                erase_item(arms, work.places, arm, ordinal, ordinal - work.first[source], work.nodes)


# ------------------------------------------------------------------------------------------------ one item


@njit(**INSIDE, inline="always")
def _reach(
    tables: Any, batches: Any, work: Any, part: Any, span: Any, item: Any, cell: Any, swept: Any
) -> None:  # fmt: skip
    """All partial matches that an item can end, without what it adds itself: those it starts, those it follows."""
    graph, items, arms = tables.graph, tables.items, tables.arms
    state, event, ordinal = items.state[item], items.event[item], items.ordinal[item]
    wipe(work.values, cell)
    _start(tables, batches, work, span, state, event, cell)
    for at in range(graph.into_begin[state], graph.into_begin[state + 1]):
        move = graph.into[at]
        if graph.bar[move] != FREE:
            _raise_bar(graph.bars, tables, work, move, items.tie_start[event])
        if graph.scanned[move]:
            _scan(graph.checks, tables, work, part, move, event, cell, swept)
        else:
            for which in range(graph.arms_begin[move], graph.arms_begin[move + 1]):
                arm, here = graph.arms[which], ordinal - work.first[state]
                gather_item(arms, work.places, arm, ordinal, here, work.nodes, work.values, cell)


@njit(**INSIDE, inline="always")
def _start(tables: Any, batches: Any, work: Any, span: Any, state: Any, event: Any, cell: Any) -> None:
    """Start a match in every open lane whose leading NOTs hold."""
    lead = tables.graph.lead[state]
    if lead == NEVER:
        return
    bar = np.int64(-1) if lead == FREE else _bar_at(tables.graph.bars, lead, tables.items.tie_start[event])
    for lane in range(work.lanes[0], work.lanes[1]):
        if bar < batches.opens[span + lane]:
            add_unit(work.values.numbers, cell * work.values.width, lane, 1)
            for x in range(work.values.least.shape[2]):
                work.values.least[cell, lane, x] = EMPTY


@njit(**BORROWED)
def _scan(
    checks: Any, tables: Any, work: Any, part: Any, move: Any, event: Any, cell: Any, swept: Any
) -> None:  # fmt: skip
    """Try every visible predecessor."""
    if checks is None:
        return
    graph, items = tables.graph, tables.items
    source, test = graph.source[move], graph.tested[move]
    mine = items.of_state[items.begin[source] : items.begin[source + 1]]
    truth = part.at[test, swept] - work.first[source] if test >= 0 else 0
    for ordinal in range(work.floor[move], work.inserted[source]):
        if test >= 0 and not part.truth[truth + ordinal]:
            continue
        if pairs_hold(items.event[mine[ordinal]], event, move, checks):
            merge(work.values, cell, work.values, mine[ordinal] - work.origin[0])


@njit(**BORROWED)
def _bar_at(bars: Any, row: Any, event: Any) -> Any:
    """A bar before an event."""
    if bars is None:
        return np.int64(-1)
    return bars[row, event]


@njit(**BORROWED)
def _raise_bar(bars: Any, tables: Any, work: Any, move: Any, event: Any) -> None:
    """Forget the predecessors that a NOT of the move now forbids, if it forbids more of them before an event."""
    if bars is None:
        return
    bar = bars[tables.graph.bar[move], event]
    if bar > work.passed[move]:
        _forget(tables, work, move, bar)


@njit(**INSIDE)
def _forget(tables: Any, work: Any, move: Any, bar: Any) -> None:
    graph, items, arms = tables.graph, tables.items, tables.arms
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
            erase_item(arms, work.places, arm, ordinal, ordinal - work.first[source], work.nodes)
        for ordinal in range(floor, visible):
            cell, item = mine[ordinal] - work.origin[0], ordinal - work.first[source]
            insert_item(arms, work.places, arm, ordinal, item, work.nodes, work.values, cell)


@njit(**INSIDE, inline="always")
def _add_own(tables: Any, work: Any, item: Any, cell: Any) -> None:
    """What the item itself adds to every partial match that it ends."""
    terms, items = tables.terms, tables.items
    event, state, values = items.event[item], items.state[item], work.values
    row = cell * values.width
    for m in range(len(terms.weight_of)):
        if terms.weighs[m, state]:
            if terms.weight_of[m] < 0:
                add(values.numbers, row + 1 + m, values.numbers, row)
            elif terms.weights[terms.weight_of[m], event] != 0:  # nothing, even where the count is infinite
                add_times(values.numbers, row + 1 + m, values.numbers, row, terms.weights[terms.weight_of[m], event])
    for x in range(values.least.shape[2]):
        if terms.valued[x, state]:
            for lane in range(values.least.shape[1]):
                if values.least[cell, lane, x] != ABSENT:
                    values.least[cell, lane, x] = min(values.least[cell, lane, x], terms.values[x, event])


@njit(**INSIDE, inline="always")
def _end(tables: Any, batches: Any, work: Any, span: Any, item: Any, cell: Any) -> None:
    """Add the matches that end here to the total of every open lane whose trailing NOTs hold."""
    graph, items = tables.graph, tables.items
    trail = graph.trail[items.state[item]]
    if trail == FREE:
        merge(work.total, 0, work.values, cell)
    elif trail != NEVER:
        after = items.tie_end[items.event[item]]
        for lane in range(work.lanes[0], work.lanes[1]):
            if _bar_at(graph.bars, trail, batches.closes[span + lane]) < after:
                merge_lane(work.total, 0, work.values, cell, lane)


@njit(**INSIDE, inline="always")
def _show(tables: Any, work: Any, item: Any, cell: Any) -> None:
    """Let later events follow the item, if any partial match ends there."""
    graph, items, arms = tables.graph, tables.items, tables.arms
    state, ordinal = items.state[item], items.ordinal[item]
    work.inserted[state] = ordinal + 1
    reached, row = False, cell * work.values.width
    for lane in range(work.total.least.shape[1]):
        reached = reached or not is_zero(work.values.numbers, row, lane)
    if reached:
        for at in range(graph.out_begin[state], graph.out_begin[state + 1]):
            here = ordinal - work.first[state]
            insert_item(arms, work.places, graph.out[at], ordinal, here, work.nodes, work.values, cell)
