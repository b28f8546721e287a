"""One more event: which extensions of partial signatures are possible in time, and pass the rules decided by now.

What all ways to grow share. Tests on times come first, as plain columns; only what passes them becomes a matrix for the
rules. A NOT on the way drops an extension where an event of it lies in the gap for certain.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.interval_block import IntervalBlock
from trendloom.kernels.contract.pattern_spec import Rule
from trendloom.kernels.matching.automaton import Automaton, Step
from trendloom.kernels.matching.partial_matches import Paths, holds
from trendloom.kernels.uncertain.confidence.in_order import prefix_error, prefix_masses, surely_below
from trendloom.kernels.uncertain.position_events import FAR, PositionEvents, events_by_position
from trendloom.kernels.uncertain.prefixes import InOrder, OrderedPaths, Prefixes, Trail, ordered_paths

# How early a match can end that goes on from an event: what lets the search drop a partial match long before its end.
#
# Idea: backwards through the pattern, an event at a state is followed by one that may come after it, and of those the
# one with the earliest end counts. Conditions and NOTs are left out, so it is a bound: a partial match whose last
# event would come too late for the window, or not at all, is dropped. That is what a selective order of evaluation
# gains, where a rare component comes late in the pattern.
#
# Cost: O(events · log events) per move of the pattern. An event that repeats itself in a Kleene part ends no earlier.


def least_ends(automaton: Automaton, block: IntervalBlock, fitting: tuple[PositionEvents, ...]) -> Array:
    """`ends[state, event]`: the least point of the last event of a match that has bound the event in that state."""
    template = automaton.spec.scopes[0].template
    ends = np.full((len(template.edges), len(block)), FAR, np.int64)
    for state in range(len(template.edges) - 1, -1, -1):  # without loops over several components, states are in order
        mine = fitting[template.position_of[state]]
        if template.accepts[state]:
            ends[state, mine.events] = mine.low
            continue
        key = block.key[mine.events]
        for target in {edge.target for edge in template.edges[state]} - {state}:
            after = fitting[template.position_of[target]]
            found = after.least_after(ends[target, after.events], key, mine.low)
            ends[state, mine.events] = np.minimum(ends[state, mine.events], found)
    return ends


class Extensions:
    """The tests of one pattern over one block. `span`: a match takes less than so many points; None: any time.

    `threshold`: only matches at least so likely are wanted.
    """

    def __init__(
        self, automaton: Automaton, block: IntervalBlock, span: int | None, threshold: Fraction | None = None
    ) -> None:
        self.automaton, self.block, self.span = automaton, block, span
        self.threshold = threshold
        self.fitting = events_by_position(block)
        self.ends = least_ends(automaton, block, self.fitting)
        self.low, self.high = block.first_point, block.last_point
        self.steps = _StepTables(automaton)
        self.growing, self.final = _rules(automaton)

    def slices(self, prefixes: Prefixes, rows: Array, step: Step, until: Array | None) -> tuple[Array, Array]:
        """Per row the slice of the events of a step's position that may come next, until some point."""
        key = prefixes.key[rows]
        limit = None if self.span is None else prefixes.latest[rows] + self.span - 1
        if until is not None:
            limit = until if limit is None else np.minimum(limit, until)
        return self.fitting[step.position].between(key, prefixes.least[rows], limit)

    def possible(self, prefixes: Prefixes, rows: Array, events: Array, step: Step) -> Array:
        """Which extensions times allow, an event not being bound twice."""
        least, latest = self.times(prefixes, rows, events)
        good = least <= self.high[events]
        if self.span is not None:
            good &= np.maximum(least - latest, prefixes.length) < self.span
        if self.steps.repeats[step.number] and prefixes.length:
            good &= ~(prefixes.paths.events[rows] == events[:, None]).any(axis=1)
        return np.flatnonzero(good)

    def viable(self, least: Array, latest: Array, events: Array, targets: Array | int) -> Array:
        """Which extensions can still become matches, as far as types, times and the span decide it."""
        ends = np.maximum(self.ends[targets, events], least)
        return ends < FAR if self.span is None else ends - latest < self.span

    def times(self, prefixes: Prefixes, rows: Array, events: Array) -> tuple[Array, Array]:
        """The least time of the new event, and the greatest of the first one."""
        least = np.maximum(prefixes.least[rows] + 1, self.low[events])
        return least, np.minimum(prefixes.latest[rows], self.high[events] - prefixes.length)

    def extended(self, prefixes: Prefixes, rows: Array, events: Array, steps: Array) -> OrderedPaths:
        """The chosen rows, each with one more event, bound by a step each."""
        before = prefixes.paths
        bound = np.concatenate([before.events[rows], events[:, None]], axis=1)
        ways = np.concatenate([before.steps[rows], steps[:, None].astype(np.int32)], axis=1)
        return ordered_paths(self.automaton, self.block, bound, ways)

    def grown(
        self, prefixes: Prefixes, rows: Array, events: Array, steps: Array, trail: Trail | None = None
    ) -> Prefixes:
        """The extensions as partial signatures."""
        least, latest = self.times(prefixes, rows, events)
        return Prefixes(self.extended(prefixes, rows, events, steps), least, latest, trail)

    def passing(self, paths: Paths, step: Step) -> Array:
        """The rows whose newest event passes every rule that can be decided now."""
        kept = np.arange(len(paths))
        variable = self.automaton.spec.places[step.position].variable
        for rule in self.growing:
            if len(kept) and variable in rule.shape.chosen - rule.shape.whole:
                some = paths if len(kept) == len(paths) else paths.take(kept)
                kept = kept[holds(rule, some, newest=True)]
        return kept

    def unbroken(self, prefixes: Prefixes, rows: Array, events: Array, step: Step) -> Array:
        """The extensions in whose gap no event of a NOT without conditions lies for certain."""
        kept = np.arange(len(rows))
        if not prefixes.length:
            return kept
        for position in self.steps.bare_nots[step.number]:
            mine = rows[kept]
            after = self.high[prefixes.paths.events[mine, -1]]
            before = np.maximum(prefixes.least[mine] + 1, self.low[events[kept]])
            kept = kept[~self.fitting[position].surely_between(prefixes.key[mine], after, before)]
        return kept

    def likely(self, grown: Prefixes, before: Prefixes, rows: Array) -> Prefixes:
        """Without extensions that are in order too rarely: what is added to them, and all else, can only lower that."""
        if self.threshold is None or not len(grown):
            return grown
        known = None if before.in_order is None else before.in_order.take(rows)
        masses, base, sums = prefix_masses(
            self.block, None if known is None else known.masses, None if known is None else known.base,
            np.ascontiguousarray(grown.paths.events[:, -1]),
        )  # fmt: skip
        grown = replace(grown, in_order=InOrder(masses, base))
        below = surely_below(sums, self.threshold, prefix_error(self.block, grown.length))
        return grown.take(np.flatnonzero(~below)) if below.any() else grown

    def complete(self, prefixes: Prefixes) -> Prefixes:
        """Those that may be matches: they can end here and pass the rules that waited for the whole match."""
        accepts = self.steps.accepts[prefixes.states]
        found = prefixes if accepts.all() else prefixes.take(np.flatnonzero(accepts))
        for rule in self.final:
            if len(found):
                found = found.take(np.flatnonzero(holds(rule, found.paths, newest=False)))
        return found


class _StepTables:
    """By the number of a step: whether it can bind an event again, and the NOTs without conditions that it crosses."""

    def __init__(self, automaton: Automaton) -> None:
        spec = automaton.spec
        template = spec.scopes[0].template
        types = [spec.places[position].type for position in template.position_of]
        self.repeats, self.bare_nots = {}, {}
        for step in (one for one in automaton.steps if one.scope == 0):
            before = [s for s in range(len(types)) if step.target in template.reached[s]]
            self.repeats[step.number] = any(types[state] == types[step.target] for state in before)
            self.bare_nots[step.number] = tuple(
                position_of_not(automaton, scope) for scope in scopes_crossed(step) if not spec.scopes[scope].rules
            )
        self.accepts = np.array([bool(ways) for ways in template.accepts], np.bool_)


def scopes_crossed(step: Step) -> tuple[int, ...]:
    """The NOTs on the way of a step, which has one way alone."""
    return tuple(sorted({crossing.scope for crossing in step.ways[0]}))


def position_of_not(automaton: Automaton, scope: int) -> int:
    """The position of the single event of a NOT."""
    return automaton.spec.scopes[scope].template.starts[0].position


def _rules(automaton: Automaton) -> tuple[list[Rule], list[Rule]]:
    """The rules that are decided while a signature grows, and those that wait for the whole.

    Under skip-till-next-match all that can be decided is: an event that fails is no extension, so it forbids nothing.
    """
    spec = automaton.spec
    growing: list[Rule] = []
    final: list[Rule] = []
    for rule in spec.scopes[0].rules:
        decided = bool(rule.shape.chosen) and not rule.shape.whole
        (growing if decided and (rule.early or spec.earliest) else final).append(rule)
    return growing, final
