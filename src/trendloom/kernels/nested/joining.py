"""Matches of a sequence of single events, bound from outside inwards or in whatever order costs least.

A partial match binds some of the components. The next one is sought between the nearest components that are bound
before and after it, or as far as the window reaches: bounds in time pass inwards. Values pass inwards, too: an event
that must equal one that is bound is looked up by value, other conditions are tested as soon as both their events are
bound, and where a value that is still to be sought occurs nowhere within its bounds, nothing more is tried. A NOT is
tested as soon as the events around it and the variables that it uses are bound; each by itself, and one match of it is
enough. So an inner sequence is looked at only where the outer one matches, as in the thesis's top-down evaluation, but
for all bindings of a chunk at once.

Chunks are explored depth first, so memory is bounded by (components) × (chunk).
Cost: O(extensions tried · log events), and the tests of NOTs. See `order` for what decides about the extensions.
See Zhang, "NEEL+: Supporting Predicates for Nested Complex Event Processing", ch. 3 and 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Attribute, Expr
from trendloom.expr.vectors import Vector, is_true
from trendloom.kernels.columns.block import Block
from trendloom.kernels.ground.expansion import CHUNK, Expansion
from trendloom.kernels.ground.gaps import Gaps
from trendloom.kernels.ground.lookups import Lookup
from trendloom.kernels.ground.machine import Machine
from trendloom.kernels.ground.matches import Matches
from trendloom.kernels.ground.paths import Paths, holds
from trendloom.kernels.ground.paths_in_windows import in_windows, matches_of
from trendloom.kernels.ground.spec import Detection, Rule
from trendloom.kernels.ground.windows import check_range, horizons
from trendloom.kernels.nested.order import Condition, Figures, cheapest_order, share_of_pairs
from trendloom.pattern.template import Crossing

Array = np.ndarray[Any, Any]


def joined_matches(spec: Detection, block: Block, chunk: int = CHUNK) -> Iterator[Matches]:
    """Chunks of matches; each match once per window that holds it."""
    check_range(block.time, spec.window)
    if not len(block):
        return
    joining = Joining(spec, block, chunk)
    for paths in joining.complete():
        for windowed, start in in_windows(joining.gaps, paths, spec):
            if len(windowed):
                yield matches_of(windowed, start)


class Joining:
    """One sequence over one block. Component c stands at column c of a match; −1: not bound yet."""

    def __init__(self, spec: Detection, block: Block, chunk: int = CHUNK) -> None:
        self.spec, self.block, self.chunk = spec, block, chunk
        self.machine = machine = Machine(spec)
        self.gaps = Gaps(machine, block, lambda gaps, scope: Expansion(machine, block, gaps, scope, chunk))
        template = spec.scopes[0].template
        first, following = machine.starts[0], [steps[0] for steps in machine.moves[0][:-1]]
        self.steps = np.array([first[0].number, *(step.number for step in following)], np.int32)
        self.positions = template.position_of
        self.names = [spec.places[position].variable for position in self.positions]
        self.members = [block.members[position] for position in self.positions]
        rules = spec.scopes[0].rules
        early = [rule for rule in rules if rule.early and rule.shape.variables == rule.shape.each]
        self.late = [rule for rule in rules if rule not in early]
        self.early = [(rule, frozenset(map(self.names.index, rule.shape.each))) for rule in early]
        self.nots = [
            (crossing, column, {column - 1, column} | {self.names.index(name) for name in self._uses(crossing)})
            for column, step in enumerate(following, 1)
            for crossing in step.ways[0]
        ]
        self.horizon = horizons(block, spec.window)
        self.key_end = block.key_starts[1:][block.key]

    def _uses(self, crossing: Crossing) -> frozenset[str]:
        scope = self.spec.scopes[crossing.scope]
        return scope.outer if scope.waits else frozenset()

    @cached_property
    def earliest(self) -> Array:
        """For each event the first one that a match which holds it can begin with."""
        begin = self.block.key_starts[:-1][self.block.key]
        if self.horizon is None:
            return begin
        return np.maximum(begin, np.searchsorted(self.horizon, np.arange(len(self.block)), side="right"))

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The components in the order in which they are bound."""
        if any(not len(members) for members in self.members):
            return tuple(range(len(self.names)))
        reach = (self.key_end if self.horizon is None else self.horizon) - np.arange(len(self.block))
        shares = tuple(len(members) / len(self.block) for members in self.members)
        conditions = tuple(
            Condition(ends, self._passes(rule, ends), rule.looked_up) for rule, ends in self.early if len(ends) == 2
        )
        return cheapest_order(Figures(len(self.block), shares, float(reach.mean()), conditions))

    def _passes(self, rule: Rule, ends: frozenset[int]) -> float:
        events = {self.names[at]: self.members[at] for at in ends}
        return share_of_pairs(rule, events, self.block, self._holds)

    def _holds(self, rule: Rule, events: dict[str, Array]) -> Array:
        """Per row, whether a rule on single events is true."""

        def leaf(expr: Expr) -> Vector:
            assert isinstance(expr, Attribute)
            return self.block.columns[expr.column].take(events[expr.variable])

        rows = len(next(iter(events.values())))
        return np.broadcast_to(is_true(evaluate(rule.expr, leaf)), rows)

    # ------------------------------------------------------------------------------------------ joining

    def complete(self) -> Iterator[Paths]:
        """All matches, leading and trailing NOTs left out."""
        if any(not len(members) for members in self.members):
            return
        todo: list[Iterator[Array]] = [self._first()]
        while todo:
            rows = next(todo[-1], None)
            if rows is None:
                todo.pop()
            elif len(todo) < len(self.order):
                todo.append(self._extended(rows, len(todo)))
            else:
                found = self._paths(rows, range(len(self.names)))
                for rule in self.late:
                    found = found.take(np.flatnonzero(holds(rule, found, newest=False)))
                if len(found):
                    yield found

    def _first(self) -> Iterator[Array]:
        new = self.order[0]
        size = max(1, self.chunk // len(self.names))
        for start in range(0, len(self.members[new]), size):
            events = self.members[new][start : start + size]
            rows = np.full((len(events), len(self.names)), -1, np.int64)
            rows[:, new] = events
            yield from self._kept(rows, 0)

    def _extended(self, rows: Array, level: int) -> Iterator[Array]:
        """The rows with the component that is bound at this level, in pieces of bounded size."""
        new, bound = self.order[level], self.order[:level]
        low, high = self._bounds(rows, new, bound)
        members, begin, end = self._candidates(rows, new, bound, low, high)
        count = np.maximum(end - begin, 0)
        last = np.cumsum(count)
        total = int(last[-1]) if len(last) else 0
        size = max(1, self.chunk // len(self.names))
        for start in range(0, total, size):
            flat = np.arange(start, min(start + size, total))
            picked = np.searchsorted(last, flat, side="right")
            grown = rows[picked]
            grown[:, new] = members[begin[picked] + flat - (last[picked] - count[picked])]
            yield from self._kept(grown, level)

    def _bounds(self, rows: Array, new: int, bound: tuple[int, ...]) -> tuple[Array, Array]:
        """Between which events a component can be: the nearest ones that are bound, or as far as the window reaches."""
        before = max((at for at in bound if at < new), default=None)
        after = min((at for at in bound if at > new), default=None)
        if before is None:
            low = self.earliest[rows[:, max(bound)]]
        else:
            low = self.block.tie_end[rows[:, before]]
        if after is None:
            high = (self.key_end if self.horizon is None else self.horizon)[rows[:, min(bound)]]
        else:
            high = self.block.tie_start[rows[:, after]]
        return low, high

    def _candidates(
        self, rows: Array, new: int, bound: tuple[int, ...], low: Array, high: Array
    ) -> tuple[Array, Array, Array]:
        """Events that can be bound, and the slice of them for each row."""
        for rule, ends in self.early:
            if rule.looked_up and new in ends and ends - {new} <= set(bound):
                (other,) = ends - {new}
                table = self._table(rule, new)
                return table.events, *table.between(rows[:, other], low, high)
        members = self.members[new]
        return members, np.searchsorted(members, low), np.searchsorted(members, high)

    def _table(self, rule: Rule, sought: int) -> Lookup:
        return self.gaps.lookups.table((self.positions[sought],), rule, self.names[sought])

    # ------------------------------------------------------------------------------------------ filters

    def _kept(self, rows: Array, level: int) -> Iterator[Array]:
        """The rows that pass what the component bound at this level decides."""
        new, bound = self.order[level], set(self.order[: level + 1])
        for rule, ends in self.early:
            if new in ends and ends <= bound and len(rows):
                events = {self.names[at]: rows[:, at] for at in ends}
                rows = rows[self._holds(rule, events)]
        for rule, ends in self.early:
            if rule.short_cut and new in ends and len(ends - bound) == 1 and len(rows):
                (sought,) = ends - bound
                low, high = self._bounds(rows, sought, self.order[: level + 1])
                begin, end = self._table(rule, sought).between(rows[:, new], low, high)
                rows = rows[end > begin]
        for crossing, column, needed in self.nots:
            if new in needed and needed <= bound and len(rows):
                columns = sorted(bound)
                paths = self._paths(rows, columns)
                rows = rows[~self.gaps.violated_at(crossing, paths, columns.index(column))]
        if len(rows):
            yield rows

    def _paths(self, rows: Array, columns: Any) -> Paths:
        """The bound components as a partial match."""
        columns = list(columns)
        steps = np.broadcast_to(self.steps[columns], (len(rows), len(columns)))
        return Paths(self.machine, self.block, 0, 0, rows[:, columns], steps, np.arange(len(rows)), {})


def describe_order(spec: Detection, block: Block) -> str:
    """The components in the order in which they are bound over these events, for people to read."""
    joining = Joining(spec, block)
    return ", ".join(joining.names[at] for at in joining.order)
