"""The kind of every event: which positions it fits, as a small number; and which events share their time.

Kinds are what tables are indexed by. An event that is alone at its time has its kind in `code`; events of equal time have
`tied` there, and in `own` their kind and in `union` the kind that fits all that any of them fits. O(events), one pass
over the bits and one over the times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from trendloom.kernels.columns.block import WORD, Block

Array = np.ndarray[Any, Any]
DIRECT = 1 << 16
"""Words below this are looked up in a table."""


@dataclass(frozen=True, eq=False)
class Kinds:
    code: Array
    tied: int
    own: Array
    union: Array
    positions: list[frozenset[int]]  # by kind


def kinds_of(block: Block) -> Kinds:
    """Number the kinds of events that occur, and those that occur as unions of equal times."""
    words = _words(block)
    ties = has_ties(block.key_starts, block.time)
    union = _unions(words, block.tie_end) if ties else words[:0]
    if words.dtype.itemsize <= 2:
        present = np.bincount(words, minlength=1) > 0
        if ties:
            present = present | (np.bincount(union, minlength=len(present)) > 0)[: len(present)]
            more = np.bincount(union) > 0
            present = np.pad(present, (0, max(0, len(more) - len(present))))
            present[: len(more)] |= more
        listed = np.flatnonzero(present)
    else:
        listed = np.unique(np.concatenate([np.unique(words), np.unique(union)]))
    code_type = np.uint8 if len(listed) < 255 else np.uint16 if len(listed) < 2**16 - 1 else np.uint32
    code, own = _numbered(words, listed, code_type), np.zeros(0, code_type)
    tied = int(np.iinfo(code_type).max)
    if ties:
        own, union = code.copy(), _numbered(union, listed, code_type)
        _mark_ties(code, block.key_starts, block.time, tied)
    else:
        union = own
    return Kinds(code, tied, own, union, [_positions(int(word), block.bits) for word in listed])


def _words(block: Block) -> Array:
    """One word of bits per event."""
    if len(block.fits) == 1:
        return block.fits[0]
    if not block.fits:
        return np.zeros(len(block), np.uint8)
    found = np.zeros(len(block), object)
    for number, words in enumerate(block.fits):
        found |= words.astype(object) << (WORD * number)
    return found


def _unions(words: Array, tie_end: Array) -> Array:
    starts = np.flatnonzero(np.r_[True, tie_end[1:] != tie_end[:-1]])
    found: Array = np.repeat(np.bitwise_or.reduceat(words, starts), np.diff(np.r_[starts, len(words)]))
    return found


def _numbered(words: Array, listed: Array, code_type: Any) -> Array:
    if words.dtype.itemsize > 2:
        return np.searchsorted(listed, words).astype(code_type)
    table = np.zeros(int(listed.max(initial=0)) + 1, code_type)
    table[listed] = np.arange(len(listed))
    found: Array = table[words]
    return found


def _positions(word: int, bits: tuple[int, ...]) -> frozenset[int]:
    return frozenset(position for position, bit in enumerate(bits) if word >> bit & 1)


@numba.njit(cache=True, nogil=True)
def has_ties(key_starts: Array, time: Array) -> bool:
    """Whether two events of one key have equal times. O(events)."""
    for key in range(len(key_starts) - 1):
        begin, end = key_starts[key], key_starts[key + 1]
        same = 0
        for event in range(begin + 1, end):
            same += time[event] == time[event - 1]
        if same:
            return True
    return False


@numba.njit(cache=True, nogil=True)
def _mark_ties(code: Array, key_starts: Array, time: Array, tied: int) -> None:
    for key in range(len(key_starts) - 1):
        for event in range(key_starts[key] + 1, key_starts[key + 1]):
            if time[event] == time[event - 1]:
                code[event - 1] = tied
                code[event] = tied
