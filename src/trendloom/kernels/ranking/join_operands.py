"""What is joined: operands of a pattern, each a sequence of single events or a choice of several, with preferences.

An entry of an operand has a column for every event of every branch; those of branches that it does not take hold −1. So
a row says by itself which branch it is of.

One call of `strata` ranks the sequences of many windows, which share what they have in common. How many are made
for each is what the joins before have read. A join that needs more of a stretch has them made for this stretch alone,
twice as many each time. The branches of an OR are ranked each on its own and merged: of those lists no more is certain
than up to the last entry of any that is not complete.

Cost: that of `strata` for the stretches; O(entries) to merge branches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.nodes import Expr, Fold
from trendloom.expr.vectors import Vector
from trendloom.kernels.ranking.graph import SUM, Strata
from trendloom.kernels.ranking.join_entries import Entries, ranges
from trendloom.kernels.ranking.join_keys import KeyNumbers
from trendloom.kernels.ranking.strata import BestPaths, best_paths, best_spans

FIRST = 64
"""Sequences that are made of a stretch at first."""
HELD = 1 << 19
"""Sequences that are held of all stretches of a turn."""
MOST = 1 << 22
"""Sequences of one stretch: a join that needs more of them looks at almost everything."""


@dataclass(frozen=True)
class JoinBranch:
    """A sequence of single events: its positions in order, and its preference, which grows with the fold or falls."""

    positions: tuple[int, ...]
    variables: tuple[str, ...]
    preference: Expr
    fold: Fold
    falling: bool


@dataclass(frozen=True)
class JoinOperand:
    """One sequence, or an OR of several.

    `within`: its events lie in the last so many ticks of a window, or, where windows do not slide, less than that
    apart; None: no such bound.
    """

    branches: tuple[JoinBranch, ...]
    within: int | None = None

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """By column of an entry the position that is bound."""
        return tuple(position for branch in self.branches for position in branch.positions)

    @cached_property
    def variables(self) -> tuple[str, ...]:
        return tuple(variable for branch in self.branches for variable in branch.variables)

    def columns(self, branch: int) -> slice:
        """The columns of a branch."""
        begin = sum(len(one.positions) for one in self.branches[:branch])
        return slice(begin, begin + len(self.branches[branch].positions))


@dataclass(frozen=True, eq=False)
class WeighedBranch:
    """Events of a branch with what they add to its fold, times `sign`; `scale`: digits after the point.

    `score`: of folds, smaller better.
    """

    branch: JoinBranch
    strata: Strata
    sign: int
    scale: int
    score: Callable[[JoinBranch, Vector], Vector]

    def scores(self, found: BestPaths) -> Vector:
        return self.score(self.branch, Vector(self.branch.fold.kind, found.scores * self.sign, scale=self.scale))


@dataclass(frozen=True, eq=False)
class SequenceLists:
    """The best sequences of stretches: those of number i from `offsets[i]` on, in order. `complete`: there are no more.

    `blank`: some have no score, or none that fits.
    """

    offsets: Array
    scores: Array
    events: Array
    complete: Array
    blank: Array


class RankedOperand:
    """An operand over the events of a block. `reach`: by event where sequences that begin there end; None: anywhere."""

    def __init__(
        self, operand: JoinOperand, branches: Sequence[WeighedBranch], reach: Array | None, type_: Any
    ) -> None:
        self.operand, self._branches, self._reach, self._type = operand, branches, reach, type_
        self._taken, self._made = 0.0, 0

    @property
    def cost(self) -> float:
        """Of a sequence, in seconds, as measured so far."""
        return self._taken / self._made if self._made else 1.0

    def make(self, low: Array, high: Array, count: int) -> SequenceLists:
        """The `count` best of each stretch of events, which come in order; fewer where branches hold each other up."""
        begin = perf_counter()
        found = [self._listed(number, low, high, count) for number in range(len(self._branches))]
        lists = found[0] if len(found) == 1 else _merged(found)
        self._taken += perf_counter() - begin
        self._made += len(lists.scores)
        return lists

    def _listed(self, number: int, low: Array, high: Array, count: int) -> SequenceLists:
        weighed = self._branches[number]
        if self._reach is None:
            paths = best_paths(weighed.strata, low, high, count, SUM)
        else:
            paths = _paths_of_spans(weighed.strata, low, high, self._reach, count)
        scores = weighed.scores(paths)
        size = np.diff(paths.offsets)
        events = np.full((len(paths.scores), len(self.operand.positions)), -1, np.int64)
        events[:, self.operand.columns(number)] = paths.events
        stretch = np.repeat(np.arange(len(low)), size)
        blank = np.zeros(len(low), np.bool_)
        if scores.values.dtype == object:
            blank[stretch] = True
            return SequenceLists(paths.offsets, np.zeros(len(stretch), self._type), events, size < count, blank)
        if scores.valid is not None:
            blank[stretch[~scores.valid]] = True
        return SequenceLists(paths.offsets, scores.values.astype(self._type, copy=False), events, size < count, blank)


def _paths_of_spans(strata: Strata, low: Array, high: Array, reach: Array, count: int) -> BestPaths:
    """The best of stretches of which each overlaps the next one at most: every second one is looked at together."""
    halves = [
        _paths_apart(strata, low[some], high[some], reach, count) for some in (slice(0, None, 2), slice(1, None, 2))
    ]
    number = np.concatenate(
        [np.repeat(2 * np.arange(len(one.more)) + half, np.diff(one.offsets)) for half, one in enumerate(halves)]
    )
    order = np.argsort(number, kind="stable")
    offsets = np.r_[0, np.cumsum(np.bincount(number, minlength=len(low)))].astype(np.int64)
    scores, events = (np.concatenate([getattr(one, name) for one in halves])[order] for name in ("scores", "events"))
    return BestPaths(offsets, scores, events, np.zeros(len(low), np.bool_))


def _paths_apart(strata: Strata, low: Array, high: Array, reach: Array, count: int) -> BestPaths:
    """The best of stretches that have no event in common, by numbers of events that begin with the first of them."""
    positions = len(strata.begin) - 1
    nothing = BestPaths(
        np.zeros(len(low) + 1, np.int64), strata.weight[:0], np.zeros((0, positions), np.int32),
        np.zeros(len(low), np.bool_),
    )  # fmt: skip
    if not len(low):
        return nothing
    since, until = int(low[0]), int(high[-1])
    kept = [_inside(strata, position, low, high) for position in range(positions)]
    if not all(map(len, kept)):
        return nothing
    entries = np.concatenate(kept)
    stretch = np.searchsorted(low, np.arange(since, until), side="right") - 1
    local = Strata(
        np.cumsum([0, *map(len, kept)]), strata.event[entries] - np.int32(since), strata.weight[entries],
        strata.tie_end[since:until] - since,
    )  # fmt: skip
    horizon = np.minimum(reach[since:until], high[stretch]) - since
    borders = np.stack([low, high], axis=1).reshape(-1) - since  # stretches, and the gaps between them
    found = best_spans(local, borders, horizon, count, SUM)
    size = np.diff(found.offsets)[::2]
    return BestPaths(np.r_[0, np.cumsum(size)], found.scores, found.events + np.int32(since), found.more[::2])


def _inside(strata: Strata, position: int, low: Array, high: Array) -> Array:
    """The entries of a position that lie in stretches without common events."""
    events = strata.event[strata.begin[position] : strata.begin[position + 1]]
    return strata.begin[position] + ranges(np.searchsorted(events, low), np.searchsorted(events, high))


def _merged(found: Sequence[SequenceLists]) -> SequenceLists:
    """Lists of several branches as one: up to the worst score that all of them have reached."""
    stretches = len(found[0].complete)
    stretch = np.concatenate([np.repeat(np.arange(stretches), np.diff(one.offsets)) for one in found])
    scores = np.concatenate([one.scores for one in found])
    events = np.concatenate([one.events for one in found])
    worst = np.full(stretches, np.inf if scores.dtype == np.float64 else np.iinfo(np.int64).max, scores.dtype)
    for one in found:
        open_ = np.flatnonzero(~one.complete)  # these have entries
        worst[open_] = np.minimum(worst[open_], one.scores[one.offsets[open_ + 1] - 1])
    order = np.lexsort((scores, stretch))
    order = order[scores[order] <= worst[stretch[order]]]
    offsets = np.searchsorted(stretch[order], np.arange(stretches + 1)).astype(np.int64)
    complete = np.logical_and.reduce([one.complete for one in found])
    blank = np.logical_or.reduce([one.blank for one in found])
    return SequenceLists(offsets, scores[order], events[order], complete, blank)


class ListedSequences:
    """A component: the sequences of an operand in one stretch, best first.

    A turn is a number of stretches whose lists are made together, from `low` to `high`; this is one of them. `read` is
    how many entries of its list were looked at.
    `blank`: some have no score, or there are too many.
    """

    def __init__(self, ranked: RankedOperand, lists: SequenceLists, low: Array, high: Array, number: int) -> None:
        self._ranked, self._number, self._low, self._high, self.read = ranked, number, low, high, 0
        self.positions = len(ranked.operand.positions)
        some = slice(lists.offsets[number], lists.offsets[number + 1])
        self._scores, self._events = lists.scores[some], lists.events[some]
        self._complete, self.blank = bool(lists.complete[number]), bool(lists.blank[number])

    @property
    def exhausted(self) -> bool:
        return self._complete and self.read >= len(self._scores)

    @property
    def cost(self) -> float:
        return self._ranked.cost

    def pull(self, count: int) -> Entries:
        self._have(self.read + count)
        some = slice(self.read, self.read + count)
        self.read = min(some.stop, len(self._scores))
        return Entries(self._scores[some], self._events[some])

    def _have(self, count: int) -> None:
        """Have so many entries in the list, if there are.

        Of sequences with equal scores, a longer list may have others first. So what there is stays, and what is new
        comes behind it, where it belongs: a list has all that is better than its last entry.
        """
        wanted = max(FIRST, len(self._scores))
        while len(self._scores) < count and not self._complete:
            wanted = max(2 * wanted, count)
            if wanted > MOST:
                self._complete = self.blank = True
                return
            some = slice(self._number, self._number + 1)
            found = self._ranked.make(self._low[some], self._high[some], wanted)
            known = KeyNumbers(self.positions)
            known.numbers(self._events)
            new = known.numbers(found.events) >= len(self._events)
            self._scores = np.concatenate([self._scores, found.scores[new]])
            self._events = np.concatenate([self._events, found.events[new]])
            self._complete, self.blank = bool(found.complete[0]), self.blank or bool(found.blank[0])
