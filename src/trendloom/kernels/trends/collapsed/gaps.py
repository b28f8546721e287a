"""What lies in the gaps of spines: Kleene events on some match, and the number of ways through, for many gaps at once.

All gaps of one kind become the keys of one block: the event before the gap, the events between that may take part, the
event after it. Conditions with events of the spine drop events, `prune` drops those on no match, and the aggregation
kernel counts the ways through, in numbers as wide as needed. No loop over gaps or events in Python.
Cost: O(events in the gaps), times the grain of the count where adjacent events are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Attribute, Expr, columns
from trendloom.expr.vectors import Vector, is_true
from trendloom.kernels.aggregate.block import aggregate
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract.pattern_spec import Pair, PatternSpec
from trendloom.kernels.contract.totals import Amounts
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.trends.collapsed.prune import on_a_match
from trendloom.kernels.trends.collapsed.spec import Gap, Settled

NOBODY = -1


@dataclass(frozen=True, eq=False)
class Asked:
    """Gaps of one kind to be filled: the events around each (`NOBODY`: start or end), and the indices between them.

    `spine`: for variables of the spine that conditions use, the event each gap's spine binds, or `NOBODY`.
    """

    source: Array
    target: Array
    low: Array
    high: Array
    spine: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True, eq=False)
class Filled:
    """Per gap its entries (`offsets`, `events`, `positions`), in order of time, and the ways through it; 0: none."""

    offsets: Array
    events: Array
    positions: Array
    ways: Array


@dataclass(frozen=True, eq=False)
class Filling:
    """One kind of gap over one block."""

    pattern_spec: PatternSpec
    gap: Gap
    settled: tuple[Settled, ...]
    block: Block

    @cached_property
    def members(self) -> Array:
        """The events that may lie in such a gap."""
        lists = [self.block.members[position] for position in self.gap.positions]
        return np.unique(np.concatenate(lists)) if lists else np.zeros(0, np.int64)

    @cached_property
    def words(self) -> Array:
        """Per member the positions of the gap that it fits."""
        words = np.zeros(len(self.members), np.uint64)
        for bit, position in enumerate(self.gap.positions):
            words[np.searchsorted(self.members, self.block.members[position])] |= np.uint64(1 << bit)
        return words

    def fill(self, asked: Asked) -> Filled:
        """Fill every gap."""
        laid, gap_of = self._laid_out(asked)
        self._settle(laid, gap_of, asked)
        inside = self._block_of(laid)
        if not self.gap.free:
            inside = _with_fits(inside, on_a_match(self.gap.ways, inside))
        ways = self._count(inside, len(asked))
        offsets, entries, positions = _listed(laid.starts, inside.fits[0], *self._variables)
        return Filled(offsets, laid.events[entries], positions, ways)

    def _laid_out(self, asked: Asked) -> tuple[_Laid, Array]:
        begin, end = np.searchsorted(self.members, asked.low), np.searchsorted(self.members, asked.high)
        bits = len(self.gap.positions)
        laid = _Laid(*_lay_out(self.members, self.words, begin, end, asked.source, asked.target, bits))
        return laid, np.repeat(np.arange(len(asked)), np.diff(laid.starts))

    def _settle(self, laid: _Laid, gap_of: Array, asked: Asked) -> None:
        """Events that fail a condition with events of the spine lose the positions of its variable."""
        for one in self.settled:
            mask = self._positions_of(one.variable)
            rows = np.flatnonzero((laid.fits & mask) != 0) if mask else np.zeros(0, np.int64)
            for name in one.others:
                rows = rows[asked.spine[name][gap_of[rows]] != NOBODY]
            if len(rows):
                passed = is_true(evaluate(one.expr, self._leaf(one, laid.events[rows], gap_of[rows], asked)))
                laid.fits[rows[~np.broadcast_to(passed, len(rows))]] &= ~mask

    def _leaf(self, one: Settled, events: Array, gap_of: Array, asked: Asked) -> Any:
        def leaf(expr: Expr) -> Vector:
            assert isinstance(expr, Attribute)
            chosen = events if expr.variable == one.variable else asked.spine[expr.variable][gap_of]
            return self.block.columns[expr.column].take(chosen)

        return leaf

    def _positions_of(self, variable: str) -> np.uint64:
        places = self.pattern_spec.places
        mine = (1 << bit for bit, p in enumerate(self.gap.positions) if places[p].variable == variable)
        return np.uint64(sum(mine))

    @cached_property
    def _variables(self) -> tuple[Array, Array]:
        """The Kleene variables of the gap in order: a word with the bits of each, and its first position."""
        places = self.pattern_spec.places
        names = sorted({places[position].variable for position in self.gap.positions})
        first = [min(p for p, place in enumerate(places) if place.variable == name) for name in names]
        words = np.array([self._positions_of(name) for name in names], np.uint64)
        return words, np.array(first, np.int32)

    def _block_of(self, laid: _Laid) -> Block:
        block, events = self.block, laid.events
        pairs = [pair for pair in self.gap.ways.pairs if isinstance(pair, Pair)]  # a spine has no NOT to cross
        used = {name for pair in pairs for side in (pair.left, pair.right) for name in columns(side)}
        used |= {name for test in self.gap.ways.tests for name in columns(test.expr)}
        return Block(
            key_starts=laid.starts,
            time=block.time[events],
            row=block.row[events],
            columns={name: block.columns[name].take(events) for name in sorted(used)},
            fits=(laid.fits,),
            bits=tuple(range(len(self.gap.positions) + 2)),
            instants=block.instants_of(events),
        )

    def _count(self, inside: Block, gaps: int) -> Array:
        ways = np.zeros(gaps, np.int64)
        if self.gap.free:
            ways[:] = 1
            return ways
        for totals in aggregate(self.gap.ways, inside, "exact"):
            amounts = totals.values["matches"]
            assert isinstance(amounts, Amounts)
            ways = ways if amounts.values.dtype == np.int64 else ways.astype(object)
            ways[totals.key] = amounts.values
        return ways


@dataclass(frozen=True, eq=False)
class _Laid:
    """The events of all gaps one after another; `fits` says at which positions of the gap each may be."""

    starts: Array
    events: Array
    fits: Array


def _with_fits(block: Block, fits: Array) -> Block:
    return replace(block, fits=(fits,))


# ------------------------------------------------------------------------------------------------ compiled


@njit(nogil=True)
def _lay_out(
    members: Array, words: Array, begin: Array, end: Array, source: Array, target: Array, bits: int
) -> tuple[Array, Array, Array]:
    """Source, members begin to end, target of every gap one after another."""
    gaps = len(begin)
    starts = np.zeros(gaps + 1, np.int64)
    for gap in range(gaps):
        around = int(source[gap] != NOBODY) + int(target[gap] != NOBODY)
        starts[gap + 1] = starts[gap] + max(end[gap] - begin[gap], 0) + around
    events, fits = np.empty(starts[gaps], np.int64), np.empty(starts[gaps], np.uint64)
    for gap in range(gaps):
        at = starts[gap]
        if source[gap] != NOBODY:
            events[at], fits[at] = source[gap], np.uint64(1) << np.uint64(bits)
            at += 1
        for member in range(begin[gap], end[gap]):
            events[at], fits[at] = members[member], words[member]
            at += 1
        if target[gap] != NOBODY:
            events[at], fits[at] = target[gap], np.uint64(1) << np.uint64(bits + 1)
    return starts, events, fits


@njit(nogil=True)
def _listed(starts: Array, fits: Array, variables: Array, positions: Array) -> tuple[Array, Array, Array]:
    """One entry for each variable that a match of the gap binds an event to."""
    offsets = np.zeros(len(starts), np.int64)
    for gap in range(len(starts) - 1):
        count = 0
        for event in range(starts[gap], starts[gap + 1]):
            for variable in variables:
                count += (fits[event] & variable) != np.uint64(0)
        offsets[gap + 1] = offsets[gap] + count
    entries, bound = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int32)
    at = 0
    for event in range(starts[-1]):
        for number in range(len(variables)):
            if fits[event] & variables[number]:
                entries[at], bound[at] = event, positions[number]
                at += 1
    return offsets, entries, bound
