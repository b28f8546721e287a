"""EXISTS beside the same pattern without it: rows per match, values of matches, and counts, on the local engine.

Without EXISTS every event between two others makes a match of its own; with it there is one row for all of them. The
pairs that are left are also found by comparing all pairs of a window directly.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import trendloom as tl
from benchmarks.harness.planned import Planned, planned
from benchmarks.harness.report import Report, Timing, race

KEYS = 1_000
WITHIN = 12_000
"""Ticks: a key has about a dozen events in a window."""
PATTERNS = {
    "one event": ("SEQ(A a, X x, B b)", "EXISTS x (SEQ(A a, X x, B b))"),
    "one event or more": ("SEQ(A a, X x+, B b)", "EXISTS x (SEQ(A a, X x+, B b))"),
    "first": ("SEQ(X x, A a, B b)", "EXISTS x (SEQ(X x, A a, B b))"),
}
MOST_TIMES = 2.0

Array = np.ndarray[Any, Any]


def measure_exists(report: Report, *, quick: bool = False) -> None:
    """Rows with the hidden events and without them, then counts in one step and in two."""
    events, tries = keyed_types(100_000 if quick else 1_000_000), 3 if quick else 7
    measure_rows(report, events, tries)
    measure_counts(report, events, tries)


def measure_rows(report: Report, events: pa.Table, tries: int) -> None:
    """Every pattern and output, both ways."""
    for name, patterns in PATTERNS.items():
        for output in ("TRENDS", "a.id, b.id") if name == "one event" else ("a.id, b.id",):
            queries = [f"RETURN {output} PATTERN {text} WHERE [key] WITHIN {WITHIN} s" for text in patterns]
            _measure_both(report, events, f"EXISTS, {name}, {output}", queries, tries)


def keyed_types(count: int, seed: int = 17) -> pa.Table:
    """Events of four types in order of time, of keys at random."""
    random = np.random.default_rng(seed)
    types = pa.DictionaryArray.from_arrays(random.integers(0, 4, count).astype(np.int32), list("ABXY"))
    number = np.arange(count)
    return pa.table({"id": number, "type": types, "time": number, "key": random.integers(0, KEYS, count)})


def _measure_both(report: Report, events: pa.Table, name: str, queries: list[str], tries: int) -> None:
    """A query without EXISTS and with it."""
    ways = dict(zip(("all", "remainders"), queries, strict=True))
    timings = race(tries, {way: partial(tl.run, text, events) for way, text in ways.items()})
    expected = pairs_with(events, before="SEQ(X x, A" in queries[0])
    good = np.array_equal(pairs_of(timings["remainders"].answer), expected)
    both = np.array_equal(np.unique(pairs_of(timings["all"].answer), axis=0), expected)
    report.add(_result(f"{name}, without EXISTS", timings["all"], events, checked=both))
    one = _result(name, timings["remainders"], events, checked=good)
    one = one.against("the pattern without EXISTS", len(events) / timings["all"].best)
    report.add(one.with_goal("at most twice the time", (one.ratio or 0.0) >= 1 / MOST_TIMES))


def measure_counts(report: Report, events: pa.Table, tries: int) -> None:
    """COUNT(*) of remainders as a matrix, beside finding and comparing them."""
    query = f"RETURN COUNT(*) PATTERN {PATTERNS['one event'][1]} WHERE [key] WITHIN {WITHIN} s SLIDE {WITHIN} s"
    case: Planned = planned(query, events)
    timings = race(tries, {"one step": case.partial, "two steps": partial(case.partial, two_steps=True)})
    numbers = [int(sum(timing.answer.column(timing.answer.num_columns - 1).to_pylist())) for timing in timings.values()]
    one = _result("EXISTS, COUNT(*)", timings["one step"], events, checked=numbers[0] == numbers[1])
    report.add(one.against("two steps", len(events) / timings["two steps"].best))


def _result(name: str, timing: Timing, events: pa.Table, *, checked: bool) -> Any:
    return timing.result(name, len(events), rows=len(timing.answer), checked=checked)


def pairs_of(rows: pa.Table) -> Array:
    """The numbers of the events a and b of every row, in order."""
    if "events" not in rows.column_names:
        found = np.column_stack([rows[name].to_numpy() for name in ("a.id", "b.id")])
    else:
        listed = rows["events"].combine_chunks()
        ids, names = (listed.flatten().field(name) for name in ("id", "var"))
        names = np.asarray(names.to_pylist() if not pa.types.is_dictionary(names.type) else names.cast(pa.string()))
        ids = ids.to_numpy()
        found = np.column_stack([ids[names == "a"], ids[names == "b"]])
    return np.asarray(found[np.lexsort(found.T[::-1])])


def pairs_with(events: pa.Table, *, before: bool) -> Array:
    """All pairs of an A and a later B of one key with an X between them, or `before` both, within the window.

    Every event is compared with the next one of its key, the one after it, and so on.
    """
    key, time = events["key"].to_numpy(), events["time"].to_numpy()
    order = np.lexsort((time, key))
    key, time, number = key[order], time[order], events["id"].to_numpy()[order]
    types = np.asarray(events["type"].cast(pa.string()))[order]
    seen = np.cumsum(types == "X")
    latest = np.maximum.accumulate(np.where(types == "X", np.arange(len(types)), -1))
    found, far = [], 1
    while True:
        first, second = np.arange(len(time) - far), np.arange(far, len(time))
        near = (key[first] == key[second]) & (time[second] - time[first] < WITHIN)
        if not near.any():
            break
        good = near & (types[first] == "A") & (types[second] == "B")
        if before:
            there = latest[first]
            good &= (there >= 0) & (key[there] == key[first]) & (time[second] - time[there] < WITHIN)
        else:
            good &= seen[second] > seen[first]
        found.append(np.column_stack([number[first[good]], number[second[good]]]))
        far += 1
    pairs = np.concatenate(found)
    return np.asarray(pairs[np.lexsort(pairs.T[::-1])])
