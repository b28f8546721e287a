"""NOT between two events: is there a match of it in the gap?

A NOT that depends on nothing outside is a *threshold*: of all its matches that have ended before f, only the latest
start matters; the gap (e, f) is violated iff that start lies after e. The threshold of every event is one column, so
the test is one comparison. A NOT that uses nothing of the enclosing match but one event next to it is one comparison,
too (see `borders`). A NOT that uses more of it (correlated), or has leading or trailing NOTs of its own, is tested gap
by gap: its matches are enumerated inside the gap with the outer match as context, until one is found.

Cost: thresholds O(1) per test after one pass; otherwise the cost of finding the first match in each gap.
See docs/semantics.md on NOT, and Zhang, "NEEL+: Supporting Predicates for Nested Complex Event Processing".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.pattern_spec import NegationGuard, Rule, Scope
from trendloom.kernels.matching.automaton import Automaton, Step
from trendloom.kernels.matching.expansion import CHUNK, Expansion
from trendloom.kernels.matching.gap_thresholds import borders, latest_starts
from trendloom.kernels.matching.join_order import Joining, is_straight
from trendloom.kernels.matching.lookups import Lookups
from trendloom.kernels.matching.partial_matches import Paths, ready, without_context
from trendloom.pattern.template import Crossing, Crossings

MOST_TRIED = 1 << 18
"""Most entries (rows × length) of a matrix of partial matches of a NOT."""


class Gaps:
    """The NOTs of a pattern over one block."""

    def __init__(self, automaton: Automaton, block: Block, chunk: int = CHUNK) -> None:
        self.automaton, self.block, self.chunk = automaton, block, chunk
        self.spec = automaton.spec
        self.lookups = Lookups(automaton, block)
        self._thresholds: dict[int, Array] = {}
        self._joined: dict[int, Joining | None] = {}
        self._borders: dict[NegationGuard, tuple[Array, Array]] = {}
        self._beside = {scope.number: automaton.beside(scope.number) for scope in self.spec.scopes}
        self.waiting = [scope for scope in self.spec.scopes if scope.number and scope.waits]

    # ------------------------------------------------------------------------------- while a match grows

    def close(self, paths: Paths, step: Step) -> Paths:
        """Rows whose newest event closes its gap without violating a NOT that can be decided by itself."""
        if not any(step.ways):
            return paths
        passed = np.zeros(len(paths), np.bool_)
        column = paths.events.shape[1] - 1
        for way in step.ways:
            undecided = np.flatnonzero(~passed)
            some = paths.take(undecided)
            passed[undecided] = self._way(way, some, column)
        return paths.take(np.flatnonzero(passed))

    def _way(self, way: Crossings, paths: Paths, column: int) -> Array:
        good = np.ones(len(paths), np.bool_)
        for crossing in way:
            if self.automaton.immediate(crossing.scope):
                good &= ~self.violated_at(crossing, paths, column)
        return good

    def violated_at(self, crossing: Crossing, paths: Paths, column: int) -> Array:
        """Per row, whether the NOT crossed on the way to `column` has a match in between.

        Where nothing is bound before it, because all lies beside it in an AND, the complete match decides.
        """
        before = self._column_before(paths, crossing, column)
        inside = before >= paths.own
        earlier = paths.events[np.arange(len(paths)), np.maximum(before, paths.own)]
        negation_guard = self.spec.scopes[crossing.scope].negation_guard
        if negation_guard is not None:
            return inside & self._not_apart(negation_guard, earlier, paths.events[:, column])
        low, high = self.block.tie_end[earlier], self.block.tie_start[paths.events[:, column]]
        if not inside.all():
            low = np.where(inside, low, high)  # an empty gap
        return self.violated(crossing, paths, low, high, self._round_column(paths, crossing, column))

    def _round_column(self, paths: Paths, crossing: Crossing, column: int) -> Array:
        """The column whose round a NOT crossed on the way to `column`, or after the last one, lies in."""
        nearest = np.full(len(paths), min(column, paths.events.shape[1] - 1))
        if crossing.late:
            return nearest
        before = self._column_before(paths, crossing, column)
        return np.where(before < paths.own, nearest, before)

    def _column_before(self, paths: Paths, crossing: Crossing, column: int) -> Array:
        """The column of the last event bound before a NOT, passing over what lies beside it in an AND.

        A column before `own`: there is none.
        """
        found = np.full(len(paths), column - 1)
        beside = self._beside[crossing.scope]
        if not beside or column == paths.own:
            return found
        aside = np.zeros(paths.steps.shape, np.bool_)
        for part, steps in beside.items():
            rounds = paths.rounds(part)
            mine = rounds[:, column if crossing.late else column - 1]
            aside |= steps[paths.steps] & (rounds == mine[:, None])
        for back in range(column - 1, paths.own - 1, -1):
            found[(found == back) & aside[:, back]] = back - 1
        return found

    def revisit(self, paths: Paths, variable: str, one_time: bool) -> Paths:
        """Rows that violate no correlated NOT which the newest event makes decidable.

        Under skip-till-any-match a NOT whose outer variables can still bind more events waits for the complete match.
        """
        newest = paths.events.shape[1] - 1
        for scope in self._here(paths):
            if not one_time and scope.outer & self.spec.plural:
                continue
            first = paths.own + 1 if variable in scope.outer else newest
            for column in range(max(first, paths.own + 1), newest + 1):
                paths = self._without_violation(paths, scope, column, decided=True)
        return paths

    def settle(self, paths: Paths) -> Paths:
        """Complete matches that violate no correlated NOT that has waited until now."""
        one_time = self.spec.earliest or self.spec.adjacent
        for scope in self._here(paths):
            waits_anyway = not one_time and bool(scope.outer & self.spec.plural)
            for column in range(paths.own + 1, paths.events.shape[1]):
                paths = self._without_violation(paths, scope, column, decided=None if waits_anyway else False)
        return paths

    def _here(self, paths: Paths) -> Iterator[Scope]:
        return (scope for scope in self.waiting if scope.parent == paths.scope)

    def _without_violation(self, paths: Paths, scope: Scope, column: int, *, decided: bool | None) -> Paths:
        """Drop rows that violate a NOT crossed at `column`; `decided`: only rows where its variables are all bound."""
        for crossing in (Crossing(scope.number, False), Crossing(scope.number, True)):
            crosses = np.array([any(crossing in way for way in step.ways) for step in self.automaton.steps], np.bool_)
            rows = np.flatnonzero(crosses[paths.steps[:, column]]) if len(paths) else np.zeros(0, np.int64)
            if decided is not None and len(rows):
                some = paths.take(rows)
                context = self._context(scope, some, self._round_column(some, crossing, column))
                rows = rows[self._decidable(scope, context) == decided]
            if len(rows):
                bad = rows[self.violated_at(crossing, paths.take(rows), column)]
                paths = paths.take(np.setdiff1d(np.arange(len(paths)), bad))
        return paths

    def _decidable(self, scope: Scope, context: Paths) -> Array:
        found = np.ones(len(context), np.bool_)
        for rule, names in self._outer_rules(scope, scope.outer):
            found &= ready(rule, context, names)
        return found

    def _outer_rules(self, scope: Scope, outer: frozenset[str]) -> Iterator[tuple[Rule, frozenset[str]]]:
        for rule in scope.rules:
            yield rule, rule.shape.variables & outer
        for inner in self.spec.scopes:
            if inner.number and inner.parent == scope.number:
                yield from self._outer_rules(inner, outer & inner.outer)

    # ------------------------------------------------------------------------------------------ violations

    def violated(self, crossing: Crossing, paths: Paths, low: Array, high: Array, rounds_at: Array) -> Array:
        """Per row, whether the NOT has a match on the events with indices in [low, high).

        `rounds_at`: per row the column of the outer match whose rounds the NOT lies in.
        """
        scope = self.spec.scopes[crossing.scope]
        if self.automaton.immediate(scope.number) and not scope.open_ended:
            threshold = self.threshold(scope.number)
            return (high > low) & (threshold[np.maximum(high, 0)] >= low)
        if self.automaton.immediate(scope.number):
            gaps, of = np.unique(np.stack([low, high]), axis=1, return_inverse=True)
            alone = without_context(self.automaton, self.block, scope.number, gaps.shape[1])
            return self._exists(alone, gaps[0], gaps[1])[of.reshape(-1)]
        return self._exists(self._context(scope, paths, rounds_at), low, high)

    def _exists(self, roots: Paths, low: Array, high: Array) -> Array:
        """Per root, whether its scope has a match in [low, high)."""
        found = np.zeros(len(roots), np.bool_)
        todo = np.flatnonzero(low < high)
        todo = todo[self.lookups.possible(roots.take(todo), low[todo], high[todo])]
        for start in range(0, len(todo), 4096):
            some = todo[start : start + 4096]
            roots_here = replace(roots.take(some), root=np.arange(len(some)))
            done = np.zeros(len(some), np.bool_)
            for matches in self.matches(roots_here, low[some], high[some], done):
                matches = self.enclosed(matches, low[some][matches.root], high[some][matches.root])
                done[matches.root] = True
                if done.all():
                    break
            found[some] = done
        return found

    def matches(self, roots: Paths, low: Array, high: Array, done: Array | None = None) -> Iterator[Paths]:
        """The matches of a NOT on the events [low, high) of each root, its leading and trailing NOTs left out.

        `done`: roots of which one match is enough, marked by the caller.
        """
        scope = roots.scope
        if scope not in self._joined:
            self._joined[scope] = Joining(self, scope, MOST_TRIED) if is_straight(self.automaton, scope) else None
        joined = self._joined[scope]
        if joined is not None and joined.takes(roots):
            return joined.matches(roots, low, high, done)
        return Expansion(self, scope).matches(roots, low, high, None)

    def enclosed(self, paths: Paths, low: Array, high: Array) -> Paths:
        """Complete matches whose leading and trailing NOTs hold on the events with indices in [low, high)."""
        first, length = paths.own, paths.events.shape[1]
        template = self.spec.scopes[paths.scope].template
        good = self._some_way(paths, paths.steps[:, first], self._ways_of_step, low, high, first)
        for column in range(first + 1, length):
            open_ = np.flatnonzero(good & self._leading(paths, column))
            if len(open_):
                some = paths.take(open_)
                good[open_] = self._some_way(
                    some, some.steps[:, column], self._ways_of_step, low[open_], high[open_], column
                )
        states = self.automaton.target_of[paths.steps[:, length - 1]]
        good &= self._some_way(paths, states, lambda state: template.accepts[state], low, high, length)
        return paths.take(np.flatnonzero(good))

    def _ways_of_step(self, step: int) -> tuple[Crossings, ...]:
        return self.automaton.steps[step].ways

    def _leading(self, paths: Paths, column: int) -> Array:
        """Rows where a NOT crossed on the way to `column` has nothing before it but what lies beside it in an AND."""
        found = np.zeros(len(paths), np.bool_)
        for step in np.unique(paths.steps[:, column]):
            for crossing in {crossing for way in self._ways_of_step(step) for crossing in way}:
                if self._beside[crossing.scope]:
                    rows = np.flatnonzero(paths.steps[:, column] == step)
                    found[rows] |= self._column_before(paths.take(rows), crossing, column) < paths.own
        return found

    def _some_way(
        self,
        paths: Paths,
        kind: Array,
        ways_of: Callable[[int], tuple[Crossings, ...]],
        low: Array,
        high: Array,
        column: int,
    ) -> Array:
        """Per row, whether all NOTs of one way hold: before `column`, or after the last one.

        `low`, `high` bound the gaps of which nothing is bound before, or after.
        """
        good = np.zeros(len(paths), np.bool_)
        for which in np.unique(kind):
            rows = np.flatnonzero(kind == which)
            for way in ways_of(int(which)):
                left = rows[~good[rows]]
                some, passed = paths.take(left), np.ones(len(left), np.bool_)
                for crossing in way:
                    begin, end = self._gap(some, crossing, column, low[left], high[left])
                    at = self._round_column(some, crossing, column)
                    passed &= ~self.violated(crossing, some, begin, end, at)
                good[left] = passed
        return good

    def _gap(self, paths: Paths, crossing: Crossing, column: int, low: Array, high: Array) -> tuple[Array, Array]:
        """Per row the indices of the events between what is bound before a NOT and what is bound after it."""
        before = self._column_before(paths, crossing, column)
        earlier = paths.events[np.arange(len(paths)), np.maximum(before, paths.own)]
        begin = np.where(before < paths.own, low, self.block.tie_end[earlier])
        last = column == paths.events.shape[1]
        return begin, high if last else self.block.tie_start[paths.events[:, column]]

    def _context(self, scope: Scope, paths: Paths, rounds_at: Array) -> Paths:
        """The outer match as context of a NOT, with the rounds in which the NOT lies."""
        rows = np.arange(len(paths))
        around = {part: rounds for part, rounds in paths.rounds_around.items() if part in scope.parts}
        for part in self.automaton.parts:
            if part in scope.parts and part not in around:
                around[part] = paths.rounds(part)[rows, rounds_at]
        return replace(paths, scope=scope.number, own=paths.events.shape[1], root=rows, rounds_around=around)

    def _not_apart(self, negation_guard: NegationGuard, earlier: Array, later: Array) -> Array:
        """Per pair of events, whether a match of a NOT that depends on one of them lies between them."""
        if negation_guard not in self._borders:
            self._borders[negation_guard] = borders(negation_guard, self.block)
        left, right = self._borders[negation_guard]
        return left[earlier] <= right[later] if negation_guard.follows else left[earlier] < right[later]

    def threshold(self, scope: int) -> Array:
        """For every index i the latest start of a match of the NOT that has ended before event i; −1: none."""
        scope = self.spec.scopes[scope].first_alike
        if scope not in self._thresholds:
            self._thresholds[scope] = latest_starts(self, scope)
        return self._thresholds[scope]
