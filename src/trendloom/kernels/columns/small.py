"""The operations on columns in plain NumPy, for few rows: a first answer does not wait until they are compiled.

Each is the same function as its compiled namesake, on integers alone, and tests compare them. Compiled ones are a few
times faster, which for `FEW` rows is some milliseconds, and takes up to half a second each to compile.
"""

from __future__ import annotations

import numpy as np

from trendloom.expr.arrays import Array

FEW = 1 << 15
"""Rows up to which nothing is compiled for them."""
MOST_WINDOWS = 1 << 20
"""Windows of all events, each counted as often as it has events, up to which they are listed here."""


def order_by_key_and_time(key: Array | None, time: Array) -> Array | None:
    """The stable order by (key, time), None where the rows are in order already."""
    order: Array = np.argsort(time, kind="stable") if key is None else np.lexsort((time, key))
    return None if (order[1:] > order[:-1]).all() else order


def encode_integers(values: Array, valid: Array | None) -> tuple[Array, int]:
    """Codes in the order of the values, −1 where there is none; and how many there are."""
    distinct, codes = np.unique(values if valid is None else values[valid], return_inverse=True)
    if valid is None:
        return codes.astype(np.int64).reshape(-1), len(distinct)
    found = np.full(len(values), -1, np.int64)
    found[valid] = codes.reshape(-1)
    return found, len(distinct)


def first_rows(codes: Array, count: int) -> Array:
    """The first row of each code: going backwards, the last one written."""
    rows = np.full(count, -1, np.int64)
    known = np.flatnonzero(codes >= 0)[::-1]
    rows[codes[known]] = known
    return rows


def tie_starts_of_keys(key_starts: Array, instant: Array) -> Array:
    """Where a key or an instant begins, and the end."""
    begins = np.ones(len(instant) + 1, np.bool_)
    begins[1:-1] = instant[1:] != instant[:-1]
    begins[key_starts] = True
    return np.flatnonzero(begins)


def tie_ends(key_starts: Array, instant: Array) -> Array:
    """For each event the first later one of its key, or the key's end."""
    starts = tie_starts_of_keys(key_starts, instant)
    return np.repeat(starts[1:], np.diff(starts))


def tie_starts(ends: Array) -> Array:
    """For each event the first one of its key and instant."""
    first = np.r_[True, ends[1:] != ends[:-1]][: len(ends)]
    return np.maximum.accumulate(np.where(first, np.arange(len(ends)), 0))


def gather_segments(offsets: Array, values: Array, rows: Array, into: Array) -> Array:
    """The entries of some segments, one after another; segment rows[r] goes to `into[r]`."""
    within = np.arange(into[len(rows)]) - np.repeat(into[: len(rows)], np.diff(into[: len(rows) + 1]))
    return values[np.repeat(offsets[rows], np.diff(into[: len(rows) + 1])) + within]


def first_at_least(low: Array, high: Array, values: Array, wanted: Array) -> Array:
    """For each i the first index in [low[i], high[i]) whose value is at least wanted[i], or high[i]."""
    begin, end = low.astype(np.int64), high.astype(np.int64)
    while (open_ := begin < end).any():
        middle = (begin + end) >> 1
        less = open_ & (values[np.where(open_, middle, 0)] < wanted)
        begin = np.where(less, middle + 1, begin)
        end = np.where(open_ & ~less, middle, end)
    return begin


def flagged(offsets: Array, flags: Array, *, last: bool) -> Array:
    """The first or last flagged entry of each segment, −1 where there is none."""
    entries = np.flatnonzero(flags)
    if last:
        at = np.searchsorted(entries, offsets[1:]) - 1
        inside = at >= np.searchsorted(entries, offsets[:-1])
    else:
        at = np.searchsorted(entries, offsets[:-1])
        inside = at < np.searchsorted(entries, offsets[1:])
    found = np.full(len(offsets) - 1, -1, np.int64)
    found[inside] = entries[at[inside]]
    return found


def windows(key_starts: Array, time: Array, within: int, slide: int, least: int) -> Array | None:
    """(key, start, low, high) of every window with enough events, by key and start; None where there are too many."""
    if len(time) * (within // slide + 1) > MOST_WINDOWS:
        return None
    first, last = (time - within) // slide + 1, time // slide
    count = last - first + 1
    event = np.repeat(np.arange(len(time)), count)
    number = np.arange(len(event)) - np.repeat(np.cumsum(count) - count, count) + first[event]
    key = np.repeat(np.arange(len(key_starts) - 1), np.diff(key_starts))[event]
    order = np.lexsort((number, key))
    key, number = key[order], number[order]
    new = np.ones(len(key), np.bool_)
    new[1:] = (key[1:] != key[:-1]) | (number[1:] != number[:-1])
    key, start = key[new], number[new] * slide
    low = first_at_least(key_starts[key], key_starts[key + 1], time, start)
    high = first_at_least(low, key_starts[key + 1], time, start + within)
    found = np.stack([key, start, low, high], axis=1)
    return found[high - low >= least]


def panes(key_starts: Array, time: Array, pane: int) -> Array:
    """The stretches of events that lie in one pane, [begin, end] each."""
    starts = tie_starts_of_keys(key_starts, time // pane)
    return np.stack([starts[:-1], starts[1:]], axis=1)
