"""Signatures as the search returns them: the events, their positions, and the events that must not lie in between.

A signature is a list of events with positions that may be a match; `confidence` computes how likely it is, and when.
All times are points. Flat arrays, one chunk at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import IntervalBlock
from trendloom.kernels.columns.segments import first_at_least, gather_segments
from trendloom.kernels.contract.matches import Matches
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.partial_matches import Paths
from trendloom.kernels.uncertain.confidence.in_order import ForwardVectors

EVENT, GAP, FORBIDDEN, EXCUSED_BY, EXCUSES = range(5)
"""Columns of `Rivals.rows`."""


class Rivals(NamedTuple):
    """Events outside a signature that matter for it, by event, then gap: `rows[offsets[s]:offsets[s + 1]]`.

    Gap g of a signature is the open interval between its g-th event and the next: gap 1 is between the first and the
    second, gap 0 before the first, gap n after the last. `FORBIDDEN`: the signature is no match if the event lies in
    the gap, unless it is excused: `EXCUSED_BY` are bits of excuses, and the event is harmless if another with one of
    these bits in `EXCUSES` lies in the same gap strictly before it.
    """

    offsets: Array
    rows: Array

    def of(self, signatures: Array) -> Rivals:
        """Those of some signatures, in the order given."""
        offsets = np.r_[0, np.cumsum(np.diff(self.offsets)[signatures])].astype(np.int64)
        kept = gather_segments(self.offsets, np.arange(len(self.rows)), signatures, offsets)
        return Rivals(offsets, self.rows[kept])


@dataclass(frozen=True, eq=False)
class Signatures:
    """What may be `matches`, with what their confidences depend on besides.

    `window`: of each the first and the last point of its window, both included; None: there are no windows that slide.
    `span`: in points, the last event comes less than this after the first; None: it may take any time.
    """

    matches: Matches
    window: Array | None
    span: int | None
    rivals: Rivals | None

    def __len__(self) -> int:
        return len(self.matches)


# ------------------------------------------------------------------------------------------------------------------
# The events that fit each position, by earliest point: which may come after one time and before another.
#
# Within a key the earliest points rise, and so does the greatest latest point so far; so the events that may lie
# between two times are a slice, found by bisection, with few others among them.


FAR = np.int64(2**62)
"""Later than every point."""


@dataclass(frozen=True, eq=False)
class PositionEvents:
    """`events`: indices into the block, by key and earliest point. Those of key k are `starts[k]` to `starts[k + 1]`.

    `highest`: the greatest latest point of this event and those of its key before it.
    """

    events: Array
    starts: Array
    low: Array
    high: Array

    @cached_property
    def highest(self) -> Array:
        return highest_so_far(self.high, self.starts)

    def between(self, key: Array, after: Array, until: Array | None) -> tuple[Array, Array]:
        """Per row the slice that holds all events of a key that may come later than `after` and not after `until`.

        It may hold others that have ended before: `high > after` is left to be tested. O(log events) per row.
        """
        first, end = self.starts[key], self.starts[key + 1]
        begin = first_at_least(first, end, self.highest, after + 1)
        if until is not None:
            end = first_at_least(first, end, self.low, until + 1)
        return begin, np.maximum(begin, end)

    @cached_property
    def _by_end(self) -> Array:
        key = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        return np.lexsort((self.high, key))

    def least_after(self, values: Array, key: Array, after: Array) -> Array:
        """Per row the least value among the events of a key that may come later than `after`; FAR: there is none."""
        order = self._by_end
        first, end = self.starts[key], self.starts[key + 1]
        begin = first_at_least(first, end, self.high[order], after + 1)
        least = least_from_here(values[order], self.starts)
        return np.where(begin < end, np.r_[least, FAR][begin], FAR)

    @cached_property
    def _soonest_ends(self) -> Array:
        return np.r_[least_from_here(self.high, self.starts), FAR]

    def surely_between(self, key: Array, after: Array, before: Array) -> Array:
        """Per row, whether an event of a key lies between two times for certain."""
        first, end = self.starts[key], self.starts[key + 1]
        begin = first_at_least(first, end, self.low, after + 1)
        return (begin < end) & (self._soonest_ends[begin] < before)


def events_by_position(block: IntervalBlock) -> tuple[PositionEvents, ...]:
    """For every position of the pattern, NOTs included, the events that fit it."""
    found: dict[int, PositionEvents] = {}
    for bit, members in zip(block.bits, block.members, strict=True):
        if bit not in found:
            starts = np.searchsorted(members, block.key_starts).astype(np.int64)
            found[bit] = PositionEvents(members, starts, block.first_point[members], block.last_point[members])
    return tuple(found[bit] for bit in block.bits)


@njit(nogil=True)
def highest_so_far(values: Array, starts: Array) -> Array:
    """Per entry the greatest of its segment up to it. O(entries)."""
    found = values.copy()
    for segment in range(len(starts) - 1):
        for at in range(starts[segment] + 1, starts[segment + 1]):
            if found[at - 1] > found[at]:
                found[at] = found[at - 1]
    return found


@njit(nogil=True)
def least_from_here(values: Array, starts: Array) -> Array:
    """Per entry the least of its segment from it on. O(entries)."""
    found = values.copy()
    for segment in range(len(starts) - 1):
        for at in range(starts[segment + 1] - 2, starts[segment] - 1, -1):
            if found[at + 1] < found[at]:
                found[at] = found[at + 1]
    return found


# ------------------------------------------------------------------------------------------------------------------
# Partial signatures of equal length, many at a time, with the times they allow.
#
# Two numbers bound the times of a partial signature e_1 .. e_j: the least time of e_j, each event as early as
# possible, and the greatest time of e_1 that leaves room for the others:
#
#     least_j  = max(least_{j-1} + 1, low_j)
#     latest_j = min(latest_{j-1}, high_j - (j - 1))
#
# It is possible iff least_j <= high_j, and within a span of W points iff also max(least_j - latest_j, j - 1) < W. So an
# extension is decided in O(1), exactly, unless points inside an interval have no probability.


@dataclass(frozen=True, eq=False)
class OrderedPaths(Paths):
    """Events in the order in which they are bound: their times do not order them."""

    @cached_property
    def instants(self) -> Array:
        return np.broadcast_to(np.arange(self.events.shape[1]), self.events.shape)


@dataclass(frozen=True, eq=False)
class Followers:
    """Those of row r of `of` are `events[offsets[r]:offsets[r + 1]]`, each by a step; one event may come by several."""

    of: PartialSignatures
    offsets: Array
    events: Array
    steps: Array


@dataclass(frozen=True, eq=False)
class FollowerOrigin:
    """Row r extends row `origin[r]` of `followers.of`."""

    followers: Followers
    origin: Array


@dataclass(frozen=True, eq=False)
class PartialSignatures:
    """`found_as`: kept where other events that could extend them matter; `in_order`: where a threshold is given."""

    paths: OrderedPaths
    least: Array
    latest: Array
    found_as: FollowerOrigin | None = None
    in_order: ForwardVectors | None = None

    def __len__(self) -> int:
        return len(self.least)

    @property
    def length(self) -> int:
        return int(self.paths.events.shape[1])

    @property
    def states(self) -> Array:
        return self.paths.automaton.target_of[self.paths.steps[:, -1]]

    @cached_property
    def key(self) -> Array:
        return self.paths.block.key[self.paths.events[:, 0]]

    def part(self, begin: int, end: int) -> PartialSignatures:
        """Those from `begin` up to `end`, as views."""
        return self if begin == 0 and end >= len(self) else self.take(slice(begin, end))

    def take(self, rows: Array | slice) -> PartialSignatures:
        """Some of them."""
        found_as = None if self.found_as is None else replace(self.found_as, origin=self.found_as.origin[rows])
        in_order = None if self.in_order is None else self.in_order.take(rows)
        return PartialSignatures(_of_rows(self.paths, rows), self.least[rows], self.latest[rows], found_as, in_order)


def _of_rows(paths: OrderedPaths, rows: Array | slice) -> OrderedPaths:
    return ordered_paths(paths.automaton, paths.block, paths.events[rows], paths.steps[rows])


def ordered_paths(automaton: Automaton, block: Any, events: Array, steps: Array) -> OrderedPaths:
    """Partial signatures of the pattern itself."""
    return OrderedPaths(automaton, block, 0, 0, events, steps, np.arange(len(events)), {})


def nothing_bound(automaton: Automaton, block: IntervalBlock) -> PartialSignatures:
    """One row without events, for a search to begin with."""
    events = np.zeros((1, 0), np.int64)
    return PartialSignatures(
        ordered_paths(automaton, block, events, events.astype(np.int32)), np.array([-FAR]), np.array([FAR])
    )


def times_allowed(block: IntervalBlock, events: Array, span: int | None) -> tuple[Array, Array]:
    """Of signatures as a matrix the least and the greatest point of each event, as far as order and span decide them.

    Each event is at least a point after the one before it: without these steps, least points never fall along a
    signature, and greatest points never rise from its end on.
    """
    length = events.shape[1]
    steps = np.arange(length)
    low = np.maximum.accumulate(block.first_point[events] - steps, axis=1)
    high = np.minimum.accumulate((block.last_point[events] - steps)[:, ::-1], axis=1)[:, ::-1]
    if span is not None and length:
        low, high = np.maximum(low, low[:, -1:] + length - span), np.minimum(high, high[:, :1] + span - length)
    return low + steps, high + steps
