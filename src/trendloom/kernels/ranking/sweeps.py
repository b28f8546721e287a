"""The best way to every cell of a window, and the best way on from it: one sweep each, forwards and backwards.

Forwards, `value[c]` is the best value of a path that ends in cell c, folded from its first event on exactly as a score
is, and `before[c]` the cell before c on it. Backwards, `rest[c]` is the best fold of the weights that can follow c. A
fold is monotone in what came before, so the best path through a cell goes on from the best path to it.

Cells of a window of w events are numbered state · w + event. Cost: O(cells · moves), times log(events) where an order
predicate or a NOT leads to a cell, times events where moves are TESTED.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.matching.reachability import first_cut
from trendloom.kernels.matching.tables import fits_at, pairs_hold, possible
from trendloom.kernels.ranking.graph import (
    EQUAL,
    FREE,
    ORDER,
    PRODUCT,
    RECENT,
    STEP,
    EventWeights,
    RankedGraph,
    folded,
)

NONE = -1
START = -2
"""What is before the first cell of a path."""


class Ways(NamedTuple):
    """By cell: the best value of a path there, and the cell before it (NONE: there is no path), and by which move."""

    value: Array
    before: Array
    move: Array


class Completions(NamedTuple):
    """By cell the best fold of the weights that can follow it (`rest`), where a match can be completed (`there`)."""

    rest: Array
    there: Array


class CellWindow(NamedTuple):
    """The events from `low` up to `high`; paths start at event `first` (−1: anywhere)."""

    low: int
    high: int
    first: int


class Offers(NamedTuple):
    """What cells have been found so far, in the form in which moves look for the best: see `graph`.

    An answer counts only where its `stamp` is `sweep[0]`, the number of the sweep.
    """

    sweep: Array
    answer: Array
    stamp: Array
    stack: Array
    height: Array
    best: Array


def offers_for(graph: RankedGraph, longest: int) -> Offers:
    """Room for the sweeps over windows of at most so many events."""
    cells = int(graph.size.sum())
    stacked = longest if (graph.way == RECENT).any() else 0
    moves, states = len(graph.way), len(graph.position)
    return Offers(
        np.zeros(1, np.int64), np.empty(cells, np.int64), np.full(cells, -1, np.int64),
        np.empty((moves, stacked), np.int64), np.zeros(moves, np.int64), np.full(states, NONE, np.int64),
    )  # fmt: skip


@njit(nogil=True)
def empty_ways(states: int, width: int, value: Array) -> Ways:
    """Room for the cells of a window, and the end of all paths."""
    cells = states * width + 1
    return Ways(np.empty(cells, value.dtype), np.empty(cells, np.int64), np.empty(cells, np.int64))


@njit(nogil=True)
def no_completions(states: int, width: int, value: Array) -> Completions:
    """Room for the cells of a window."""
    return Completions(np.empty(states * width, value.dtype), np.empty(states * width, np.bool_))


@njit(**INSIDE, forceinline=True)
def _begin_sweep(offers: Offers) -> None:
    offers.sweep[0] += 1
    offers.best[:] = NONE
    offers.height[:] = 0


@njit(**INSIDE, forceinline=True)
def with_weight(before: Any, state: int, e: int, weights: EventWeights) -> Any:
    """The value of a path with event e in a state."""
    row = weights.row[state]
    return before if row < 0 else folded(weights.operator, before, weights.value[row, e])


@njit(**INSIDE, forceinline=True)
def joined(value: Any, rest: Any, weights: EventWeights) -> Any:
    """The value of a path and of a way on from its end."""
    both = folded(weights.operator, value, rest)
    return both * weights.unit[0] if weights.operator == PRODUCT else both


@njit(**INSIDE, forceinline=True)
def is_cell(state: int, e: int, graph: RankedGraph, weights: EventWeights) -> bool:
    """Whether event e may stand in a state and has a weight there if one is needed."""
    if not fits_at(graph.fits[e], graph.position[state]):
        return False
    row = weights.row[state]
    return row < 0 or not weights.unknown[row, e]


@njit(nogil=True)
def sweep_forwards(ways: Ways, graph: RankedGraph, weights: EventWeights, window: CellWindow, offers: Offers) -> None:
    """The best path to every cell of a window."""
    low, high, first = window
    width, states = high - low, len(graph.position)
    ways.before[: states * width] = NONE
    _begin_sweep(offers)
    begin = low
    while begin < high:
        end = min(graph.checks.tie_end[begin], high)
        for e in range(begin, end):
            for state in range(states):
                if not is_cell(state, e, graph, weights):
                    continue
                cell = state * width + e - low
                if graph.starts[state] and (first < 0 or e == first):
                    _go_on(ways, cell, with_weight(weights.unit[0], state, e, weights), START, NONE)
                for at in range(graph.into_begin[state], graph.into_begin[state + 1]):
                    move = graph.into[at]
                    if graph.way[move] == STEP:
                        continue
                    before = _best_before(ways, graph, low, high, e, move, offers)
                    if before != NONE:
                        _go_on(ways, cell, with_weight(ways.value[before], state, e, weights), before, move)
        for e in range(begin, end):
            for state in range(states):
                cell = state * width + e - low
                if ways.before[cell] == NONE:
                    continue
                best = offers.best[state]
                if best == NONE or ways.value[cell] < ways.value[best]:
                    offers.best[state] = cell
                for move in range(graph.moves.begin[state], graph.moves.begin[state + 1]):
                    if graph.way[move] == STEP:
                        _step_on(ways, graph, weights, low, high, cell, move)
                    elif graph.way[move] != FREE:
                        _offer(ways.value, cell, e, move, True, graph, offers)
        begin = end


@njit(**INSIDE, forceinline=True)
def _go_on(ways: Ways, cell: int, value: Any, before: int, move: int) -> None:
    """Note a path to a cell if it is the best so far."""
    if ways.before[cell] == NONE or value < ways.value[cell]:
        ways.value[cell], ways.before[cell], ways.move[cell] = value, before, move


@njit(**INSIDE)
def _best_before(ways: Ways, graph: RankedGraph, low: int, high: int, f: int, move: int, offers: Offers) -> int:
    """The best cell from which a move leads to event f."""
    way, width = graph.way[move], high - low
    if way == FREE:
        return offers.best[graph.source[move]]
    if way in (EQUAL, ORDER):
        return _answer(ways.value, f, move, True, graph, offers)
    if way == RECENT:  # the oldest that no NOT keeps back is the best of them
        bottom, top = 0, offers.height[move]
        while bottom < top:
            middle = (bottom + top) // 2
            e = low + offers.stack[move, middle] % width
            if first_cut(e, move, graph.cuts, graph.checks) > f:
                top = middle
            else:
                bottom = middle + 1
        return offers.stack[move, bottom] if bottom < offers.height[move] else NONE
    found, row = NONE, graph.source[move] * width
    for e in range(graph.checks.tie_start[f] - 1, low - 1, -1):
        if first_cut(e, move, graph.cuts, graph.checks) <= f:
            break
        cell = row + e - low
        if ways.before[cell] == NONE or (found != NONE and not ways.value[cell] < ways.value[found]):
            continue
        if pairs_hold(e, f, move, graph.checks):
            found = cell
    return found


@njit(**INSIDE)
def _step_on(ways: Ways, graph: RankedGraph, weights: EventWeights, low: int, high: int, cell: int, move: int) -> None:
    """Let a path go on from a cell to its successors."""
    width = high - low
    e, state = low + cell % width, graph.moves.target[move]
    f = graph.successor[graph.source[move], e]
    if f < 0 or f >= high:
        return
    for at in range(f, min(graph.checks.tie_end[f], high)):
        if is_cell(state, at, graph, weights) and possible(e, at, move, graph.checks):
            _go_on(ways, state * width + at - low, with_weight(ways.value[cell], state, at, weights), cell, move)


# ------------------------------------------------------------------------------------------------ backwards


@njit(nogil=True)
def sweep_backwards(
    after: Completions, graph: RankedGraph, weights: EventWeights, low: int, high: int, offers: Offers
) -> None:
    """The best way on from every cell of the events from `low` up to `high`."""
    width, states = high - low, len(graph.position)
    after.there[: states * width] = False
    whole = Completions(np.empty(states * width, after.rest.dtype), after.there)  # with the weights of cells
    _begin_sweep(offers)
    end = high
    while end > low:
        begin = max(graph.checks.tie_start[end - 1], low)
        for e in range(begin, end):
            for state in range(states):
                if not is_cell(state, e, graph, weights):
                    continue
                cell = state * width + e - low
                if graph.accepts[state]:
                    after.there[cell], after.rest[cell] = True, weights.unit[0]
                for move in range(graph.moves.begin[state], graph.moves.begin[state + 1]):
                    then = _best_after(whole, graph, low, high, e, move, offers)
                    if then != NONE and (not after.there[cell] or whole.rest[then] < after.rest[cell]):
                        after.there[cell], after.rest[cell] = True, whole.rest[then]
        for e in range(end - 1, begin - 1, -1):
            for state in range(states):
                cell = state * width + e - low
                if not after.there[cell]:
                    continue
                whole.rest[cell] = with_weight(after.rest[cell], state, e, weights)
                best = offers.best[state]
                if best == NONE or whole.rest[cell] < whole.rest[best]:
                    offers.best[state] = cell
                for at in range(graph.into_begin[state], graph.into_begin[state + 1]):
                    move = graph.into[at]
                    if graph.way[move] != FREE and graph.way[move] != STEP:
                        _offer(whole.rest, cell, e, move, False, graph, offers)
        end = begin


@njit(**INSIDE)
def _best_after(whole: Completions, graph: RankedGraph, low: int, high: int, e: int, move: int, offers: Offers) -> int:
    """The best cell to which a move leads from event e."""
    way, state, width = graph.way[move], graph.moves.target[move], high - low
    if way == FREE:
        return offers.best[state]
    if way in (EQUAL, ORDER):
        return _answer(whole.rest, e, move, False, graph, offers)
    cut = min(first_cut(e, move, graph.cuts, graph.checks), high)
    if way == RECENT:
        bottom, top = 0, offers.height[move]
        while bottom < top:
            middle = (bottom + top) // 2
            if low + offers.stack[move, middle] % width < cut:
                top = middle
            else:
                bottom = middle + 1
        return offers.stack[move, bottom] if bottom < offers.height[move] else NONE
    begin = min(graph.checks.tie_end[e], high)
    if way == STEP:
        begin = graph.successor[graph.source[move], e]
        if begin < 0 or begin >= high:
            return NONE
        cut = min(graph.checks.tie_end[begin], high)
    found = NONE
    for f in range(begin, cut):
        cell = state * width + f - low
        if not whole.there[cell] or (found != NONE and not whole.rest[cell] < whole.rest[found]):
            continue
        if possible(e, f, move, graph.checks) if way == STEP else pairs_hold(e, f, move, graph.checks):
            found = cell
    return found


# ---------------------------------------------------------------------------------------- offers and answers


@njit(**INSIDE)
def _offer(value: Array, cell: int, e: int, move: int, forwards: bool, graph: RankedGraph, offers: Offers) -> None:
    """Let a cell be found by a move: by those after it (`forwards`) or before it."""
    way = graph.way[move]
    if way == RECENT:
        top = offers.height[move]
        while top > 0 and not value[offers.stack[move, top - 1]] < value[cell]:
            top -= 1
        offers.stack[move, top] = cell
        offers.height[move] = top + 1
        return
    if way != EQUAL and way != ORDER:
        return
    q = graph.lookup[move]
    place = np.int64(graph.sought[q, e] if forwards else graph.placed[q, e])
    if place < 0:
        return
    if way == EQUAL:
        _keep(value, cell, graph.base[q] + place, offers)
        return
    if forwards:  # found by events whose place is less than this: turned around, so that it is a prefix
        place = graph.size[q] - place
    while place < graph.size[q]:
        _keep(value, cell, graph.base[q] + place, offers)
        place |= place + 1


@njit(**INSIDE, forceinline=True)
def _keep(value: Array, cell: int, at: int, offers: Offers) -> None:
    if offers.stamp[at] != offers.sweep[0] or value[cell] < value[offers.answer[at]]:
        offers.answer[at], offers.stamp[at] = cell, offers.sweep[0]


@njit(**INSIDE)
def _answer(value: Array, e: int, move: int, forwards: bool, graph: RankedGraph, offers: Offers) -> int:
    """The best cell that an equality or an order predicate lets a move join with event e."""
    q = graph.lookup[move]
    place = np.int64(graph.placed[q, e] if forwards else graph.sought[q, e])
    if place < 0:
        return NONE
    base, sweep = graph.base[q], offers.sweep[0]
    if graph.way[move] == EQUAL:
        return offers.answer[base + place] if offers.stamp[base + place] == sweep else NONE
    if forwards:
        place = graph.size[q] - place
    found = NONE
    while place > 0:
        at = base + place - 1
        if offers.stamp[at] == sweep:
            cell = offers.answer[at]
            if found == NONE or value[cell] < value[found]:
                found = cell
        place &= place - 1
    return found
