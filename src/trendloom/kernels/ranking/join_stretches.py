"""Which stretches of events are joined, each on its own, which are listed, and which need not be looked at.

A *stretch* is a window of a key, or a whole key. A bound on spans cuts a key by time into panes as long as the bound: a
match that begins in a pane ends in it or in the next, so these two are a stretch, for matches that begin in the first.
Stretches with the same `group` are ranked together: the panes of a key, and with OVERALL those of all keys.

Stretches with few combinations are listed, all in one call; large ones are joined, one after the other. Where several
are ranked together, the best sequence of every operand bounds what a stretch can give. Those with the best bounds come
first, a few, then twice as many, and so on; as soon as a group has k matches, stretches that cannot give a better one
are left out.

What a join cannot settle is listed in the end: more matches of one score than it looks at, conditions that so few
combinations pass that listing makes fewer of them, and matches without a score where too few have one.

The sequences of many stretches are made in one call, a *turn*, as many for each as the joins of the turn before have
read: windows that overlap share most of that work. Then each stretch is joined anew, in steps that the join before
suggests.

Cost: one call of `strata` for the bounds; for every round one listing, and the joins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.matches import Matches, join
from trendloom.kernels.ranking.join_entries import MERGES, merged
from trendloom.kernels.ranking.join_operands import (
    FIRST,
    HELD,
    JoinOperand,
    ListedSequences,
    RankedOperand,
    SequenceLists,
)
from trendloom.kernels.ranking.kernel import MADE
from trendloom.kernels.ranking.rank_join import JoinConditions, RankedRows, RankJoin
from trendloom.kernels.ranking.scores import Scored, best_of, concatenate_scored
from trendloom.kernels.ranking.windows import events_of, ranges_of, spans_of
from trendloom.model.time import Window

if TYPE_CHECKING:
    from trendloom.kernels.ranking.join_kernel import RankJoinKernel

FEW = 1 << 11
"""Matches that are expected in a stretch up to which all of them are listed: a join takes about as long."""
LISTED = 1 << 25
"""Combinations in one call of listing, if there are several stretches."""
OPENED = 8
"""Stretches of a group that are looked at first."""
MOST = 2**62
BY_LISTING, BY_JOIN, LEFT_OUT = "stretches listed", "stretches joined", "stretches that cannot hold the best"
"""What EXPLAIN says of stretches."""
FIRST_TURN, GROWTH, LONGEST_TURN = 2, 4, 1 << 12
"""Stretches of the first turn, how many times as many the next one has, and those of the longest."""
PATIENCE = 1 << 22
"""Combinations that a join tries before it is given up, if listing makes fewer."""
READ = "sequences read"
"""What EXPLAIN says of joins."""


@dataclass(frozen=True, eq=False)
class Stretches:
    """The events of stretch i are those from `low[i]` to `high[i]`, of operand o those from `begin[o][i]` on.

    `start`: of windows. `first_end`: where the events end with which a match may begin; None: anywhere.
    """

    low: Array
    high: Array
    begin: tuple[Array, ...]
    group: Array
    start: Array | None
    first_end: Array | None

    def __len__(self) -> int:
        return len(self.low)

    def holding(self, block: Block, first: Array, start: Array | None) -> Array:
        """The stretches of matches, by their first events and the starts of their windows."""
        if self.first_end is not None:
            return np.searchsorted(self.low, first, side="right") - 1
        if start is None or self.start is None:
            return block.key[first]
        starts = np.unique(self.start)
        codes = block.key[self.low] * len(starts) + np.searchsorted(starts, self.start)
        return np.searchsorted(codes, block.key[first] * len(starts) + np.searchsorted(starts, start))


def stretches_of(block: Block, window: Window, operands: Sequence[JoinOperand], *, overall: bool) -> Stretches:
    """The stretches of a block, in the order of their events."""
    if window.spanning:
        spans = spans_of(block, window)
        group = np.zeros(len(spans.pane_low), np.int64) if overall else block.key[spans.pane_low]
        begin = tuple(spans.pane_low for _ in operands)
        return Stretches(spans.pane_low, spans.pane_high, begin, group, None, spans.pane_end)
    ranges, start = ranges_of(block, window)
    if start is None:
        group = np.zeros(len(ranges.low), np.int64) if overall else np.arange(len(ranges.low))
        return Stretches(ranges.low, ranges.high, tuple(ranges.low for _ in operands), group, None, None)
    assert window.within is not None
    group = np.unique(start, return_inverse=True)[1].reshape(-1) if overall else np.arange(len(start))
    begin = tuple(_begins(block, ranges.low, start + window.within, operand.within) for operand in operands)
    return Stretches(ranges.low, ranges.high, begin, group, start, None)


def _begins(block: Block, low: Array, end: Array, within: int | None) -> Array:
    """Where the events of an operand begin in windows, which hold events and end at `end`."""
    if within is None:
        return low
    return np.maximum(low, block.not_before(block.key[low], end - within))


def combinations_in(
    stretches: Stretches, operands: Sequence[JoinOperand], block: Block, kept: Array | None = None
) -> Array:
    """By stretch at most how many combinations there are, of all events or of those `kept`. O(events · positions)."""
    found = np.ones(len(stretches))
    with np.errstate(over="ignore"):
        for operand, begin in zip(operands, stretches.begin, strict=True):
            found *= sequences_in(operand, begin, stretches.high, block, kept)
    return found


def sequences_in(operand: JoinOperand, begin: Array, end: Array, block: Block, kept: Array | None = None) -> Array:
    """By stretch of events at most how many sequences an operand has."""
    found = np.zeros(len(begin))
    with np.errstate(over="ignore"):
        for branch in operand.branches:
            product = np.ones(len(begin))
            for position in branch.positions:
                members = block.members[position]
                members = members if kept is None else members[kept[members]]
                product *= np.maximum(np.searchsorted(members, end) - np.searchsorted(members, begin), 0)
            found += product
    return found


# ------------------------------------------------------------------------------------------------ which stretches


class StretchSearch:
    """The search of one block. `number`: by stretch at most how many combinations it has."""

    def __init__(
        self, kernel: RankJoinKernel, block: Block, stretches: Stretches, number: Array,
        operands: Sequence[RankedOperand], conditions: JoinConditions, *, blanks: bool,
    ) -> None:  # fmt: skip
        self._kernel, self._block, self._stretches, self._number = kernel, block, stretches, number
        self._operands, self._blanks = operands, blanks
        self._joins = StretchJoins(kernel, block, stretches, operands, conditions, number / kernel.orders)
        self._bests = _GroupBests(int(stretches.group.max(initial=0)) + 1, kernel.scoring.limit)
        self._found: list[Scored] = []
        self._listed, self._joined = (np.zeros(len(stretches), np.bool_) for _ in range(2))
        self._unsettled: list[int] = []
        self._made, self._counts = 0.0, False

    def effort(self) -> dict[str, float]:
        """What the search does, by name; matches that are listed are made once more to count them."""
        self._counts = True
        self.best()
        listed, joined = int(self._listed.sum()), int(self._joined.sum())
        whole = {BY_LISTING: listed, BY_JOIN: joined, LEFT_OUT: int((self._number > 0).sum()) - listed - joined}
        return {MADE: self._made} | {name: float(some) for name, some in (whole | {READ: self._joins.read}).items()}

    def best(self) -> Matches:
        """The best matches of every group."""
        stretches = np.flatnonzero(self._number > 0)
        for chosen in self._rounds(stretches):
            few = self._number[chosen] <= FEW * self._kernel.orders
            if few.any():
                self._list(chosen[few])
            if not few.all():
                self._join(chosen[~few])
        self._settle(stretches)
        scored = [one for one in self._found if len(one)]
        return best_of(concatenate_scored(scored), self._block, self._kernel.scoring).matches if scored else join([])

    # ------------------------------------------------------------------------------------------- which stretches

    def _rounds(self, stretches: Array) -> Iterator[Array]:
        """Stretches in the order in which they are looked at, some at a time."""
        group = self._stretches.group[stretches]
        if len(np.unique(group)) == len(group):
            yield stretches
            return
        bound, possible = self._bounds(stretches)
        stretches, group, bound = stretches[possible], group[possible], bound[possible]
        order = np.lexsort((bound, group))
        stretches, group, bound = stretches[order], group[order], bound[order]
        first = np.r_[True, group[1:] != group[:-1]] if len(group) else np.zeros(0, np.bool_)
        place = np.arange(len(group)) - np.flatnonzero(first)[np.cumsum(first) - 1]
        begin, end = 0, OPENED
        while True:
            chosen = (place >= begin) & (place < end) & self._bests.may_take(group, bound)
            if not chosen.any():
                return
            yield np.sort(stretches[chosen])
            begin, end = end, end + 2 * (end - begin)

    def _bounds(self, stretches: Array) -> tuple[Array, Array]:
        """By stretch the merit that no match exceeds, and whether there can be a match with a score."""
        kernel, high = self._kernel, self._stretches.high[stretches]
        parts, possible, unknown = [], np.ones(len(stretches), np.bool_), np.zeros(len(stretches), np.bool_)
        for operand, begin in zip(self._operands, self._stretches.begin, strict=True):
            lists = operand.make(begin[stretches], high, 1)
            there = np.diff(lists.offsets) > 0
            tops = np.zeros(len(stretches), kernel.score_type)
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

    def _list(self, stretches: Array) -> None:
        """List the matches of some stretches, which may overlap others."""
        kept = events_of(self._stretches.low[stretches], self._stretches.high[stretches], len(self._block))
        if (
            len(stretches) > 1
            and combinations_in(self._stretches, self._kernel.operands, self._block, kept).sum() > LISTED
        ):
            half = len(stretches) // 2
            self._list(stretches[:half])
            self._list(stretches[half:])
            return
        self._listed[stretches] = True
        rows = np.flatnonzero(kept)
        some = self._block.only(kept)
        matches = self._kernel.listing.best(some)
        if self._counts:
            self._made += self._kernel.listing.effort(some)[MADE]
        if not len(matches):
            return
        matches = replace(matches, events=rows[matches.events])
        holding = self._stretches.holding(self._block, matches.first, matches.window_start)
        listed = np.zeros(len(self._stretches), np.bool_)
        listed[stretches] = True
        self._note(matches.take(np.flatnonzero(listed[holding])), holding[listed[holding]])

    def _join(self, stretches: Array) -> None:
        found, holding = [], []
        for stretch, matches in self._joins.ranked(stretches):
            if matches is None:
                self._unsettled.append(stretch)
            elif len(matches):
                found.append(matches)
                holding.append(np.full(len(matches), stretch))
        self._joined[stretches] = True
        self._made += sum(map(len, found))
        if found:
            self._note(join(found), np.concatenate(holding))

    def _note(self, matches: Matches, stretch: Array) -> None:
        """Take matches of stretches."""
        if len(matches):
            scored = self._kernel.scored(self._block, matches)
            self._found.append(scored)
            self._bests.add(self._stretches.group[stretch], scored)

    def _settle(self, stretches: Array) -> None:
        """List what joins could not settle; what they found of the same stretches is dropped."""
        open_ = np.zeros(len(self._stretches), np.bool_)
        open_[self._unsettled] = True
        if self._blanks:
            open_[stretches] |= ~self._bests.full[self._stretches.group[stretches]]
        again = np.flatnonzero(open_ & ~self._listed)
        if not len(again):
            return
        for number, scored in enumerate(self._found):
            holding = self._stretches.holding(self._block, scored.matches.first, scored.matches.window_start)
            self._found[number] = scored.take(np.flatnonzero(~(open_ & ~self._listed)[holding]))
        self._joined[again] = False
        self._list(again)


class _GroupBests:
    """By group whether there are as many matches with a score as are wanted, and the merit of the last of them."""

    def __init__(self, groups: int, limit: int) -> None:
        self.full = np.zeros(groups, np.bool_)
        self._limit, self._last = limit, np.zeros(0)
        self._group, self._merit = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def may_take(self, group: Array, bound: Array) -> Array:
        """Which stretches may still give one of the best."""
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


# ------------------------------------------------------------------------------------------------ joins


class StretchJoins:
    """The joins of a block's stretches."""

    def __init__(
        self, kernel: RankJoinKernel, block: Block, stretches: Stretches, operands: Sequence[RankedOperand],
        conditions: JoinConditions, expected: Array,
    ) -> None:  # fmt: skip
        """`expected`: by stretch how many matches there may be."""
        self._kernel, self._block, self._stretches, self._expected = kernel, block, stretches, expected
        self._operands, self._conditions = operands, conditions
        self._depths = [FIRST] * len(operands)
        self.read, self._last_read = 0, [0] * len(operands)

    def ranked(self, stretches: Array) -> Iterator[tuple[int, Matches | None]]:
        """The best combinations of stretches, which come in order; None: some have no score, or a join gave up."""
        begin, size = 0, FIRST_TURN
        while begin < len(stretches):
            turn = stretches[begin : begin + size]
            made = self._made(turn)
            read = np.zeros((len(turn), len(self._operands)), np.int64)
            for number, stretch in enumerate(turn.tolist()):
                components = [ListedSequences(*lists, number) for lists in made]
                rows = self._best(stretch, components)
                read[number] = self._last_read = [component.read for component in components]
                blank = rows.more or any(component.blank for component in components)
                yield stretch, None if blank else self._matches(rows, stretch)
            self.read += int(read.sum())
            self._depths = [_enough(some) for some in read.T]
            begin += size
            size = min(GROWTH * size, LONGEST_TURN, max(FIRST_TURN, HELD // sum(self._depths)))

    def _made(self, turn: Array) -> list[tuple[RankedOperand, SequenceLists, Array, Array]]:
        """By operand its sequences in the stretches of a turn."""
        high = self._stretches.high[turn]
        return [
            (operand, operand.make(begin[turn], high, depth), begin[turn], high)
            for operand, begin, depth in zip(self._operands, self._stretches.begin, self._depths, strict=True)
        ]

    def _best(self, stretch: int, components: Sequence[ListedSequences]) -> RankedRows:
        kernel = self._kernel
        found = RankJoin(
            components,
            kernel.merge,
            self._conditions_in(stretch),
            type_=kernel.score_type,
            patience=max(PATIENCE, self._expected[stretch]),
        )
        found.expect(self._last_read)
        return found.best(kernel.scoring.limit)

    def _conditions_in(self, stretch: int) -> JoinConditions:
        """The conditions on combinations; where spans are bounded, matches begin in the stretch's own part."""
        if self._stretches.first_end is None:
            return self._conditions
        first_end, within = int(self._stretches.first_end[stretch]), self._kernel.pattern_spec.window.within
        time, others = self._block.time, self._conditions.residual

        def passes(events: Sequence[Array]) -> Array:
            every = np.concatenate(events, axis=1)
            first, last = np.where(every < 0, len(time), every).min(axis=1), every.max(axis=1)
            good = (first < first_end) & (time[last] - time[first] < within)
            return good if others is None else good & others(events)

        return replace(self._conditions, residual=passes)

    def _matches(self, rows: RankedRows, stretch: int) -> Matches:
        start = None if self._stretches.start is None else np.full(len(rows.scores), self._stretches.start[stretch])
        return self._kernel.matches_of(self._block, rows.events, start)


def _enough(read: Array) -> int:
    """How many sequences are made of each stretch, after so many were read of others."""
    return max(FIRST, 1 << int(np.ceil(np.log2(read.max() + 1))))
