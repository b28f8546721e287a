"""The first matches, in the order of their events, among those whose values are good enough: how ties are broken.

Where more matches have the last score than places are left, the first of them by the moments of their events, then by
what these hold, are wanted. Matches are built depth first, events in their order, and only where the best way on from a
cell (`sweep_backwards`) still gives a value that is good enough, so that no way is a dead end (sums of doubles are
compared with some slack, because they are added from the other end). Once so many are found as are wanted, a way is
left when its moments are beyond those of the last of them; events of one moment are all tried.

Cost: O(length · events) for each match that is looked at. These are the ones that are wanted, fewer than that many
better ones, and those that differ in events of equal moments.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.kernels.matching.tables import possible
from trendloom.kernels.ranking.graph import FREE, STEP, EventWeights, RankedGraph
from trendloom.kernels.ranking.sweeps import NONE, CellWindow, Completions, is_cell, joined, with_weight


class Standings(NamedTuple):
    """What orders events and states: moments, then contents, then the variables and positions of states."""

    moment: Array
    contents: Array
    state: Array


class TieBounds(NamedTuple):
    """Values from `best` to `worst` (both good enough), with so much `slack` for ways that are not complete.

    `blank`: by row of weights and event whether it has none; where it is not empty, matches with such events are
    wanted. `most`: how many matches are.
    """

    best: Any
    worst: Any
    slack: float
    blank: Array
    most: int


class FirstMatches(NamedTuple):
    """The first matches found so far, one in each row; `place`: how many there are, and which is the last in order."""

    events: Array
    states: Array
    length: Array
    place: Array


COUNT, LAST = range(2)


@njit(nogil=True)
def no_matches(room: int) -> FirstMatches:
    return FirstMatches(
        np.empty((room, 8), np.int64), np.empty((room, 8), np.int64), np.zeros(room, np.int64), np.zeros(2, np.int64)
    )


@njit(**INSIDE)
def _is_before(
    events: Array, states: Array, length: int, other_events: Array, other_states: Array, other: int,
    standings: Standings,
) -> bool:  # fmt: skip
    """Whether a match comes before another."""
    for at in range(min(length, other)):
        one, two = standings.moment[events[at]], standings.moment[other_events[at]]
        if one != two:
            return one < two
    if length != other:
        return length < other
    for at in range(length):
        one, two = standings.contents[events[at]], standings.contents[other_events[at]]
        if one != two:
            return one < two
    for at in range(length):
        one, two = standings.state[states[at]], standings.state[other_states[at]]
        if one != two:
            return one < two
    for at in range(length):
        if events[at] != other_events[at]:
            return events[at] < other_events[at]
    return False


@njit(**INSIDE)
def _keep(
    events: Array, states: Array, length: int, kept: FirstMatches, standings: Standings, most: int
) -> FirstMatches:
    """Keep a match if it is among the first `most`."""
    count = kept.place[COUNT]
    slot = count
    if count == most:
        slot = kept.place[LAST]
        last = kept.length[slot]
        if not _is_before(events, states, length, kept.events[slot], kept.states[slot], last, standings):
            return kept
    rows, columns = kept.events.shape
    if slot >= rows or length > columns:
        rows, columns = max(rows, min(2 * slot + 1, most)), max(columns, 2 * length)
        more = FirstMatches(
            np.empty((rows, columns), np.int64), np.empty((rows, columns), np.int64), np.zeros(rows, np.int64),
            kept.place,
        )  # fmt: skip
        for row in range(count):
            for at in range(kept.length[row]):
                more.events[row, at], more.states[row, at] = kept.events[row, at], kept.states[row, at]
            more.length[row] = kept.length[row]
        kept = more
    for at in range(length):
        kept.events[slot, at], kept.states[slot, at] = events[at], states[at]
    kept.length[slot] = length
    if slot == count:
        kept.place[COUNT] = count + 1
    if kept.place[COUNT] == most:
        last = 0
        for row in range(1, most):
            if _is_before(
                kept.events[last], kept.states[last], kept.length[last], kept.events[row], kept.states[row],
                kept.length[row], standings,
            ):  # fmt: skip
                last = row
        kept.place[LAST] = last
    return kept


@njit(**INSIDE)
def _beyond(events: Array, depth: int, f: int, kept: FirstMatches, standings: Standings, most: int) -> int:
    """0: a way with f at this depth may come before the last match kept; 1: it does not; 2: nor with a later event."""
    if kept.place[COUNT] < most:
        return 0
    last = kept.place[LAST]
    for at in range(depth):
        if at >= kept.length[last]:
            return 2
        one, two = standings.moment[events[at]], standings.moment[kept.events[last, at]]
        if one != two:
            return 0 if one < two else 2
    if depth >= kept.length[last]:
        return 2
    return 2 if standings.moment[f] > standings.moment[kept.events[last, depth]] else 0


@njit(**INSIDE)
def _leads(e: int, f: int, move: int, graph: RankedGraph) -> bool:
    """Whether a move leads from event e to event f."""
    if graph.way[move] == FREE:
        return True
    if graph.way[move] == STEP:
        first = graph.successor[graph.source[move], e]
        if first < 0 or f < first or f >= graph.checks.tie_end[first]:
            return False
    return possible(e, f, move, graph.checks)


@njit(nogil=True)
def keep_first(
    kept: FirstMatches, graph: RankedGraph, weights: EventWeights, after: Completions, window: CellWindow,
    wanted: TieBounds, standings: Standings,
) -> FirstMatches:  # fmt: skip
    """Keep the first wanted matches of a window, besides those that are kept already."""
    low, high, first = window
    width, states, most = high - low, len(graph.position), wanted.most
    length = width + 1
    events, path_states = np.empty(length, np.int64), np.empty(length, np.int64)
    values = np.empty(length, after.rest.dtype)
    blanks = np.zeros(length + 1, np.int64)
    next_event, next_move = np.empty(length, np.int64), np.empty(length, np.int64)
    for start in range(low, high) if first < 0 else range(first, first + 1):
        for start_state in range(states):
            if not (graph.starts[start_state] and is_cell(start_state, start, graph, weights)):
                continue
            if _beyond(events, 0, start, kept, standings, most) != 0:
                return kept
            depth, state, f = 0, start_state, start
            value = weights.unit[0]
            while True:
                # a way on to event f in a state, from a value; or none (state < 0)
                if state >= 0:
                    cell = state * width + f - low
                    value = with_weight(value, state, f, weights)
                    if after.there[cell] and _good_enough(joined(value, after.rest[cell], weights), wanted):
                        events[depth], path_states[depth], values[depth] = f, state, value
                        row = weights.row[state]
                        blank = 1 if len(wanted.blank) > 0 and row >= 0 and wanted.blank[row, f] else 0
                        blanks[depth + 1] = blanks[depth] + blank
                        next_event[depth] = graph.checks.tie_end[f]
                        next_move[depth] = graph.moves.begin[state]
                        depth += 1
                        good = wanted.best <= value <= wanted.worst
                        if graph.accepts[state] and good and (len(wanted.blank) == 0 or blanks[depth] > 0):
                            kept = _keep(events, path_states, depth, kept, standings, most)
                if depth == 0:
                    break
                top = depth - 1
                e, from_state = events[top], path_states[top]
                state, value = NONE, values[top]
                at, move = next_event[top], next_move[top]
                while at < high and state < 0:
                    fresh = move == graph.moves.begin[from_state]
                    if fresh and _beyond(events, depth, at, kept, standings, most) == 2:
                        at = high
                        break
                    while move < graph.moves.begin[from_state + 1] and state < 0:
                        target = graph.moves.target[move]
                        if after.there[target * width + at - low] and _leads(e, at, move, graph):
                            state, f = target, at
                        move += 1
                    if move == graph.moves.begin[from_state + 1]:
                        at, move = at + 1, graph.moves.begin[from_state]
                next_event[top], next_move[top] = at, move
                if state < 0:
                    depth = top
    return kept


@njit(**INSIDE, forceinline=True)
def _good_enough(value: Any, wanted: TieBounds) -> bool:
    """Whether a way can give a value that is wanted; integers, which have no slack, do not become doubles."""
    return value <= wanted.worst + wanted.slack if wanted.slack > 0 else value <= wanted.worst
