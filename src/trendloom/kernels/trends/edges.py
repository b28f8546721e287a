"""Edges of the trend graph for any relation: kept if no longer path leads from the one event to the other.

Going back from f, an event e that may precede it is kept unless e is an ancestor of one that was kept. Ancestors are
sets of bits over the events of a window, so whole words of them are passed over at once. An equality finds its
candidates by value; if it is the only condition, the first one that is an ancestor ends the search (a longer path
back to the same value lies after it and so after all that are earlier). An inequality passes over words of 64 events
whose least value is too great. Other conditions are evaluated for all pairs of a window, in columns.

Cost: O(events of a window / 64) per edge kept, and per event one step for each candidate that is not an ancestor; in
memory one bit per pair of events of a window. Where that is more than a quarter of the memory allowed, or a window has
more than `MOST_BITS` events, ancestors are marked instead: O(edges of a window) per event, in memory O(events).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from trendloom.errors import RunError
from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.comparisons import tests_hold
from trendloom.kernels.columns.segments import grown
from trendloom.kernels.contract.aggregates import Test
from trendloom.kernels.jit.compiled import INSIDE, njit

MOST_BITS = 1 << 15
"""Events of a window and partition up to which ancestors are kept as bits (128 MiB)."""
LEAST_BITS = 1 << 20
"""Bytes that ancestors may take in any case."""
MOST_PAIRS = 1 << 21
"""ComparedColumns of events that tests are evaluated for at a time."""
EQUAL, OTHER, BELOW, NOT_ABOVE = range(4)
WORD = 64


class ComparedColumns(NamedTuple):
    """Comparisons of columns, [pair, event]: `left` of the earlier event, `right` of the later one, where known."""

    operator: Array
    left: Array
    right: Array
    known: Array


class Shortcuts(NamedTuple):
    """How candidates are found faster than one after the other.

    `chain`: the pair whose candidates are found by value (−1: none), with the codes of its values; `skip`: the pair by
    which words are passed over (−1: none), with the least value of each word.
    """

    chain: int
    left_code: Array
    right_code: Array
    skip: int
    least: Array


class Companions(NamedTuple):
    """By event: the first one that a window can hold together with it, and the events of its key and time."""

    low: Array
    tie_start: Array
    tie_end: Array


class TestedPart(NamedTuple):
    """The events from `begin` up to `end`; `holds[at[f − begin] + e]`: whether the tests are true of e and f.

    Without tests `holds` is empty.
    """

    begin: int
    end: int
    holds: Array
    at: Array


class LinkingProgress(NamedTuple):
    """What the search has so far: ends of chains, ancestors as bits (rings of rows and words) or marks."""

    head: Array
    earlier: Array
    bits: Array
    mark: Array


def linked_edges(
    block: Block, low: Array, pairs: ComparedColumns, tests: tuple[Test, ...], memory: int
) -> tuple[Array, Array]:
    """For each event the events before it, latest first: (where each list begins, the lists one after another)."""
    shortcuts = _shortcuts(pairs)
    companions = Companions(low, block.tie_start, block.tie_end)
    reach = int((np.arange(len(block)) - low).max(initial=0)) + 1
    as_bits = reach <= MOST_BITS and (bool(tests) or reach * reach // 8 <= max(memory // 4, LEAST_BITS))
    found = _nothing(block, shortcuts, reach, as_bits)
    if not tests:
        every = TestedPart(0, len(block), np.zeros(0, np.bool_), np.zeros(0, np.int64))
        return _link(companions, pairs, shortcuts, found, every)
    if not found.bits.size:
        raise RunError(
            f"{reach:,} events of one window and partition are too many to test each with all others",
            hint="use a smaller window, more partition attributes, or a comparison of one event's value with the next",
        )
    edges = [_link(companions, pairs, shortcuts, found, part) for part in _tested_parts(block, low, tests)]
    lengths = np.concatenate([np.zeros(0, np.int64), *(np.diff(offsets) for offsets, _ in edges)])
    sources = np.concatenate([np.zeros(0, np.int32), *(source for _, source in edges)])
    return np.r_[0, np.cumsum(lengths)].astype(np.int64), sources


def _shortcuts(pairs: ComparedColumns) -> Shortcuts:
    operator, left, right, known = pairs
    equal = np.flatnonzero(operator == EQUAL)
    below = np.flatnonzero((operator == BELOW) | (operator == NOT_ABOVE))
    chain = int(equal[0]) if len(equal) else -1
    skip = int(below[0]) if len(below) and chain < 0 else -1
    codes = np.zeros((2, 0), np.int64)
    if chain >= 0:
        values = np.concatenate([left[chain], right[chain]])
        codes = np.unique(values, return_inverse=True)[1].reshape(2, -1)
    least = np.zeros(0, np.int64)
    if skip >= 0:
        values = np.where(known[0, skip], left[skip], np.iinfo(np.int64).max)
        least = np.minimum.reduceat(values, np.arange(0, len(values), WORD)) if len(values) else values
    return Shortcuts(chain, codes[0], codes[1], skip, least)


def _nothing(block: Block, shortcuts: Shortcuts, reach: int, as_bits: bool) -> LinkingProgress:
    values = max(int(codes.max(initial=-1)) + 1 for codes in (shortcuts.left_code, shortcuts.right_code))
    rows = reach if as_bits else 0
    words = (reach + 2 * WORD) // WORD + 1 if rows else 0
    marks = 0 if rows else len(block)
    return LinkingProgress(
        np.full(values, -1, np.int64),
        np.full(len(block), -1, np.int64),
        np.zeros((rows, words), np.uint64),
        np.full(marks, -1, np.int64),
    )


def _tested_parts(block: Block, low: Array, tests: tuple[Test, ...]) -> Iterator[TestedPart]:
    """The tests evaluated for all pairs of events that a window can hold, a part of the later events at a time."""
    wide = np.maximum(block.tie_start - low, 0)
    total = np.r_[0, np.cumsum(wide)]
    begin = 0
    while begin < len(block):
        end = int(np.searchsorted(total, total[begin] + MOST_PAIRS, side="right")) - 1
        end = min(max(end, begin + 1), len(block))
        later = np.repeat(np.arange(begin, end), wide[begin:end])
        earlier = low[later] + np.arange(len(later)) - (total[later] - total[begin])
        holds = tests_hold([test.expr for test in tests], block, earlier, later)
        yield TestedPart(begin, end, holds, total[begin:end] - total[begin] - low[begin:end])
        begin = end


# ------------------------------------------------------------------------------------------------ compiled


@njit(nogil=True)
def _link(
    companions: Companions, pairs: ComparedColumns, shortcuts: Shortcuts, found: LinkingProgress, part: TestedPart
) -> tuple[Array, Array]:
    """Edges into the events of a part."""
    begin, end, truths, truths_at = part
    low, tie_start, tie_end = companions
    operator, left, right, known = pairs
    chain, left_code, right_code, skip, least = shortcuts
    head, earlier, bits, mark = found
    offsets = np.zeros(end - begin + 1, np.int64)
    source = np.empty(max(end - begin, 16), np.int32)
    used = 0
    by_bits = len(bits) > 0
    alone = chain >= 0 and len(operator) == 1 and len(truths) == 0
    stack = np.empty(16, np.int64)
    for f in range(begin, end):
        floor = low[f]
        if by_bits:
            _clear(bits, f, floor)
        e = tie_start[f] - 1 if chain < 0 else head[right_code[f]]
        for pair in range(len(operator)):
            if not known[1, pair, f]:
                e = -1
        while e >= floor:
            if chain < 0 and by_bits:
                if skip >= 0 and not _any_below(least[e // WORD], right[skip, f], operator[skip]):
                    e = e // WORD * WORD - 1
                    continue
                word = e // WORD
                e = _no_ancestor(bits, f, e)
                if e // WORD < word or e < floor:
                    continue
            good = _possible(operator, left, right, known, e, f)
            if good and len(truths) > 0:
                good = truths[truths_at[f - begin] + e]
            if good:
                if _is_ancestor(bits, f, e) if by_bits else mark[e] == f:
                    if alone:
                        break
                else:
                    source = grown(source) if used == len(source) else source
                    source[used] = e
                    used += 1
                    if by_bits:
                        _add_ancestors(bits, f, e, floor)
                    else:
                        stack = _mark_ancestors(mark, f, e, floor, offsets, source, begin, stack)
            e = earlier[e] if chain >= 0 else e - 1
        offsets[f - begin + 1] = used
        if chain >= 0 and f == tie_end[f] - 1:
            for g in range(tie_start[f], tie_end[f]):
                if known[0, chain, g]:
                    code = left_code[g]
                    earlier[g] = head[code]
                    head[code] = g
    return offsets, source[:used].copy()


@njit(**INSIDE, forceinline=True)
def _possible(operator: Array, left: Array, right: Array, known: Array, e: int, f: int) -> bool:
    """Whether all comparisons hold; values of f are known."""
    for pair in range(len(operator)):
        if not known[0, pair, e]:
            return False
        x, y = left[pair, e], right[pair, f]
        kind = operator[pair]
        if kind == EQUAL:
            good = x == y
        elif kind == OTHER:
            good = x != y
        else:
            good = x < y or (kind == NOT_ABOVE and x == y)
        if not good:
            return False
    return True


@njit(**INSIDE, forceinline=True)
def _any_below(least: int, bound: int, operator: int) -> bool:
    """Whether the least value of a word passes."""
    return least < bound or (operator == NOT_ABOVE and least == bound)


@njit(**INSIDE)
def _clear(bits: Array, f: int, floor: int) -> None:
    rows, words = bits.shape
    for word in range(floor // WORD, f // WORD + 1):
        bits[f % rows, word % words] = 0


@njit(**INSIDE, forceinline=True)
def _is_ancestor(bits: Array, f: int, e: int) -> bool:
    rows, words = bits.shape
    return (bits[f % rows, (e // WORD) % words] >> np.uint64(e % WORD)) & np.uint64(1) != 0


@njit(**INSIDE)
def _no_ancestor(bits: Array, f: int, e: int) -> int:
    """The first event from e down in its word that is not an ancestor of f so far, or the last of the word before."""
    rows, words = bits.shape
    one, top = np.uint64(1), np.uint64(1) << np.uint64(WORD - 1)
    left_over = ~bits[f % rows, (e // WORD) % words] << np.uint64(WORD - 1 - e % WORD)
    if left_over == 0:
        return e // WORD * WORD - 1
    while left_over & top == 0:
        left_over <<= one
        e -= 1
    return e


@njit(**INSIDE)
def _add_ancestors(bits: Array, f: int, e: int, floor: int) -> None:
    """e and its ancestors become ancestors of f."""
    rows, words = bits.shape
    mine, other = f % rows, e % rows
    for word in range(floor // WORD, e // WORD + 1):
        bits[mine, word % words] |= bits[other, word % words]
    bits[mine, (e // WORD) % words] |= np.uint64(1) << np.uint64(e % WORD)


@njit(**INSIDE)
def _mark_ancestors(
    mark: Array, f: int, e: int, floor: int, offsets: Array, source: Array, begin: int, stack: Array
) -> Array:
    """Mark e and its ancestors for f, along the edges found so far."""
    stack[0], depth = e, 1
    mark[e] = f
    while depth > 0:
        depth -= 1
        at = stack[depth] - begin
        for edge in range(offsets[at], offsets[at + 1]):
            before = source[edge]
            if before >= floor and mark[before] != f:
                mark[before] = f
                stack = grown(stack) if depth == len(stack) else stack
                stack[depth] = before
                depth += 1
    return stack


# Edges of the trend graph for a relation that is an order: `S.price < NEXT(S).price`, or no condition at all.
#
# Event e may precede f if it is earlier and its value is smaller. An edge e → f is kept if no event lies between them
# in both, so going back from f the kept ones are the records: each next one has a value at least as great as all
# before. A tree over the ranks of values that holds the latest event of each answers "the latest event with a value in
# this range". Cost: O(log events) per event and edge kept; nothing is compared that is not kept, ties aside.


def ordered_edges(block: Block, low: Array, values: Array, known: Array, *, strict: bool) -> tuple[Array, Array]:
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
