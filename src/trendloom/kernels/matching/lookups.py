"""Tables of events by their values, in which equalities are looked up.

`f(new) = g(bound)` need not be tried on every event of a position: the events sorted by value and place give those of
one value between two places by bisection. The same table gives the next event of a value; where there is none, nothing
that needs one can become a match. That is the thesis's cache of an inner attribute's values; its insert, update and
purge are bisections here, because a block holds all events of its windows.

Cost: O(members · log members) for a table, O(log members) for each lookup.
See Zhang, "NEEL+: Supporting Predicates for Nested Complex Event Processing", ch. 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.nodes import Comparison, Expr, variables
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.comparisons import sides_of
from trendloom.kernels.contract.pattern_spec import Rule
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.partial_matches import Paths

NOWHERE = -1


@dataclass(frozen=True, eq=False)
class Lookup:
    """`events` sorted by value and place; `places` are the same as numbers, value · stride + event.

    `sought[e]`: the number of the value that equals that of event e, NOWHERE where no event has it.
    """

    events: Array
    places: Array
    sought: Array
    stride: int

    def between(self, given: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """The slices of `events` that equal the given events and have indices in [low, high)."""
        value = self.sought[given]
        base = value * self.stride
        begin = np.searchsorted(self.places, base + low)
        end = np.searchsorted(self.places, base + np.maximum(low, high))
        nothing = value == NOWHERE
        begin[nothing] = end[nothing] = 0
        return begin, end

    def soonest(self, given: Array, low: Array, never: int) -> Array:
        """The first event from `low` on that equals the given one; `never` where there is none."""
        value = self.sought[given]
        begin = np.searchsorted(self.places, value * self.stride + low)
        there = (begin < len(self.places)) & (value != NOWHERE)
        found = np.minimum(begin, max(0, len(self.places) - 1))
        there[there] = self.places[found[there]] // self.stride == value[there]
        return np.where(there, self.events[found] if len(self.events) else never, never)


def lookup_of(mine: Expr, theirs: Expr, members: Array, block: Block) -> Lookup:
    """The members by the value of `mine`, to be compared with `theirs` of other events. NULL equals nothing."""
    own, other = sides_of(mine, theirs, block)
    members = members if own.valid is None else members[own.valid[members]]
    left, right = own.values, other.values
    values, rank = np.unique(left[members], return_inverse=True)
    order = np.lexsort((members, rank))
    stride = len(block) + 1
    at = np.searchsorted(values, right)
    fits = at < len(values) if other.valid is None else other.valid & (at < len(values))
    fits[fits] = values[at[fits]] == right[fits]
    return Lookup(
        members[order], rank.reshape(-1)[order] * stride + members[order], np.where(fits, at, NOWHERE), stride
    )


def mine_and_theirs(rule: Rule, variable: str) -> tuple[Expr, Expr, str]:
    """The side of an equality that reads the variable, the other side, and the variable of that one."""
    expr = rule.expr
    assert isinstance(expr, Comparison)
    mine, theirs = (expr.left, expr.right) if variable in variables(expr.left) else (expr.right, expr.left)
    (other,) = rule.shape.each - {variable}
    return mine, theirs, other


class Lookups:
    """The tables of one block, each built on first use."""

    def __init__(self, automaton: Automaton, block: Block) -> None:
        self.automaton, self.block = automaton, block
        self._tables: dict[tuple[tuple[int, ...], Rule, str], Lookup] = {}

    def table(self, positions: tuple[int, ...], rule: Rule, variable: str) -> Lookup:
        """The events that fit some of the positions of a variable, by the value of its side of an equality."""
        key = (positions, rule, variable)
        if key not in self._tables:
            mine, theirs, _ = mine_and_theirs(rule, variable)
            members = [self.block.members[at] for at in positions]
            fitting = members[0] if len(members) == 1 else np.unique(np.concatenate(members))
            self._tables[key] = lookup_of(mine, theirs, fitting, self.block)
        return self._tables[key]

    def possible(self, roots: Paths, low: Array, high: Array) -> Array:
        """Per root, whether every value that a match in [low, high) needs is there: a miss means there is no match."""
        found = np.ones(len(roots), np.bool_)
        spec = self.automaton.spec
        for rule in spec.scopes[roots.scope].rules:
            if not rule.short_cut:
                continue
            (inner,) = (name for name in rule.shape.each if spec.binds(roots.scope, name) == roots.scope)
            (outer,) = rule.shape.each - {inner}
            bound, events = bound_events(roots, outer)
            if bound.all():
                begin, end = self.table(spec.positions(roots.scope, inner), rule, inner).between(events, low, high)
                found &= end > begin
        return found

    def delay(self, ends: Array, never: int) -> None:
        """Raise `ends` (see `reachability`) to the first event of a value that a match needs.

        Of a rule with a short cut, the value of the event that is bound first is looked up among the others.
        """
        spec = self.automaton.spec
        for rule in spec.scopes[0].rules:
            if not rule.short_cut:
                continue
            positions = sorted((spec.positions(0, name), name) for name in rule.shape.each)
            (earlier, _), (later, name) = positions
            table = self.table(later, rule, name)
            for state, position in enumerate(spec.scopes[0].template.position_of):
                if position in earlier:
                    events = self.block.members[position]
                    soonest = table.soonest(events, self.block.tie_end[events], never)
                    ends[state, events] = np.maximum(ends[state, events], soonest)


def bound_events(paths: Paths, variable: str) -> tuple[Array, Array]:
    """Per row, whether a variable that binds one event at most is bound, and that event."""
    binding = paths.binding(variable)
    column = binding.argmax(axis=1) if binding.shape[1] else np.zeros(len(paths), np.int64)
    if not binding.shape[1]:
        return np.zeros(len(paths), np.bool_), column
    rows = np.arange(len(paths))
    return binding[rows, column], paths.events[rows, column]


def pieces(members: Array, begin: Array, count: Array, size: int) -> Iterator[tuple[Array, Array]]:
    """Row r goes with the `count[r]` members from `begin[r]` on; at most `size` pairs (and at least one) in a piece."""
    last = np.cumsum(count)
    total = int(last[-1]) if len(last) else 0
    size = max(1, size)
    for start in range(0, total, size):
        flat = np.arange(start, min(start + size, total))
        rows = np.searchsorted(last, flat, side="right")
        yield rows, members[begin[rows] + flat - (last[rows] - count[rows])]
