"""The kind of every event: which positions it fits, as a small number; and which events share their time.

Kinds are what tables are indexed by. Two readings of a block:

- *by event* (`Kinds`): `code` is the kind of an event that is alone at its time, and `tied` for the others, which have
  their kind in `own`, and in `union` the kind that fits all that any event of their time fits;
- *by time* (`InstantKinds`): one code per point in time, for how many events of each kind it has. Where no event
  has a weight of its own, that is all there is to know, and ties cost nothing.

O(events): one pass over the bits and one over the times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.columns.block import WORD, Block
from trendloom.kernels.jit.compiled import njit

MOST_INSTANT_KINDS = 250
MOST_COUNTED = 8
"""Kinds that can be counted in one word, a byte each."""


@dataclass(frozen=True, eq=False)
class Kinds:
    """By event. Without ties `own` and `union` are empty."""

    code: Array
    tied: int
    own: Array
    union: Array
    positions: list[frozenset[int]]  # by kind


@dataclass(frozen=True, eq=False)
class InstantKinds:
    """By point in time: `start` is its first event (and one more for the end); `counts[code]` its events by kind."""

    code: Array
    tied: int  # the code of points in time that have no kind of their own
    start: Array
    counts: list[dict[int, int]]


def kinds_of(block: Block) -> Kinds:
    """Number the kinds of events that occur, and those that occur as unions of equal times."""
    words = _words(block)
    ties = has_ties(block.key_starts, block.instant)
    union = _unions(words, block.tie_end) if ties else words[:0]
    if words.dtype.itemsize <= 2:
        present = np.zeros(1 << 8 * words.dtype.itemsize, np.bool_)
        for some in (words, union):
            _mark_present(present, some)
        listed = np.flatnonzero(present)
    else:
        listed = np.unique(np.concatenate([np.unique(words), np.unique(union)]))
    code_type = np.uint8 if len(listed) < 255 else np.uint16 if len(listed) < 2**16 - 1 else np.uint32
    code, tied = _numbered(words, listed, code_type), int(np.iinfo(code_type).max)
    own, union = (code.copy(), _numbered(union, listed, code_type)) if ties else (code[:0], code[:0])
    if ties:
        _mark_ties(code, block.key_starts, block.instant, tied)
    return Kinds(code, tied, own, union, [_positions(int(word), block.bits) for word in listed])


def instant_kinds_of(block: Block, kinds: Kinds) -> InstantKinds:
    """One kind per point in time, as far as `MOST_INSTANT_KINDS` are enough."""
    instant_kinds = np.zeros(MOST_INSTANT_KINDS, np.uint64)
    start = np.flatnonzero(np.r_[True, block.tie_end[1:] != block.tie_end[:-1], True][: len(block) + 1])
    code = np.empty(len(start) - 1, np.uint8)
    used = _spell(code, kinds.own, start, instant_kinds, min(len(kinds.positions), MOST_COUNTED))
    counts = [{k: int(bag) >> 8 * k & 255 for k in range(8) if int(bag) >> 8 * k & 255} for bag in instant_kinds[:used]]
    return InstantKinds(code, 255, start, counts)


def _words(block: Block) -> Array:
    """One word of bits per event."""
    if len(block.fits) == 1:
        return block.fits[0]
    found = np.zeros(len(block), object)
    for number, words in enumerate(block.fits):
        found |= words.astype(object) << (WORD * number)
    return found


def _unions(words: Array, tie_end: Array) -> Array:
    """For each event the kinds of all events of its time."""
    if words.dtype.itemsize <= 2:
        united = words.copy()
        _unite(united, tie_end)
        return united
    starts = np.flatnonzero(np.r_[True, tie_end[1:] != tie_end[:-1]])
    found: Array = np.repeat(np.bitwise_or.reduceat(words, starts), np.diff(np.r_[starts, len(words)]))
    return found


def _numbered(words: Array, listed: Array, code_type: Any) -> Array:
    if words.dtype.itemsize > 2:
        return np.searchsorted(listed, words).astype(code_type)
    table = np.zeros(1 << 8 * words.dtype.itemsize, code_type)
    table[listed] = np.arange(len(listed))
    found = np.empty(len(words), code_type)
    _look_up(found, words, table)
    return found


def _positions(word: int, bits: tuple[int, ...]) -> frozenset[int]:
    return frozenset(position for position, bit in enumerate(bits) if word >> bit & 1)


@njit(nogil=True)
def _mark_present(present: Array, words: Array) -> None:
    for word in words:
        present[word] = True


@njit(nogil=True)
def _unite(words: Array, tie_end: Array) -> None:
    """Give events of one time the bits of all of them; what has them already gains none."""
    for event in range(1, len(words)):
        if tie_end[event] == tie_end[event - 1]:
            words[event] |= words[event - 1]
    for event in range(len(words) - 1, 0, -1):
        if tie_end[event] == tie_end[event - 1]:
            words[event - 1] |= words[event]


@njit(nogil=True)
def _look_up(found: Array, words: Array, table: Array) -> None:
    for event in range(len(words)):
        found[event] = table[words[event]]


@njit(nogil=True)
def has_ties(key_starts: Array, instant: Array) -> bool:
    """Whether two events of one key have no order. O(events)."""
    for key in range(len(key_starts) - 1):
        same = 0
        for event in range(key_starts[key] + 1, key_starts[key + 1]):
            same += instant[event] == instant[event - 1]
        if same:
            return True
    return False


@njit(nogil=True)
def _mark_ties(code: Array, key_starts: Array, instant: Array, tied: int) -> None:
    for key in range(len(key_starts) - 1):
        for event in range(key_starts[key] + 1, key_starts[key + 1]):
            if instant[event] == instant[event - 1]:
                code[event - 1] = tied
                code[event] = tied


@njit(nogil=True, wraps=True)
def _spell(code: Array, own: Array, start: Array, instant_kinds: Array, kinds: int) -> int:
    """Give every point in time its kind; `instant_kinds` are the counts by kind, packed, in order of appearance."""
    slots = 1024
    table = np.full(slots, -1, np.int64)
    used = 0
    for at in range(len(code)):
        bag, fits = np.uint64(0), start[at + 1] - start[at] < 256
        for event in range(start[at], start[at + 1]):
            fits &= own[event] < kinds
            bag += np.uint64(1) << (np.uint64(8) * np.uint64(own[event] & 7))
        code[at] = 255
        if fits:
            place = (bag * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(54)
            while table[place] >= 0 and instant_kinds[table[place]] != bag:
                place = (place + np.uint64(1)) & np.uint64(slots - 1)
            if table[place] < 0 and used < len(instant_kinds):
                table[place] = used
                instant_kinds[used] = bag
                used += 1
            if table[place] >= 0:
                code[at] = table[place]
    return used
