"""Enumerate matches by growing partial matches in chunks: the general algorithm, right for every pattern and rule.

Idea: partial matches of equal length form a matrix (`Paths`); all extensions of a chunk by one step are a range join
with the sorted list of events of that position, cut into pieces of bounded size; rules and NOTs then filter each
piece as whole columns. Pieces are explored depth first, so memory is bounded by (longest match) × (chunk), whatever
the number of matches, and a consumer can stop at any time.

Under skip-till-any-match every later event that fits extends a partial match. Under skip-till-next-match and contiguous
only those at the earliest time at which one fits: candidates are tried in growing stretches of time.

Under skip-till-any-match two early filters drop partial matches at once that can never be completed: `ends`, how early
a match can end that goes on from an event and a state, rules and NOTs left out (see `reachability`); `passed`, which
events a step can bind, whatever was bound before. Runs of the other semantics go without: the earliest event that fits
extends them even into a dead end.

Cost: O(length) per partial match and rule with one quantified variable besides the newest event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.matching.automaton import Step
from trendloom.kernels.matching.lookups import bound_events, mine_and_theirs, pieces
from trendloom.kernels.matching.partial_matches import Paths, holds, joined_paths, same_bindings

if TYPE_CHECKING:
    from trendloom.kernels.matching.gaps import Gaps

CHUNK = 1 << 20
"""Most entries (rows × length) of a matrix of partial matches."""
ENTRIES = 1 << 16
"""Most entries (events of matches) of a first buffer."""
OF_AN_EVENT = 4


class Filters(NamedTuple):
    """`ends[state, event]`: the least index a match's last event can have. `passed[step]`: events the step may bind."""

    ends: Array | None
    passed: dict[int, Array]


class Expansion:
    """Growth of the matches of one scope over one block.

    `low`, `high` bound, for every root, the indices of events a match may use; `horizon` bounds them by the first
    event. `filters`: which events a partial match of the outermost scope can go on with, see above.
    """

    def __init__(self, gaps: Gaps, scope: int, filters: Filters | None = None) -> None:
        self.gaps, self.automaton, self.block, self.chunk = gaps, gaps.automaton, gaps.block, gaps.chunk
        self.filters = filters or Filters(None, {})
        automaton = gaps.automaton
        self.scope = automaton.spec.scopes[scope]
        outermost = scope == 0
        self.earliest = outermost and automaton.spec.earliest
        self.adjacent = outermost and automaton.spec.adjacent
        self.one_time = self.earliest or self.adjacent
        # Derivations of one binding share its earliest extension, so they must stay in one matrix.
        self.joins = self.one_time and automaton.ambiguous
        own = {place.variable for place in automaton.spec.places if place.scope == scope}
        rules = self.scope.rules
        decided = [rule for rule in rules if rule.shape.chosen & own and not rule.shape.whole]
        self.growing = [rule for rule in decided if rule.early or self.one_time]
        self.final = [rule for rule in rules if rule not in self.growing]
        if self.one_time:
            self.growing += [rule for rule in self.final if rule.shape.chosen - rule.shape.whole]
        self._tried: Counter[int] = Counter()

    def matches(self, roots: Paths, low: Array, high: Array, horizon: Array | None) -> Iterator[Paths]:
        """All complete matches, in chunks; leading and trailing NOTs are left to the caller."""
        todo: list[Iterator[Paths]] = [self.starts(roots, low, high, horizon)]
        while todo:
            grown = next(todo[-1], None)
            if grown is None:
                todo.pop()
                continue
            complete = self.complete(grown)
            if len(complete):
                yield complete
            limit = high[grown.root]
            if horizon is not None:
                limit = np.minimum(limit, horizon[grown.events[:, grown.own]])
            todo.append(self.children(grown, limit))

    def complete(self, paths: Paths) -> Paths:
        """Those that are matches, leading and trailing NOTs left out."""
        accepts = np.array([bool(ways) for ways in self.scope.template.accepts], np.bool_)
        found = paths.take(np.flatnonzero(accepts[self._states(paths)]))
        for rule in self.final:
            if len(found):
                found = found.take(np.flatnonzero(holds(rule, found, newest=False)))
        return self.gaps.settle(found) if len(found) else found

    def _states(self, paths: Paths) -> Array:
        return self.automaton.target_of[paths.steps[:, -1]]

    # --------------------------------------------------------------------------------------------- growth

    def starts(self, roots: Paths, low: Array, high: Array, horizon: Array | None) -> Iterator[Paths]:
        """Partial matches of one event."""
        found = self._starts(roots, low, high, horizon)
        return self._joined(found) if self.joins else found

    def _starts(self, roots: Paths, low: Array, high: Array, horizon: Array | None) -> Iterator[Paths]:
        everything = np.arange(len(roots))
        for step in self.automaton.starts[self.scope.number]:
            for rows, events in self._pieces(step, roots, everything, low, high):
                if horizon is not None:
                    inside = horizon[events] > events
                    rows, events = rows[inside], events[inside]
                limit = high[rows] if horizon is None else np.minimum(high[rows], horizon[events])
                yield from self._kept(roots, *self._viable(rows, events, step, limit), step)

    def _joined(self, pieces: Iterator[Paths]) -> Iterator[Paths]:
        found = list(pieces)
        if found:
            yield joined_paths(found)

    def children(self, paths: Paths, limit: Array) -> Iterator[Paths]:
        """Partial matches with one more event, of index below the limit of their row."""
        if self.one_time:
            grown = self._earliest_children(paths, limit)
            yield from self._joined(grown) if self.joins else grown
            return
        for rows, step in self._moves(paths):
            last = paths.events[rows, -1]
            low = self.block.tie_start[last] if step.may_tie else self.block.tie_end[last]
            for picked, events in self._pieces(step, paths, rows, low, limit[rows]):
                yield from self._kept(paths, *self._viable(rows[picked], events, step, limit[rows[picked]]), step)

    def _viable(self, rows: Array, events: Array, step: Step, limit: Array) -> tuple[Array, Array]:
        """The extensions after which a match can still end before the limit of its row."""
        if self.filters.ends is not None:
            inside = self.filters.ends[step.target, events] < limit
            rows, events = rows[inside], events[inside]
        passed = self.filters.passed.get(step.number)
        return (rows, events) if passed is None else (rows[passed[events]], events[passed[events]])

    def _moves(self, paths: Paths) -> Iterator[tuple[Array, Step]]:
        """The rows in each state, with each step that leads on from it."""
        states = self._states(paths)
        for state in np.unique(states):
            rows = np.flatnonzero(states == state)
            for step in self.automaton.moves[self.scope.number][state]:
                yield rows, step

    def _pieces(self, step: Step, paths: Paths, rows: Array, low: Array, high: Array) -> Iterator[tuple[Array, Array]]:
        """Places in `rows`, each with an event of the step's position in [low, high), in pieces of bounded size."""
        members = self.block.members[step.position]
        begin, end = np.searchsorted(members, low), np.searchsorted(members, high)
        count = np.maximum(end - begin, 0)
        self._tried[step.number] += int(count.sum())
        if self._tried[step.number] > len(members):  # before that, a table would cost more than it saves
            looked_up = self._looked_up(step, paths, rows, low, high)
            if looked_up is not None:
                members, begin, end = looked_up
                count = end - begin
        yield from pieces(members, begin, count, self.chunk // (paths.events.shape[1] + 1))

    def _looked_up(
        self, step: Step, paths: Paths, rows: Array, low: Array, high: Array
    ) -> tuple[Array, Array, Array] | None:
        """Events that a step can bind, sorted by what one of its rules compares, and the slice of them for each row."""
        variable = self.automaton.spec.places[step.position].variable
        for rule in self.growing:
            if not (rule.looked_up and variable in rule.shape.each):
                continue
            _, _, other = mine_and_theirs(rule, variable)
            bound, given = bound_events(paths.take(rows), other)
            if bound.all():
                table = self.gaps.lookups.table((step.position,), rule, variable)
                return table.events, *table.between(given, low, high)
        return None

    def _kept(self, paths: Paths, rows: Array, events: Array, step: Step) -> Iterator[Paths]:
        grown = self._filtered(paths, rows, events, step)
        if len(grown):
            yield grown

    def _filtered(self, paths: Paths, rows: Array, events: Array, step: Step) -> Paths:
        """The extensions of `paths` that satisfy every rule and NOT that can be decided now."""
        grown = paths.extend(rows, events, step.number)
        if step.may_tie:
            again = (grown.events[:, grown.own : -1] == events[:, None]).any(axis=1)
            grown = grown.take(np.flatnonzero(~again))
        if grown.length > 1:
            grown = self.gaps.close(grown, step)
        variable = self.automaton.spec.places[step.position].variable
        for rule in self.growing:
            if len(grown) and variable in rule.shape.chosen and not (variable in rule.shape.whole and rule.shape.whole):
                grown = grown.take(np.flatnonzero(holds(rule, grown, newest=True)))
        return self.gaps.revisit(grown, variable, self.one_time) if len(grown) else grown

    # ------------------------------------------------------------------------ the earliest event that fits

    def _earliest_children(self, paths: Paths, limit: Array) -> Iterator[Paths]:
        """All extensions at the first instant at which there is one.

        Candidates are tried in stretches that double, each a whole number of ties, until every row has found its
        instant or reached its limit.
        """
        block = self.block
        low = block.tie_end[paths.events[:, -1]]
        open_ = np.flatnonzero(low < limit)
        stretch = 8
        same = same_bindings(paths) if self.joins else None
        while len(open_):
            last_one = np.minimum(low[open_] + stretch, limit[open_]) - 1
            if self.adjacent:
                last_one = low[open_]
            end = np.minimum(block.tie_end[last_one], limit[open_])
            found = list(self._candidates(paths, open_, low[open_], end))
            first = self._first_instants(found, len(paths), same)
            for grown, origin in found:
                now = np.flatnonzero(block.instant[grown.events[:, -1]] == first[origin])
                if len(now):
                    yield grown.take(now)
            unmoved = first[open_] == np.iinfo(np.int64).max
            if self.adjacent:
                return
            low[open_] = end
            open_ = open_[unmoved & (end < limit[open_])]
            stretch = min(stretch * 2, max(8, self.chunk // max(1, len(open_) * paths.events.shape[1])))

    def _candidates(self, paths: Paths, rows: Array, low: Array, high: Array) -> Iterator[tuple[Paths, Array]]:
        """Valid extensions of some rows by events in [low, high), each with the row it extends."""
        bounds = np.zeros((2, len(paths)), np.int64)
        bounds[:, rows] = low, high
        for mine, step in self._moves(paths.take(rows)):
            of = rows[mine]
            for picked, events in self._pieces(step, paths, of, bounds[0, of], bounds[1, of]):
                numbered = replace(paths.take(of[picked]), root=of[picked])
                grown = self._filtered(numbered, np.arange(len(picked)), events, step)
                if len(grown):
                    yield replace(grown, root=paths.root[grown.root]), grown.root

    def _first_instants(self, found: list[tuple[Paths, Array]], rows: int, same: Array | None) -> Array:
        """Per row the first instant at which it, or another derivation of the same binding, can be extended."""
        first = np.full(rows, np.iinfo(np.int64).max)
        for grown, origin in found:
            np.minimum.at(first, origin if same is None else same[origin], self.block.instant[grown.events[:, -1]])
        return first if same is None else first[same]


def first_chunk(events: int, most: int) -> int:
    """Entries of the first buffer for matches of so many events.

    Later buffers double. The first is small, because often only the first matches are taken, and in proportion to the
    events, so that a handful needs no compiler (`interpreted.HANDFUL`).
    """
    return min(most, ENTRIES, OF_AN_EVENT * (events + 8))
