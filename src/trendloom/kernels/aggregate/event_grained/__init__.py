"""Add up all matches under skip-till-any-match with predicates on adjacent events, without building one.

The value of event e in state s is c(e, s) = starts + Σ c(f, r) over all moves r → s and all earlier events f in state r
that pass the predicates and NOTs of the move: a number per event and state, however many matches there are. What makes
it fast is how the sum over f is found: from a running sum, a hash table or a Fenwick tree (see `structures`), and only
where nothing else is possible by trying every f. Sums over occurrences and least values ride along (see `Cells`).

Cost for n events: O(n) where moves have no order predicate, O(n log n) with one, O(n log² n) with two, else O(n²).
Windows that overlap are lanes of one sweep (see `sweep`). Memory O(n) per key, O(n log n) for two orders.
See Poppe, "Event Stream Analytics", ch. 11 and 15 (GRETA and COGRA, both quadratic here).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.nodes import Expr
from trendloom.kernels.aggregate.event_grained.structures import (
    MOST_ORDERS,
    NESTED,
    Arms,
    Items,
    Move,
    MoveGraph,
    arms_of,
    graph_of,
    items_of,
    moves_of,
)
from trendloom.kernels.aggregate.event_grained.sweep import (
    Batches,
    SweepPart,
    SweepTables,
    Work,
    batches_of,
    sweep_part,
)
from trendloom.kernels.aggregate.event_grained.tree_places import cells_of, empty_places
from trendloom.kernels.aggregate.measures import FREE, Addends, Spans, SpanTotals, no_totals, terms_of
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.comparisons import tests_hold
from trendloom.kernels.columns.fenwick import empty_cells
from trendloom.kernels.columns.numbers import Numbers
from trendloom.kernels.matching.gap_thresholds import comparable

LANES = 16
"""Overlapping spans that are swept together at most."""
MOST_BYTES = 1 << 30
"""Memory for values and structures of a batch; beyond it fewer lanes are taken, then predecessors are scanned."""
MOST_PAIRS = 1 << 22
MOST_ITEMS = 1 << 18
SLICE = 1 << 16
NO_LIMIT = 2**62


def add_up(addends: Addends, spans: Spans, like: Numbers) -> SpanTotals:
    """The aggregates of every span, in the number system of `like`. Spans of a key begin and end in order."""
    return _add_up(addends, spans, like, MOST_ORDERS)


def quadratic(addends: Addends, spans: Spans, like: Numbers) -> SpanTotals:
    """The same by trying every predecessor of every event: what the structures are measured against."""
    return _add_up(addends, spans, like, -1)


def _add_up(addends: Addends, spans: Spans, like: Numbers, most_orders: int) -> SpanTotals:
    found = no_totals(addends, spans, like)
    if len(spans):
        prepared = _prepare(addends, most_orders)
        groups = prepared.fitting_batches(spans, like)
        if groups is None and most_orders == MOST_ORDERS:
            prepared = _prepare(addends, MOST_ORDERS - 1)
            groups = prepared.fitting_batches(spans, like)
        if groups is None:
            groups = batches_of(spans, prepared.items, 1)
        for batches in groups:
            prepared.sweep(batches, like, found)
    return found


def _prepare(addends: Addends, most_orders: int) -> _PreparedSweep:
    moves = moves_of(addends.spec, addends.automaton, most_orders)
    items = items_of(addends.automaton, addends.block)
    columns = comparable(addends.spec.pairs, addends.block)
    arms, arms_of_move = arms_of(moves, items, columns)
    graph = graph_of(addends, moves, arms_of_move, columns)
    return _PreparedSweep(addends, moves, items, arms, graph if (arms.kind == NESTED).any() else graph.simplified())


@dataclass(frozen=True, eq=False)
class _PreparedSweep:
    """A block with everything that does not depend on its spans."""

    addends: Addends
    moves: list[Move]
    items: Items
    arms: Arms
    graph: MoveGraph

    @cached_property
    def keeps(self) -> bool:
        """Whether values are needed again after they were inserted: to be scanned, or to be inserted anew."""
        return bool((self.graph.scanned | (self.graph.bar != FREE)).any())

    def fitting_batches(self, spans: Spans, like: Numbers) -> list[Batches] | None:
        """Batches with as many lanes as memory allows; None if one lane is too much."""
        lanes = LANES
        while lanes >= 1:
            groups = batches_of(spans, self.items, lanes)
            if max(self._bytes(batches, like) for batches in groups) <= MOST_BYTES:
                return groups
            lanes //= 2
        return None

    def sweep(self, batches: Batches, like: Numbers, found: SpanTotals) -> None:
        most = self._most_items(batches)
        tables = SweepTables(self.graph, terms_of(self.addends, like), self.items, self.arms)
        work = self._work(batches, most, like)
        for part in self._parts(batches):
            sweep_part(tables, batches, work, part, found)

    def _parts(self, batches: Batches) -> Iterator[SweepPart]:
        tested = [move for move in self.moves if move.tests]
        if not tested:
            return parts_without_tests(batches)
        tests = [tuple(self.addends.spec.tests[i].expr for i in move.tests) for move in tested]
        return Truths(tested, tests, self.addends.block, self.items).parts(batches)

    def _most_items(self, batches: Batches) -> Array:
        """For every state the most items of it in one batch."""
        found = []
        for begin, end in zip(self.items.begin[:-1], self.items.begin[1:], strict=True):
            mine = self.items.of_state[begin:end]
            found.append((np.searchsorted(mine, batches.high) - np.searchsorted(mine, batches.low)).max(initial=0))
        return np.array(found, np.int64)

    def _value_cells(self, batches: Batches) -> int:
        return int((batches.high - batches.low).max(initial=0)) if self.keeps else self._most_at_once

    @cached_property
    def _most_at_once(self) -> int:
        """The most items of one key and time."""
        times = np.flatnonzero(np.diff(self.items.tie_end[self.items.event], prepend=-1, append=-1))
        return int(np.diff(times).max(initial=0))

    def _bytes(self, batches: Batches, like: Numbers) -> int:
        cells = int(cells_of(self.arms, self._most_items(batches)).sum()) + self._value_cells(batches)
        number = sum(array.itemsize * math.prod(array.shape[2:]) for array in like if array.ndim > 1)
        return cells * batches.lanes * (number * (1 + self.addends.linear) + 8 * self.addends.extremes)

    def _work(self, batches: Batches, most: Array, like: Numbers) -> Work:
        width, extremes, lanes = 1 + self.addends.linear, self.addends.extremes, batches.lanes
        states = len(self.graph.lead)
        nodes = int(cells_of(self.arms, most).sum())
        return Work(
            empty_places(self.arms, most, plain=self.graph.plain),
            empty_cells(like, nodes, lanes, width, extremes),
            empty_cells(like, self._value_cells(batches), lanes, width, extremes),
            empty_cells(like, 1, lanes, width, extremes),
            self.keeps,
            np.zeros(2, np.int64),
            np.zeros(1, np.int64),
            *(np.zeros(states, np.int64) for _ in range(3)),
            *(np.zeros(len(self.moves), np.int64) for _ in range(2)),
        )


# ------------------------------------------------------------- conditions on two events that compare no columns


def parts_without_tests(batches: Batches) -> Iterator[SweepPart]:
    """All batches at once."""
    yield SweepPart(0, len(batches.span), -1, NO_LIMIT, np.zeros((0, 0), np.int64), np.zeros(0, np.bool_))


@dataclass(frozen=True, eq=False)
class Truths:
    """The tested moves of a pattern with their conditions, over one block: evaluated for all pairs of a part at once.

    Their conditions on two adjacent events are no comparison of columns. A part is a run of batches, or some items of
    one batch, with a bounded number of pairs (a later and an earlier item of the batch). Its truths are one flat column
    that the compiled sweep reads. Cost: O(pairs) evaluations in NumPy, in slices that stay in cache; memory
    O(`MOST_PAIRS`), unless the events of one time alone have more.
    """

    moves: list[Move]
    tests: list[tuple[Expr, ...]]
    block: Block
    items: Items

    def parts(self, batches: Batches) -> Iterator[SweepPart]:
        """Parts of all batches, in order, with their truths."""
        sizes = np.cumsum(batches.high - batches.low)
        begin = 0
        while begin < len(sizes):
            done = sizes[begin - 1] if begin else 0
            end = max(int(np.searchsorted(sizes, done + MOST_ITEMS, side="right")), begin + 1)
            yield from self._run(batches, begin, end)
            begin = end

    def _run(self, batches: Batches, begin: int, end: int) -> Iterator[SweepPart]:
        """Batches begin to end: together, in halves, or the one batch cut into stretches of items."""
        pairs = _Pairs(self, batches, begin, end)
        if pairs.count <= MOST_PAIRS:
            yield SweepPart(begin, end, -1, NO_LIMIT, pairs.at, self._evaluated(pairs, 0, len(pairs.item)))
        elif end - begin > 1:
            middle = (begin + end) // 2
            yield from self._run(batches, begin, middle)
            yield from self._run(batches, middle, end)
        else:
            for low, high in pairs.stretches(self.items):
                truth = self._evaluated(pairs, low, high)
                at = pairs.at[:, low:high] - pairs.offset[low]
                yield SweepPart(begin, end, int(pairs.item[low]), int(pairs.item[high - 1]) + 1, at, truth)

    def _evaluated(self, pairs: _Pairs, low: int, high: int) -> Array:
        """The truths of the pairs of items low to high, in the order of `pairs.at`."""
        size = int(pairs.offset[high] - pairs.offset[low])
        truth = np.zeros(size, np.bool_)
        for number, (move, tests) in enumerate(zip(self.moves, self.tests, strict=True)):
            count = pairs.counts[number, low:high]
            ends = np.cumsum(count)
            later, earlier = self.items.event[pairs.item[low:high]], self.items.of(move.state)
            for begin in range(0, int(ends[-1]) if len(ends) else 0, SLICE):
                pair = np.arange(begin, min(begin + SLICE, int(ends[-1])))
                which = np.searchsorted(ends, pair, side="right")
                nth = pair - (ends[which] - count[which])
                before = earlier[pairs.first[number, low:high][which] + nth]
                at = pairs.at[number, low:high][which] - pairs.offset[low] + nth
                truth[at] = tests_hold(tests, self.block, before, later[which])
        return truth


class _Pairs:
    """All items of some batches one after another, and for every tested move how many predecessors each has."""

    def __init__(self, truths: Truths, batches: Batches, begin: int, end: int) -> None:
        items = truths.items
        sizes = batches.high[begin:end] - batches.low[begin:end]
        which = np.repeat(np.arange(begin, end), sizes)
        self.item = np.arange(len(which)) - np.repeat(np.cumsum(sizes) - sizes - batches.low[begin:end], sizes)
        event, state = items.event[self.item], items.state[self.item]
        shape = (len(truths.moves), len(which))
        self.first, self.counts = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for number, move in enumerate(truths.moves):
            earlier = items.of(move.state)
            self.first[number] = np.searchsorted(earlier, batches.first_event[which])
            last = np.searchsorted(earlier, items.tie_start[event])
            self.counts[number] = np.where(state == move.step.target, np.maximum(last - self.first[number], 0), 0)
        total = self.counts.sum(axis=0)
        self.offset = np.concatenate([np.zeros(1, np.int64), np.cumsum(total)])
        self.at = self.offset[:-1] + np.cumsum(self.counts, axis=0) - self.counts
        self.count = int(self.offset[-1])

    def stretches(self, items: Items) -> Iterator[tuple[int, int]]:
        """Cuts between events of different times, each with few pairs."""
        ends = np.searchsorted(items.event[self.item], items.tie_end[items.event[self.item]])
        low = 0
        while low < len(self.item):
            high = max(int(np.searchsorted(self.offset, self.offset[low] + MOST_PAIRS, side="right")) - 1, low + 1)
            high = int(ends[high - 1])
            yield low, high
            low = high
