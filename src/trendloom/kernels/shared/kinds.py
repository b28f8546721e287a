"""Kinds of events: those with the same bits are alike, and what is done for them is listed once."""

from __future__ import annotations

from typing import Any

import numpy as np

from trendloom.kernels.columns.block import WORD
from trendloom.kernels.columns.small import FEW
from trendloom.kernels.jit.compiled import njit

Array = np.ndarray[Any, Any]

MOST_KINDS = 1 << 12
"""Kinds of events that are told apart by a table."""
SLOT_BITS = 14
SLOTS = 1 << SLOT_BITS


def kinds_of(fits: tuple[Array, ...]) -> tuple[Array, list[int]]:
    """The kind of every event, and by kind the bits that it has."""
    codes, words = distinct(fits[0])
    listed = [int(word) for word in words]
    for number, word in enumerate(fits[1:], 1):
        code, present = distinct(word)
        pairs, codes = np.unique(codes * len(present) + code, return_inverse=True)
        listed = [listed[pair // len(present)] | int(present[pair % len(present)]) << WORD * number for pair in pairs]
    return codes, listed


def distinct(words: Array) -> tuple[Array, Array]:
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
