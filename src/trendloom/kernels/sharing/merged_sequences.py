"""Count the matches of many sequences in one sweep over the events: patterns are merged into a tree of their prefixes.

A node of the tree stands for the first letters of one or more patterns in windows of one kind, and holds how many
partial matches of them there are, in each window that is open (a *lane*). An event adds to every node that ends with
a letter it fits what the node before it holds; a letter that repeats (`A+`) adds what its own node holds as well. So an
event costs one addition for every node with its letter and lane, however many queries go through the node, and events
of no letter cost nothing. Events of one time are never in sequence: all of them look at what was before.

When a window ends, what the last node of each query holds is the result. Numbers have 62 bits here; a query with more
is counted by itself.

Cost: O(events · nodes of a letter · open windows), and O(nodes) for every window of a key.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.slices import side_by_side
from trendloom.kernels.columns.block import WORD, Block
from trendloom.kernels.columns.few import FEW
from trendloom.kernels.columns.numbers import BORROWED, LEAN
from trendloom.kernels.compiled import njit
from trendloom.kernels.ground.windows import check_range
from trendloom.model.window import Window

Array = np.ndarray[Any, Any]

FOREVER = 2**62
"""The length of a window without an end."""
SPACE = 62
"""Bits of the numbers: twice one and another fit a word."""
MOST_KINDS = 1 << 12
"""Kinds of events that are told apart by a table."""
SLOT_BITS = 14
SLOTS = 1 << SLOT_BITS
FIRST_ROWS = 1 << 16
"""Results for which there is room at once."""
LEAST_PART = 1 << 16
"""Events for which it is worth to start a thread."""


@dataclass(frozen=True)
class CountedStep:
    """One part of a sequence: an event with a letter, or one or more of them."""

    letter: Hashable
    repeats: bool = False


class Tree(NamedTuple):
    """Nodes by number, those of a window together; `parent` −1: a match begins there. `lane`: where its lanes begin.

    By window: how many lanes, its length and slide, its first node and its first query (one more entry for the end).
    `last`: by query the node of its last letter; queries are in the order of their windows.
    """

    parent: Array
    repeats: Array
    lane: Array
    window_of: Array
    lanes: Array
    within: Array
    slide: Array
    first_node: Array
    first_query: Array
    last: Array


@dataclass(frozen=True, eq=False)
class MergedSequences:
    """The tree of some queries. `letters`: by node; `order`: which query stands where among those of the tree."""

    tree: Tree
    windows: tuple[Window, ...]
    letters: tuple[Hashable, ...]
    depth: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def nodes(self) -> int:
        return len(self.letters)

    def path(self, query: int) -> list[int]:
        """The nodes of a query, the last one first."""
        node, found = int(self.tree.last[self.order.index(query)]), []
        while node >= 0:
            found.append(node)
            node = int(self.tree.parent[node])
        return found


def lanes_of(window: Window) -> int:
    """How many windows are open at a time, at most."""
    if window.within is None or window.slide is None:
        return 1
    return -(-window.within // window.slide)


def merge_sequences(queries: Sequence[tuple[Window, Sequence[CountedStep]]]) -> MergedSequences:
    """The tree of the prefixes of all sequences, those of equal windows together."""
    windows = list(dict.fromkeys(window for window, _ in queries))
    parent: list[int] = []
    steps: list[CountedStep] = []
    depth: list[int] = []
    last: list[int] = []
    order: list[int] = []
    first_node, first_query, window_of = [0], [0], []
    for window in windows:
        known: dict[tuple[int, CountedStep], int] = {}
        for number, (its, sequence) in enumerate(queries):
            if its != window:
                continue
            node = -1
            for step in sequence:
                if (node, step) not in known:
                    known[node, step] = len(parent)
                    parent.append(node)
                    steps.append(step)
                    depth.append(1 if node < 0 else depth[node] + 1)
                    window_of.append(len(first_node) - 1)
                node = known[node, step]
            last.append(node)
            order.append(number)
        first_node.append(len(parent))
        first_query.append(len(last))
    lanes = np.array([lanes_of(window) for window in windows], np.int64)
    of_node = np.array(window_of, np.int64)
    widths = lanes[of_node]
    tree = Tree(
        np.array(parent, np.int64),
        np.array([step.repeats for step in steps], np.bool_),
        np.cumsum(widths) - widths,
        of_node,
        lanes,
        np.array([FOREVER if one.within is None or one.slide is None else one.within for one in windows], np.int64),
        np.array([FOREVER if one.slide is None else one.slide for one in windows], np.int64),
        np.array(first_node, np.int64),
        np.array(first_query, np.int64),
        np.array(last, np.int64),
    )
    letters = tuple(step.letter for step in steps)
    return MergedSequences(tree, tuple(windows), letters, tuple(depth), tuple(order))


@dataclass(frozen=True, eq=False)
class SequenceCounts:
    """The results of one query: a number for each key and window start that has a match; `spilled`: they are wrong."""

    key: Array
    start: Array
    matches: Array
    spilled: bool


def count_sequences(
    merged: MergedSequences, block: Block, bit_of: dict[Hashable, int], threads: int = 1
) -> list[SequenceCounts]:
    """The results of all queries, in their order; `bit_of`: the bit of each letter among the `fits` of the block."""
    for window in merged.windows:
        check_range(block.time, window)
    kinds, listed = _kinds(block.fits)
    begin, nodes = _nodes_of_kinds(merged, listed, bit_of)
    instants = block.time if block.instants is None else block.instants

    def sweep(low: int, high: int) -> tuple[Array, Array]:
        return _swept(merged.tree, block.key_starts, block.time, instants, kinds, begin, nodes, low, high)

    parts = side_by_side(sweep, _parts(block, threads), threads)
    found = np.concatenate([rows for rows, _ in parts])
    spilled = np.logical_or.reduce([flags for _, flags in parts])
    return _by_query(merged, found, spilled)


def _parts(block: Block, threads: int) -> list[tuple[int, int]]:
    """Stretches of keys with about equally many events."""
    count = max(min(threads, len(block) // LEAST_PART), 1)
    wanted = np.linspace(0, len(block), count + 1)[1:-1]
    bounds = np.unique(np.r_[0, np.searchsorted(block.key_starts, wanted), block.keys]).tolist()
    return list(pairwise(bounds)) or [(0, 0)]


def _by_query(merged: MergedSequences, found: Array, spilled: Array) -> list[SequenceCounts]:
    small = np.int16 if len(merged.order) < 2**15 else np.int64
    order = np.argsort(found[:, 0].astype(small), kind="stable")
    ends = np.r_[0, np.cumsum(np.bincount(found[:, 0], minlength=len(merged.order)))]
    key, start, matches = (found[:, column][order] for column in (1, 2, 3))
    results: list[SequenceCounts | None] = [None] * len(merged.order)
    for at, query in enumerate(merged.order):
        some = slice(ends[at], ends[at + 1])
        wrong = bool(spilled[merged.path(query)].any())
        results[query] = SequenceCounts(key[some], start[some], matches[some], wrong)
    return [one for one in results if one is not None]


# ---------------------------------------------------------------------------------------------------- kinds


def _kinds(fits: tuple[Array, ...]) -> tuple[Array, list[int]]:
    """The kind of every event, and by kind the bits that it has."""
    codes, words = _distinct(fits[0])
    listed = [int(word) for word in words]
    for number, word in enumerate(fits[1:], 1):
        code, present = _distinct(word)
        pairs, codes = np.unique(codes * len(present) + code, return_inverse=True)
        listed = [listed[pair // len(present)] | int(present[pair % len(present)]) << WORD * number for pair in pairs]
    return codes, listed


def _distinct(words: Array) -> tuple[Array, Array]:
    """For every word which of the different ones it is, and these."""
    codes, listed = np.empty(len(words), np.int64), np.empty(MOST_KINDS, np.uint64)
    count = -1 if len(words) < FEW else _number(words, np.full(SLOTS, -1, np.int64), codes, listed)
    if count >= 0:
        return codes, listed[:count]
    present, codes = np.unique(words, return_inverse=True)
    return codes, present


def _leave(*_: Any) -> int:
    """Sorting is faster than what is interpreted."""
    return -1


@njit(nogil=True, wraps=True, interpreted=_leave)
def _number(words: Any, known: Any, codes: Any, listed: Any) -> Any:
    """How many different words there are, numbered as they appear; -1: too many."""
    count = 0
    for row in range(len(words)):
        word = np.uint64(words[row])
        slot = np.int64((word * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - SLOT_BITS))
        while known[slot] >= 0 and listed[known[slot]] != word:
            slot = (slot + 1) & (SLOTS - 1)
        if known[slot] < 0:
            if count == len(listed):
                return -1
            known[slot], listed[count] = count, word
            count += 1
        codes[row] = known[slot]
    return count


def _nodes_of_kinds(merged: MergedSequences, listed: list[int], bit_of: dict[Hashable, int]) -> tuple[Array, Array]:
    """By kind the nodes that its events add to, window by window.

    The deepest come first: none sees what the same event has added.
    """
    by_bit: dict[int, list[int]] = {}
    for node, letter in enumerate(merged.letters):
        by_bit.setdefault(bit_of[letter], []).append(node)
    begin, nodes = [0], []
    for word in listed:
        some = [node for bit, members in by_bit.items() if word >> bit & 1 for node in members]
        nodes += sorted(some, key=lambda node: (merged.tree.window_of[node], -merged.depth[node]))
        begin.append(len(nodes))
    return np.array(begin, np.int64), np.array(nodes, np.int64)


# ----------------------------------------------------------------------------------------------------- sweep


class Running(NamedTuple):
    """What a sweep changes. `cells`: what is held, by node and lane; `more`: what events of one time add to it.

    By window: those from `closed` to `opened` are open, and nothing about that changes before the time `change`.
    `done`: the next key and event, how many results there are, and whether the current key has begun.
    """

    cells: Array
    more: Array
    opened: Array
    closed: Array
    change: Array
    spilled: Array
    done: Array


def _swept(
    tree: Tree, key_starts: Array, time: Array, instants: Array, kinds: Array, begin: Array, nodes: Array, low: int,
    high: int,
) -> tuple[Array, Array]:  # fmt: skip
    """(query, key, window start, matches) of every result of some keys, and which nodes had too large numbers."""
    windows, size = len(tree.within), int(tree.lanes[tree.window_of].sum())
    opened, closed, change = (np.zeros(windows, np.int64) for _ in range(3))
    done = np.array([low, key_starts[low], 0, 0], np.int64)
    spilled = np.zeros(len(tree.parent), np.bool_)
    running = Running(np.zeros(size, np.uint64), np.zeros(size, np.uint64), opened, closed, change, spilled, done)
    room = int((tree.lanes * np.diff(tree.first_query)).sum()) * 2  # for all that may be given out at one time
    found, parts = np.empty((max(FIRST_ROWS, room), 4), np.int64), []
    while running.done[0] < high:
        _sweep(tree, key_starts, time, instants, kinds, begin, nodes, high, found, len(found) - room, running)
        parts.append(found[: running.done[2]].copy())
        running.done[2] = 0
    return np.concatenate([found[:0], *parts]), running.spilled


@njit(**LEAN, wraps=True)
def _sweep(
    tree: Any, key_starts: Any, time: Any, instants: Any, kinds: Any, begin: Any, nodes: Any, high: Any, found: Any,
    full: Any, running: Any,
) -> None:  # fmt: skip
    """Sweep keys up to `high`, or until there are so many results that there may be no room for those of one time."""
    cells, more, opened, closed, change = running.cells, running.more, running.opened, running.closed, running.change
    windows, done, count = len(tree.within), running.done, running.done[2]
    while done[0] < high:
        key, at, stop = done[0], done[1], key_starts[done[0] + 1]
        if not done[3]:
            done[3] = 1
            for window in range(windows):
                opened[window] = closed[window] = 0
                change[window] = -FOREVER
        while at < stop:
            if count >= full:
                done[1], done[2] = at, count
                return
            now, after = time[at], at + 1
            while after < stop and instants[after] == instants[at]:
                after += 1
            for event in range(at, after):
                seen = np.int64(-1)
                for which in range(begin[kinds[event]], begin[kinds[event] + 1]):
                    its = tree.window_of[nodes[which]]
                    if its != seen:
                        seen = its
                        if now >= change[its]:
                            count = _move_on(tree, its, key, now, running, found, count)
            if after == at + 1:
                for which in range(begin[kinds[at]], begin[kinds[at] + 1]):
                    _add(tree, nodes[which], running, cells)
            else:
                for event in range(at, after):
                    for which in range(begin[kinds[event]], begin[kinds[event] + 1]):
                        _add(tree, nodes[which], running, more)
                for event in range(at, after):
                    for which in range(begin[kinds[event]], begin[kinds[event] + 1]):
                        _take_over(tree, nodes[which], running)
            at = after
        for window in range(windows):
            while closed[window] < opened[window]:
                count = _close(tree, window, key, closed[window], running, found, count)
                closed[window] += 1
        done[0], done[1], done[3] = key + 1, stop, 0
    done[2] = count


@njit(**BORROWED)
def _move_on(tree: Any, window: Any, key: Any, now: Any, running: Any, found: Any, count: Any) -> Any:
    """Close the windows of a kind that have ended, and open those that have begun."""
    opened, closed = running.opened, running.closed
    within, slide = tree.within[window], tree.slide[window]
    if within == FOREVER:
        opened[window], running.change[window] = 1, FOREVER
        return count
    end = now // slide + 1
    first = end - 1 if within == slide else (now - within) // slide + 1
    while closed[window] < min(opened[window], first):
        count = _close(tree, window, key, closed[window], running, found, count)
        closed[window] += 1
    if closed[window] >= opened[window]:
        closed[window] = first
    opened[window] = end
    change = end * slide
    if closed[window] < end:
        change = min(change, closed[window] * slide + within)
    running.change[window] = change
    return count


@njit(**BORROWED)
def _add(tree: Any, node: Any, running: Any, target: Any) -> None:
    """Add to a node what the one before it holds, in `target`; its own as well, if its letter repeats."""
    window, cells = tree.window_of[node], running.cells
    lanes, mine, before, repeats = tree.lanes[window], tree.lane[node], tree.parent[node], tree.repeats[node]
    all_bits = np.uint64(0)
    if before < 0:
        for number in range(running.closed[window], running.opened[window]):
            lane = mine + (number % lanes if lanes > 1 else 0)
            value = target[lane] + np.uint64(1)
            if repeats:
                value += cells[lane]
            target[lane] = value
            all_bits |= value
    else:
        other = tree.lane[before]
        for lane in range(lanes):
            value = target[mine + lane] + cells[other + lane]
            if repeats:
                value += cells[mine + lane]
            target[mine + lane] = value
            all_bits |= value
    if all_bits >> np.uint64(SPACE):
        running.spilled[node] = True


@njit(**BORROWED)
def _take_over(tree: Any, node: Any, running: Any) -> None:
    """What events of one time have added to a node becomes visible."""
    mine, cells, more = tree.lane[node], running.cells, running.more
    all_bits = np.uint64(0)
    for lane in range(mine, mine + tree.lanes[tree.window_of[node]]):
        cells[lane] += more[lane]
        all_bits |= cells[lane]
        more[lane] = 0
    if all_bits >> np.uint64(SPACE):
        running.spilled[node] = True


@njit(**BORROWED)
def _close(tree: Any, window: Any, key: Any, number: Any, running: Any, found: Any, count: Any) -> Any:
    """Give out the results of a window, and empty its lane."""
    cells, lanes = running.cells, tree.lanes[window]
    lane = number % lanes if lanes > 1 else np.int64(0)
    start = np.int64(0) if tree.within[window] == FOREVER else number * tree.slide[window]
    for query in range(tree.first_query[window], tree.first_query[window + 1]):
        matches = cells[tree.lane[tree.last[query]] + lane]
        if matches:
            found[count, 0], found[count, 1], found[count, 2] = query, key, start
            found[count, 3] = np.int64(matches)
            count += 1
    for node in range(tree.first_node[window], tree.first_node[window + 1]):
        cells[tree.lane[node] + lane] = 0
    return count
