"""How far matching gets: which events some partial match binds at which position, for people who miss a match.

Idea: partial matches grow as in `expansion`, so every pattern, condition, NOT, window and semantics means the same. Of
those that can only go on alike one is enough: where conditions look at neighbours alone, the state and the last event
say everything, and the latest start is the best one, as it is the last to leave its window. Where other conditions look
back at variables that bind one event, these events are compared, too. Where they look at whole Kleene variables nothing
is left out, and there may be exponentially many.

Cost: O(events · events of a window) per move where neighbours decide. `go_on` is asked every few million candidates, so
whoever asks can stop; what was reached until then is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block, check_range, horizons
from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.expansion import Expansion
from trendloom.kernels.matching.gaps import Gaps
from trendloom.kernels.matching.partial_matches import Paths, without_context
from trendloom.kernels.matching.windows import in_windows

CANDIDATES = 1 << 22
"""Pairs of a partial match and an event that are tried between two looks at `go_on`."""
NOWHERE = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Reached:
    """`events[p, e]`: a partial match binds event e at position p. `ends[e]`: a match ends with e.

    `shortest[p]`: the least time from the first event of a partial match to its event at p. `whole`: all was tried.
    """

    events: Array
    ends: Array
    shortest: Array
    whole: bool


def reached(
    spec: PatternSpec, block: Block, remembered: frozenset[str] | None, go_on: Callable[[], bool]
) -> Reached:  # fmt: skip
    """What partial matches reach. `remembered`: variables that later conditions look back at; None: at everything."""
    check_range(block.time, spec.window)
    search = _SearchFromStarts(spec, block, remembered, go_on)
    whole = search.run()
    return Reached(search.bound, search.ends, search.shortest, whole)


class _SearchFromStarts:
    """A search under way, depth first, latest starts first."""

    def __init__(
        self, spec: PatternSpec, block: Block, remembered: frozenset[str] | None, go_on: Callable[[], bool]
    ) -> None:
        self.spec, self.block, self.go_on = spec, block, go_on
        self.automaton = Automaton(spec)
        self.gaps = Gaps(self.automaton, block, self._make)
        self.expansion = self._make(self.gaps, 0)
        self.horizon = horizons(block, spec.window)
        self.memory = _Seen(self.automaton, len(block), remembered)
        self.bound = np.zeros((len(spec.places), len(block)), np.bool_)
        self.ends = np.zeros(len(block), np.bool_)
        self.shortest = np.full(len(spec.places), NOWHERE)

    def _make(self, gaps: Gaps, scope: int) -> Expansion:
        return Expansion(self.automaton, self.block, gaps, scope)

    def run(self) -> bool:
        """Whether everything was tried."""
        block = self.block
        roots = without_context(self.automaton, block, 0, block.keys)
        starts = self.expansion.starts(roots, block.key_starts[:-1], block.key_starts[1:], self.horizon)
        todo: list[Iterator[Paths]] = [starts]
        while todo:
            if not self.go_on():
                return False
            grown = next(todo[-1], None)
            if grown is None:
                todo.pop()
                continue
            fresh = self.memory.fresh(grown)
            if len(fresh):
                self._note(fresh)
                todo.append(self._growth(fresh))
        return True

    def _note(self, paths: Paths) -> None:
        last, first = paths.events[:, -1], paths.events[:, 0]
        positions = self.automaton.position_of[paths.steps[:, -1]]
        self.bound[positions, last] = True
        np.minimum.at(self.shortest, positions, self.block.time[last] - self.block.time[first])
        for whole, _ in in_windows(self.gaps, self.expansion.complete(paths), self.spec):
            self.ends[whole.events[:, -1]] = True

    def _growth(self, paths: Paths) -> Iterator[Paths]:
        """The extensions of partial matches, those with the latest start first."""
        limit = self.block.key_starts[self.block.key[paths.events[:, 0]] + 1]
        if self.horizon is not None:
            limit = np.minimum(limit, self.horizon[paths.events[:, 0]])
        if self.expansion.joins:
            yield from self.expansion.children(paths, limit)
            return
        order = np.argsort(-paths.events[:, 0], kind="stable")
        paths, limit = paths.take(order), limit[order]
        tried = np.cumsum(np.maximum(limit - paths.events[:, -1], 1))
        begin = 0
        while begin < len(paths) and self.go_on():
            done = int(tried[begin - 1]) if begin else 0
            end = max(int(np.searchsorted(tried, done + CANDIDATES, side="right")), begin + 1)
            yield from self.expansion.children(paths.take(np.arange(begin, end)), limit[begin:end])
            begin = end


class _Seen:
    """Which partial matches were seen: those that go on as another one did, or better, need not go on."""

    def __init__(self, automaton: Automaton, events: int, remembered: frozenset[str] | None) -> None:
        self.automaton, self.events, self.remembered = automaton, events, remembered
        states = max((step.target for step in automaton.steps), default=0) + 1
        looks_around = automaton.spec.scopes[0].open_ended
        self.by_start = remembered is not None and not remembered and not looks_around
        self.best = np.full(states * events if self.by_start else 0, -1, np.int64)
        self.seen = np.zeros(0, np.int64)
        columns = 2 + len(remembered or ())
        self.numbered = remembered is not None and states * float(events + 1) ** columns < 2**62

    def fresh(self, paths: Paths) -> Paths:
        """The partial matches that may lead where no other has led."""
        code = self.automaton.target_of[paths.steps[:, -1]] * self.events + paths.events[:, -1]
        if self.by_start:
            return self._later_start(paths, code)
        return self._unseen(paths, code) if self.numbered else paths

    def _later_start(self, paths: Paths, code: Array) -> Paths:
        first = paths.events[:, 0]
        order = np.argsort(-first, kind="stable")
        _, at = np.unique(code[order], return_index=True)
        rows = order[at]
        rows = rows[first[rows] > self.best[code[rows]]]
        self.best[code[rows]] = first[rows]
        return paths.take(rows)

    def _unseen(self, paths: Paths, code: Array) -> Paths:
        row = np.arange(len(paths))
        for events in (paths.events[:, 0], *(_bound(paths, name, row) for name in sorted(self.remembered or ()))):
            code = code * (self.events + 1) + events + 1
        code, rows = np.unique(code, return_index=True)
        new = ~np.isin(code, self.seen, assume_unique=True)
        self.seen = np.union1d(self.seen, code[new])
        return paths.take(rows[new])


def _bound(paths: Paths, variable: str, row: Array) -> Array:
    """The event of a variable that binds one; −1: not bound yet."""
    binds = paths.binding(variable)
    return np.where(binds.any(axis=1), paths.events[row, binds.argmax(axis=1)], -1)
