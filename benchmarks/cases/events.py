"""Data and queries to measure, with answers computed by another way than the engines'."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

RUNS = "PATTERN SEQ(A a, B+ b[], C c) SEMANTICS skip-till-next-match WHERE [key]"
RUN_VALUES = f"RETURN a.id, count(b[]), c.id {RUNS}"
RUN_TRENDS = f"RETURN TRENDS {RUNS}"


def random_events(count: int, keys: int, seed: int = 7) -> pa.Table:
    """Events of types A, B and C in no order, one per time, spread evenly over the keys."""
    random = np.random.default_rng(seed)
    types = pa.DictionaryArray.from_arrays(random.integers(0, 3, count).astype(np.int32), pa.array(["A", "B", "C"]))
    return pa.table(
        {
            "id": np.arange(count),
            "type": types.cast(pa.string()),
            "time": random.permutation(count).astype(np.int64),
            "key": random.integers(0, keys, count),
        }
    )


def expected_runs(events: pa.Table) -> pa.Table:
    """The rows of RUN_VALUES by NumPy: the first B after each A, then the first C, and the Bs up to it."""
    key, time = events["key"].to_numpy(), events["time"].to_numpy()
    order = np.lexsort([time, key])
    kind = events["type"].to_numpy(zero_copy_only=False)[order]
    key, ids = key[order], events["id"].to_numpy()[order]
    next_b, next_c = _next(kind == "B"), _next(kind == "C")
    count_b = np.r_[0, np.cumsum(kind == "B")]
    a = np.flatnonzero(kind == "A")
    b = next_b[a]
    c = next_c[np.minimum(b, len(kind))]
    last = np.minimum(c, len(kind) - 1)
    good = (c < len(kind)) & (key[a] == key[last])
    a, b, c = a[good], b[good], c[good]
    return pa.table({"key": key[a], "a.id": ids[a], "count(b[])": count_b[c] - count_b[b], "c.id": ids[c]})


def _next(marked: np.ndarray) -> np.ndarray:
    """For every index the next marked one from there on; the length where there is none."""
    places = np.append(np.flatnonzero(marked), len(marked))
    return places[np.searchsorted(places, np.arange(len(marked) + 1))]


def same_rows(found: pa.Table, expected: pa.Table) -> bool:
    """Whether two tables hold the same rows, whatever their order."""
    names = expected.column_names
    sort_by = [(name, "ascending") for name in names]
    ordered = expected.sort_by(sort_by).cast(found.select(names).schema)
    return bool(found.select(names).sort_by(sort_by).equals(ordered))


# ------------------------------------------------------------------------------------- aggregates over matches


def stream(count: int, shares: dict[str, float], seed: int = 11) -> pa.Table:
    """One event per tick, in order, of types drawn with these probabilities, with a price between 0 and 1."""
    random = np.random.default_rng(seed)
    codes = random.choice(len(shares), count, p=list(shares.values())).astype(np.int32)
    types = pa.DictionaryArray.from_arrays(codes, pa.array(list(shares)))
    return pa.table({"type": types, "time": np.arange(count), "price": random.random(count)})


def with_text_types(events: pa.Table) -> pa.Table:
    """The same events with types as plain text, as most files have them."""
    return events.set_column(0, "type", events["type"].cast(pa.string()))


def keyed_events(count: int, keys: int, seed: int = 13) -> pa.Table:
    """Events of types A and B in no order, one per time, spread evenly over the keys; types as plain text."""
    random = np.random.default_rng(seed)
    types = pa.DictionaryArray.from_arrays(random.integers(0, 2, count).astype(np.int32), pa.array(["A", "B"]))
    times, key = random.permutation(count).astype(np.int64), random.integers(0, keys, count)
    return pa.table({"type": types.cast(pa.string()), "time": times, "key": key})
