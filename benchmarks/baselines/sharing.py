"""A-Seq, which SHARON is measured by: every query by itself, a counter per prefix for every START event.

Qi, Cao, Ray and Rundensteiner, "Complex Event Analytics: Online Aggregation of Stream Sequence Patterns". An event of
the type at position j adds the counters of prefix j − 1 to those of prefix j. In sliding windows the counters are kept
for each START event, and expire with it: when a window ends, the counters of the whole pattern of all START events in
it are its result. In tumbling windows nothing expires but the whole window, and one counter per prefix is enough.

Compiled, and kept in the order that the processor likes best: the counters of one prefix lie side by side, so that an
event is one vector addition. Counters are words that wrap around: a result is the count modulo 2⁶⁴.

Cost: O(events of the query's types · START events of the key that are alive), O(length · these START events) memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.cases.sharing import SharingWorkload, Word
from benchmarks.harness.compiled import njit

Array = np.ndarray[Any, Any]


PLACE_BITS = 6
"""Positions of a pattern are less than 2 to this power."""


@dataclass(frozen=True, eq=False)
class ArrangedEvents:
    """By type the *moments* of its events: places in the list of all different (key, time), which is in this order.

    `keys`: the value of each key.
    """

    key: Array
    time: Array
    moments: dict[str, Array]
    keys: Array


@dataclass(frozen=True, eq=False)
class PrefixCounts:
    """Rows (query, key, window start, count modulo 2⁶⁴), and bytes of the counters of all queries at their fullest."""

    rows: Array
    counters: int


def arrange_events(table: pa.Table, key: str) -> ArrangedEvents:
    """Read what any of the queries needs: keys as numbers, events sorted once and divided by their types."""
    types = table["type"].combine_chunks().dictionary_encode()
    keys, codes = np.unique(table[key].to_numpy(), return_inverse=True)
    time = table["time"].to_numpy()
    order = np.lexsort([time, codes])
    code, time = codes[order].astype(np.int64), time[order].astype(np.int64)
    new = np.r_[True, (code[1:] != code[:-1]) | (time[1:] != time[:-1])][: len(time)]
    kind = types.indices.to_numpy()[order]
    by_kind = np.argsort(kind, kind="stable")
    moments = (np.cumsum(new) - 1)[by_kind]
    ends = np.searchsorted(kind[by_kind], np.arange(len(types.dictionary) + 1))
    listed = {name: moments[ends[at] : ends[at + 1]] for at, name in enumerate(types.dictionary.to_pylist())}
    return ArrangedEvents(code[new], time[new], listed, keys)


def count_by_prefixes(events: ArrangedEvents, workload: SharingWorkload) -> PrefixCounts:
    """All queries, one after another."""
    parts, counters = [], 0
    for number, word in enumerate(workload.words):
        found, most = _count(events, word, workload.within, workload.slide)
        parts.append(np.column_stack([np.full(len(found), number), found]))
        counters += 8 * len(word) * most
    return PrefixCounts(np.concatenate(parts), counters)


def _count(events: ArrangedEvents, word: Word, within: int, slide: int) -> tuple[Array, int]:
    updates, room = _updates(events, word), np.empty((1 << 12, 3), np.int64)
    if within == slide:
        return _count_tumbling(events.key, events.time, updates, len(word), within, room), 1
    found, most = _count_sliding(events.key, events.time, updates, len(word), within, slide, room)
    return found, int(most)


def _updates(events: ArrangedEvents, word: Word) -> Array:
    """A number for every event and position that it fits, in the order in which they happen: moment, −position.

    Of events of one time the last positions come first: so none of them sees what another one has added.
    """
    nobody = np.empty(0, np.int64)
    last = (1 << PLACE_BITS) - 1
    places = [(events.moments.get(one, nobody) << PLACE_BITS) + last - at for at, one in enumerate(word)]
    found: Array = np.sort(np.concatenate(places))
    return found


def rows_of_prefixes(found: PrefixCounts, events: ArrangedEvents, workload: SharingWorkload) -> pa.Table:
    """The rows as the engine gives them."""
    query, key, start, count = found.rows.T
    names = pa.DictionaryArray.from_arrays(query.astype(np.int32), pa.array(workload.names)).cast(pa.string())
    columns = {"query": names, workload.key: events.keys[key], "window_start": start}
    return pa.table({**columns, "window_end": start + workload.within, "COUNT(*)": count.view(np.uint64)})


# -------------------------------------------------------------------------------------------------- kernels


@njit
def _place(update: Any) -> Any:
    return np.int64((1 << PLACE_BITS) - 1) - (update & np.int64((1 << PLACE_BITS) - 1))


@njit
def _count_tumbling(key: Any, time: Any, updates: Any, length: int, within: int, found: Any) -> Any:
    """One counter per prefix; a window of a key ends with the first event after it."""
    counts = np.zeros(length, np.uint64)
    current, window, rows = np.int64(-1), np.int64(0), 0
    for which in range(len(updates) + 1):
        over = which == len(updates)
        its_key = np.int64(-2) if over else key[updates[which] >> PLACE_BITS]
        its = np.int64(0) if over else time[updates[which] >> PLACE_BITS] // within
        if its_key != current or its != window:
            if current >= 0 and counts[length - 1]:
                if rows == len(found):
                    found = np.concatenate((found, np.empty_like(found)))
                found[rows, 0], found[rows, 1], found[rows, 2] = current, window * within, counts[length - 1]
                rows += 1
            counts[:] = 0
            current, window = its_key, its
        if not over:
            position = _place(updates[which])
            counts[position] += np.uint64(1) if position == 0 else counts[position - 1]
    return found[:rows]


@njit
def _count_sliding(key: Any, time: Any, updates: Any, length: int, within: int, slide: int, found: Any) -> Any:
    """A column of counters per START event, those alive from `low` to `high`; also how many were alive at most."""
    size = 1 << 10
    counts, starts = np.zeros((length, size), np.uint64), np.empty(size, np.int64)
    low = high = rows = most = 0
    current, window = np.int64(-1), np.int64(0)
    for which in range(len(updates) + 1):
        over = which == len(updates)
        its_key = np.int64(-2) if over else key[updates[which] >> PLACE_BITS]
        now = np.int64(0) if over else time[updates[which] >> PLACE_BITS]
        while low < high and (its_key != current or now >= window * slide + within):
            total = counts[length - 1, low:high].sum()
            if total:
                if rows == len(found):
                    found = np.concatenate((found, np.empty_like(found)))
                found[rows, 0], found[rows, 1], found[rows, 2] = current, window * slide, total
                rows += 1
            window += 1
            while low < high and starts[low] < window * slide:
                low += 1
        if over:
            break
        if low == high:
            low = high = 0
            current, window = its_key, (now - within) // slide + 1
        position = _place(updates[which])
        if position > 0:
            mine, before = counts[position], counts[position - 1]
            for start in range(low, high):
                mine[start] += before[start]
            continue
        if high == size:  # move those alive to the front, of twice the room if they need it
            alive = high - low
            size *= 2 if 2 * alive > size else 1
            moved, times = np.zeros((length, size), np.uint64), np.empty(size, np.int64)
            moved[:, :alive], times[:alive] = counts[:, low:high], starts[low:high]
            counts, starts, low, high = moved, times, 0, alive
        starts[high] = now
        counts[:, high] = 0
        counts[0, high] = 1
        high += 1
        most = max(most, high - low)
    return found[:rows], most
