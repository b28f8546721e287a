"""The pattern as the mixed-grained sweep reads it: moves by target, their structures, and *bars* for NOT.

A NOT is a threshold in time (see `ground.gaps`): between events e and f it holds iff the latest start of its matches
that ended before f lies before the events after e. All NOTs of a way must hold, one way is enough; so the bar of a move
is the least over its ways of the greatest over their NOTs, one column: e passes if tie_end[e] > bar[tie_start[f]].
Bars never fall. The same column decides leading NOTs (against the span's begin) and trailing ones (at the span's end).
A NOT that depends on one of the two events has no bar: it is one of the pairs that structures answer (see `EmptyGap`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.aggregate.event_grained.structures import Columns, Move
from trendloom.kernels.aggregate.measures import Addends
from trendloom.kernels.columns.numbers import Limbs, Numbers, Wides
from trendloom.kernels.matching.gaps import Gaps
from trendloom.kernels.matching.tables import OPERATORS, Checks
from trendloom.pattern.template import Crossings

NEVER, FREE = -2, -1
"""Instead of a bar: no match starts (ends) here; there is nothing to check."""


class MoveGraph(NamedTuple):
    """By state: `lead`, `trail`, the moves `into` it. By move: where it comes from, its bar, and how it is answered.

    `scanned` moves try every predecessor by `checks`, and by row `tested` of the truth table if that is not −1. All
    others gather from their `arms`. `bars[b]` is a column over the block's events and its end.

    In a *plain* graph no move is scanned and none has a bar, `checks` and `bars` are None, and the sweep is compiled
    without them: they are half of it.
    """

    position: Array
    lead: Array
    trail: Array
    into_begin: Array
    into: Array
    source: Array
    bar: Array
    scanned: Array
    tested: Array
    arms_begin: Array
    arms: Array
    out_begin: Array
    out: Array
    checks: Any
    bars: Any

    @property
    def plain(self) -> bool:
        return self.bars is None

    def simplified(self) -> MoveGraph:
        """The same graph, plain if it can be."""
        return self if self.scanned.any() or len(self.bars) else self._replace(checks=None, bars=None)


class EventTerms(NamedTuple):
    """What every event adds by itself; see `Addends`."""

    weights: Array
    weight_of: Array
    weighs: Array
    values: Array
    valued: Array


def terms_of(addends: Addends, like: Numbers) -> EventTerms:
    """Weights of inexact systems are doubles: one version to compile for each system."""
    weights = addends.weights if isinstance(like, Wides | Limbs) else addends.weights.astype(np.float64)
    return EventTerms(weights, addends.weight_of, addends.weighs, addends.values, addends.valued)


def graph_of(addends: Addends, moves: list[Move], arms_of_move: list[list[int]], columns: Columns) -> MoveGraph:
    template = addends.spec.pattern_spec.scopes[0].template
    states = len(template.position_of)
    bars = _Bars(addends)
    lead = np.full(states, NEVER)
    for step in addends.automaton.starts[0]:
        lead[step.target] = bars.row(step.ways)
    into = [[i for i, move in enumerate(moves) if move.step.target == state] for state in range(states)]
    source_of_arm = {arm: move.state for move, arms in zip(moves, arms_of_move, strict=True) for arm in arms}
    out = [[arm for arm in sorted(source_of_arm) if source_of_arm[arm] == state] for state in range(states)]
    tested = np.cumsum([bool(move.tests) for move in moves]) - 1
    return MoveGraph(
        np.array(template.position_of, np.int64),
        lead,
        np.array([bars.row(ways) if ways else NEVER for ways in template.accepts], np.int64),
        *_flat(into),
        np.array([move.state for move in moves], np.int64),
        np.array([bars.row(move.step.ways) for move in moves], np.int64),
        np.array([move.arms is None for move in moves], np.bool_),
        np.array([row if move.tests else -1 for row, move in zip(tested.tolist(), moves, strict=True)], np.int64),
        *_flat(arms_of_move),
        *_flat(out),
        _checks(addends, moves, columns),
        bars.table(),
    )


def _checks(addends: Addends, moves: list[Move], columns: Columns) -> Checks:
    """The pairs of every move. NOTs are left to the bars."""
    operators = [OPERATORS.index(pair.operator) for pair in addends.spec.pairs]
    return Checks(
        *_flat([list(move.pairs) for move in moves]),
        *_flat([[] for _ in moves]),
        np.array(operators, np.int64),
        *columns,
        np.zeros((0, 0), np.int64),
        addends.block.tie_start,
        addends.block.tie_end,
    )


class _Bars:
    """The bars of all ways that are asked for, each once."""

    def __init__(self, addends: Addends) -> None:
        block, automaton = addends.block, addends.automaton
        self.events = len(block)
        self.gaps = Gaps(automaton, block)
        self.columns: list[Array] = []
        self.rows: dict[frozenset[frozenset[int]], int] = {}

    def row(self, ways: Iterable[Crossings]) -> int:
        scopes = frozenset(self.gaps.automaton.thresholds_of(way) for way in ways)
        if frozenset() in scopes:
            return FREE
        if scopes not in self.rows:
            self.rows[scopes] = len(self.columns)
            ended = [np.maximum.reduce([self.gaps.threshold(scope) for scope in way]) for way in scopes]
            self.columns.append(np.minimum.reduce(ended))
        return self.rows[scopes]

    def table(self) -> Array:
        return np.stack(self.columns) if self.columns else np.zeros((0, self.events + 1), np.int64)


def _flat(lists: list[list[int]]) -> tuple[Array, Array]:
    return np.cumsum([0, *map(len, lists)]).astype(np.int64), np.array([x for xs in lists for x in xs], np.int64)
