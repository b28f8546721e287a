"""Find signatures many at a time: partial ones grow in chunks, in the order of the pattern.

It serves conditions between events, which are evaluated as whole columns, and skip-till-next-match; `depth_first` is
faster without either.

Idea: partial signatures of equal length form a matrix. All extensions by one step are a range join with the events of
that position, sorted by their earliest points; times, rules and bounds then filter them as whole columns. Tests on
times come first, as plain columns; only what passes them becomes a matrix for the rules. Chunks are explored depth
first, so memory is bounded by (longest signature) x (chunk).

Cost: O(1) per candidate whatever the size of intervals: an event is taken as a whole, not point by point. See H. Zhang,
"High-Performance Complex Event Processing for Decision Analytics", 3.4 (event-based framework); the passes over a whole
match are replaced by two numbers per partial match, which are as sharp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import IntervalBlock
from trendloom.kernels.matching.automaton import Automaton, Step
from trendloom.kernels.matching.lookups import pieces
from trendloom.kernels.matching.partial_matches import Paths, holds
from trendloom.kernels.uncertain.confidence.in_order import prefix_error, prefix_masses, surely_below
from trendloom.kernels.uncertain.signatures import (
    FAR,
    FollowerOrigin,
    Followers,
    PartialSignatures,
    PositionEvents,
    events_by_position,
    nothing_bound,
    ordered_paths,
)

CHUNK = 1 << 18
"""Most entries (rows x length) of a matrix of partial signatures."""


@dataclass(frozen=True, eq=False)
class CandidateEvents:
    """Extensions by one event each: row `rows[i]` of `prefixes` by `events[i]`.

    `least`: the least point of the new event; `latest`: the greatest one of the first event.
    """

    prefixes: PartialSignatures
    rows: Array
    events: Array
    least: Array
    latest: Array

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, kept: Array | slice) -> CandidateEvents:
        """Some of them."""
        return CandidateEvents(self.prefixes, self.rows[kept], self.events[kept], self.least[kept], self.latest[kept])


class Extensions:
    """Which extensions of partial signatures of one pattern over one block are possible, and pass the rules decided.

    `span`: a match takes less than so many points; None: any time. `threshold`: only matches at least so likely are
    needed.
    """

    def __init__(
        self, automaton: Automaton, block: IntervalBlock, span: int | None, threshold: Fraction | None = None
    ) -> None:
        self.automaton, self.block, self.span, self.threshold = automaton, block, span, threshold
        self.fitting = events_by_position(block)
        self.ends = _least_ends(automaton, block, self.fitting)
        self.low, self.high = block.first_point, block.last_point
        spec = automaton.spec
        template = spec.scopes[0].template
        self.accepts = np.array([bool(ways) for ways in template.accepts], np.bool_)
        types = [spec.places[position].type for position in template.position_of]
        steps = [step for step in automaton.steps if step.scope == 0]
        self.repeats = {
            step.number: any(
                types[state] == types[step.target]
                for state in range(len(types))
                if step.target in template.reached[state]
            )
            for step in steps
        }
        """By the number of a step: whether it can bind an event again."""
        self.bare_nots = {
            step.number: [position_of_not(automaton, s) for s in scopes_crossed(step) if not spec.scopes[s].rules]
            for step in steps
        }
        """By the number of a step: the positions of NOTs without conditions that it crosses."""
        # under skip-till-next-match all that can be decided is: an event that fails is no extension, so it forbids
        # nothing
        self.growing = [
            rule
            for rule in spec.scopes[0].rules
            if rule.shape.chosen and not rule.shape.whole and (rule.early or spec.earliest)
        ]
        self.final = [rule for rule in spec.scopes[0].rules if rule not in self.growing]

    def slices(self, prefixes: PartialSignatures, rows: Array, step: Step, until: Array | None) -> tuple[Array, Array]:
        """Per row the slice of the events of a step's position that may come next, until some point."""
        limit = None if self.span is None else prefixes.latest[rows] + self.span - 1
        if until is not None:
            limit = until if limit is None else np.minimum(limit, until)
        return self.fitting[step.position].between(prefixes.key[rows], prefixes.least[rows], limit)

    def possible(self, prefixes: PartialSignatures, rows: Array, events: Array, step: Step) -> CandidateEvents:
        """The extensions that times allow, without those that bind an event twice."""
        least = np.maximum(prefixes.least[rows] + 1, self.low[events])
        latest = np.minimum(prefixes.latest[rows], self.high[events] - prefixes.length)
        good = least <= self.high[events]
        if self.span is not None:
            good &= np.maximum(least - latest, prefixes.length) < self.span
        if self.repeats[step.number] and prefixes.length:
            good &= ~(prefixes.paths.events[rows] == events[:, None]).any(axis=1)
        return CandidateEvents(prefixes, rows, events, least, latest).take(np.flatnonzero(good))

    def viable(self, found: CandidateEvents, targets: Array | int) -> Array:
        """Which extensions can still become matches, as far as types, times and the span decide it."""
        ends = np.maximum(self.ends[targets, found.events], found.least)
        return ends < FAR if self.span is None else ends - found.latest < self.span

    def unbroken(self, found: CandidateEvents, step: Step) -> Array:
        """The extensions in whose gap no event of a NOT without conditions lies for certain."""
        kept, prefixes = np.arange(len(found)), found.prefixes
        if not prefixes.length:
            return kept
        for position in self.bare_nots[step.number]:
            mine = found.rows[kept]
            after, before = self.high[prefixes.paths.events[mine, -1]], found.least[kept]
            kept = kept[~self.fitting[position].surely_between(prefixes.key[mine], after, before)]
        return kept

    def grown(self, found: CandidateEvents, steps: Array, found_as: FollowerOrigin | None = None) -> PartialSignatures:
        """The extensions as partial signatures, each with its new event bound by a step."""
        before, rows = found.prefixes.paths, found.rows
        events = np.concatenate([before.events[rows], found.events[:, None]], axis=1)
        ways = np.concatenate([before.steps[rows], steps[:, None].astype(np.int32)], axis=1)
        paths = ordered_paths(self.automaton, self.block, events, ways)
        return PartialSignatures(paths, found.least, found.latest, found_as)

    def passing(self, paths: Paths, step: Step) -> Array:
        """The rows whose newest event passes every rule that can be decided now."""
        kept = np.arange(len(paths))
        variable = self.automaton.spec.places[step.position].variable
        for rule in self.growing:
            if len(kept) and variable in rule.shape.chosen - rule.shape.whole:
                some = paths if len(kept) == len(paths) else paths.take(kept)
                kept = kept[holds(rule, some, newest=True)]
        return kept

    def likely(self, grown: PartialSignatures, found: CandidateEvents) -> PartialSignatures:
        """Without extensions that are in order too rarely: whatever is added to them can only lower that."""
        if self.threshold is None or not len(grown):
            return grown
        before = found.prefixes.in_order
        vectors = None if before is None else before.take(found.rows)
        vectors, sums = prefix_masses(self.block, vectors, np.ascontiguousarray(found.events))
        grown = replace(grown, in_order=vectors)
        below = surely_below(sums, self.threshold, prefix_error(self.block, grown.length))
        return grown.take(np.flatnonzero(~below)) if below.any() else grown

    def complete(self, prefixes: PartialSignatures) -> PartialSignatures:
        """Those that may be matches: they can end here and pass the rules that waited for the whole match."""
        accepts = self.accepts[prefixes.states]
        found = prefixes if accepts.all() else prefixes.take(np.flatnonzero(accepts))
        for rule in self.final:
            if len(found):
                found = found.take(np.flatnonzero(holds(rule, found.paths, newest=False)))
        return found


def _least_ends(automaton: Automaton, block: IntervalBlock, fitting: tuple[PositionEvents, ...]) -> Array:
    """`ends[state, event]`: the least point of the last event of a match that has bound the event in that state.

    Backwards through the pattern, an event at a state is followed by one that may come after it, and of those the one
    with the earliest end counts. Conditions and NOTs are left out, so it is a bound: a partial match whose last event
    would come too late for the window, or not at all, is dropped. That is what a selective order of evaluation gains,
    where a rare component comes late in the pattern.

    Cost: O(events · log events) per move of the pattern. An event that repeats itself in a Kleene part ends no earlier.
    """
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


def scopes_crossed(step: Step) -> tuple[int, ...]:
    """The NOTs on the way of a step, which has one way alone."""
    return tuple(sorted({crossing.scope for crossing in step.ways[0]}))


def position_of_not(automaton: Automaton, scope: int) -> int:
    """The position of the single event of a NOT."""
    return automaton.spec.scopes[scope].template.starts[0].position


class ChunkedSearch:
    """Over one block each event that fits, and may come later, extends a partial signature."""

    def __init__(self, extensions: Extensions, chunk: int = CHUNK) -> None:
        self.extensions, self.automaton, self.chunk = extensions, extensions.automaton, chunk

    def complete(self) -> Iterator[PartialSignatures]:
        """All signatures that may be matches, NOTs left out, in chunks of equal length."""
        todo: list[Iterator[PartialSignatures]] = [self.starts()]
        while todo:
            grown = next(todo[-1], None)
            if grown is None:
                todo.pop()
                continue
            complete = self.extensions.complete(grown)
            if len(complete):
                yield complete
            todo.append(self.children(grown))

    def starts(self) -> Iterator[PartialSignatures]:
        """Partial signatures of one event."""
        root = nothing_bound(self.automaton, self.extensions.block)
        for step in self.automaton.starts[0]:
            members = self.extensions.fitting[step.position].events
            for begin in range(0, len(members), self.chunk):
                events = members[begin : begin + self.chunk]
                yield from self._kept(root, np.zeros(len(events), np.int64), events, step)

    def children(self, prefixes: PartialSignatures) -> Iterator[PartialSignatures]:
        """Partial signatures with one more event."""
        states = prefixes.states
        for state in np.unique(states):
            rows = np.flatnonzero(states == state)
            for step in self.automaton.moves[0][state]:
                begin, end = self.extensions.slices(prefixes, rows, step, None)
                members = self.extensions.fitting[step.position].events
                for picked, events in pieces(members, begin, end - begin, self.chunk // (prefixes.length + 1)):
                    yield from self._kept(prefixes, rows[picked], events, step)

    def _kept(self, prefixes: PartialSignatures, rows: Array, events: Array, step: Step) -> Iterator[PartialSignatures]:
        tests = self.extensions
        found = tests.possible(prefixes, rows, events, step)
        found = found.take(tests.viable(found, step.target))
        found = found.take(tests.unbroken(found, step))
        grown = tests.grown(found, np.full(len(found), step.number))
        passed = tests.passing(grown.paths, step)
        if len(passed) < len(grown):
            grown, found = grown.take(passed), found.take(passed)
        grown = tests.likely(grown, found)
        if len(grown):
            yield grown


class FollowerSearch(ChunkedSearch):
    """Under skip-till-next-match only what may be the next event that fits extends a partial signature.

    In one world a run takes the earliest event that fits; which one that is differs from world to world. So of every
    partial signature all its *followers* are found together: events that fit at some step, pass the rules, and may come
    later. Each makes a partial signature of its own, and each of the others must not lie in the gap before it: `rivals`
    reads them from here, by the `found_as` of every partial signature.

    A follower that begins after the last event has surely happened ends the search: the run has moved on at the latest
    when that follower surely has (NELT, 3.3). Nothing that comes later for certain extends the run or lies in its gap.
    Where a NOT stands between, a follower counts only for extensions that cross the NOT as well. Followers are searched
    in stretches of time that double, so a run costs what lies between it and its sure end, however long the window is.
    """

    def children(self, prefixes: PartialSignatures) -> Iterator[PartialSignatures]:
        states = prefixes.states
        for state in np.unique(states):
            steps = self.automaton.moves[0][state]
            mine = prefixes.take(np.flatnonzero(states == state))
            for some in self._batches(mine, steps):
                yield from _BatchFollowers(self.extensions, some, steps, self.chunk).children()

    def _batches(self, prefixes: PartialSignatures, steps: list[Step]) -> Iterator[PartialSignatures]:
        """Partial signatures in batches, so that the followers of each batch are few enough."""
        rows = np.arange(len(prefixes))
        count = np.ones(len(prefixes), np.int64)
        until = _sure_past(self.extensions, prefixes) + self.extensions.block.most_points
        for step in steps:
            begin, end = self.extensions.slices(prefixes, rows, step, until)
            count += end - begin
        size, begin_row = np.cumsum(count), 0
        most = self.chunk // (prefixes.length + 1)
        while begin_row < len(prefixes):
            done = int(size[begin_row - 1]) if begin_row else 0
            end_row = max(int(np.searchsorted(size, done + most, side="right")), begin_row + 1)
            yield prefixes.take(rows[begin_row:end_row])
            begin_row = end_row


def _sure_past(tests: Extensions, prefixes: PartialSignatures) -> Array:
    """The point at which the last event of each has surely happened."""
    return tests.high[prefixes.paths.events[:, -1]]


class _BatchFollowers:
    """The followers of some partial signatures in one state."""

    def __init__(self, tests: Extensions, prefixes: PartialSignatures, steps: list[Step], chunk: int) -> None:
        self.tests, self.prefixes, self.steps = tests, prefixes, steps
        self.size = max(1, chunk // (prefixes.length + 1))
        self.past = _sure_past(tests, prefixes)
        self.soonest = np.full((len(steps), len(prefixes)), FAR)
        """By step and row: the soonest sure end of a follower by that step that surely comes after the last event."""

    def children(self) -> Iterator[PartialSignatures]:
        """The partial signatures that followers make."""
        tests, (found, which) = self.tests, self._all()
        sure = self._sure_ends()
        numbers, targets = np.array([(step.number, step.target) for step in self.steps], np.int64).reshape(-1, 2).T
        matters = tests.low[found.events] <= sure.max(axis=0, initial=-FAR)[found.rows]
        offsets = np.searchsorted(found.rows[matters], np.arange(len(self.prefixes) + 1))
        followers = Followers(self.prefixes, offsets, found.events[matters], numbers[which[matters]])
        kept = np.flatnonzero((found.least <= sure[which, found.rows]) & tests.viable(found, targets[which]))
        found, which = found.take(kept), which[kept]
        unbroken = np.zeros(len(found), np.bool_)
        for at, step in enumerate(self.steps):
            mine = np.flatnonzero(which == at)
            unbroken[mine[tests.unbroken(found.take(mine), step)]] = True
        found, which = found.take(unbroken), which[unbroken]
        for begin in range(0, len(found), self.size):
            some = slice(begin, begin + self.size)
            part = found.take(some)
            grown = tests.grown(part, numbers[which[some]], FollowerOrigin(followers, part.rows))
            grown = tests.likely(grown, part)
            if len(grown):
                yield grown

    def _all(self) -> tuple[CandidateEvents, Array]:
        """All followers that may matter, by row, and by which of the steps each comes."""
        tests, last = self.tests, int(self.tests.low.max(initial=0))
        limit = np.full(len(self.prefixes), last)
        if tests.span is not None:
            limit = np.minimum(limit, self.prefixes.latest + tests.span - 1)
        reach = np.minimum(self.past + tests.block.most_points, limit)
        begins = [tests.slices(self.prefixes, np.arange(len(limit)), step, None)[0] for step in self.steps]
        open_, stretch = np.arange(len(limit)), tests.block.most_points
        none = np.zeros(0, np.int64)
        found, came_by = [CandidateEvents(self.prefixes, none, none, none, none)], [0]
        while len(open_):
            for which, step in enumerate(self.steps):
                end = tests.slices(self.prefixes, open_, step, reach[open_])[1]
                count = np.maximum(end - begins[which][open_], 0)
                members = tests.fitting[step.position].events
                for picked, events in pieces(members, begins[which][open_], count, self.size):
                    found.append(self._following(open_[picked], events, which))
                    came_by.append(which)
                begins[which][open_] = np.maximum(end, begins[which][open_])
            sure = self._sure_ends().max(axis=0, initial=-FAR)
            open_ = open_[(sure[open_] > reach[open_]) & (reach[open_] < limit[open_])]
            stretch *= 2
            reach[open_] = np.minimum(reach[open_] + stretch, limit[open_])
        columns = zip(*((one.rows, one.events, one.least, one.latest) for one in found), strict=True)
        joined = CandidateEvents(self.prefixes, *map(np.concatenate, columns))
        order = np.argsort(joined.rows, kind="stable")
        return joined.take(order), np.repeat(came_by, [len(one) for one in found])[order]

    def _following(self, rows: Array, events: Array, which: int) -> CandidateEvents:
        """Those of some pairs of row and event that are followers by a step."""
        tests, step = self.tests, self.steps[which]
        found = tests.possible(self.prefixes, rows, events, step)
        if tests.growing:
            paths = tests.grown(found, np.full(len(found), step.number)).paths
            found = found.take(tests.passing(paths, step))
        after = np.flatnonzero(tests.low[found.events] > self.past[found.rows])
        np.minimum.at(self.soonest[which], found.rows[after], tests.high[found.events[after]])
        return found

    def _sure_ends(self) -> Array:
        """By step and row: when the run has surely moved on, if the extension by this step is to be the next one."""
        crossed = [set(scopes_crossed(step)) for step in self.steps]
        found = np.full(self.soonest.shape, FAR)
        for which, mine in enumerate(crossed):
            for other, theirs in enumerate(crossed):
                if theirs <= mine:  # no NOT that it respects can keep the other one from extending
                    found[which] = np.minimum(found[which], self.soonest[other])
        return found
