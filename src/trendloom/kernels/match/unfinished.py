"""Which events runs still need: those of runs that an event yet to come could extend.

Under skip-till-next-match and contiguous a run that has found its next event is done with all others, so of the events
of a long window only few matter for what comes. A run is *waiting* where it may go on and has found no successor yet
(contiguous: and nothing came after it).

What is kept must be closed: an event that is kept could start a run of its own, and must then find the successors that
it had, or it would find wrong ones. So the successors of all that is kept are kept.
Cost: O(events · moves), one sweep backwards for what waits, one forwards for what is kept. The pattern has no NOT.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.match.next import Runs
from trendloom.kernels.matching.successors import NONE, Successors
from trendloom.kernels.matching.tables import Checks, Moves, fits_at, possible

Array = np.ndarray[Any, Any]


def unfinished(runs: Runs, open_: Array) -> Array:
    """For every event whether a run that may go on needs it. `open_`: whether runs that start there may go on."""
    template = runs.machine.spec.scopes[0].template
    states = np.array(template.position_of, np.int64)
    starts = runs.machine.starts[0]
    position = np.array([step.position for step in starts], np.int64)
    target = np.array([step.target for step in starts], np.int64)
    waiting = np.zeros((len(states), len(runs.fits)), np.bool_)
    adjacent = runs.machine.spec.adjacent
    _wait(waiting, runs.successors, states, runs.fits, runs.key_end, adjacent, runs.moves, runs.checks)
    kept = np.zeros(len(runs.fits), np.bool_)
    _keep(kept, waiting, open_, position, target, runs.successors, runs.fits, runs.moves, runs.checks)
    return kept


@njit(nogil=True)
def _wait(
    waiting: Array, successors: Successors, states: Array, fits: Array, key_end: Array, adjacent: bool, moves: Moves,
    checks: Checks,
) -> None:  # fmt: skip
    """`waiting[s, e]`: a run that stands at e in state s waits for an event, or some run that it becomes does."""
    for e in range(len(fits) - 1, -1, -1):
        for state in range(len(states)):
            if not fits_at(fits[e], states[state]) or moves.begin[state] == moves.begin[state + 1]:
                continue
            first = successors.event[state, e]
            if first == NONE:
                waiting[state, e] = not adjacent or checks.tie_end[e] == key_end[e]
                continue
            for f in range(first, checks.tie_end[first]):
                for move in range(moves.begin[state], moves.begin[state + 1]):
                    if (
                        waiting[moves.target[move], f]
                        and fits_at(fits[f], moves.position[move])
                        and (moves.free[move] or possible(e, f, move, checks))
                    ):
                        waiting[state, e] = True


@njit(nogil=True)
def _keep(
    kept: Array, waiting: Array, open_: Array, position: Array, target: Array, successors: Successors, fits: Array,
    moves: Moves, checks: Checks,
) -> None:  # fmt: skip
    """Events of waiting runs, and the successors of all that is kept."""
    reached = np.zeros(waiting.shape, np.bool_)
    for e in range(len(fits)):
        for state in range(len(reached)):
            kept[e] |= reached[state, e]
        for start in range(len(position)):
            if open_[e] and fits_at(fits[e], position[start]) and waiting[target[start], e]:
                kept[e] = True
        if not kept[e]:
            continue
        for start in range(len(position)):
            if fits_at(fits[e], position[start]):
                reached[target[start], e] = True
        for state in range(len(reached)):
            if not reached[state, e] or moves.begin[state] == moves.begin[state + 1]:
                continue
            first = successors.event[state, e]
            if first == NONE:
                continue
            for f in range(first, checks.tie_end[first]):
                for move in range(moves.begin[state], moves.begin[state + 1]):
                    if fits_at(fits[f], moves.position[move]) and (moves.free[move] or possible(e, f, move, checks)):
                        reached[moves.target[move], f] = True
