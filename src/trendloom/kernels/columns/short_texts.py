"""Codes of short texts: types and keys are mostly a few words of a few letters, repeated millions of times.

A text of up to 15 bytes and its length are two machine words, and these are looked up in a small table. Texts that are
longer, that differ too much, few of them or some NULL: Arrow encodes them as well as anybody.

Cost: O(bytes), about a nanosecond each, and one look-up per text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trendloom.kernels.jit.compiled import njit

Ints = NDArray[np.int64]

FEWEST = 1 << 18
"""Texts that are worth it."""
LONGEST = 15
"""Bytes of a text."""
MOST = 1 << 12
"""Different texts."""
SLOTS = 1 << 14
"""Entries of the table: so many that few of them meet."""


def code_short_texts(texts: pa.Array) -> tuple[Ints, pa.Array] | None:
    """For every text where it stands among the different ones, and these, in the order in which they first appear.

    None: another way is better.
    """
    if not isinstance(texts, pa.Array) or len(texts) < FEWEST or texts.null_count or not _is_plain(texts.type):
        return None
    _, ends, letters = texts.buffers()
    if letters is None or ends is None:
        return None
    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    offsets = np.frombuffer(ends, width)[texts.offset : texts.offset + len(texts) + 1]
    codes, firsts = np.empty(len(texts), np.int64), np.empty(MOST, np.int64)
    words, known = np.empty((SLOTS, 2), np.uint64), np.full(SLOTS, -1, np.int64)
    count = _code(offsets, np.frombuffer(letters, np.uint8), words, known, codes, firsts)
    return None if count < 0 else (codes, texts.take(pa.array(firsts[:count])))


def _is_plain(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _leave(*_: Any) -> int:
    """Arrow is faster than anything that is interpreted."""
    return -1


@njit(nogil=True, wraps=True, interpreted=_leave)
def _code(offsets: Any, letters: Any, words: Any, known: Any, codes: Any, firsts: Any) -> Any:
    """How many different texts there are; -1: too many, or one is too long."""
    count = 0
    for row in range(len(codes)):
        begin, end = offsets[row], offsets[row + 1]
        length = end - begin
        if length > LONGEST:
            return -1
        low, high = np.uint64(0), np.uint64(length) << np.uint64(56)
        for at in range(min(length, 8)):
            low |= np.uint64(letters[begin + at]) << np.uint64(8 * at)
        for at in range(8, length):
            high |= np.uint64(letters[begin + at]) << np.uint64(8 * (at - 8))
        # no short cut for a text like the one before: of types in no order half the guesses would be wrong
        mixed = (low ^ (high * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(0xBF58476D1CE4E5B9)
        slot = np.int64(mixed >> np.uint64(50))
        while known[slot] >= 0 and (words[slot, 0] != low or words[slot, 1] != high):
            slot = (slot + 1) & (SLOTS - 1)
        if known[slot] < 0:
            if count == MOST:
                return -1
            known[slot], words[slot, 0], words[slot, 1] = count, low, high
            firsts[count] = row
            count += 1
        codes[row] = known[slot]
    return count
