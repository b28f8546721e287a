"""Sort events by key and time: by distribution where times are in order already, else by a radix sort on packed words.

Distribution: a stream mostly comes in order of time, and then only has to be divided among its keys, in the order in
which it comes. Each thread counts the events of every key in its slice of the rows; from these counts follows where the
events of each key and slice belong, and each thread writes its own there. Two passes, no comparisons, and events that
are not needed are left out on the way.

Radix sort: key, time and row number together mostly fit 64 bits. Packed into one word (key high, row low), a stable
sort of the rows is a plain sort of the words by their upper bits, and the row numbers come out of the lower bits.
Digits of at most 11 bits are counted in one pass and distributed in one pass each; a digit that is the same everywhere
is skipped. What does not fit one word is sorted in slices, from the least significant to the most.

Cost: one pass where rows are in order, O(n + keys · threads) where times are, else O(n · bits / 11); no comparisons.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trendloom.expr.arrays import Array, side_by_side, slices_of
from trendloom.expr.vectors import Vector
from trendloom.kernels.jit.compiled import INSIDE, njit

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]

DIGIT = 11
"""Bits per pass: 2048 buckets still fit the first-level caches and translation buffers."""
FEW_KEYS = 1 << 16
"""So many keys are distributed at once."""
PARTS = 4
"""Parts of keys for every thread, at most, so that one that takes longer than the others delays them little."""
RUN = 16
"""Words that `sort_words` sorts by insertion before it merges."""

_NO_ROWS: Ints = np.zeros(0, np.int64)
_ALL: Flags = np.zeros(0, np.bool_)


@dataclass(frozen=True, eq=False)
class Distributed:
    """`rows` sorted by key and time (None: all rows, as they are), their times, and how many each key has."""

    rows: Ints | None
    times: Ints
    sizes: Ints


def distribute(codes: Ints, times: Ints, kept: Flags | None, keys: int, threads: int) -> Distributed | None:
    """The events with a key (code not below 0) that are `kept`, sorted; None where another way is quicker."""
    if keys > FEW_KEYS:
        return None
    wanted = _ALL if kept is None else kept
    slices = slices_of(len(times), threads)
    alone = len(slices) == 1
    counted = side_by_side(lambda low, high: _counted(codes, times, wanted, low, high, keys, alone), slices, threads)
    counts, flags = np.array([one[0] for one in counted]), np.array([one[1] for one in counted])
    sizes = counts.sum(axis=0)
    ends = flags[flags[:, 2] >= 0, 2:]  # of slices without events nothing is known
    first, last = ends[1:, 0], ends[:-1, 1]
    timed = bool(flags[:, 0].all() and (times[last] <= times[first]).all())
    if not timed and alone:
        return None
    total = int(sizes.sum())
    if timed and total == len(times) and flags[:, 1].all() and (codes[last] <= codes[first]).all():
        return Distributed(None, times, sizes)
    place = np.cumsum(sizes) - sizes + np.cumsum(counts, axis=0) - counts
    rows, moved = np.empty(total, np.int64), np.empty(total, np.int64)

    def scatter(low: int, high: int, at: Ints) -> None:
        _scatter(codes, times, wanted, low, high, at, rows, moved)

    side_by_side(scatter, [(*bounds, at) for bounds, at in zip(slices, place, strict=True)], threads)
    if not timed:
        _sort_keys(rows, moved, sizes, threads)
    return Distributed(rows, moved, sizes)


def sorted_times(key: Ints | None, time: Ints, keys: int) -> tuple[Ints | None, Ints]:
    """The order by (key, time), None where the rows are in order already; and the times in that order."""
    order, times = _sorted(key, time, keys)
    if times is None:
        times = time if order is None else time[order]
    return order, times


def sort_by_key_and_time(key: Ints | None, time: Ints, keys: int) -> Ints | None:
    """The stable order of the rows by (key, time), or None where they are in order already.

    `key` holds codes 0 .. keys-1; None means that there is one key.
    """
    return _sorted(key, time, keys)[0]


def sortable_integers(values: NDArray[Any]) -> Ints:
    """Integers in the same order as numbers: the bits of a double, those of a negative one inverted; −0.0 is 0.0."""
    if values.dtype != np.float64:
        return values.astype(np.int64, copy=False)
    bits = (values + 0.0).view(np.int64)
    return np.asarray(bits ^ ((bits >> 63) & np.int64(2**63 - 1)))


def _sort_keys(rows: Ints, times: Ints, sizes: Ints, threads: int) -> None:
    """Sort the events of each key by time, in place; `rows` of one key ascend."""
    starts = np.r_[0, np.cumsum(sizes)]
    wanted = np.linspace(0, starts[-1], threads * PARTS + 1)
    bounds = np.unique(np.searchsorted(starts, wanted)).tolist()

    def sort(first: int, last: int) -> None:
        low, high = starts[first], starts[last]
        codes = np.repeat(np.arange(last - first), sizes[first:last])
        order, sorted_ = sorted_times(codes, times[low:high], last - first)
        if order is not None:
            times[low:high], rows[low:high] = sorted_, rows[low:high][order]

    side_by_side(sort, list(pairwise(bounds)), threads)


@njit(nogil=True)
def _counted(codes: Any, times: Any, kept: Any, low: Any, high: Any, keys: Any, only_in_time: Any) -> Any:
    """Events of each key in a slice; then whether they are in order of time, of key, and the first and last of them.

    `only_in_time`: stop at the first event that is not in order of time.
    """
    counts = np.zeros(keys, np.int64)
    timed, keyed, first, last = 1, 1, -1, -1
    for row in range(low, high):
        code = codes[row]
        if code < 0 or (len(kept) > 0 and not kept[row]):
            continue
        counts[code] += 1
        if last < 0:
            first = row
        else:
            if times[row] < times[last]:
                timed = 0
                if only_in_time:
                    break
            if code < codes[last]:
                keyed = 0
        last = row
    return counts, np.array([timed, keyed, first, last])


@njit(nogil=True)
def _scatter(codes: Any, times: Any, kept: Any, low: Any, high: Any, place: Any, rows: Any, moved: Any) -> None:
    """Write the events of a slice where they belong: `place` is that of the next one of each key.

    Threads share `rows` and `moved`, so this must not be put back and repeated: it is only called for so many events
    that it is never interpreted before it is compiled.
    """
    for row in range(low, high):
        code = codes[row]
        if code < 0 or (len(kept) > 0 and not kept[row]):
            continue
        at = place[code]
        rows[at] = row
        moved[at] = times[row]
        place[code] = at + 1


# ---------------------------------------------------------------------------------------------- radix sort


def _sorted(key: Ints | None, time: Ints, keys: int) -> tuple[Ints | None, Ints | None]:
    """The order, None: as they are; and the times in that order where they are read off the sorted words."""
    codes = _NO_ROWS if key is None or keys <= 1 else np.ascontiguousarray(key, np.int64)
    keyed, timed = _in_order(codes, time)
    if keyed:
        return None, time
    if timed and keys <= FEW_KEYS:
        return _distributed(codes, keys), None
    start, row_bits = int(time.min()), _bits(len(time) - 1)
    time_bits, key_bits = _bits(int(time.max()) - start), _bits(keys - 1) if len(codes) else 0
    if time_bits + key_bits + row_bits <= 64:
        words = _sorted_words(_packed(codes, time, start, time_bits, row_bits), row_bits, time_bits + key_bits)
        times = _times(words, start, time_bits, row_bits)
        return words.view(np.int64), times
    if time_bits + key_bits <= 64:
        return _order_by(_packed(codes, time, start, time_bits, 0), time_bits + key_bits, None), None
    order = _order_by(_packed(_NO_ROWS, time, start, time_bits, 0), time_bits, None)
    return _order_by(codes.view(np.uint64), key_bits, order), None


def _bits(most: int) -> int:
    return max(most, 0).bit_length()


def _order_by(values: Words, bits: int, order: Ints | None) -> Ints:
    """The stable order by `values` of rows that are in `order`: as many bits at a time as fit beside the row number."""
    rows = len(values)
    row_bits = max(_bits(rows - 1), 1)
    width = 64 - row_bits
    for shift in range(0, bits, width):
        words = _words(values, _NO_ROWS if order is None else order, shift, row_bits)
        words = _sorted_words(words, row_bits, min(width, bits - shift))
        order = _rows(words, row_bits, _NO_ROWS if order is None else order)
    return np.arange(rows) if order is None else order


@njit(nogil=True)
def _in_order(key: Any, time: Any) -> Any:
    """Whether the rows are in order of (key, time), and whether they are in order of time. One pass, stops early."""
    keyed, timed = True, True
    for row in range(1, len(time)):
        later = time[row] >= time[row - 1]
        timed = timed and later
        if len(key) == 0:
            keyed = timed
        elif key[row] < key[row - 1] or (key[row] == key[row - 1] and not later):
            keyed = False
        if not (keyed or timed):
            break
    return keyed, timed


@njit(nogil=True)
def _distributed(key: Any, keys: Any) -> Any:
    """The stable order by key: rows of one key stay as they are. Two passes, one counter per key."""
    place = np.zeros(keys, np.int64)
    for code in key:
        place[code] += 1
    total = 0
    for code in range(keys):
        count = place[code]
        place[code] = total
        total += count
    order = np.empty(len(key), np.int64)
    for row in range(len(key)):
        order[place[key[row]]] = row
        place[key[row]] += 1
    return order


@njit(nogil=True, wraps=True)
def _packed(key: Any, time: Any, start: Any, time_bits: Any, row_bits: Any) -> Any:
    """(key, time − start, row) as one number, the row in `row_bits` bits (0: without it).

    Differences of int64 are right in uint64 even where int64 overflows.
    """
    packed = np.empty(len(time), np.uint64)
    shift, up = np.uint64(time_bits), np.uint64(row_bits)
    for row in range(len(time)):
        word = np.uint64(time[row]) - np.uint64(np.int64(start))
        if len(key) > 0:
            word |= np.uint64(key[row]) << shift
        packed[row] = (word << up) | np.uint64(row) if row_bits > 0 else word
    return packed


@njit(nogil=True, wraps=True)
def _times(words: Any, start: Any, time_bits: Any, row_bits: Any) -> Any:
    """The times of packed words; the words become their rows."""
    times = np.empty(len(words), np.int64)
    up, mask = np.uint64(row_bits), (np.uint64(1) << np.uint64(row_bits)) - np.uint64(1)
    low = (np.uint64(1) << np.uint64(time_bits)) - np.uint64(1)
    for place in range(len(words)):
        word = words[place]
        times[place] = np.int64(((word >> up) & low) + np.uint64(np.int64(start)))
        words[place] = word & mask
    return times


@njit(nogil=True)
def _words(values: Any, order: Any, shift: Any, row_bits: Any) -> Any:
    """The slice of each value from bit `shift` on, above its place in the order so far."""
    words = np.empty(len(values), np.uint64)
    down, up = np.uint64(shift), np.uint64(row_bits)
    for place in range(len(values)):
        row = order[place] if len(order) > 0 else place
        words[place] = ((values[row] >> down) << up) | np.uint64(place)
    return words


@njit(nogil=True)
def _rows(words: Any, row_bits: Any, order: Any) -> Any:
    """The rows that the sorted words stand for."""
    rows = np.empty(len(words), np.int64)
    mask = (np.uint64(1) << np.uint64(row_bits)) - np.uint64(1)
    for place in range(len(words)):
        row = np.int64(words[place] & mask)
        rows[place] = order[row] if len(order) > 0 else row
    return rows


@njit(nogil=True)
def _sorted_words(words: Any, low: Any, bits: Any) -> Any:
    """The words in stable order of the `bits` bits from bit `low` on. O(n) per digit, buffers of 2n words."""
    if bits == 0:
        return words
    passes = (bits + DIGIT - 1) // DIGIT
    width = (bits + passes - 1) // passes
    mask = np.uint64((1 << width) - 1)
    counts = np.zeros((passes, 1 << width), np.int64)
    for word in words:
        rest = word >> np.uint64(low)
        for digit in range(passes):
            counts[digit, rest & mask] += 1
            rest >>= np.uint64(width)
    source, target = words, np.empty_like(words)
    for digit in range(passes):
        shift = np.uint64(low + digit * width)
        if counts[digit, (source[0] >> shift) & mask] == len(words):
            continue
        place = np.cumsum(counts[digit]) - counts[digit]
        for word in source:
            bucket = (word >> shift) & mask
            target[place[bucket]] = word
            place[bucket] += 1
        source, target = target, source
    return source


# ------------------------------------------------------------------------------------- events of equal time
#
# Events are sorted by key and time first; only those that share both with a neighbour are compared by further columns.
# The result are *instants*: numbers that grow with (key, time, columns) and are equal for events that are equal in all
# of them. The order of two events of a key is that of their instants; lengths of time are differences of times.
# Cost: O(t log t) for t events of equal key and time, O(n) for the numbers.


def order_ties(key: Array, time: Array, rows: Array, columns: Sequence[Vector]) -> tuple[Array, Array] | None:
    """The rows with ties in order, and the instants of the events; None where there are no ties.

    `key` and `time` are those of the events in order, `rows` their rows in the columns.
    """
    same = (key[1:] == key[:-1]) & (time[1:] == time[:-1])
    if not same.any():
        return None
    follows = np.r_[False, same]
    tied = np.flatnonzero(follows | np.r_[same, False])
    rank = value_ranks([column.take(rows[tied]) for column in columns])
    order = np.lexsort((rank, np.cumsum(~follows)[tied]))
    rows = rows.copy()
    rows[tied] = rows[tied][order]
    rank = rank[order]
    follows[tied[1:]] &= rank[1:] == rank[:-1]
    return rows, np.cumsum(~follows)


def value_ranks(columns: Sequence[Vector]) -> Array:
    """Numbers that order rows by their values, column by column, NULL first; equal rows have equal numbers."""
    keys = [key for column in columns for key in _sort_columns(column)]
    order = np.lexsort(keys[::-1])
    steps = np.zeros(len(order), np.bool_)
    for key in keys:
        steps[1:] |= key[order][1:] != key[order][:-1]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(steps)
    return ranks


def _sort_columns(column: Vector) -> Iterator[Array]:
    """A column as arrays that NumPy sorts: which values are known first, then the values."""
    values = column.values
    if values.dtype == object:
        values = np.unique(values, return_inverse=True)[1].reshape(-1)
    if column.valid is not None:
        yield column.valid
        values = np.where(column.valid, values, values.dtype.type(0))
    yield values


# ------------------------------------------------------------------------------- words inside compiled code
#
# Runs are sorted by insertion, then merged; words in order cost one pass. Cost: O(n log n), and scratch of the caller.


@njit(**INSIDE)
def bit_length(count: Any) -> Any:
    """Bits that distinguish so many things."""
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
