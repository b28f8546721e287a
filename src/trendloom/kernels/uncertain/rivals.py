"""Events outside a signature that matter for it: those that must not lie in a gap, and those that excuse them.

Two sorts of events are forbidden in the gap between two events of a signature: those of a NOT on the way, if they fit
its conditions with this match, and under skip-till-next-match all other followers of what is bound before the gap.

A follower that a NOT keeps away is no follower: in `SEQ(A+ a[], NOT N n, B b)` an event of B between two of A does no
harm if one of N lies before it in the same gap. Such events of N are listed as excuses.

Cost: O(log events) per signature and gap, and O(1) per event that may lie in a gap, besides conditions of NOTs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.lookups import pieces
from trendloom.kernels.matching.partial_matches import Paths, holds
from trendloom.kernels.uncertain.chunked import Extensions, position_of_not, scopes_crossed
from trendloom.kernels.uncertain.signatures import FAR, Followers, PartialSignatures, Rivals, times_allowed
from trendloom.pattern.template import Crossing

CLASSES = 8
"""Most NOTs between components under skip-till-next-match: each is a bit of `Rivals.excuses`."""


class _Found(NamedTuple):
    """Rivals as they are found, in any order."""

    row: Array
    event: Array
    gap: Array
    forbidden: Array
    excused_by: Array
    excuses: Array

    def take(self, rows: Array) -> _Found:
        return _Found(*(column[rows] for column in self))


class RivalSearch:
    """Finds the rivals of signatures of one pattern over one block."""

    def __init__(self, tests: Extensions, chunk: int) -> None:
        self.tests, self.automaton, self.chunk = tests, tests.automaton, chunk
        self.bits = excuse_bits(tests.automaton)
        self.bits_of_step = np.array(
            [sum(self.bits.get(scope, 0) for scope in scopes_crossed(step)) if step.scope == 0 else 0
             for step in tests.automaton.steps], np.int64)  # fmt: skip

    @property
    def needed(self) -> bool:
        """Whether signatures of this pattern can have rivals at all."""
        return self.automaton.spec.earliest or len(self.automaton.spec.scopes) > 1

    def of(self, signatures: PartialSignatures) -> tuple[Rivals, Array]:
        """The rivals of complete signatures, and which of these can be matches in spite of them."""
        rivals = _SignaturesWithRivals(self, signatures)
        found = _merged([*rivals.forbidden_by_nots(), *rivals.followers()])
        good = np.ones(len(signatures), np.bool_)
        good[found.row[rivals.surely_in_gap(found) & found.forbidden & (found.excused_by == 0)]] = False
        found = found.take(np.flatnonzero(good[found.row]))
        kept = np.flatnonzero(good)
        row = np.searchsorted(kept, found.row)
        return Rivals(np.searchsorted(row, np.arange(len(kept) + 1)), np.column_stack(found[1:]).astype(np.int64)), kept


def excuse_bits(automaton: Automaton) -> dict[int, int]:
    """A bit for each NOT that keeps followers away; none under skip-till-any-match."""
    if not automaton.spec.earliest:
        return {}
    moves = [step for steps in automaton.moves[0] for step in steps]
    scopes = sorted({scope for step in moves for scope in scopes_crossed(step)})
    return {scope: 1 << at for at, scope in enumerate(scopes)}


class _SignaturesWithRivals:
    """Complete signatures of equal length whose rivals are searched, with the times their events can have."""

    def __init__(self, search: RivalSearch, signatures: PartialSignatures) -> None:
        self.search, self.tests, self.automaton = search, search.tests, search.automaton
        self.signatures, self.paths = signatures, signatures.paths
        self.low, self.high = times_allowed(search.tests.block, self.paths.events, search.tests.span)
        self.length = signatures.length

    # ------------------------------------------------------------------------------------------------ NOTs

    def forbidden_by_nots(self) -> Iterator[_Found]:
        """Events of the NOTs that each signature crosses, where its conditions hold."""
        for gap in range(self.length):
            for step in np.unique(self.paths.steps[:, gap]):
                rows = np.flatnonzero(self.paths.steps[:, gap] == step)
                for crossing in self.automaton.steps[step].ways[0]:
                    yield from self._of_not(crossing, rows, gap, 0)
        template = self.automaton.spec.scopes[0].template
        states = self.signatures.states
        for state in np.unique(states):
            for crossing in template.accepts[state][0]:
                yield from self._of_not(crossing, np.flatnonzero(states == state), self.length, 0)

    def _of_not(self, crossing: Crossing, rows: Array, gap: int, excuse: int) -> Iterator[_Found]:
        """The events of a NOT that may lie in a gap of some rows; they are forbidden unless they are to excuse."""
        scope = self.automaton.spec.scopes[crossing.scope]
        fitting = self.tests.fitting[position_of_not(self.automaton, crossing.scope)]
        after, before = self._gap(rows, gap)
        begin, end = fitting.between(self.signatures.key[rows], after, before - 1)
        for picked, events in pieces(fitting.events, begin, end - begin, self.search.chunk // (self.length + 1)):
            kept = self.tests.high[events] > after[picked]
            kept &= ~(self.paths.events[rows[picked]] == events[:, None]).any(axis=1)
            some, events = rows[picked][kept], events[kept]
            if scope.rules and len(some):
                with_event = self._in_context(crossing, some, events, gap)
                good = np.ones(len(some), np.bool_)
                for rule in scope.rules:
                    good &= holds(rule, with_event, newest=False)
                some, events = some[good], events[good]
            yield _Found(some, events, *(np.full(len(some), value) for value in (gap, not excuse, 0, excuse)))

    def _in_context(self, crossing: Crossing, rows: Array, events: Array, gap: int) -> Paths:
        """Events of a NOT, each behind the match around it: under skip-till-next-match what was bound before it."""
        width = gap if self.automaton.spec.earliest and 0 < gap < self.length else self.length
        paths = replace(self.paths, events=self.paths.events[rows, :width], steps=self.paths.steps[rows, :width])
        at = min(gap if crossing.late or not gap else gap - 1, width - 1)
        scope = self.automaton.spec.scopes[crossing.scope]
        around = {part: paths.rounds(part)[:, at] for part in self.automaton.parts if part in scope.parts}
        context = replace(paths, scope=scope.number, own=width, root=np.arange(len(rows)), rounds_around=around)
        return context.extend(np.arange(len(rows)), events, self.automaton.starts[scope.number][0].number)

    def _gap(self, rows: Array, gap: int) -> tuple[Array, Array]:
        """The widest a gap can be: an event in it lies strictly between these two points."""
        span = self.tests.span
        if gap == 0:
            after = np.full(len(rows), -FAR) if span is None else self.low[rows, -1] - span
        else:
            after = self.low[rows, gap - 1]
        if gap == self.length:
            return after, np.full(len(rows), FAR) if span is None else self.high[rows, 0] + span
        return after, self.high[rows, gap]

    # ------------------------------------------------------------------------------- skip-till-next-match

    def followers(self) -> Iterator[_Found]:
        """The other followers of what is bound before each gap, and what excuses them; the last gap first."""
        found_as, gap = self.signatures.found_as, self.length - 1
        rows = np.arange(len(self.signatures))
        while found_as is not None:
            rows = found_as.origin[rows]
            found = self._of_followers(found_as.followers, rows, gap)
            yield found
            yield from self._excuses(found, gap)
            found_as, gap = found_as.followers.of.found_as, gap - 1

    def _of_followers(self, followers: Followers, origin: Array, gap: int) -> _Found:
        """Those of `origin`, per signature, that may lie in the gap."""
        begin, count = followers.offsets[origin], np.diff(followers.offsets)[origin]
        row = np.repeat(np.arange(len(origin)), count)
        place = np.arange(len(row)) + np.repeat(begin - np.cumsum(count) + count, count)
        event = followers.events[place]
        kept = (self.tests.low[event] < self.high[row, gap]) & (self.tests.high[event] > self.low[row, gap - 1])
        row, event, place = row[kept], event[kept], place[kept]
        other = ~(self.paths.events[row] == event[:, None]).any(axis=1)
        row, event, place = row[other], event[other], place[other]
        bits = self.search.bits_of_step
        # what excuses it is forbidden itself where the signature crosses the same NOT
        excused_by = bits[followers.steps[place]] & ~bits[self.paths.steps[row, gap]]
        return _Found(row, event, np.full(len(row), gap), np.ones(len(row), np.bool_), excused_by, np.zeros_like(row))

    def _excuses(self, followers: _Found, gap: int) -> Iterator[_Found]:
        for scope, bit in self.search.bits.items():
            rows = np.unique(followers.row[(followers.excused_by & bit) != 0])
            if len(rows):
                yield from self._of_not(Crossing(scope), rows, gap, bit)

    # ---------------------------------------------------------------------------------------------- certainty

    def surely_in_gap(self, found: _Found) -> Array:
        """Which rivals lie in their gap in every world where the signature is in order, windows left out."""
        if self.automaton.spec.window.sliding:
            inner = (found.gap > 0) & (found.gap < self.length)
        else:
            inner = np.ones(len(found.row), np.bool_)
        row, gap, span = found.row, found.gap, self.tests.span
        begins, ends = self.high[row, np.maximum(gap - 1, 0)], self.low[row, np.minimum(gap, self.length - 1)]
        first, last = gap == 0, gap == self.length
        begins = np.where(first, -FAR if span is None else self.high[row, -1] - (span or 0), begins)
        ends = np.where(last, FAR if span is None else self.low[row, 0] + (span or 0), ends)
        return inner & (self.tests.low[found.event] > begins) & (self.tests.high[found.event] < ends)


def _merged(parts: list[_Found]) -> _Found:
    """Sorted by signature, event and gap, each of these once.

    An event that is forbidden for two reasons is excused by what excuses both: one of them includes the other.
    """
    nothing = np.zeros(0, np.int64)
    if not parts:
        return _Found(nothing, nothing, nothing, nothing.astype(np.bool_), nothing, nothing)
    found = _Found(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    found = found.take(np.lexsort((found.gap, found.event, found.row)))
    if not len(found.row):
        return found
    same = (np.diff(found.row) == 0) & (np.diff(found.event) == 0) & (np.diff(found.gap) == 0)
    begin = np.flatnonzero(np.r_[True, ~same])
    forbidden = np.logical_or.reduceat(found.forbidden, begin)
    excused_by = np.bitwise_and.reduceat(np.where(found.forbidden, found.excused_by, -1), begin)
    excuses = np.bitwise_or.reduceat(found.excuses, begin)
    row, event, gap = found.row[begin], found.event[begin], found.gap[begin]
    return _Found(row, event, gap, forbidden, np.where(forbidden, excused_by, 0), excuses)
