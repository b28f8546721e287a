"""Numbers for the values of a key: equal rows have equal numbers, and numbers are dense.

A key is a row of integers (codes of columns, or numbers of events). Rows that were seen stand in an open table by their
hash and are compared column by column, so that different keys never meet.

Cost: O(columns) per row; the table is at most half full.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit

FIRST = 1 << 8


class KeyTable(NamedTuple):
    """Key number i is `rows[i]`; `table` holds numbers by hash, −1 where it is free."""

    rows: Array
    table: Array


class KeyNumbers:
    """The keys so far."""

    def __init__(self, columns: int) -> None:
        self.count = 0
        self._columns = columns
        self._keys = KeyTable(np.empty((FIRST, columns), np.int64), np.full(2 * FIRST, -1, np.int64))

    def numbers(self, keys: Array) -> Array:
        """A number for each row; rows not seen before get the next ones."""
        if self._columns == 0:
            self.count = 1
            return np.zeros(len(keys), np.int64)
        self._make_room(len(keys))
        found = np.empty(len(keys), np.int64)
        self.count = int(_number(np.ascontiguousarray(keys, np.int64), self._keys, self.count, found))
        return found

    def known(self, keys: Array) -> Array:
        """The number of each row, −1 for those not seen before."""
        if self._columns == 0:
            return np.zeros(len(keys), np.int64) - (self.count == 0)
        found = np.empty(len(keys), np.int64)
        _find(np.ascontiguousarray(keys, np.int64), self._keys, found)
        return found

    def _make_room(self, more: int) -> None:
        size = len(self._keys.rows)
        if self.count + more > size:
            while self.count + more > size:
                size *= 2
            rows = np.empty((size, self._columns), np.int64)
            rows[: self.count] = self._keys.rows[: self.count]
            self._keys = KeyTable(rows, np.full(2 * size, -1, np.int64))
            _number(rows[: self.count].copy(), self._keys, 0, np.empty(self.count, np.int64))


# ------------------------------------------------------------------------------------------------ compiled


@njit(nogil=True)
def _number(keys: Array, known: KeyTable, count: int, found: Array) -> int:
    """Number the rows of `keys`; how many keys there are then."""
    for row in range(len(keys)):
        place = _place(keys, row, known)
        if known.table[place] < 0:
            known.table[place] = count
            for column in range(keys.shape[1]):
                known.rows[count, column] = keys[row, column]
            count += 1
        found[row] = known.table[place]
    return count


@njit(nogil=True)
def _find(keys: Array, known: KeyTable, found: Array) -> None:
    for row in range(len(keys)):
        found[row] = known.table[_place(keys, row, known)]


@njit(**INSIDE)
def _place(keys: Array, row: int, known: KeyTable) -> int:
    """Where the key of a row stands in the table, or would."""
    mask = len(known.table) - 1
    place = _hash(keys, row) & mask
    while known.table[place] >= 0:
        same = True
        for column in range(keys.shape[1]):
            if known.rows[known.table[place], column] != keys[row, column]:
                same = False
        if same:
            break
        place = (place + 1) & mask
    return place


@njit(**INSIDE, wraps=True)
def _hash(keys: Array, row: int) -> Any:
    code = np.uint64(1)
    for column in range(keys.shape[1]):
        code = (code ^ np.uint64(keys[row, column])) * np.uint64(0x9E3779B97F4A7C15)
        code ^= code >> np.uint64(29)
    return np.int64(code >> np.uint64(1))
