"""Reduce flat lists: what holds of each segment of an array, for all segments in one pass.

A list of matches is two arrays: the events of all matches one after another, and `offsets`, where each match begins
(with one entry more for the end). Every function here reads each entry at most once: O(entries + segments), and
nothing is allocated but the result. `flags` says which entries count; an entry that is NULL must not be flagged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, implements, is_interpreted, njit, operation

# Copy stretches of arrays as memory: compiled loops cannot know that two arrays do not overlap, and are slower.
#
# Measured on trends of 13 to 100 events, returning them with this takes a half to a quarter of the time.


def _copy_entries(_: Any, into: Any, at: Any, source: Any, begin: Any, count: Any) -> Any:
    """`into[at : at + count] = source[begin : begin + count]`: contiguous arrays of one type that do not overlap."""
    if into.dtype != source.dtype or into.layout != "C" or source.layout != "C":
        raise TypeError("only contiguous arrays of one type are copied as memory")

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        target = context.make_array(signature.args[0])(context, builder, values[0])
        origin = context.make_array(signature.args[2])(context, builder, values[2])
        size = context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype))
        to, from_ = builder.gep(target.data, [values[1]]), builder.gep(origin.data, [values[3]])
        cgutils.raw_memcpy(builder, to, from_, values[4], size)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(into, types.int64, source, types.int64, types.int64), generate


_copy_memory: Any = intrinsic(_copy_entries)


@operation
def copy_entries(into: Array, at: int, source: Array, begin: int, count: int) -> None:
    """`into[at : at + count] = source[begin : begin + count]`: contiguous arrays of one type that do not overlap."""


@implements(copy_entries, {**INSIDE, "forceinline": True})
def _copy(into: Any, at: Any, source: Any, begin: Any, count: Any) -> Any:
    def compiled(into: Any, at: Any, source: Any, begin: Any, count: Any) -> None:
        _copy_memory(into, at, source, begin, count)

    def interpreted(into: Any, at: Any, source: Any, begin: Any, count: Any) -> None:
        into[at : at + count] = source[begin : begin + count]

    return interpreted if is_interpreted(into) else compiled


@njit(nogil=True)
def grown(values: Any) -> Any:
    """The same entries in an array of twice the size."""
    larger = np.empty(2 * len(values), values.dtype)
    copy_entries(larger, 0, values, 0, len(values))
    return larger


Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Numbers = NDArray[Any]  # int64 or float64


@njit(nogil=True)
def count_where(offsets: Ints, flags: Flags) -> Ints:
    """How many entries of each segment are flagged. O(entries)."""
    counts = np.zeros(len(offsets) - 1, np.int64)
    for segment in range(len(counts)):
        for entry in range(offsets[segment], offsets[segment + 1]):
            counts[segment] += flags[entry]
    return counts


@njit(nogil=True)
def first_where(offsets: Ints, flags: Flags) -> Ints:
    """The first flagged entry of each segment, -1 where there is none. O(entries), stops at the first."""
    found = np.full(len(offsets) - 1, -1, np.int64)
    for segment in range(len(found)):
        for entry in range(offsets[segment], offsets[segment + 1]):
            if flags[entry]:
                found[segment] = entry
                break
    return found


@njit(nogil=True)
def last_where(offsets: Ints, flags: Flags) -> Ints:
    """The last flagged entry of each segment, -1 where there is none. O(entries), stops at the last."""
    found = np.full(len(offsets) - 1, -1, np.int64)
    for segment in range(len(found)):
        for entry in range(offsets[segment + 1] - 1, offsets[segment] - 1, -1):
            if flags[entry]:
                found[segment] = entry
                break
    return found


@njit(nogil=True, wraps=True)
def sum_int64(offsets: Ints, values: Ints, flags: Flags) -> tuple[Ints, Flags]:
    """The exact sum of each segment, and where it does not fit int64 (then the sum is modulo 2^64). O(entries).

    Additions wrap (in uint64, where that is defined); each wrap is counted with its sign, so a sum that leaves int64
    and comes back is right.
    """
    sums = np.zeros(len(offsets) - 1, np.int64)
    overflowed = np.zeros(len(offsets) - 1, np.bool_)
    for segment in range(len(sums)):
        total, wraps = np.int64(0), 0
        for entry in range(offsets[segment], offsets[segment + 1]):
            if flags[entry]:
                value = values[entry]
                after = np.int64(np.uint64(total) + np.uint64(value))
                if value >= 0 and after < total:
                    wraps += 1
                elif value < 0 and after > total:
                    wraps -= 1
                total = after
        sums[segment] = total
        overflowed[segment] = wraps != 0
    return sums, overflowed


@njit(nogil=True)
def sum_float(offsets: Ints, values: NDArray[np.float64], flags: Flags) -> NDArray[np.float64]:
    """The sum of each segment with Neumaier's compensation: as if added in twice the precision. O(entries).

    Infinities add as IEEE says (inf − inf is NaN).
    """
    sums = np.zeros(len(offsets) - 1, np.float64)
    for segment in range(len(sums)):
        total, lost = 0.0, 0.0
        for entry in range(offsets[segment], offsets[segment + 1]):
            if flags[entry]:
                value = values[entry]
                after = total + value
                if abs(total) >= abs(value):
                    lost += (total - after) + value
                else:
                    lost += (value - after) + total
                total = after
        sums[segment] = total + lost if np.isfinite(total) else total
    return sums


def all_where(offsets: Ints, truths: Flags, flags: Flags) -> Flags:
    """Whether every flagged entry of each segment is true. O(entries), stops at the first that is not."""
    found: Flags = first_where(offsets, flags & ~truths) < 0
    return found


@njit(nogil=True)
def extreme_where(offsets: Ints, values: Numbers, flags: Flags, greatest: bool) -> Numbers:
    """The least or the greatest flagged value of each segment, 0 where there is none. O(entries)."""
    found = np.zeros(len(offsets) - 1, values.dtype)
    for segment in range(len(found)):
        first, best = True, found[segment]
        for entry in range(offsets[segment], offsets[segment + 1]):
            value = values[entry]
            if flags[entry] and (first or (value > best if greatest else value < best)):
                first, best = False, value
        found[segment] = best
    return found


@njit(nogil=True)
def tie_ends(key_starts: Ints, time: Ints) -> Ints:
    """For events sorted by (key, time): the first later event of the same key, or the key's end. O(n), one pass.

    `key_starts` is where each key begins, with one entry more for the end.
    """
    ends = np.empty(len(time), np.int64)
    for key in range(len(key_starts) - 1):
        end = key_starts[key + 1]
        for event in range(key_starts[key + 1] - 1, key_starts[key] - 1, -1):
            if event + 1 < key_starts[key + 1] and time[event] != time[event + 1]:
                end = event + 1
            ends[event] = end
    return ends


@njit(nogil=True)
def tie_starts(ends: Ints) -> Ints:
    """For each event the first one of its key and time, from what `tie_ends` gives. O(n), one pass."""
    starts = np.empty(len(ends), np.int64)
    first = 0
    for event in range(len(ends)):
        if event > 0 and ends[event] != ends[event - 1]:
            first = event
        starts[event] = first
    return starts


def indices_with_bit(words: NDArray[Any], bit: int) -> Ints:
    """The indices of the words that have a bit set. O(n)."""
    return np.flatnonzero(words & words.dtype.type(1 << bit))


@njit(nogil=True)
def gather_segments(offsets: Ints, values: Numbers, rows: Ints, into: Ints) -> Numbers:
    """The entries of some segments, one after another; segment rows[r] goes to `into[r]`. O(entries gathered)."""
    found = np.empty(into[len(rows)], values.dtype)
    for row in range(len(rows)):
        begin = offsets[rows[row]]
        copy_entries(found, into[row], values, begin, offsets[rows[row] + 1] - begin)
    return found


@njit(nogil=True)
def first_at_least(low: Ints, high: Ints, values: Ints, wanted: Ints) -> Ints:
    """For each i the first index in [low[i], high[i]) whose value is at least wanted[i], or high[i]. O(log n) each."""
    found = np.empty(len(low), np.int64)
    for i in range(len(low)):
        begin, end = low[i], high[i]
        while begin < end:
            middle = (begin + end) // 2
            if values[middle] < wanted[i]:
                begin = middle + 1
            else:
                end = middle
        found[i] = begin
    return found
