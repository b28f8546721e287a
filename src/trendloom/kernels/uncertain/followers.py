"""Find signatures under skip-till-next-match: with each partial one, all that could extend it instead.

In one world a run takes the earliest event that fits; which one that is differs from world to world. So of every
partial signature all its *followers* are found together: events that fit at some step, pass the rules, and may come
later. Each makes a partial signature of its own, and each of the others must not lie in the gap before it: `rivals`
reads them from here, by the trail that every partial signature keeps.

A follower that begins after the last event has surely happened ends the search: the run has moved on at the latest when
that follower surely has (Zhang's NELT, 3.3). Nothing that comes later for certain extends the run, or lies in its gap.
Where a NOT stands between, a follower counts only for extensions that cross the NOT as well. Followers are looked for
in stretches of time that double, so a run costs what lies between it and its sure end, however long the window is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.matching.automaton import Step
from trendloom.kernels.matching.lookups import pieces
from trendloom.kernels.uncertain.extension import Extensions, scopes_crossed
from trendloom.kernels.uncertain.growth import SignatureGrowth
from trendloom.kernels.uncertain.position_events import FAR
from trendloom.kernels.uncertain.prefixes import Prefixes, Trail


@dataclass(frozen=True, eq=False)
class Followers:
    """Those of row r of `of` are `events[offsets[r]:offsets[r + 1]]`, each by a step; one event may come by several."""

    of: Prefixes
    offsets: Array
    events: Array
    steps: Array


class NextGrowth(SignatureGrowth):
    """Over one block only what may be the next event that fits extends a partial signature."""

    def children(self, prefixes: Prefixes) -> Iterator[Prefixes]:
        states = prefixes.states
        for state in np.unique(states):
            steps = self.automaton.moves[0][state]
            mine = prefixes.take(np.flatnonzero(states == state))
            for some in self._batches(mine, steps):
                yield from _FollowerSearch(self.extensions, some, steps, self.chunk).children()

    def _batches(self, prefixes: Prefixes, steps: list[Step]) -> Iterator[Prefixes]:
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


def _sure_past(tests: Extensions, prefixes: Prefixes) -> Array:
    """The point at which the last event of each has surely happened."""
    return tests.high[prefixes.paths.events[:, -1]]


class _FollowerSearch:
    """The followers of some partial signatures in one state."""

    def __init__(self, tests: Extensions, prefixes: Prefixes, steps: list[Step], chunk: int) -> None:
        self.tests, self.prefixes, self.steps = tests, prefixes, steps
        self.size = max(1, chunk // (prefixes.length + 1))
        self.past = _sure_past(tests, prefixes)
        self.soonest = np.full((len(steps), len(prefixes)), FAR)
        """By step and row: the soonest sure end of a follower by that step that surely comes after the last event."""

    def children(self) -> Iterator[Prefixes]:
        """The partial signatures that followers make."""
        found = self._all()
        sure = self._sure_ends()
        rows, events, which = (np.concatenate([one[i] for one in found]) for i in range(3))
        order = np.argsort(rows, kind="stable")
        rows, events, which = rows[order], events[order], which[order]
        numbers = np.array([step.number for step in self.steps], np.int64)
        matters = self.tests.low[events] <= sure.max(axis=0, initial=-FAR)[rows]
        offsets = np.searchsorted(rows[matters], np.arange(len(self.prefixes) + 1))
        followers = Followers(self.prefixes, offsets, events[matters], numbers[which[matters]])
        least, latest = self.tests.times(self.prefixes, rows, events)
        targets = np.array([step.target for step in self.steps], np.int64)[which]
        kept = (least <= sure[which, rows]) & self.tests.viable(least, latest, events, targets)
        yield from self._extended(followers, rows[kept], events[kept], which[kept], numbers)

    def _extended(
        self, followers: Followers, rows: Array, events: Array, which: Array, numbers: Array
    ) -> Iterator[Prefixes]:
        good = np.zeros(len(rows), np.bool_)
        for at, step in enumerate(self.steps):
            mine = np.flatnonzero(which == at)
            good[mine[self.tests.unbroken(self.prefixes, rows[mine], events[mine], step)]] = True
        rows, events, which = rows[good], events[good], which[good]
        for begin in range(0, len(rows), self.size):
            some = slice(begin, begin + self.size)
            trail = Trail(followers, rows[some])
            grown = self.tests.grown(self.prefixes, rows[some], events[some], numbers[which[some]], trail)
            grown = self.tests.likely(grown, self.prefixes, rows[some])
            if len(grown):
                yield grown

    def _all(self) -> list[tuple[Array, Array, Array]]:
        """All followers that may matter: rows, events, and which of the steps."""
        tests, last = self.tests, int(self.tests.low.max(initial=0))
        limit = np.full(len(self.prefixes), last)
        if tests.span is not None:
            limit = np.minimum(limit, self.prefixes.latest + tests.span - 1)
        reach = np.minimum(self.past + tests.block.most_points, limit)
        begins = [tests.slices(self.prefixes, np.arange(len(limit)), step, None)[0] for step in self.steps]
        open_, stretch = np.arange(len(limit)), tests.block.most_points
        nothing = np.zeros(0, np.int64)
        found = [(nothing, nothing, nothing)]
        while len(open_):
            for which, step in enumerate(self.steps):
                end = tests.slices(self.prefixes, open_, step, reach[open_])[1]
                count = np.maximum(end - begins[which][open_], 0)
                members = tests.fitting[step.position].events
                for picked, events in pieces(members, begins[which][open_], count, self.size):
                    found.append(self._following(open_[picked], events, which))
                begins[which][open_] = np.maximum(end, begins[which][open_])
            sure = self._sure_ends().max(axis=0, initial=-FAR)
            open_ = open_[(sure[open_] > reach[open_]) & (reach[open_] < limit[open_])]
            stretch *= 2
            reach[open_] = np.minimum(reach[open_] + stretch, limit[open_])
        return found

    def _following(self, rows: Array, events: Array, which: int) -> tuple[Array, Array, Array]:
        """Those of some pairs of row and event that are followers by a step."""
        tests, step = self.tests, self.steps[which]
        kept = tests.possible(self.prefixes, rows, events, step)
        rows, events = rows[kept], events[kept]
        if tests.growing:
            paths = tests.extended(self.prefixes, rows, events, np.full(len(rows), step.number))
            kept = tests.passing(paths, step)
            rows, events = rows[kept], events[kept]
        after = np.flatnonzero(tests.low[events] > self.past[rows])
        np.minimum.at(self.soonest[which], rows[after], tests.high[events[after]])
        return rows, events, np.full(len(rows), which, np.int64)

    def _sure_ends(self) -> Array:
        """By step and row: when the run has surely moved on, if the extension by this step is to be the next one."""
        crossed = [set(scopes_crossed(step)) for step in self.steps]
        found = np.full(self.soonest.shape, FAR)
        for which, mine in enumerate(crossed):
            for other, theirs in enumerate(crossed):
                if theirs <= mine:  # no NOT that it respects can keep the other one from extending
                    found[which] = np.minimum(found[which], self.soonest[other])
        return found
