"""Which events of a block are on a match at all, and at which positions, without building a match.

Idea: an event is on a match at a position iff a partial match reaches it there and from there a match can be completed;
the two have nothing to do with each other. So one sweep forwards and one backwards over each key decide it. Most events
are reached by a step that compares nothing, which one word per key decides; only what is left is compared with the
events before it, the nearest first.
Cost: O(events · moves); an event that fails to find a partner has tried all of its key.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from trendloom.kernels.aggregation.spec import Aggregation
from trendloom.kernels.columns.block import Block
from trendloom.kernels.detection.machine import Machine
from trendloom.kernels.detection.tables import Checks, checks_of, moves_of, pairs_hold

Array = np.ndarray[Any, Any]


class Graph(NamedTuple):
    """Moves between positions, seen from both ends: those into (out of) p are entries `begin[p]` to `begin[p + 1]`.

    `free`: for each position a word with the positions that moves without comparisons come from (lead to).
    """

    begin: Array
    move: Array
    other: Array
    free: Array


def on_a_match(spec: Aggregation, block: Block) -> Array:
    """Per event a word: the positions at which some match binds it. The pattern has no NOT, no AND, no tests."""
    machine = Machine(spec.detection)
    moves = moves_of(machine, spec.pairs)
    checks = checks_of(machine, spec.pairs, block)
    source = np.repeat(np.arange(len(moves.begin) - 1), np.diff(moves.begin))
    template = spec.detection.scopes[0].template
    starts = _word(edge.target for edge in template.starts)
    ends = _word(state for state, ways in enumerate(template.accepts) if ways)
    into = _graph(moves.target, source, moves.free, len(template.position_of))
    out_of = _graph(source, moves.target, moves.free, len(template.position_of))
    reached = np.zeros(len(block), np.uint64)
    _forwards(reached, block.fits[0], block.key_starts, block.tie_end, starts, into, checks)
    found = np.zeros(len(block), np.uint64)
    _backwards(found, reached, block.key_starts, block.tie_start, ends, out_of, checks)
    return found


def _word(bits: Any) -> np.uint64:
    return np.uint64(sum(1 << bit for bit in set(bits)))


def _graph(here: Array, other: Array, free: Array, positions: int) -> Graph:
    order = np.argsort(here, kind="stable")
    begin = np.searchsorted(here[order], np.arange(positions + 1))
    words = np.array([_word(other[(here == p) & free].tolist()) for p in range(positions)], np.uint64)
    compared = order[~free[order]]
    begin = np.searchsorted(here[compared], np.arange(positions + 1))
    return Graph(begin.astype(np.int64), compared.astype(np.int64), other[compared].astype(np.int64), words)


# ------------------------------------------------------------------------------------------------ compiled


@numba.njit(cache=True, nogil=True)
def _forwards(
    reached: Array, fits: Array, key_starts: Array, tie_end: Array, starts: int, into: Graph, checks: Checks
) -> None:
    """`reached[e]`: the positions at which a partial match can bind event e."""
    one, none = np.uint64(1), np.uint64(0)
    for key in range(len(key_starts) - 1):
        earlier = none
        at = key_starts[key]
        while at < key_starts[key + 1]:
            fresh = none
            for event in range(at, tie_end[at]):
                word = np.uint64(fits[event])
                for position in range(len(into.free)):
                    if not (word >> np.uint64(position)) & one:
                        continue
                    if (
                        (starts >> np.uint64(position)) & one
                        or into.free[position] & earlier
                        or _follows(event, position, key_starts[key], at, earlier, reached, into, checks)
                    ):
                        reached[event] |= one << np.uint64(position)
                fresh |= reached[event]
            earlier |= fresh
            at = tie_end[at]


@numba.njit(cache=True, nogil=True)
def _follows(
    event: int, position: int, low: int, high: int, earlier: int, reached: Array, into: Graph, checks: Checks
) -> bool:
    """Whether an event from low to high stands where a compared move leads on to this one."""
    one = np.uint64(1)
    for at in range(into.begin[position], into.begin[position + 1]):
        bit = np.uint64(into.other[at])
        if (earlier >> bit) & one:
            for before in range(high - 1, low - 1, -1):
                if (reached[before] >> bit) & one and pairs_hold(before, event, into.move[at], checks):
                    return True
    return False


@numba.njit(cache=True, nogil=True)
def _backwards(
    found: Array, reached: Array, key_starts: Array, tie_start: Array, ends: int, out_of: Graph, checks: Checks
) -> None:
    """Of the positions that are reached, those from which a match can be completed."""
    one, none = np.uint64(1), np.uint64(0)
    for key in range(len(key_starts) - 1):
        later = none
        at = key_starts[key + 1]
        while at > key_starts[key]:
            fresh = none
            first = tie_start[at - 1]
            for event in range(first, at):
                for position in range(len(out_of.free)):
                    if not (reached[event] >> np.uint64(position)) & one:
                        continue
                    if (
                        (ends >> np.uint64(position)) & one
                        or out_of.free[position] & later
                        or _leads(event, position, at, key_starts[key + 1], later, found, out_of, checks)
                    ):
                        found[event] |= one << np.uint64(position)
                fresh |= found[event]
            later |= fresh
            at = first


@numba.njit(cache=True, nogil=True)
def _leads(
    event: int, position: int, low: int, high: int, later: int, found: Array, out_of: Graph, checks: Checks
) -> bool:
    """Whether a compared move leads from this event to one from low to high that is on a match."""
    one = np.uint64(1)
    for at in range(out_of.begin[position], out_of.begin[position + 1]):
        bit = np.uint64(out_of.other[at])
        if (later >> bit) & one:
            for after in range(low, high):
                if (found[after] >> bit) & one and pairs_hold(event, after, out_of.move[at], checks):
                    return True
    return False
