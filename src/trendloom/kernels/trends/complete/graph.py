"""The trend graph: every event once, and an edge where two events can be adjacent in a complete trend.

Event f may follow e if it is later and the conditions hold. A trend is complete if nothing fits before its first event,
after its last, or between two neighbours: so an edge stays only if no longer path leads from e to f (the graph is the
transitive reduction of the relation), and complete trends are its paths from an event that nothing precedes to one
that nothing follows. See Poppe, "Event Stream Analytics", ch. 5.

A path between two events of a window lies in that window, so one graph serves all windows: they differ in which events
nothing precedes or follows (`frames`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.matching.gap_thresholds import comparable
from trendloom.kernels.trends.complete.edges import BELOW, EQUAL, NOT_ABOVE, OTHER, linked_edges, ordered_edges
from trendloom.kernels.trends.complete.spec import Complete
from trendloom.model.time import Window

NEVER = 2**62
CODES = {"=": EQUAL, "!=": OTHER, "<": BELOW, "<=": NOT_ABOVE, ">": BELOW, ">=": NOT_ABOVE}


class EdgeLists(NamedTuple):
    """Edges in both directions: from e to `target[begin[e]:begin[e+1]]`, earliest first; into f from
    `source[into[f]:into[f+1]]`, latest first."""

    begin: Array
    target: Array
    into: Array
    source: Array


@dataclass(frozen=True, eq=False)
class TrendGraph:
    """Events, and the edges between them as in `EdgeLists`."""

    block: Block
    begin: Array
    target: Array
    into: Array
    source: Array

    def __len__(self) -> int:
        return len(self.block)

    @property
    def edges(self) -> int:
        return len(self.target)

    @property
    def lists(self) -> EdgeLists:
        """The edges, for compiled code."""
        return EdgeLists(self.begin, self.target, self.into, self.source)

    @property
    def bytes(self) -> int:
        return sum(one.nbytes for one in self.lists)

    @cached_property
    def before(self) -> Array:
        """The time of the latest event that may precede each one; −NEVER where there is none."""
        found = np.full(len(self), -NEVER)
        some = np.flatnonzero(np.diff(self.into))
        found[some] = self.block.time[self.source[self.into[some]]]
        return found

    @cached_property
    def after(self) -> Array:
        """The time of the earliest event that may follow each one; NEVER where there is none."""
        found = np.full(len(self), NEVER)
        some = np.flatnonzero(np.diff(self.begin))
        found[some] = self.block.time[self.target[self.begin[some]]]
        return found


def build_graph(spec: Complete, block: Block, memory: int) -> TrendGraph:
    """All events of the block are vertices. Cost: see `ordered_edges` and `linked_edges`."""
    low = companions(block, spec.window)
    operator, left, right, known = _columns(spec, block)
    if not spec.tests and _is_order(operator, left, right, known):
        if len(operator):
            into, source = ordered_edges(block, low, left[0], known[0, 0], bool(operator[0] == BELOW))
        else:
            into, source = ordered_edges(
                block, low, np.zeros(len(block), np.int64), np.ones(len(block), np.bool_), False
            )
    else:
        into, source = linked_edges(block, low, operator, left, right, known, spec.tests, memory)
    begin, target = _turned(into, source)
    return TrendGraph(block, begin, target, into, source)


def companions(block: Block, window: Window) -> Array:
    """For each event the first one that some window holds together with it."""
    if window.within is None:
        return block.key_starts[block.key]
    if window.slide is None:
        return block.not_before(block.key, block.time - window.within + 1)
    lowest = np.floor_divide(block.time - window.within, window.slide) + 1
    return block.not_before(block.key, lowest * window.slide)


def _columns(spec: Complete, block: Block) -> tuple[Array, Array, Array, Array]:
    """Operators and columns of the pairs; what must fall is mirrored, so that it must grow."""
    left, right, known = comparable(spec.pairs, block)
    for number, pair in enumerate(spec.pairs):
        if pair.operator in (">", ">="):
            left[number], right[number] = ~left[number], ~right[number]
    return np.array([CODES[pair.operator] for pair in spec.pairs], np.int64), left, right, known


def _is_order(operator: Array, left: Array, right: Array, known: Array) -> bool:
    """Whether there is no condition, or one that compares a value with the next one of the same column."""
    if len(operator) == 0:
        return True
    if len(operator) > 1 or operator[0] not in (BELOW, NOT_ABOVE):
        return False
    same = np.array_equal(known[0, 0], known[1, 0])
    return same and bool((left[0] == right[0])[known[0, 0]].all())


@njit(nogil=True)
def _turned(into: Array, source: Array) -> tuple[Array, Array]:
    """The same edges by where they come from, in order of where they lead."""
    events = len(into) - 1
    begin = np.zeros(events + 1, np.int64)
    for edge in range(len(source)):
        begin[source[edge] + 1] += 1
    for e in range(events):
        begin[e + 1] += begin[e]
    at = begin[:-1].copy()
    target = np.empty(len(source), np.int32)
    for f in range(events):
        for edge in range(into[f], into[f + 1]):
            e = source[edge]
            target[at[e]] = f
            at[e] += 1
    return begin, target
