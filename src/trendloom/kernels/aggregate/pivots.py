"""Predicates between events that are not adjacent: one aggregate per pivot.

A pivot is an event that stands once in every match (`S` in `SEQ(S, M+, L)`). Once it is fixed, `S.price < L.price` is
a condition on L alone. So a block becomes one with a key per pivot, which holds the events of the windows that the
pivot is in, those that fail a condition with it left out; every match is counted with its one pivot. Pivots go in
chunks of bounded size.

Cost: O(Σ over pivots of the events in their windows). See Poppe, "Event Stream Analytics", 28.3.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Attribute, Expr
from trendloom.expr.vectors import Vector, is_true
from trendloom.kernels.columns.block import Block
from trendloom.kernels.matching.tables import fitting_bits
from trendloom.kernels.measures import Pivot
from trendloom.model.window import Window

Array = np.ndarray[Any, Any]

CHUNK = 1 << 21
"""Events of all pivots in a chunk, unless one pivot has more."""


def by_pivot(block: Block, pivot: Pivot, window: Window) -> Iterator[tuple[Block, Array]]:
    """Blocks with one key per pivot, and for each key that of the original block."""
    pivots = _pivots(block, pivot)
    key = block.key[pivots]
    low, high = _reach(block, pivots, key, window)
    words = fitting_bits(block)
    ends = np.cumsum(high - low)
    begin = 0
    while begin < len(pivots):
        before = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + CHUNK, side="right")))
        some = slice(begin, end)
        yield _expanded(block, words, pivot, pivots[some], low[some], high[some]), key[some]
        begin = end


def pivoted(block: Block, pivot: Pivot, window: Window) -> int:
    """How many events the blocks of all pivots have together. O(pivots log events)."""
    pivots = _pivots(block, pivot)
    low, high = _reach(block, pivots, block.key[pivots], window)
    return int(np.maximum(high - low, 0).sum())


def _pivots(block: Block, pivot: Pivot) -> Array:
    return np.unique(np.concatenate([block.members[position] for position in pivot.positions]))


def _reach(block: Block, pivots: Array, key: Array, window: Window) -> tuple[Array, Array]:
    if window.within is None or window.slide is None:
        return block.key_starts[key], block.key_starts[key + 1]
    time = block.time[pivots]
    first = (np.floor_divide(time - window.within, window.slide) + 1) * window.slide
    last = np.floor_divide(time, window.slide) * window.slide + window.within
    return block.not_before(key, first), block.not_before(key, last)


def _expanded(block: Block, words: Array, pivot: Pivot, pivots: Array, low: Array, high: Array) -> Block:
    sizes = np.maximum(high - low, 0)
    starts = np.r_[0, np.cumsum(sizes)].astype(np.int64)
    events = np.arange(starts[-1]) + np.repeat(low - starts[:-1], sizes)
    mine = np.repeat(pivots, sizes)
    fits = words[events]
    for position in pivot.positions:
        fits[events != mine] &= ~np.uint64(1 << position)
    for positions, expr in pivot.rules:
        failed = ~is_true(evaluate(expr, _leaf(block, pivot.name, events, mine)))
        for position in positions:
            fits[np.broadcast_to(failed, len(fits))] &= ~np.uint64(1 << position)
    return replace(
        block,
        key_starts=starts,
        time=block.time[events],
        row=block.row[events],
        columns={name: column.take(events) for name, column in block.columns.items()},
        fits=(fits,),
        bits=tuple(range(len(block.bits))),
        instants=block.instants_of(events),
    )


def _leaf(block: Block, name: str, events: Array, pivots: Array) -> Any:
    def leaf(expr: Expr) -> Vector:
        assert isinstance(expr, Attribute)
        return block.columns[expr.column].take(pivots if expr.variable == name else events)

    return leaf
