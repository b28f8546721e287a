"""Sort words inside compiled code: runs by insertion, then merged. Nothing is done where they are in order.

Cost: O(n log n), O(n) for words in order; scratch of the same size is the caller's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendloom.kernels.jit.compiled import INSIDE, njit

RUN = 16
"""Words that are sorted by insertion before merging begins."""


@njit(**INSIDE)
def bit_length(count: Any) -> Any:
    """Bits that tell so many things apart."""
    bits = 0
    while (np.int64(1) << bits) < count:
        bits += 1
    return bits


@njit(**INSIDE)
def sort_words(words: Any, count: Any, spare: Any) -> None:
    """Sort the first `count` words; `spare` is scratch of the same size."""
    falls = 0
    for at in range(1, count):
        falls += words[at] < words[at - 1]
    if falls == 0:
        return
    for begin in range(0, count, RUN):
        _insertion_sort(words, begin, min(begin + RUN, count))
    source, into, size = words, spare, RUN
    while size < count:
        for begin in range(0, count, 2 * size):
            _merge_runs(source, into, begin, min(begin + size, count), min(begin + 2 * size, count))
        source, into, size = into, source, 2 * size
    if bit_length((count + RUN - 1) // RUN) & 1 == 1:  # an odd number of rounds ends in the scratch
        for at in range(count):
            words[at] = spare[at]


@njit(**INSIDE)
def _insertion_sort(words: Any, begin: Any, end: Any) -> None:
    for at in range(begin + 1, end):
        word, hole = words[at], at
        while hole > begin and words[hole - 1] > word:
            words[hole] = words[hole - 1]
            hole -= 1
        words[hole] = word


@njit(**INSIDE)
def _merge_runs(source: Any, into: Any, begin: Any, middle: Any, end: Any) -> None:
    left, right = begin, middle
    for at in range(begin, end):
        if right >= end or (left < middle and source[left] <= source[right]):
            into[at] = source[left]
            left += 1
        else:
            into[at] = source[right]
            right += 1
