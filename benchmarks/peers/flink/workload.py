"""The events both systems read, and the answer both must give.

Ties mean different things in the two systems (Flink needs an order, we relate events by time alone), and Flink's event
time ends at milliseconds. So there is one event per millisecond: each of 1,000 keys has an event every second or so.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

ROWS = ("key", "first_id", "last_id", "count_b")
"""Columns of the answer: of each match its key, the ids of its A and its C, and how many Bs are between."""

START = 1_700_000_000_000  # milliseconds since 1970


def events_for_flink(count: int, keys: int, seed: int = 7) -> pa.Table:
    """Events of types A, B, C and D, a quarter each, one per millisecond in order, spread evenly over the keys."""
    random = np.random.default_rng(seed)
    types = pa.DictionaryArray.from_arrays(random.integers(0, 4, count).astype(np.int32), pa.array(list("ABCD")))
    times = pa.array((START + np.arange(count)) * 1_000, pa.timestamp("us", tz="UTC"))
    return pa.table(
        {
            "id": np.arange(count),
            "time": times,
            "type": types.cast(pa.string()),
            "key": random.integers(0, keys, count),
        }
    )


def milliseconds(events: pa.Table) -> np.ndarray:
    """The times as Flink sees them; refuses those that it would see as ties or out of order."""
    milli: np.ndarray = events["time"].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_numpy() // 1_000
    if len(milli) > 1 and not (np.diff(milli) > 0).all():
        raise ValueError("times must rise by a millisecond or more from event to event: see events_for_flink")
    return milli


def expected_rows(events: pa.Table, within_seconds: int) -> pa.Table:
    """The answer by NumPy: from each C back over the Bs of its key, at least one, to what must be an A.

    The A must be less than `within_seconds` older than the C, as Flink has it.
    """
    key = events["key"].to_numpy()
    order = np.argsort(key, kind="stable")
    key, ids, time = key[order], events["id"].to_numpy()[order], milliseconds(events)[order]
    kind = events["type"].to_numpy(zero_copy_only=False)[order]
    place = np.arange(len(kind))
    before = np.r_[-1, np.maximum.accumulate(np.where(kind == "B", -1, place))[:-1]]  # the last that is no B
    c = np.flatnonzero((kind == "C") & (before >= 0) & (place - before >= 2))
    a = before[c]
    good = (kind[a] == "A") & (key[a] == key[c]) & (time[c] - time[a] < within_seconds * 1_000)
    a, c = a[good], c[good]
    return pa.table(dict(zip(ROWS, (key[a], ids[a], ids[c], c - a - 1), strict=True)))
