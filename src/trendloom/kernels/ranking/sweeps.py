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
    LEAST,
    ORDER,
    PRODUCT,
    RECENT,
    STEP,
    SUM,
    EventWeights,
    RankedGraph,
)

NONE = -1
START = -2
"""What is before the first cell of a path."""


class Ways(NamedTuple):
    """By cell: the best value of a path there, and the cell before it (NONE: there is no path), and by which move."""

    value: Array
    before: Array
    move: Array


class Offers(NamedTuple):
    """What cells have been found so far, in the form in which moves ask for the best: see `graph`.

    An answer counts only where its `stamp` is that of the window.
    """

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
        np.empty(cells, np.int64), np.full(cells, -1, np.int64), np.empty((moves, stacked), np.int64),
        np.zeros(moves, np.int64), np.full(states, NONE, np.int64),
    )  # fmt: skip


@njit(**INSIDE, forceinline=True)
def folded(before: Any, weight: Any, operator: int) -> Any:
    """A fold with one more weight."""
    if operator == SUM:
        return before + weight
    if operator == PRODUCT:
        return before * weight
    if operator == LEAST:
        return min(before, weight)
    return max(before, weight)


@njit(**INSIDE, forceinline=True)
def with_weight(before: Any, state: int, e: int, weights: EventWeights) -> Any:
    """The value of a path with event e in a state."""
    row = weights.row[state]
    return before if row < 0 else folded(before, weights.value[row, e], weights.operator)


@njit(**INSIDE, forceinline=True)
def is_cell(state: int, e: int, graph: RankedGraph, weights: EventWeights) -> bool:
    """Whether event e may stand in a state and has a weight there if one is asked for."""
    if not fits_at(graph.fits[e], graph.position[state]):
        return False
    row = weights.row[state]
    return row < 0 or not weights.unknown[row, e]


@njit(nogil=True)
def sweep_forwards(
    ways: Ways, graph: RankedGraph, weights: EventWeights, low: int, high: int, first: int, offers: Offers, stamp: int
) -> None:
    """The best path to every cell of the events from `low` up to `high`; `first`: the one event where paths start."""
    width, states, sign = high - low, len(graph.position), weights.sign
    ways.before[: states * width] = NONE
    offers.best[:] = NONE
    offers.height[:] = 0
    begin = low
    while begin < high:
        end = min(graph.checks.tie_end[begin], high)
        for e in range(begin, end):
            for state in range(states):
                if not is_cell(state, e, graph, weights):
                    continue
                cell = state * width + e - low
                if graph.starts[state] and (first < 0 or e == first):
                    value = with_weight(weights.unit[0], state, e, weights)
                    if ways.before[cell] == NONE or value * sign < ways.value[cell] * sign:
                        ways.value[cell], ways.before[cell], ways.move[cell] = value, START, NONE
                for at in range(graph.into_begin[state], graph.into_begin[state + 1]):
                    move = graph.into[at]
                    if graph.way[move] == STEP:
                        continue
                    before = best_before(ways, graph, low, width, begin, e, move, offers, stamp, sign)
                    if before != NONE:
                        value = with_weight(ways.value[before], state, e, weights)
                        if ways.before[cell] == NONE or value * sign < ways.value[cell] * sign:
                            ways.value[cell], ways.before[cell], ways.move[cell] = value, before, move
        for e in range(begin, end):
            for state in range(states):
                cell = state * width + e - low
                if ways.before[cell] == NONE:
                    continue
                best = offers.best[state]
                if best == NONE or ways.value[cell] * sign < ways.value[best] * sign:
                    offers.best[state] = cell
                for move in range(graph.moves.begin[state], graph.moves.begin[state + 1]):
                    if graph.way[move] == STEP:
                        _push(ways, graph, weights, low, high, cell, e, move)
                    elif graph.way[move] != FREE:
                        _offer(ways.value, cell, e, move, True, graph, offers, stamp, sign)
        begin = end


@njit(**INSIDE)
def best_before(
    ways: Ways, graph: RankedGraph, low: int, width: int, begin: int, f: int, move: int, offers: Offers, stamp: int,
    sign: int,
) -> int:  # fmt: skip
    """The best cell from which a move leads to event f."""
    way = graph.way[move]
    if way == FREE:
        return offers.best[graph.source[move]]
    if way in (EQUAL, ORDER):
        return _answer(ways.value, f, move, True, graph, offers, stamp, sign)
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
    for e in range(begin - 1, low - 1, -1):
        if first_cut(e, move, graph.cuts, graph.checks) <= f:
            break
        cell = row + e - low
        if ways.before[cell] == NONE or (found != NONE and not ways.value[cell] * sign < ways.value[found] * sign):
            continue
        if pairs_hold(e, f, move, graph.checks):
            found = cell
    return found


@njit(**INSIDE)
def _push(
    ways: Ways, graph: RankedGraph, weights: EventWeights, low: int, high: int, cell: int, e: int, move: int
) -> None:
    """Let a path go on from a cell to its successors."""
    width = high - low
    f = graph.successor[graph.source[move], e]
    if f < 0 or f >= high:
        return
    state = graph.moves.target[move]
    for at in range(f, min(graph.checks.tie_end[f], high)):
        if is_cell(state, at, graph, weights) and possible(e, at, move, graph.checks):
            target = state * width + at - low
            value = with_weight(ways.value[cell], state, at, weights)
            if ways.before[target] == NONE or value * weights.sign < ways.value[target] * weights.sign:
                ways.value[target], ways.before[target], ways.move[target] = value, cell, move


# ------------------------------------------------------------------------------------------------ backwards


@njit(nogil=True)
def sweep_backwards(
    rest: Array,
    there: Array,
    graph: RankedGraph,
    weights: EventWeights,
    low: int,
    high: int,
    offers: Offers,
    stamp: int,
) -> None:
    """By cell whether a match can be completed from it (`there`), and the best fold of the weights after it."""
    width, states, sign = high - low, len(graph.position), weights.sign
    there[: states * width] = False
    whole = np.empty(states * width, rest.dtype)  # with the weight of the cell
    offers.best[:] = NONE
    offers.height[:] = 0
    end = high
    while end > low:
        begin = max(graph.checks.tie_start[end - 1], low)
        for e in range(begin, end):
            for state in range(states):
                if not is_cell(state, e, graph, weights):
                    continue
                cell = state * width + e - low
                if graph.accepts[state]:
                    there[cell], rest[cell] = True, weights.unit[0]
                for move in range(graph.moves.begin[state], graph.moves.begin[state + 1]):
                    after = _best_after(whole, there, graph, low, width, high, end, e, move, offers, stamp, sign)
                    if after != NONE and (not there[cell] or whole[after] * sign < rest[cell] * sign):
                        there[cell], rest[cell] = True, whole[after]
        for e in range(end - 1, begin - 1, -1):
            for state in range(states):
                cell = state * width + e - low
                if not there[cell]:
                    continue
                whole[cell] = with_weight(rest[cell], state, e, weights)
                best = offers.best[state]
                if best == NONE or whole[cell] * sign < whole[best] * sign:
                    offers.best[state] = cell
                for at in range(graph.into_begin[state], graph.into_begin[state + 1]):
                    move = graph.into[at]
                    if graph.way[move] != FREE and graph.way[move] != STEP:
                        _offer(whole, cell, e, move, False, graph, offers, stamp, sign)
        end = begin


@njit(**INSIDE)
def _best_after(
    whole: Array, there: Array, graph: RankedGraph, low: int, width: int, high: int, end: int, e: int, move: int,
    offers: Offers, stamp: int, sign: int,
) -> int:  # fmt: skip
    """The best cell to which a move leads from event e."""
    way, state = graph.way[move], graph.moves.target[move]
    if way == FREE:
        return offers.best[state]
    if way in (EQUAL, ORDER):
        return _answer(whole, e, move, False, graph, offers, stamp, sign)
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
    begin = end
    if way == STEP:
        begin = graph.successor[graph.source[move], e]
        if begin < 0 or begin >= high:
            return NONE
        cut = min(graph.checks.tie_end[begin], high)
    found = NONE
    for f in range(begin, cut):
        cell = state * width + f - low
        if not there[cell] or (found != NONE and not whole[cell] * sign < whole[found] * sign):
            continue
        if possible(e, f, move, graph.checks) if way == STEP else pairs_hold(e, f, move, graph.checks):
            found = cell
    return found


# ---------------------------------------------------------------------------------------- offers and answers


@njit(**INSIDE)
def _offer(
    value: Array, cell: int, e: int, move: int, forwards: bool, graph: RankedGraph, offers: Offers, stamp: int,
    sign: int,
) -> None:  # fmt: skip
    """Let a cell be found by a move: by those after it (`forwards`) or before it."""
    way = graph.way[move]
    if way == RECENT:
        top = offers.height[move]
        while top > 0 and not value[offers.stack[move, top - 1]] * sign < value[cell] * sign:
            top -= 1
        offers.stack[move, top] = cell
        offers.height[move] = top + 1
        return
    if way != EQUAL and way != ORDER:
        return
    q = graph.question[move]
    place = np.int64(graph.ask[q, e] if forwards else graph.offer[q, e])
    if place < 0:
        return
    if way == EQUAL:
        _keep(value, cell, graph.base[q] + place, offers, stamp, sign)
        return
    if forwards:  # found by events whose place is less than this: turned around, so that it is a prefix
        place = graph.size[q] - place
    while place < graph.size[q]:
        _keep(value, cell, graph.base[q] + place, offers, stamp, sign)
        place |= place + 1


@njit(**INSIDE, forceinline=True)
def _keep(value: Array, cell: int, at: int, offers: Offers, stamp: int, sign: int) -> None:
    if offers.stamp[at] != stamp or value[cell] * sign < value[offers.answer[at]] * sign:
        offers.answer[at], offers.stamp[at] = cell, stamp


@njit(**INSIDE)
def _answer(
    value: Array, e: int, move: int, forwards: bool, graph: RankedGraph, offers: Offers, stamp: int, sign: int
) -> int:
    """The best cell that an equality or an order predicate lets a move join with event e."""
    q = graph.question[move]
    place = np.int64(graph.offer[q, e] if forwards else graph.ask[q, e])
    if place < 0:
        return NONE
    base = graph.base[q]
    if graph.way[move] == EQUAL:
        return offers.answer[base + place] if offers.stamp[base + place] == stamp else NONE
    if forwards:
        place = graph.size[q] - place
    found = NONE
    while place > 0:
        at = base + place - 1
        if offers.stamp[at] == stamp:
            cell = offers.answer[at]
            if found == NONE or value[cell] * sign < value[found] * sign:
                found = cell
        place &= place - 1
    return found
