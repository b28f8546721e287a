"""What decides where runs start, go on and end, and what they gain: tables for compiled code, by state and event.

Cost: O(events) for each condition on two events and each NOT.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.kernels.aggregate.measures import Addends
from trendloom.kernels.matching.expansion import Expansion
from trendloom.kernels.matching.gaps import Gaps
from trendloom.kernels.matching.successors import NONE
from trendloom.kernels.matching.tables import Checks, Moves, checks_of, moves_of
from trendloom.pattern.template import Crossings

Array = np.ndarray[Any, Any]


class Gains(NamedTuple):
    """What a run gains by binding an event in a state: see `Addends`, by state instead of position."""

    weights: Array
    weight_of: Array
    weighs: Array  # [measure, state]
    values: Array
    valued: Array  # [extreme, state]


class Bounds(NamedTuple):
    """The NOTs before a match (`start_*`, by start) and after it (`end_*`, by state), each as a list of ways.

    The ways of item i are `begin[i]` to `begin[i + 1]`, the NOTs of way w `nots_begin[w]` to `nots_begin[w + 1]`: rows
    of `thresholds`. One way without a violated NOT is enough; no way at all: a match cannot begin or end there.
    """

    start_position: Array
    start_state: Array
    start_begin: Array
    start_nots_begin: Array
    start_nots: Array
    end_begin: Array
    end_nots_begin: Array
    end_nots: Array
    thresholds: Array
    start_free: Array  # whether there is a way without NOTs
    end_free: Array
    tie_start: Array
    tie_end: Array


class RunRules(NamedTuple):
    """All that does not depend on the way runs are followed. `position_of`: by state."""

    position_of: Array
    start_of: Array  # by state: the start that leads there, or NONE
    moves: Moves
    checks: Checks
    gains: Gains
    bounds: Bounds


def rules_of(addends: Addends) -> RunRules:
    machine, pairs, bounds = addends.machine, addends.spec.pairs, _bounds_of(addends)
    position_of = np.array(machine.spec.scopes[0].template.position_of, np.int64)
    start_of = np.full(len(position_of), NONE, np.int64)
    start_of[bounds.start_state] = np.arange(len(bounds.start_state))
    moves, checks = moves_of(machine, pairs), checks_of(machine, pairs, addends.block)
    return RunRules(position_of, start_of, moves, checks, _gains_of(addends), bounds)


def _gains_of(addends: Addends) -> Gains:
    position_of = list(addends.spec.detection.scopes[0].template.position_of)
    weighs = np.ascontiguousarray(addends.weighs[:, position_of])
    valued = np.ascontiguousarray(addends.valued[:, position_of])
    return Gains(addends.weights, addends.weight_of, weighs, addends.values, valued)


def _bounds_of(addends: Addends) -> Bounds:
    machine, block = addends.machine, addends.block
    gaps = Gaps(machine, block, lambda gaps, scope: Expansion(machine, block, gaps, scope))
    starts = machine.starts[0]
    before = [step.ways for step in starts]
    after = list(machine.spec.scopes[0].template.accepts)
    crossed = sorted({crossing.scope for ways in (*before, *after) for way in ways for crossing in way})
    thresholds = [gaps.threshold(scope) for scope in crossed]
    return Bounds(
        np.array([step.position for step in starts], np.int64),
        np.array([step.target for step in starts], np.int64),
        *_flat(before, crossed),
        *_flat(after, crossed),
        np.stack(thresholds) if thresholds else np.zeros((0, len(block) + 1), np.int64),
        np.array([frozenset() in ways for ways in before], np.bool_),
        np.array([frozenset() in ways for ways in after], np.bool_),
        block.tie_start,
        block.tie_end,
    )


def _flat(items: list[tuple[Crossings, ...]], crossed: list[int]) -> tuple[Array, Array, Array]:
    ways = [way for item in items for way in item]
    nots = [crossed.index(crossing.scope) for way in ways for crossing in way]
    begin = np.cumsum([0, *(len(item) for item in items)])
    nots_begin = np.cumsum([0, *(len(way) for way in ways)])
    return begin.astype(np.int64), nots_begin.astype(np.int64), np.array(nots, np.int64)
