"""Partial signatures of equal length, many at a time, with the times they allow.

Of a partial signature e_1 .. e_j two numbers say all about its times: the least time of e_j, each event as early as it
goes, and the greatest time of e_1 that leaves room for the others:

    least_j  = max(least_{j-1} + 1, low_j)
    latest_j = min(latest_{j-1}, high_j - (j - 1))

It is possible iff least_j <= high_j, and within a span of W points iff also max(least_j - latest_j, j - 1) < W. So an
extension is decided in O(1), exactly, unless points inside an interval have no probability.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.interval_block import IntervalBlock
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.partial_matches import Paths
from trendloom.kernels.uncertain.position_events import FAR

if TYPE_CHECKING:
    from trendloom.kernels.uncertain.followers import Followers


@dataclass(frozen=True, eq=False)
class OrderedPaths(Paths):
    """Events in the order in which they are bound: their times do not order them."""

    @cached_property
    def instants(self) -> Array:
        return np.broadcast_to(np.arange(self.events.shape[1]), self.events.shape)


@dataclass(frozen=True, eq=False)
class Trail:
    """How partial signatures came about: row r extends row `origin[r]` of those that `followers` speaks of."""

    followers: Followers
    origin: Array


class InOrder(NamedTuple):
    """Row r: `masses[r, i]` is how likely all events lie in order with the last one at point `base[r] + i`."""

    masses: Array
    base: Array

    def take(self, rows: Array | slice) -> InOrder:
        return InOrder(self.masses[rows], self.base[rows])


@dataclass(frozen=True, eq=False)
class Prefixes:
    """`trail`: kept where it matters who else could have extended them; `in_order`: where a threshold is given."""

    paths: OrderedPaths
    least: Array
    latest: Array
    trail: Trail | None = None
    in_order: InOrder | None = None

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

    def part(self, begin: int, end: int) -> Prefixes:
        """Those from `begin` up to `end`, as views."""
        return self if begin == 0 and end >= len(self) else self.take(slice(begin, end))

    def take(self, rows: Array | slice) -> Prefixes:
        """Some of them."""
        trail = None if self.trail is None else replace(self.trail, origin=self.trail.origin[rows])
        in_order = None if self.in_order is None else self.in_order.take(rows)
        return Prefixes(_of_rows(self.paths, rows), self.least[rows], self.latest[rows], trail, in_order)


def _of_rows(paths: OrderedPaths, rows: Array | slice) -> OrderedPaths:
    return ordered_paths(paths.automaton, paths.block, paths.events[rows], paths.steps[rows])


def ordered_paths(automaton: Automaton, block: Any, events: Array, steps: Array) -> OrderedPaths:
    """Partial signatures of the pattern itself."""
    return OrderedPaths(automaton, block, 0, 0, events, steps, np.arange(len(events)), {})


def nothing_bound(automaton: Automaton, block: IntervalBlock) -> Prefixes:
    """One row without events, for a search to begin with."""
    events = np.zeros((1, 0), np.int64)
    return Prefixes(ordered_paths(automaton, block, events, events.astype(np.int32)), np.array([-FAR]), np.array([FAR]))


def times_allowed(block: IntervalBlock, events: Array, span: int | None) -> tuple[Array, Array]:
    """Of signatures as a matrix the least and the greatest point of each event, as far as order and span decide them.

    Forward and backward once, and once more after the span has raised the first and lowered the last.
    """
    low, high = block.first_point[events], block.last_point[events]
    _rising(low)
    _falling(high)
    if span is not None and events.shape[1]:
        low[:, 0] = np.maximum(low[:, 0], low[:, -1] - span + 1)
        high[:, -1] = np.minimum(high[:, -1], high[:, 0] + span - 1)
        _rising(low)
        _falling(high)
    return low, high


def _rising(low: Array) -> None:
    for column in range(1, low.shape[1]):
        low[:, column] = np.maximum(low[:, column], low[:, column - 1] + 1)


def _falling(high: Array) -> None:
    for column in range(high.shape[1] - 2, -1, -1):
        high[:, column] = np.minimum(high[:, column], high[:, column + 1] - 1)
