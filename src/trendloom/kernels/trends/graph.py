"""The trend graph: every event once, and an edge where two events can be adjacent in a complete trend.

Event f may follow e if it is later and the conditions hold. A trend is complete if nothing fits before its first event,
after its last, or between two neighbours: so an edge stays only if no longer path leads from e to f (the graph is the
transitive reduction of the relation), and complete trends are its paths from an event that nothing precedes to one
that nothing follows. See Poppe, "Event Stream Analytics", ch. 5.

A path between two events of a window lies in that window, so one graph serves all windows: they differ in which events
nothing precedes or follows. A path from e to f is complete in a window that contains both if the latest event that may
precede e and the earliest that may follow f lie outside. So it is complete in a range of windows, found once, whatever
their overlap; `Frames` has the bounds of these ranges.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.expr.nodes import Expr
from trendloom.kernels.columns.block import Block, horizons
from trendloom.kernels.contract.aggregates import Test
from trendloom.kernels.contract.pattern_spec import Pair
from trendloom.kernels.jit.compiled import njit
from trendloom.kernels.matching.gap_thresholds import comparable
from trendloom.kernels.trends.edges import BELOW, EQUAL, NOT_ABOVE, OTHER, ComparedColumns, linked_edges, ordered_edges
from trendloom.model.time import Window

NEVER = 2**62
CODES = {"=": EQUAL, "!=": OTHER, "<": BELOW, "<=": NOT_ABOVE, ">": BELOW, ">=": NOT_ABOVE}


class WalkPlan(Enum):
    """How trends are taken from the graph. AUTO lets costs decide; the others are for comparison."""

    AUTO = "auto"
    ONE_BY_ONE = "M-CET"  # one trend at a time, nothing stored
    ALL_STORED = "T-CET"  # one graphlet: all trends are stored
    BEST_CUTS = "H-CET"  # the cuts of least cost that fit the memory
    GREEDY_CUTS = "H-CET, greedy"  # the first balanced cuts that fit


@dataclass(frozen=True)
class Complete:
    """A flat Kleene pattern: event f may follow event e if all `pairs` and `tests` are true of them.

    `whole`: conditions on a trend as a whole that hold for every trend around one for which they hold.
    """

    window: Window
    pairs: tuple[Pair, ...] = ()
    tests: tuple[Test, ...] = ()
    plan: WalkPlan = WalkPlan.AUTO
    whole: tuple[Expr, ...] = ()


class EdgeLists(NamedTuple):
    """Edges in both directions: from e to `target[begin[e]:begin[e+1]]`, earliest first; into f from
    `source[into[f]:into[f+1]]`, latest first."""

    begin: Array
    target: Array
    into: Array
    source: Array


class Frames(NamedTuple):
    """By event, where complete trends can begin and end, window by window, as comparisons of numbers.

    A trend from e to f is complete in some window if and only if least[f] ≤ to[e] and from_[e] ≤ most[f]:

    - sliding windows: e begins trends of the windows number from_..to, f ends those of least..most;
    - a bare WITHIN: e is preceded by nothing in reach of the end, f is followed by nothing in reach of the beginning;
    - no window: e is preceded, f followed by nothing.

    `begins`, `ends`: whether a trend can begin or end there at all; `limit[e]`: the first event that no trend which
    begins at e includes.
    """

    begins: Array
    ends: Array
    from_: Array
    to: Array
    least: Array
    most: Array
    limit: Array


@dataclass(frozen=True, eq=False)
class TrendGraph:
    """Events, the edges between them, and the windows in which trends begin and end at them."""

    block: Block
    window: Window
    lists: EdgeLists
    frames: Frames

    def __len__(self) -> int:
        return len(self.block)

    @property
    def edges(self) -> int:
        return len(self.lists.target)

    @property
    def bytes(self) -> int:
        return sum(one.nbytes for one in self.lists)

    def longest(self, starts: Array) -> int:
        """The most events that a trend from one of `starts` can have."""
        return int((self.frames.limit[starts] - starts).max(initial=0)) + 1

    def windows(self, first: Array, last: Array) -> tuple[Array, Array]:
        """For trends from `first` to `last` the sliding windows in which they are complete: the first, and how many."""
        low = np.maximum(self.frames.from_[first], self.frames.least[last])
        return low, np.minimum(self.frames.to[first], self.frames.most[last]) - low + 1


def build_graph(spec: Complete, block: Block, memory: int) -> TrendGraph:
    """All events of the block are vertices. Cost: see `ordered_edges` and `linked_edges`; O(log events) for frames."""
    low = _companions(block, spec.window)
    pairs = _pairs(spec, block)
    if not spec.tests and len(pairs.operator) == 0:
        every = np.ones(len(block), np.bool_)
        into, source = ordered_edges(block, low, np.zeros(len(block), np.int64), every, strict=False)
    elif not spec.tests and _is_order(pairs):
        strict = bool(pairs.operator[0] == BELOW)
        into, source = ordered_edges(block, low, pairs.left[0], pairs.known[0, 0], strict=strict)
    else:
        into, source = linked_edges(block, low, pairs, spec.tests, memory)
    begin, target = _turned(into, source)
    lists = EdgeLists(begin, target, into, source)
    return TrendGraph(block, spec.window, lists, _frames(block, spec.window, lists))


def _companions(block: Block, window: Window) -> Array:
    """For each event the first one that some window holds together with it."""
    if window.within is None:
        return block.key_starts[block.key]
    if window.slide is None:
        return block.not_before(block.key, block.time - window.within + 1)
    lowest = np.floor_divide(block.time - window.within, window.slide) + 1
    return block.not_before(block.key, lowest * window.slide)


def _pairs(spec: Complete, block: Block) -> ComparedColumns:
    """Operators and columns of the pairs; decreasing ones are mirrored, so that all are increasing."""
    left, right, known = comparable(spec.pairs, block)
    for number, pair in enumerate(spec.pairs):
        if pair.operator in (">", ">="):
            left[number], right[number] = ~left[number], ~right[number]
    return ComparedColumns(np.array([CODES[pair.operator] for pair in spec.pairs], np.int64), left, right, known)


def _is_order(pairs: ComparedColumns) -> bool:
    """Whether the only condition compares a value with the next one of the same column."""
    operator, left, right, known = pairs
    if len(operator) != 1 or operator[0] not in (BELOW, NOT_ABOVE):
        return False
    same = np.array_equal(known[0, 0], known[1, 0])
    return same and bool((left[0] == right[0])[known[0, 0]].all())


def _frames(block: Block, window: Window, lists: EdgeLists) -> Frames:
    """`before`, `after`: the time of the latest event that may precede each one, the earliest that may follow it."""
    time, none, every = block.time, np.zeros(len(block), np.int64), np.ones(len(block), np.bool_)
    before, after = np.full(len(block), -NEVER), np.full(len(block), NEVER)
    preceded, followed = (np.flatnonzero(np.diff(offsets)) for offsets in (lists.into, lists.begin))
    before[preceded] = time[lists.source[lists.into[preceded]]]
    after[followed] = time[lists.target[lists.begin[followed]]]
    if window.within is None:
        goes_on = (after < NEVER).astype(np.int64)
        key_ends = block.key_starts[1:][block.key]
        return Frames(before == -NEVER, goes_on == 0, none, none, goes_on, none, key_ends)
    limit = horizons(block, window)
    assert limit is not None
    if window.slide is None:
        from_ = np.where(before == -NEVER, -NEVER, before + window.within)
        return Frames(every, every, from_, -(time + window.within), -after, time, limit)
    lowest = np.floor_divide(time - window.within, window.slide) + 1
    highest = np.floor_divide(time, window.slide)
    from_ = np.maximum(lowest, np.floor_divide(before, window.slide) + 1)
    most = np.floor_divide(after - window.within, window.slide)
    ends = (lowest <= most) & (lowest <= highest)
    return Frames(from_ <= highest, ends, from_, highest, np.where(ends, lowest, NEVER), most, limit)


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
