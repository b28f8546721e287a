"""Order events of equal key and time by further columns, and number the instants that this makes.

Events are sorted by key and time first; only those that share both with a neighbour are looked at again. What comes
out are *instants*: numbers that grow with (key, time, columns) and are equal for events that are equal in all of them.
Whoever asks for the order of two events of a key compares instants, whoever asks for a length of time compares times.
Cost: O(t log t) for t events of equal key and time, O(n) for the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from trendloom.expr.vectors import Vector

Array = np.ndarray[Any, Any]


def order_ties(key: Array, time: Array, rows: Array, columns: Sequence[Vector]) -> tuple[Array, Array] | None:
    """The rows with ties put in order, and the instants of the events; None where there are no ties.

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
    keys = [key for column in columns for key in _sortable(column)]
    order = np.lexsort(keys[::-1])
    steps = np.zeros(len(order), np.bool_)
    for key in keys:
        steps[1:] |= key[order][1:] != key[order][:-1]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(steps)
    return ranks


def _sortable(column: Vector) -> Iterator[Array]:
    """A column as arrays that NumPy sorts: what is known first, then the values."""
    values = column.values
    if values.dtype == object:
        values = np.unique(values, return_inverse=True)[1].reshape(-1)
    if column.valid is not None:
        yield column.valid
        values = np.where(column.valid, values, values.dtype.type(0))
    yield values
