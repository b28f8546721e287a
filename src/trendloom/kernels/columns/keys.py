"""Number the keys: every combination of key columns becomes a code 0 .. k-1, in the order of the values.

Idea: a column whose values span a small range is numbered by counting (mark what occurs, number the marks); any other
goes through a hash table to find its distinct values, and only those are sorted. Strings are ranks in a sorted
dictionary already. Several columns are combined two at a time, code · count + code, and numbered again. Several
threads take slices of the rows: each finds what occurs in its own, all that is numbered, and each codes its rows.
Cost: O(n) per column, plus a sort of the distinct values where they are sparse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trendloom.expr.arrays import in_slices, side_by_side, slices_of
from trendloom.expr.vectors import Vector
from trendloom.kernels.columns.sort import sort_by_key_and_time, sortable_integers
from trendloom.kernels.jit.compiled import INSIDE, njit
from trendloom.model.schema import Kind

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

SPARSE = 4
"""A range of up to so many times the rows is counted, a wider one is hashed."""

NARROW = 1 << 20
"""A range up to which every thread counts in a table of its own."""

_ALL: Flags = np.zeros(0, np.bool_)


@dataclass(frozen=True, eq=False)
class Keys:
    """`codes` of the rows, -1 where a key column is NULL; `rows[c]` is the first row with code c."""

    codes: Ints
    count: int
    rows: Ints
    valid: Flags | None


def encode_keys(columns: Sequence[Vector], threads: int = 1) -> Keys:
    """Dense codes for the combinations of key columns, ordered column by column as their values are.

    The columns have one length. Without columns see `one_key`.
    """
    codes, count, valid = _encode_column(columns[0], threads)
    for column in columns[1:]:
        more, width, known = _encode_column(column, threads)
        joint = _both(valid, known)
        codes, count = _encode_integers(_combined(codes, width, more, threads), joint, threads)
        valid = joint
    return Keys(codes, count, _rows_of_codes(codes, count, threads), valid)


def _combined(codes: Ints, width: int, more: Ints, threads: int) -> Ints:
    found = np.empty(len(codes), np.int64)

    def combine(low: int, high: int) -> None:
        np.multiply(codes[low:high], width, out=found[low:high])
        found[low:high] += more[low:high]

    in_slices(combine, len(codes), threads)
    return found


def _rows_of_codes(codes: Ints, count: int, threads: int) -> Ints:
    """The first row of each code."""
    slices = slices_of(len(codes), threads if count <= NARROW else 1)
    parts = side_by_side(lambda low, high: _first_rows(codes[low:high], count), slices, threads)
    found: Ints = parts[0]
    for (low, _), rows in zip(slices[1:], parts[1:], strict=True):
        found = np.where((found < 0) & (rows >= 0), rows + low, found)
    return found


def one_key(rows: int) -> Keys:
    """All rows under one key; no key where there are no rows."""
    return Keys(np.zeros(rows, np.int64), min(rows, 1), np.zeros(min(rows, 1), np.int64), None)


def _both(one: Flags | None, other: Flags | None) -> Flags | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _encode_column(column: Vector, threads: int) -> tuple[Ints, int, Flags | None]:
    valid = column.valid
    if valid is not None and valid.all():
        valid = None
    if column.kind is Kind.NULL:
        return np.full(len(column), -1, np.int64), 0, np.zeros(len(column), np.bool_)
    if column.values.dtype == np.object_:
        codes, count = _encode_objects(column.values, valid)
    else:
        codes, count = _encode_integers(sortable_integers(column.values), valid, threads)
    return codes, count, valid


def _encode_integers(values: Ints, valid: Flags | None, threads: int) -> tuple[Ints, int]:
    if len(values) == 0:
        return np.zeros(0, np.int64), 0
    known = _ALL if valid is None else valid
    slices = slices_of(len(values), threads)
    ranges = side_by_side(lambda low, high: _range(values[low:high], known[low:high]), slices, threads)
    least, most = min(least for least, _ in ranges), max(most for _, most in ranges)
    span = int(most) - int(least) + 1
    if span <= 0:  # no valid row
        return np.full(len(values), -1, np.int64), 0
    counted = span <= SPARSE * len(values)
    if len(slices) > 1 and (span <= NARROW or not counted):
        return _encode_slices(values, known, int(least), span, slices)
    if counted:
        codes, count = _by_counting(values, known, least, span)
    else:
        codes, distinct = _by_hashing(values, known)
        codes, count = _renumbered(codes, _ranks(distinct)), len(distinct)
    return codes, int(count)


def _encode_slices(
    values: Ints, known: Flags, least: int, span: int, slices: list[tuple[int, int]]
) -> tuple[Ints, int]:
    """The same by a thread for each slice."""
    threads, codes = len(slices), np.empty(len(values), np.int64)
    if span <= NARROW:
        occurring = side_by_side(
            lambda low, high: _occurring(values[low:high], known[low:high], least, span), slices, threads
        )
        occurs = np.logical_or.reduce(occurring)
        numbers = np.cumsum(occurs) - 1

        def number(low: int, high: int) -> None:
            _number(values[low:high], known[low:high], least, numbers, codes[low:high])

        side_by_side(number, slices, threads)
        return codes, int(np.count_nonzero(occurs))
    parts = side_by_side(lambda low, high: _by_hashing(values[low:high], known[low:high]), slices, threads)
    joint, count = _encode_integers(np.concatenate([distinct for _, distinct in parts]), None, 1)
    ranks = np.split(joint, np.cumsum([len(distinct) for _, distinct in parts])[:-1])

    def renumber(low: int, high: int, own: Ints, rank: Ints) -> None:
        codes[low:high] = _renumbered(own, rank)

    both = zip(slices, parts, ranks, strict=True)
    side_by_side(renumber, [(*bounds, own, rank) for bounds, (own, _), rank in both], threads)
    return codes, count


def _ranks(distinct: Ints) -> Ints:
    ranks = np.arange(len(distinct))
    order = sort_by_key_and_time(None, distinct, 1)
    if order is not None:
        ranks[order] = np.arange(len(distinct))
    return ranks


def _encode_objects(values: NDArray[Any], valid: Flags | None) -> tuple[Ints, int]:
    """Integers beyond int64: as Python numbers."""
    known = values if valid is None else values[valid]
    ranks = {value: rank for rank, value in enumerate(sorted(set(known.tolist())))}
    codes = np.fromiter((ranks.get(value, -1) for value in values.tolist()), np.int64, len(values))
    return codes if valid is None else np.where(valid, codes, -1), len(ranks)


@njit(nogil=True)
def _range(values: Any, valid: Any) -> Any:
    """Least and greatest valid value; an empty range where there is none."""
    least, most = np.int64(2**63 - 1), np.int64(-(2**63))
    if len(valid) == 0:
        for value in values:
            least, most = min(least, value), max(most, value)
        return least, most
    for row in range(len(values)):
        if valid[row]:
            least, most = min(least, values[row]), max(most, values[row])
    return least, most


@njit(nogil=True)
def _by_counting(values: Any, valid: Any, least: Any, span: Any) -> Any:
    """Codes by value − least: mark what occurs, number the marks in order."""
    number = np.zeros(span, np.int32)
    for row in range(len(values)):
        if len(valid) == 0 or valid[row]:
            number[values[row] - least] = 1
    count = 0
    for place in range(span):
        if number[place]:
            number[place] = count
            count += 1
    codes = np.empty(len(values), np.int64)
    for row in range(len(values)):
        codes[row] = number[values[row] - least] if len(valid) == 0 or valid[row] else -1
    return codes, count


@njit(nogil=True)
def _occurring(values: Any, valid: Any, least: Any, span: Any) -> Any:
    """Which values occur, by value − least."""
    found = np.zeros(span, np.bool_)
    for row in range(len(values)):
        if len(valid) == 0 or valid[row]:
            found[values[row] - least] = True
    return found


@njit(nogil=True)
def _number(values: Any, valid: Any, least: Any, numbers: Any, codes: Any) -> None:
    """Write the codes of rows, which `numbers` has by value − least."""
    for row in range(len(values)):
        codes[row] = numbers[values[row] - least] if len(valid) == 0 or valid[row] else -1


@njit(**INSIDE, wraps=True)
def _slot(value: Any, mask: Any) -> Any:
    """Where a value's search begins: every bit of the value moves every bit of the place (Murmur's last step)."""
    mixed = np.uint64(value)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return np.int64((mixed ^ (mixed >> np.uint64(33))) & np.uint64(mask))


@njit(**INSIDE)
def _grown(table: Any, distinct: Any, count: Any) -> Any:
    """A table of twice the size with the same values."""
    wider = np.full(2 * len(table), -1, np.int64)
    mask = len(wider) - 1
    for code in range(count):
        slot = _slot(distinct[code], mask)
        while wider[slot] >= 0:
            slot = (slot + 1) & mask
        wider[slot] = code
    return wider


@njit(nogil=True, wraps=True)
def _by_hashing(values: Any, valid: Any) -> Any:
    """Codes in order of first appearance, and the distinct values. Open addressing, at most half full."""
    table = np.full(1 << 12, -1, np.int64)
    distinct = np.empty(1 << 11, np.int64)
    codes = np.empty(len(values), np.int64)
    count = 0
    for row in range(len(values)):
        codes[row] = -1
        if len(valid) > 0 and not valid[row]:
            continue
        value = values[row]
        mask = len(table) - 1
        slot = _slot(value, mask)
        while table[slot] >= 0 and distinct[table[slot]] != value:
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = count
            distinct[count] = value
            count += 1
        codes[row] = table[slot]
        if count == len(distinct):
            table = _grown(table, distinct, count)
            distinct = np.concatenate((distinct, np.empty(count, np.int64)))
    return codes, distinct[:count]


@njit(nogil=True)
def _renumbered(codes: Any, ranks: Any) -> Any:
    for row in range(len(codes)):
        if codes[row] >= 0:
            codes[row] = ranks[codes[row]]
    return codes


@njit(nogil=True)
def _first_rows(codes: Any, count: Any) -> Any:
    """The first row of each code: going backwards, the last one written."""
    rows = np.full(count, -1, np.int64)
    for row in range(len(codes) - 1, -1, -1):
        if codes[row] >= 0:
            rows[codes[row]] = row
    return rows


# -------------------------------------------------------------------------------------------- short texts
#
# Types and keys are mostly a few words of a few letters, repeated millions of times. A text of up to 15 bytes and its
# length are two machine words, and these are looked up in a small table. Arrow encodes texts as fast that are longer,
# that differ too much, that are few or some NULL. Cost: O(bytes), about a nanosecond each, and one look-up per text.


FEWEST = 1 << 18
"""Texts for which this is faster."""
LONGEST = 15
"""Bytes of a text."""
MOST = 1 << 12
"""Different texts."""
SLOTS = 1 << 14
"""Entries of the table: so many that few of them meet."""


def code_short_texts(texts: pa.Array) -> tuple[Ints, pa.Array] | None:
    """The code of every text, and the different texts, in the order in which they appear; None: Arrow is faster."""
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
