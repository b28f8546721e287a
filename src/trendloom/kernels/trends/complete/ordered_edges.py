"""Edges of the trend graph for a relation that is an order: `S.price < NEXT(S).price`, or no condition at all.

Event e may precede f if it is earlier and its value is smaller. An edge e → f is kept if no event lies between them in
both, so going back from f the kept ones are the records: each next one has a value at least as great as all before.
A tree over the ranks of values that holds the latest event of each answers "the latest event with a value in this
range". Cost: O(log events) per event and edge kept; nothing is compared that is not kept, ties aside.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.copying import grown
from trendloom.kernels.jit.compiled import INSIDE, njit

Array = np.ndarray[Any, Any]


def ordered_edges(block: Block, low: Array, values: Array, known: Array, strict: bool) -> tuple[Array, Array]:
    """For each event the events before it, latest first: (where each list begins, the lists one after another).

    `low[f]`: the first event that a window can hold together with f. `strict`: values must grow, not only not fall.
    """
    rank, bound = _ranks(block, values, known, strict)
    return _records(block.key_starts, block.tie_start, block.tie_end, low, known, rank, bound)


def _ranks(block: Block, values: Array, known: Array, strict: bool) -> tuple[Array, Array]:
    """The rank of each event in its key by value, and the first rank that may not precede it.

    Of equal values those that can still be kept after one of them was found come later: the earlier events if values
    must grow, else the later ones.
    """
    index = np.arange(len(block))
    order = np.lexsort([-index if strict else index, values, ~known, block.key])
    rank = np.empty(len(block), np.int64)
    rank[order] = index - block.key_starts[block.key[order]]
    key, value = block.key[order], values[order]
    fresh = np.r_[True, (np.diff(key) != 0) | (np.diff(value) != 0)] if len(order) else np.zeros(0, np.bool_)
    begins = np.flatnonzero(fresh)
    of = np.cumsum(fresh) - 1
    edge = begins[of] if strict else np.r_[begins[1:], len(order)][of] if len(order) else begins
    bound = np.empty(len(block), np.int64)
    bound[order] = edge - block.key_starts[key]
    return rank, bound


@njit(nogil=True)
def _records(
    key_starts: Array, tie_start: Array, tie_end: Array, low: Array, known: Array, rank: Array, bound: Array
) -> tuple[Array, Array]:
    events = len(rank)
    begin = np.zeros(events + 1, np.int64)
    source = np.empty(max(events, 16), np.int32)
    used = 0
    longest = 0
    for key in range(len(key_starts) - 1):
        longest = max(longest, key_starts[key + 1] - key_starts[key])
    tree = np.empty(2 * longest, np.int64)
    for key in range(len(key_starts) - 1):
        first, end = key_starts[key], key_starts[key + 1]
        size = end - first
        for node in range(2 * size):
            tree[node] = -1
        now = first
        while now < end:
            for f in range(now, tie_end[now]):
                floor = 0
                while known[f]:
                    e = _latest(tree, size, floor, bound[f])
                    if e < low[f] or e < 0:
                        break
                    top = floor
                    for g in range(e, tie_start[e] - 1, -1):
                        if known[g] and floor <= rank[g] < bound[f]:
                            if used == len(source):
                                source = grown(source)
                            source[used] = g
                            used += 1
                            top = max(top, rank[g])
                    floor = top + 1
                begin[f + 1] = used
            for f in range(now, tie_end[now]):
                if known[f]:
                    node = rank[f] + size
                    while node >= 1:
                        tree[node] = max(tree[node], f)
                        node >>= 1
            now = tie_end[now]
    return begin, source[:used].copy()


@njit(**INSIDE, inline="always")
def _latest(tree: Array, size: int, low: int, high: int) -> int:
    """The greatest index stored for a rank in [low, high); −1 if there is none."""
    best = -1
    left, right = low + size, high + size
    while left < right:
        if left & 1:
            best = max(best, tree[left])
            left += 1
        if right & 1:
            right -= 1
            best = max(best, tree[right])
        left >>= 1
        right >>= 1
    return best
