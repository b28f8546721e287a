"""Matches of a sequence of single events, bound from outside inwards or in whatever order costs least.

A partial match binds some of the components. The next one is sought between the nearest components that are bound
before and after it, or as far as the window reaches: bounds in time pass inwards. Values pass inwards, too: an event
that must equal one that is bound is looked up by value, other conditions are tested as soon as both their events are
bound, and where a value that is still to be sought occurs nowhere within its bounds, nothing more is tried. A NOT is
tested as soon as the events around it and the variables that it uses are bound; each by itself, and one match of it is
enough. So an inner sequence is looked at only where the outer one matches, as in the thesis's top-down evaluation, but
for all bindings of a chunk at once. The pattern itself and a NOT inside it are searched alike; for a NOT the match
around it is bound from the start.

Chunks are explored depth first, so memory is bounded by (components) × (chunk).
Cost: O(extensions tried · log events), and the tests of NOTs. `binding_order` says how many extensions are tried.
See Zhang, "NEEL+: Supporting Predicates for Nested Complex Event Processing", ch. 3 and 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import factorial, prod
from typing import TYPE_CHECKING

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Attribute, Expr
from trendloom.expr.vectors import Vector, is_true
from trendloom.kernels.contract.pattern_spec import Rule
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.lookups import Lookup, bound_events, pieces
from trendloom.kernels.matching.partial_matches import Paths, holds
from trendloom.pattern.template import Crossing

if TYPE_CHECKING:
    from trendloom.kernels.matching.gaps import Gaps


MOST_WEIGHED = 9
"""Components of which all orders are weighed."""
PAIRS = 512
"""Pairs of events of which conditions are measured."""


@dataclass(frozen=True)
class PairCondition:
    """A rule on two events, one or both of them components: what it lets through, and whether it is looked up.

    `ends`: the components; an event that is none is bound from the start.
    """

    ends: frozenset[int]
    measured: float
    looked_up: bool

    @property
    def passes(self) -> float:
        """Never nothing at all: a sample may miss what passes."""
        return max(self.measured, 0.5 / PAIRS)


@dataclass(frozen=True)
class SequenceFigures:
    """`events` of the block, the `share` of them that fits each component, events of a `window`, the conditions."""

    events: int
    shares: tuple[float, ...]
    window: float
    conditions: tuple[PairCondition, ...]

    def bound(self, components: frozenset[int]) -> float:
        """Partial matches that bind these components."""
        size = len(components)
        choices = self.events * self.window ** (size - 1) / factorial(size - 1)
        shares = prod(self.shares[at] for at in components)
        return choices * shares * prod(one.passes for one in self.conditions if one.ends <= components)

    def tried(self, components: frozenset[int], new: int) -> float:
        """Extensions that are tried to bind one more component."""
        mine = [one for one in self.conditions if new in one.ends and one.ends <= components | {new}]
        found = self.bound(components | {new})
        return found / prod(one.passes for one in mine if not one.looked_up) if found else 0.0


def cheapest_order(figures: SequenceFigures) -> tuple[int, ...]:
    """The components in the order that should build the fewest partial matches; equal ones from the first to the last.

    A set of components is bound by about (events · shares · window^(k-1) / (k-1)! · what conditions let through)
    partial matches: as many as there are choices of k events in order within a window. What a condition between two
    components lets through is measured on a sample of pairs. An order costs the sum over its steps of what is tried:
    pairs that pass equalities, which are looked up. All subsets are weighed where there are few components; beyond
    that, the cheapest next one is taken. Cost: O(2^components · components) for few components, else O(components²); a
    sample of pairs for each condition. See Zhang, "NEEL+: Supporting Predicates for Nested Complex Event Processing",
    ch. 5, on costs.
    """
    count = len(figures.shares)
    everything = frozenset(range(count))
    if count > MOST_WEIGHED:
        return _greedy(figures, everything)
    best: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {frozenset(): (0.0, ())}
    for _ in range(count):
        longer: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {}
        for components, (cost, order) in best.items():
            for new in sorted(everything - components):
                found = (cost + figures.tried(components, new), (*order, new))
                key = components | {new}
                if key not in longer or found < longer[key]:
                    longer[key] = found
        best = longer
    return best[everything][1]


def _greedy(figures: SequenceFigures, everything: frozenset[int]) -> tuple[int, ...]:
    """The pair that is bound by the fewest partial matches, then whatever keeps them fewest."""
    order: tuple[int, ...] = min(combinations(sorted(everything), 2), key=lambda pair: figures.bound(frozenset(pair)))
    while len(order) < len(everything):
        left = sorted(everything - set(order))
        order = (*order, min(left, key=lambda new: figures.bound(frozenset(order) | {new})))
    return order


def sampled(events: Array) -> Array:
    """Some of the events, the same in every run."""
    if len(events) <= 1:
        return np.repeat(events, PAIRS)
    return events[np.random.default_rng(len(events)).integers(0, len(events), PAIRS)]


def is_straight(automaton: Automaton, scope: int) -> bool:
    """Whether a match of a scope is one event for each of its components, one after the other."""
    template = automaton.spec.scopes[scope].template
    last = len(template.position_of) - 1
    targets = [[step.target for step in steps] for steps in (automaton.starts[scope], *automaton.moves[scope])]
    chain = targets == [*([state] for state in range(last + 1)), []]
    single = all(len(step.ways) == 1 and not step.may_tie for steps in automaton.moves[scope] for step in steps)
    ends = [state for state, ways in enumerate(template.accepts) if ways]
    names = [automaton.spec.places[position].variable for position in template.position_of]
    return chain and single and ends == [last] and len(set(names)) == len(names)


@dataclass(frozen=True, eq=False)
class _PartialRows:
    """Partial matches: the event of every component, −1 where it is not bound, and the root that a row grew from."""

    events: Array
    root: Array

    def __len__(self) -> int:
        return len(self.root)

    def take(self, rows: Array) -> _PartialRows:
        return _PartialRows(self.events[rows], self.root[rows])


@dataclass(frozen=True, eq=False)
class _Outside:
    """What a search begins with: the roots, the events [low, high) of each, and what the match around it binds.

    `done`: roots of which no more matches are needed; None: all are needed.
    """

    roots: Paths
    low: Array
    high: Array
    outer: dict[str, Array]
    done: Array | None


class Joining:
    """A scope over one block. Its component c is bound at column c of a match."""

    def __init__(self, gaps: Gaps, scope: int, chunk: int, horizon: Array | None = None) -> None:
        self.gaps, self.automaton, self.block = gaps, gaps.automaton, gaps.block
        self.scope, self.chunk, self.horizon = self.automaton.spec.scopes[scope], chunk, horizon
        following = [steps[0] for steps in self.automaton.moves[scope][:-1]]
        self.steps = np.array([self.automaton.starts[scope][0].number, *(step.number for step in following)], np.int32)
        self.positions = self.scope.template.position_of
        self.names = [self.automaton.spec.places[position].variable for position in self.positions]
        self.members = [self.block.members[position] for position in self.positions]
        self.early = [(rule, self._ends(rule)) for rule in self.scope.rules if self._is_early(rule)]
        self.late = [rule for rule in self.scope.rules if not self._is_early(rule)]
        self.nots = [
            (crossing, column, {column - 1, column} | {self.names.index(name) for name in self._uses(crossing)})
            for column, step in enumerate(following, 1)
            for crossing in step.ways[0]
        ]

    def _is_early(self, rule: Rule) -> bool:
        """Whether a rule is about single events, one of each of its variables, and may be decided before the end."""
        plural = {name for name in rule.shape.variables - set(self.names) if name in self.automaton.spec.plural}
        return rule.early and rule.part is None and rule.shape.compares_events and not plural

    def _ends(self, rule: Rule) -> frozenset[int]:
        """The components that a rule reads."""
        return frozenset(self.names.index(name) for name in rule.shape.each if name in self.names)

    def _uses(self, crossing: Crossing) -> frozenset[str]:
        scope = self.automaton.spec.scopes[crossing.scope]
        return scope.outer & set(self.names) if scope.waits else frozenset()

    @cached_property
    def earliest(self) -> Array:
        """For each event the first one that a match which holds it can begin with, as far as the window goes."""
        assert self.horizon is not None
        return np.searchsorted(self.horizon, np.arange(len(self.block)), side="right")

    # -------------------------------------------------------------------------------------------- order

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The components in the order in which they are bound."""
        if any(not len(members) for members in self.members):
            return tuple(range(len(self.names)))
        starts = self.block.key_starts
        reach = (starts[1:][self.block.key] if self.horizon is None else self.horizon) - np.arange(len(self.block))
        shares = tuple(len(members) / len(self.block) for members in self.members)
        conditions = tuple(
            PairCondition(ends, self._passes(rule), rule.looked_up)
            for rule, ends in self.early
            if len(rule.shape.each) == 2
        )
        return cheapest_order(SequenceFigures(len(self.block), shares, float(reach.mean()), conditions))

    def _passes(self, rule: Rule) -> float:
        """What share of pairs pass a rule."""
        found = {name: sampled(self._fitting(name)) for name in sorted(rule.shape.each)}
        return float(self._holds(rule, found).mean()) if all(map(len, found.values())) else 1.0

    def _fitting(self, name: str) -> Array:
        spec = self.automaton.spec
        members = [self.block.members[at] for at in spec.positions(spec.binds(self.scope.number, name), name)]
        return members[0] if len(members) == 1 else np.unique(np.concatenate(members))

    def _holds(self, rule: Rule, events: dict[str, Array]) -> Array:
        """Per row, whether a rule on single events is true."""

        def leaf(expr: Expr) -> Vector:
            assert isinstance(expr, Attribute)
            return self.block.columns[expr.column].take(events[expr.variable])

        return np.broadcast_to(is_true(evaluate(rule.expr, leaf)), len(next(iter(events.values()))))

    # ------------------------------------------------------------------------------------------ joining

    def takes(self, roots: Paths) -> bool:
        """Whether the match around it binds all that rules read."""
        return all(bound_events(roots, name)[0].all() for name in self._outer)

    @cached_property
    def _outer(self) -> frozenset[str]:
        return frozenset(name for rule, _ in self.early for name in rule.shape.each if name not in self.names)

    def matches(self, roots: Paths, low: Array, high: Array, done: Array | None = None) -> Iterator[Paths]:
        """All matches on the events [low, high) of each root, in chunks; leading and trailing NOTs left out.

        `done`: where one match is enough, the caller marks the roots that have one, by their place among the roots.
        """
        if not len(roots) or any(not len(members) for members in self.members):
            return
        around = _Outside(roots, low, high, {name: bound_events(roots, name)[1] for name in self._outer}, done)
        none = np.full((len(roots), len(self.names)), -1, np.int64)
        todo = [self._extended(_PartialRows(none, np.arange(len(roots))), 0, around)]
        while todo:
            rows = next(todo[-1], None)
            if rows is None:
                todo.pop()
            elif len(todo) < len(self.order):
                todo.append(self._extended(rows, len(todo), around))
            else:
                found = self._paths(rows, list(range(len(self.names))), around)
                for rule in self.late:
                    found = found.take(np.flatnonzero(holds(rule, found, newest=False)))
                if len(found):
                    yield found

    def _extended(self, rows: _PartialRows, level: int, around: _Outside) -> Iterator[_PartialRows]:
        """The rows with the component that is bound at this level, in pieces of bounded size."""
        new, bound = self.order[level], self.order[:level]
        low, high = self._bounds(rows, new, bound, around)
        members, begin, end = self._candidates(rows, new, bound, low, high, around)
        count = np.maximum(end - begin, 0)
        if around.done is not None and self._any_will_do(level):
            count = np.minimum(count, 1)
        for picked, events in pieces(members, begin, count, self.chunk // len(self.names)):
            grown = rows.take(picked)
            grown.events[:, new] = events
            if around.done is not None:
                grown = grown.take(np.flatnonzero(~around.done[grown.root]))
            grown = self._kept(grown, level, around)
            if len(grown):
                yield grown

    def _any_will_do(self, level: int) -> bool:
        """Whether every event that can be bound last makes a match, so that one of them shows that there is one."""
        new = self.order[level]
        rules = [rule for rule, ends in self.early if new in ends]
        tested = len(rules) - any(rule.looked_up for rule in rules)
        settled = not tested and not self.late and not self.scope.open_ended
        return settled and level == len(self.order) - 1 and not any(new in needed for _, _, needed in self.nots)

    def _bounds(self, rows: _PartialRows, new: int, bound: tuple[int, ...], around: _Outside) -> tuple[Array, Array]:
        """Between which events a component can be: the nearest ones that are bound, or as far as the window reaches."""
        before = max((at for at in bound if at < new), default=None)
        after = min((at for at in bound if at > new), default=None)
        low, high = around.low[rows.root], around.high[rows.root]
        if before is not None:
            low = self.block.tie_end[rows.events[:, before]]
        elif bound and self.horizon is not None:
            low = np.maximum(low, self.earliest[rows.events[:, max(bound)]])
        if after is not None:
            high = self.block.tie_start[rows.events[:, after]]
        elif bound and self.horizon is not None:
            high = np.minimum(high, self.horizon[rows.events[:, min(bound)]])
        return low, high

    def _candidates(
        self, rows: _PartialRows, new: int, bound: tuple[int, ...], low: Array, high: Array, around: _Outside
    ) -> tuple[Array, Array, Array]:
        """Events that can be bound, and the slice of them for each row."""
        for rule, ends in self.early:
            if rule.looked_up and new in ends and ends - {new} <= set(bound):
                (other,) = rule.shape.each - {self.names[new]}
                table = self._table(rule, new)
                return table.events, *table.between(self._bound(rows, other, around), low, high)
        members = self.members[new]
        return members, np.searchsorted(members, low), np.searchsorted(members, high)

    def _table(self, rule: Rule, sought: int) -> Lookup:
        return self.gaps.lookups.table((self.positions[sought],), rule, self.names[sought])

    def _bound(self, rows: _PartialRows, name: str, around: _Outside) -> Array:
        """The event of a variable, per row: of a component, or of the match around."""
        if name in self.names:
            return rows.events[:, self.names.index(name)]
        return around.outer[name][rows.root]

    # ------------------------------------------------------------------------------------------ filters

    def _kept(self, rows: _PartialRows, level: int, around: _Outside) -> _PartialRows:
        """The rows that pass what the component bound at this level decides."""
        new, bound = self.order[level], set(self.order[: level + 1])
        for rule, ends in self.early:
            decided = new in ends or (not ends and level == 0)
            if decided and ends <= bound and len(rows):
                events = {name: self._bound(rows, name, around) for name in rule.shape.each}
                rows = rows.take(np.flatnonzero(self._holds(rule, events)))
        for rule, ends in self.early:
            if rule.short_cut and new in ends and len(ends - bound) == 1 and len(rows):
                (sought,) = ends - bound
                low, high = self._bounds(rows, sought, self.order[: level + 1], around)
                begin, end = self._table(rule, sought).between(rows.events[:, new], low, high)
                rows = rows.take(np.flatnonzero(end > begin))
        for crossing, column, needed in self.nots:
            if new in needed and needed <= bound and len(rows):
                columns = sorted(bound)
                paths = self._paths(rows, columns, around)
                violated = self.gaps.violated_at(crossing, paths, paths.own + columns.index(column))
                rows = rows.take(np.flatnonzero(~violated))
        return rows

    def _paths(self, rows: _PartialRows, columns: list[int], around: _Outside) -> Paths:
        """The bound components as a partial match, after what the match around them binds."""
        outside = around.roots.take(rows.root)
        steps = np.broadcast_to(self.steps[columns], (len(rows), len(columns)))
        return Paths(
            self.automaton,
            self.block,
            self.scope.number,
            outside.events.shape[1],
            np.concatenate([outside.events, rows.events[:, columns]], axis=1),
            np.concatenate([outside.steps, steps], axis=1),
            around.roots.root[rows.root],
            outside.rounds_around,
        )
