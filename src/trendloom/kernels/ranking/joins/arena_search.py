"""Which arenas of a block are listed, which are joined, and which need not be looked at.

Arenas with few combinations are listed, all in one call; large ones are joined, one after the other. Where several
arenas are ranked together, the best sequence of every operand bounds what an arena can give. Those with the best bounds
come first, a few, then twice as many, and so on; as soon as a group has k matches, arenas that cannot give a better one
are left out.

What a join cannot settle is listed in the end: more matches of one score than it looks at, conditions that so few
combinations pass that listing makes fewer of them, and matches without a score where too few have one.

Cost: one call of `strata` for the bounds; for every round one listing, and the joins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.matches import Matches, join
from trendloom.kernels.ranking.joins.arenas import Arenas, combinations_in
from trendloom.kernels.ranking.joins.joined_arenas import ArenaJoins
from trendloom.kernels.ranking.joins.merging import MERGES, merged
from trendloom.kernels.ranking.joins.rank_join import JoinConditions
from trendloom.kernels.ranking.joins.sequences import RankedOperand
from trendloom.kernels.ranking.kernel import MADE
from trendloom.kernels.ranking.select import Scored, best_of, together

if TYPE_CHECKING:
    from trendloom.kernels.ranking.joins.kernel import RankJoinKernel


FEW = 1 << 11
"""Matches that are expected in an arena up to which all of them are listed: a join takes about as long."""
LISTED = 1 << 25
"""Combinations in one call of listing, if there are several arenas."""
OPENED = 8
"""Arenas of a group that are looked at first."""
MOST = 2**62
BY_LISTING, BY_JOIN, LEFT_OUT = "stretches listed", "stretches joined", "stretches that cannot hold the best"
"""What EXPLAIN says of arenas."""


class ArenaSearch:
    """The search of one block. `number`: by arena at most how many combinations it has."""

    def __init__(
        self, kernel: RankJoinKernel, block: Block, arenas: Arenas, number: Array, operands: Sequence[RankedOperand],
        conditions: JoinConditions, *, blanks: bool,
    ) -> None:  # fmt: skip
        self._kernel, self._block, self._arenas, self._number = kernel, block, arenas, number
        self._operands, self._blanks = operands, blanks
        self._joins = ArenaJoins(kernel, block, arenas, operands, conditions, number / kernel.orders)
        self._bests = _GroupBests(int(arenas.group.max(initial=0)) + 1, kernel.scoring.limit)
        self._found: list[Scored] = []
        self._listed, self._joined = (np.zeros(len(arenas), np.bool_) for _ in range(2))
        self._unsettled: list[int] = []
        self._made, self._counts = 0.0, False

    def effort(self) -> dict[str, float]:
        """What the search does, by name; matches that are listed are made once more to count them."""
        self._counts = True
        self.best()
        listed, joined = int(self._listed.sum()), int(self._joined.sum())
        whole = {BY_LISTING: listed, BY_JOIN: joined, LEFT_OUT: int((self._number > 0).sum()) - listed - joined}
        return {MADE: self._made} | {name: float(some) for name, some in (whole | self._joins.tally).items()}

    def best(self) -> Matches:
        """The best matches of every group."""
        arenas = np.flatnonzero(self._number > 0)
        for chosen in self._rounds(arenas):
            few = self._number[chosen] <= FEW * self._kernel.orders
            if few.any():
                self._list(chosen[few])
            if not few.all():
                self._join(chosen[~few])
        self._settle(arenas)
        scored = [one for one in self._found if len(one)]
        return best_of(together(scored), self._block, self._kernel.scoring).matches if scored else join([])

    # ------------------------------------------------------------------------------------------- which arenas

    def _rounds(self, arenas: Array) -> Iterator[Array]:
        """Arenas in the order in which they are looked at, some at a time."""
        group = self._arenas.group[arenas]
        if len(np.unique(group)) == len(group):
            yield arenas
            return
        bound, possible = self._bounds(arenas)
        arenas, group, bound = arenas[possible], group[possible], bound[possible]
        order = np.lexsort((bound, group))
        arenas, group, bound = arenas[order], group[order], bound[order]
        first = np.r_[True, group[1:] != group[:-1]] if len(group) else np.zeros(0, np.bool_)
        place = np.arange(len(group)) - np.flatnonzero(first)[np.cumsum(first) - 1]
        begin, end = 0, OPENED
        while True:
            chosen = (place >= begin) & (place < end) & self._bests.may_take(group, bound)
            if not chosen.any():
                return
            yield np.sort(arenas[chosen])
            begin, end = end, end + 2 * (end - begin)

    def _bounds(self, arenas: Array) -> tuple[Array, Array]:
        """By arena the merit that no match exceeds, and whether there can be a match with a score."""
        kernel, high = self._kernel, self._arenas.high[arenas]
        parts, possible, unknown = [], np.ones(len(arenas), np.bool_), np.zeros(len(arenas), np.bool_)
        for operand, begin in zip(self._operands, self._arenas.begin, strict=True):
            lists = operand.make(begin[arenas], high, 1)
            there = np.diff(lists.offsets) > 0
            tops = np.zeros(len(arenas), kernel.score_type)
            tops[there] = lists.scores[lists.offsets[:-1][there]]
            parts.append(tops)
            possible &= there
            unknown |= lists.blank
        bound = merged(MERGES.index(kernel.merge), parts)
        if bound.dtype == np.int64 and kernel.scoring.descending:
            bound = bound - 1  # merits of integers are complements: see `select`
        least = -np.inf if bound.dtype == np.float64 else np.iinfo(np.int64).min
        return np.where(unknown, least, bound), possible

    # ------------------------------------------------------------------------------------------- what is found

    def _list(self, arenas: Array) -> None:
        """List the matches of some arenas, which may overlap others."""
        kept = self._arenas.events(arenas, len(self._block))
        if len(arenas) > 1 and combinations_in(self._arenas, self._kernel.operands, self._block, kept).sum() > LISTED:
            half = len(arenas) // 2
            self._list(arenas[:half])
            self._list(arenas[half:])
            return
        self._listed[arenas] = True
        rows = np.flatnonzero(kept)
        some = self._block.only(kept)
        matches = self._kernel.listing.best(some)
        if self._counts:
            self._made += self._kernel.listing.effort(some)[MADE]
        if not len(matches):
            return
        matches = replace(matches, events=rows[matches.events])
        holding = self._arenas.holding(self._block, matches.first, matches.window_start)
        asked = np.zeros(len(self._arenas), np.bool_)
        asked[arenas] = True
        self._note(matches.take(np.flatnonzero(asked[holding])), holding[asked[holding]])

    def _join(self, arenas: Array) -> None:
        found, holding = [], []
        for arena, matches in self._joins.ranked(arenas):
            if matches is None:
                self._unsettled.append(arena)
            elif len(matches):
                found.append(matches)
                holding.append(np.full(len(matches), arena))
        self._joined[arenas] = True
        self._made += sum(map(len, found))
        if found:
            self._note(join(found), np.concatenate(holding))

    def _note(self, matches: Matches, arena: Array) -> None:
        """Take matches of arenas."""
        if len(matches):
            scored = self._kernel.scored(self._block, matches)
            self._found.append(scored)
            self._bests.add(self._arenas.group[arena], scored)

    def _settle(self, arenas: Array) -> None:
        """List what joins could not settle; what they found of the same arenas is dropped."""
        asked = np.zeros(len(self._arenas), np.bool_)
        asked[self._unsettled] = True
        if self._blanks:
            asked[arenas] |= ~self._bests.full[self._arenas.group[arenas]]
        again = np.flatnonzero(asked & ~self._listed)
        if not len(again):
            return
        for number, scored in enumerate(self._found):
            holding = self._arenas.holding(self._block, scored.matches.first, scored.matches.window_start)
            self._found[number] = scored.take(np.flatnonzero(~(asked & ~self._listed)[holding]))
        self._joined[again] = False
        self._list(again)


class _GroupBests:
    """By group whether there are as many matches with a score as are wanted, and the merit of the last of them."""

    def __init__(self, groups: int, limit: int) -> None:
        self.full = np.zeros(groups, np.bool_)
        self._limit, self._last = limit, np.zeros(0)
        self._group, self._merit = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def may_take(self, group: Array, bound: Array) -> Array:
        """Which arenas may still give one of the best."""
        if not len(self._last):
            return np.ones(len(group), np.bool_)
        return ~self.full[group] | (bound <= self._last[group])

    def add(self, group: Array, scored: Scored) -> None:
        known = ~scored.unknown
        if not known.any():
            return
        merit = scored.merit[known]
        if merit.dtype == object:  # integers beyond what any bound can be
            merit = np.clip(merit, -MOST, MOST).astype(np.int64)
        group = np.concatenate([self._group, group[known]])
        merit = np.concatenate([self._merit.astype(merit.dtype), merit])
        order = np.lexsort((merit, group))
        group, merit = group[order], merit[order]
        first = np.r_[True, group[1:] != group[:-1]]
        place = np.arange(len(group)) - np.flatnonzero(first)[np.cumsum(first) - 1]
        kept = place < self._limit
        self._group, self._merit = group[kept], merit[kept]
        last = place == self._limit - 1
        if not len(self._last):
            self._last = np.zeros(len(self.full), merit.dtype)
        self.full[group[last]] = True
        self._last[group[last]] = merit[last]
