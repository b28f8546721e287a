"""The best sequences of windows by a function of their parts that is monotone in each of them, but not a sum.

Every position of the sequence has a queue of its events, joined in order of time. Best paths cannot be added up here,
but bounds can be had: with an event e at its position, no match is better than the function of e's part and of the best
part that each other position has on its side of e. That is e's *potential*. (A corner bound, as of `rank_join`, would
take the best parts of all events; those on the wrong side of e make it worse than it has to be.) Queues are in order
of potential, and they are read as one: the events with the least potentials are joined with those read before, and when
the k-th match is at least as good as the next potential, nothing that is missing can be better.

Windows with few sequences are listed, many at a time; the others are ranked one after the other.

Cost: sequences of small windows, vectorised; potentials O(events · positions · log events) for each window; then
matches of the events read whose bounds do not exceed the k-th match so far, and nothing of those behind it.
See X. Wang, "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern Queries over Event Streams", figures 3.9, 3.17
and 3.18; there, events that were joined stay joined when the window moves on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.ranking.join_entries import ranges
from trendloom.kernels.ranking.rank_join import MOST, BestResults, RankedRows

FIRST_BATCH, SHARE = 32, 4
"""Events that are read first, and which share of those that were read are read next."""
PIECE = 1 << 17
"""Partial matches that are made at a time, unless a single event has more."""
LISTED = 1 << 12
"""Choices of events, in order or not, up to which a window is listed."""
TOGETHER = 1 << 19
"""Choices of all windows that are listed at a time."""


@dataclass(frozen=True)
class Parts:
    """The events of each position, ascending, with their parts, and the score of parts: smaller is better.

    `score` takes a column for each position and gives one; it rises with the parts of positions that `rises` says, and
    falls with the others. `tie_end`: by event, the first one that is later.
    """

    events: Sequence[Array]
    values: Sequence[Array]
    tie_end: Array
    score: Callable[[list[Array]], Array]
    rises: Sequence[bool]

    @property
    def positions(self) -> int:
        return len(self.events)


class _Queue:
    """The events of one position in a window: their parts, potentials, and which were read."""

    def __init__(self, parts: Parts, position: int, low: int, high: int) -> None:
        begin, end = np.searchsorted(parts.events[position], [low, high])
        self.event = parts.events[position][begin:end]
        self.value = parts.values[position][begin:end]
        self.later = parts.tie_end[self.event]
        self.read = np.zeros(len(self.event), np.bool_)
        self.possible = np.ones(len(self.event), np.bool_)
        self.others: list[Array] = [self.value] * parts.positions
        """By position: the best part it can have beside each of these events."""

    def bests(self, *, rises: bool, forwards: bool) -> Array:
        """The best part of the first 1, 2, ... events, or of the last ones."""
        best = np.minimum if rises else np.maximum
        values = self.value if forwards else self.value[::-1]
        return best.accumulate(values) if len(values) else values


class PartsRanking:
    """The search for the best matches of a window."""

    def __init__(self, parts: Parts, low: int, high: int) -> None:
        self.parts, self.positions = parts, parts.positions
        self.tested = 0
        """Partial and whole matches that were made."""
        self._queues = [_Queue(parts, position, low, high) for position in range(self.positions)]
        for position in range(self.positions):
            self._look(position, range(position + 1, self.positions), forwards=False)
            self._look(position, range(position - 1, -1, -1), forwards=True)
        places = [np.flatnonzero(queue.possible) for queue in self._queues]
        some = zip(self._queues, places, strict=True)
        potential = np.concatenate([parts.score([values[at] for values in queue.others]) for queue, at in some])
        order = np.argsort(potential, kind="stable")
        self._potential, self._place = potential[order], np.concatenate(places)[order]
        self._position = np.repeat(np.arange(self.positions), [len(at) for at in places])[order]

    def best(self, k: int, *, ties: bool = False, most: int = MOST) -> RankedRows:
        """The k best matches; with `ties` all others that equal the last, up to `most` in all."""
        type_ = self.parts.score([values[:0] for values in self.parts.values]).dtype
        self._results = BestResults(k, most if ties else k, self.positions, type_)
        read = 0
        while read < len(self._place) and not self._results.are_certain(self._potential.item(read)):
            some = slice(read, read + max(FIRST_BATCH, read // SHARE))
            places, positions = self._place[some], self._position[some]
            self._join([places[positions == position] for position in range(self.positions)])
            read += len(places)
        return RankedRows(*self._results.ranked())

    def _look(self, position: int, others: range, *, forwards: bool) -> None:
        """The best parts on one side of each event of a position, neighbour after neighbour as far as they reach.

        `forwards`: on the side of earlier events, whose best parts are those of the first so many.
        """
        queue = self._queues[position]
        event, later = queue.event, queue.later
        for other in others:
            them = self._queues[other]
            bests = them.bests(rises=self.parts.rises[other], forwards=forwards)
            if forwards:
                count = np.searchsorted(them.later, event, side="right")
            else:
                count = len(them.event) - np.searchsorted(them.event, later)
            queue.possible &= count > 0
            if len(them.event) == 0:
                queue.others[other] = np.zeros(len(queue.event), them.value.dtype)
                continue
            queue.others[other] = bests[np.maximum(count, 1) - 1]
            nearest = np.maximum(count, 1) - 1 if forwards else len(them.event) - np.maximum(count, 1)
            event, later = them.event[nearest], them.later[nearest]

    # ---------------------------------------------------------------------------------------------- joining

    def _join(self, new: list[Array]) -> None:
        """All matches with at least one new event, by the first position that has one: those before it are old."""
        old = [np.flatnonzero(queue.read) for queue in self._queues]
        for queue, places in zip(self._queues, new, strict=True):
            queue.read[places] = True
        every = [np.flatnonzero(queue.read) for queue in self._queues]
        for position, places in enumerate(new):
            if len(places):
                rows = np.sort(places).reshape(-1, 1)
                self._extend(rows, (position, position), [*old[:position], *every[position:]])

    def _extend(self, rows: Array, span: tuple[int, int], sets: list[Array]) -> None:
        """Extend rows of places in the queues of a span of positions, to the end and then to the front."""
        first, last = span
        rows = self._good_enough(rows, span)
        if len(rows) == 0:
            return
        if last - first + 1 == self.positions:
            self._take(rows)
            return
        if last < self.positions - 1:
            begin, end = self._followers(rows[:, -1], last, sets[last + 1])
            span, column = (first, last + 1), last + 1
        else:
            begin, end = self._predecessors(rows[:, 0], first, sets[first - 1])
            span, column = (first - 1, last), first - 1
        for some in _pieces(end - begin):
            taken = np.repeat(rows[some], end[some] - begin[some], axis=0)
            more = sets[column][ranges(begin[some], end[some])].reshape(-1, 1)
            extended = np.hstack([taken, more] if column > first else [more, taken])
            self.tested += len(extended)
            self._extend(extended, span, sets)

    def _followers(self, places: Array, position: int, others: Array) -> tuple[Array, Array]:
        begin = np.searchsorted(self._queues[position + 1].event[others], self._queues[position].later[places])
        return begin, np.full(len(begin), len(others))

    def _predecessors(self, places: Array, position: int, others: Array) -> tuple[Array, Array]:
        earlier = self._queues[position - 1].later[others]
        end = np.searchsorted(earlier, self._queues[position].event[places], side="right")
        return np.zeros(len(end), np.int64), end

    def _good_enough(self, rows: Array, span: tuple[int, int]) -> Array:
        """Rows that can become matches which are kept: what is missing is at best what the ends of a row allow."""
        limit = self._results.horizon
        return rows if limit is None else rows[self._bound(rows, span) <= limit]

    def _bound(self, rows: Array, span: tuple[int, int]) -> Array:
        first, last = span
        columns = []
        for position in range(self.positions):
            if position < first:
                columns.append(self._queues[first].others[position][rows[:, 0]])
            elif position > last:
                columns.append(self._queues[last].others[position][rows[:, -1]])
            else:
                columns.append(self._queues[position].value[rows[:, position - first]])
        return self.parts.score(columns)

    def _take(self, rows: Array) -> None:
        scores = self._bound(rows, (0, self.positions - 1))
        columns = zip(self._queues, rows.T, strict=True)
        events = np.column_stack([queue.event[places] for queue, places in columns]).astype(np.int64, copy=False)
        self._results.add(scores, events)


def _pieces(sizes: Array) -> list[slice]:
    """Consecutive rows that are extended at a time."""
    if len(sizes) == 0:
        return []
    number = np.cumsum(sizes) // PIECE
    cuts = np.flatnonzero(np.diff(number)) + 1
    return [slice(one, other) for one, other in pairwise([0, *cuts.tolist(), len(sizes)])]


# ------------------------------------------------------------------------------------------------ windows


class RankedWindows(NamedTuple):
    """The best sequences of window w are the rows from `offsets[w]` to `offsets[w + 1]`, best first.

    `more[w]`: there are others with the score of its last row.
    """

    offsets: Array
    scores: Array
    events: Array
    more: Array


def best_of_parts(
    parts: Parts, low: Array, high: Array, k: int, *, ties: bool = False, most: int = MOST, listed: int = LISTED
) -> RankedWindows:
    """The k best of the events from `low` to `high` of each window; with `ties` all others that equal the last."""
    begin = np.stack([np.searchsorted(events, low) for events in parts.events])
    end = np.maximum(begin, np.stack([np.searchsorted(events, high) for events in parts.events]))
    choices = np.prod((end - begin).astype(np.float64), axis=0)
    found: dict[int, RankedRows] = {}
    for window in np.flatnonzero(choices > listed).tolist():
        found[window] = PartsRanking(parts, int(low[window]), int(high[window])).best(k, ties=ties, most=most)
    small = np.flatnonzero((choices > 0) & (choices <= listed))
    number = np.cumsum(choices[small]) // TOGETHER
    pieces = [small[number == one] for one in np.unique(number)]
    lists = [_listed(parts, begin[:, some], end[:, some], k, most if ties else k) for some in pieces]
    return _together(parts, len(low), found, list(zip(pieces, lists, strict=True)))


def _listed(parts: Parts, begin: Array, end: Array, k: int, most: int) -> RankedWindows:
    """The best sequences of several windows, by listing all of theirs."""
    count = begin.shape[1]
    window = np.repeat(np.arange(count), end[0] - begin[0])
    places = [ranges(begin[0], end[0])]
    for position in range(1, parts.positions):
        later = parts.tie_end[parts.events[position - 1][places[-1]]]
        first = np.searchsorted(parts.events[position], later)
        first = np.minimum(np.maximum(first, begin[position][window]), end[position][window])
        sizes = end[position][window] - first
        added = ranges(first, end[position][window])
        places = [*(np.repeat(each, sizes) for each in places), added]
        window = np.repeat(window, sizes)
    scores = parts.score([values[each] for values, each in zip(parts.values, places, strict=True)])
    order = np.lexsort((scores, window))
    window, scores = window[order], scores[order]
    starts = np.searchsorted(window, np.arange(count + 1))
    sizes = np.diff(starts)
    rank = np.arange(len(window)) - starts[:-1][window]
    last = starts[:-1] + np.minimum(k, sizes) - 1
    good = (rank < k) | (scores <= scores[last[window]])
    kept = good & (rank < max(k, most))
    more = np.bincount(window[good], minlength=count) > np.bincount(window[kept], minlength=count)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(window[kept], minlength=count))])
    chosen = order[kept]
    events = [each[place[chosen]] for each, place in zip(parts.events, places, strict=True)]
    return RankedWindows(offsets, scores[kept], np.column_stack(events).astype(np.int64, copy=False), more)


def _together(
    parts: Parts, windows: int, found: dict[int, RankedRows], lists: list[tuple[Array, RankedWindows]]
) -> RankedWindows:
    """All windows in their order."""
    more = np.zeros(windows, np.bool_)
    owners, scores, events = [], [parts.score([values[:0] for values in parts.values])], [_no_rows(parts)]
    for some, ranked in lists:
        more[some] = ranked.more
        owners.append(np.repeat(some, np.diff(ranked.offsets)))
        scores.append(ranked.scores)
        events.append(ranked.events)
    for window, rows in found.items():
        more[window] = rows.more
        owners.append(np.full(len(rows.scores), window))
        scores.append(rows.scores)
        events.append(rows.events)
    owner = np.concatenate([np.zeros(0, np.int64), *owners])
    order = np.argsort(owner, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=windows))])
    return RankedWindows(offsets, np.concatenate(scores)[order], np.concatenate(events)[order], more)


def _no_rows(parts: Parts) -> Array:
    return np.zeros((0, parts.positions), np.int64)
