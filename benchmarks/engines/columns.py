"""Rates of the column kernels and of vectorised expressions: one line each, answers checked against NumPy.

Run with `python -m benchmarks.engines.columns [rows]`. One core; figures are the best of five runs after one that
compiles. Data: seeded, uniform, 1000 keys, times in a range as long as the stream.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.expr.evaluate import evaluate
from trendloom.expr.nodes import Arithmetic, Attribute, Comparison, Constant, Expr, Function, Junction, Which
from trendloom.expr.vectors import Vector, from_arrow
from trendloom.kernels.columns.keys import encode_keys
from trendloom.kernels.columns.segments import count_where, sum_float, tie_ends
from trendloom.kernels.columns.sort import sort_by_key_and_time
from trendloom.kernels.jit.interpreted import compiled_first
from trendloom.model.schema import Kind


def measure(what: str, rows: int, work: Callable[[], Any]) -> Any:
    """The result of `work`, after printing its best time."""
    answer = work()
    best = min(_timed(work) for _ in range(5))
    print(f"{what:<58} {best * 1000:8.1f} ms {rows / best / 1e6:8.1f} M rows/s")
    return answer


def _timed(work: Callable[[], Any]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def sorting(rows: int, random: np.random.Generator) -> None:
    key, time = random.integers(0, 1000, rows), random.integers(0, rows, rows)
    found = measure("sort by key and time, random", rows, lambda: sort_by_key_and_time(key, time, 1000))
    expected = np.lexsort((time, key))
    assert np.array_equal(found, expected)
    measure("sort by key and time, np.lexsort for comparison", rows, lambda: np.lexsort((time, key)))
    arrival = np.sort(time)
    measure("sort by key and time, in time order", rows, lambda: sort_by_key_and_time(key, arrival, 1000))
    moment = 1_700_000_000_000_000 + random.integers(0, 30 * 86_400_000_000, rows)
    measure("sort by key and time, microseconds of a month", rows, lambda: sort_by_key_and_time(key, moment, 1000))
    key, time = key[expected], time[expected]
    measure("sort by key and time, in order already", rows, lambda: sort_by_key_and_time(key, time, 1000))
    starts = np.searchsorted(key, np.arange(1001)).astype(np.int64)
    measure("tie ends", rows, lambda: tie_ends(starts, time))


def numbering(rows: int, random: np.random.Generator) -> None:
    dense = random.integers(0, 1000, rows)
    sparse = random.integers(-(2**62), 2**62, 100_000)[random.integers(0, 100_000, rows)]
    other = random.integers(0, 50, rows)
    keys = measure("number keys, 1000 integers", rows, lambda: encode_keys([Vector(Kind.INT, dense)]))
    assert np.array_equal(keys.codes, np.unique(dense, return_inverse=True)[1])
    measure("number keys, 100 000 sparse integers", rows, lambda: encode_keys([Vector(Kind.INT, sparse)]))
    two = [Vector(Kind.INT, dense), Vector(Kind.INT, other)]
    measure("number keys, two columns, 50 000 pairs", rows, lambda: encode_keys(two))


def reading(rows: int, random: np.random.Generator) -> None:
    texts = pa.array(np.char.add("customer-", np.arange(1000).astype(str))[random.integers(0, 1000, rows)])
    numbers = pa.array(random.random(rows), mask=random.random(rows) < 0.1)
    measure("read strings from Arrow, 1000 distinct", rows, lambda: from_arrow(texts, Kind.STRING))
    measure("read doubles with NULL from Arrow", rows, lambda: from_arrow(numbers, Kind.FLOAT))


def evaluating(rows: int, random: np.random.Generator) -> None:
    names = pa.array(np.arange(1000).astype(str)[random.integers(0, 1000, rows)])
    columns = {
        "price": from_arrow(pa.array(random.random(rows), mask=random.random(rows) < 0.1), Kind.FLOAT),
        "volume": from_arrow(pa.array(random.integers(0, 10_000, rows)), Kind.INT),
        "name": from_arrow(names, Kind.STRING),
    }
    price, volume, name = (Attribute("a", Which.EACH, column, columns[column].kind) for column in columns)
    cases: dict[str, Expr] = {
        "volume * 3 + 1 (exact)": Arithmetic(
            "+", Arithmetic("*", volume, Constant(3, Kind.INT), Kind.INT), Constant(1, Kind.INT), Kind.INT
        ),
        "price > 0.5 AND name >= '77'": Junction(
            "and",
            (
                Comparison(">", price, Constant(0.5, Kind.FLOAT)),
                Comparison(">=", name, Constant("77", Kind.STRING)),
            ),
        ),
        "lower(name) = 'x'": Comparison(
            "=", Function("lower", (name,), Kind.STRING), Constant("x", Kind.STRING)
        ),
        "volume / price": Arithmetic("/", volume, price, Kind.FLOAT),
        "round(price, 2)": Function("round", (price, Constant(2, Kind.INT)), Kind.FLOAT),
    }  # fmt: skip
    for text, expr in cases.items():
        measure(text, rows, lambda expr=expr: evaluate(expr, lambda leaf: columns[leaf.column]))  # type: ignore[misc]


def reducing(rows: int, random: np.random.Generator) -> None:
    offsets = np.arange(0, rows + 1, 10)
    values, flags = random.random(rows), random.random(rows) < 0.5
    counts = measure("count in segments of 10", rows, lambda: count_where(offsets, flags))
    assert counts.sum() == flags[: offsets[-1]].sum()
    measure("sum of doubles in segments of 10", rows, lambda: sum_float(offsets, values, flags))


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000
    print(f"{rows} rows")
    for part in (sorting, numbering, reading, evaluating, reducing):
        part(rows, np.random.default_rng(0))


if __name__ == "__main__":
    with compiled_first():
        main()
