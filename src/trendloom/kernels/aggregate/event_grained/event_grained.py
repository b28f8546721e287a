"""Add up all matches under skip-till-any-match with predicates on adjacent events, without building one.

The value of event e in state s is c(e, s) = starts + Σ c(f, r) over all moves r → s and all earlier events f in state r
that pass the predicates and NOTs of the move: a number per event and state, however many matches there are. What makes
it fast is how the sum over f is found: from a running sum, a hash table or a Fenwick tree (see `structures`), and only
where nothing else is possible by trying every f. Sums over occurrences and least values ride along (see `cells`).

Cost for n events: O(n) where moves have no order predicate, O(n log n) with one, O(n log² n) with two, else O(n²).
Windows that overlap are lanes of one sweep (see `batches`). Memory O(n) per key, O(n log n) for two orders.
See Poppe, "Event Stream Analytics", ch. 11 and 15 (GRETA and COGRA, both quadratic here).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from trendloom.kernels.aggregate.event_grained.batches import Batches, batches_of
from trendloom.kernels.aggregate.event_grained.events_by_state import Items, items_of
from trendloom.kernels.aggregate.event_grained.moves import FREE, MoveGraph, graph_of, terms_of
from trendloom.kernels.aggregate.event_grained.structure_codes import Arms, arms_of
from trendloom.kernels.aggregate.event_grained.structures import MOST_ORDERS, NESTED, Move, moves_of
from trendloom.kernels.aggregate.event_grained.sweep import SweepPart, Work, sweep_part
from trendloom.kernels.aggregate.event_grained.tested_pairs import Truths, parts_without_tests
from trendloom.kernels.aggregate.event_grained.tree_places import cells_of, empty_places
from trendloom.kernels.aggregate.measures import Addends, Spans, SpanTotals, no_totals
from trendloom.kernels.columns.cells import empty_cells
from trendloom.kernels.columns.numbers import Numbers
from trendloom.kernels.matching.comparable import comparable

Array = np.ndarray[Any, Any]

LANES = 16
"""Overlapping spans that are swept together at most."""
MOST_BYTES = 1 << 30
"""Memory for values and structures of a batch; beyond it fewer lanes are taken, then predecessors are scanned."""


def sweep(addends: Addends, spans: Spans, like: Numbers) -> SpanTotals:
    """The aggregates of every span, in the number system of `like`. Spans of a key begin and end in order."""
    return _sweep(addends, spans, like, MOST_ORDERS)


def quadratic(addends: Addends, spans: Spans, like: Numbers) -> SpanTotals:
    """The same by trying every predecessor of every event: what the structures are measured against."""
    return _sweep(addends, spans, like, -1)


def _sweep(addends: Addends, spans: Spans, like: Numbers, most_orders: int) -> SpanTotals:
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
            prepared.sweep(spans, batches, like, found)
    return found


def _prepare(addends: Addends, most_orders: int) -> _PreparedSweep:
    moves = moves_of(addends.spec, addends.machine, most_orders)
    items = items_of(addends.machine, addends.block)
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

    def sweep(self, spans: Spans, batches: Batches, like: Numbers, found: SpanTotals) -> None:
        most = self._most_items(batches)
        places = empty_places(self.arms, most, plain=self.graph.plain)
        work, terms = self._work(batches, most, like), terms_of(self.addends, like)
        for part in self._parts(batches):
            sweep_part(self.graph, terms, self.items, self.arms, places, batches, spans, work, part, found)

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
        states = len(self.graph.position)
        nodes = int(cells_of(self.arms, most).sum())
        return Work(
            empty_cells(like, nodes, lanes, width, extremes),
            empty_cells(like, self._value_cells(batches), lanes, width, extremes),
            empty_cells(like, 1, lanes, width, extremes),
            self.keeps,
            np.zeros(2, np.int64),
            np.zeros(1, np.int64),
            *(np.zeros(states, np.int64) for _ in range(3)),
            *(np.zeros(len(self.moves), np.int64) for _ in range(2)),
        )
