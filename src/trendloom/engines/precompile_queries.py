"""The usual kinds of queries, over events made here: what is compiled ahead, measured cold, and bounded by tests.

A kernel is compiled for types and layouts of columns, not for a query: a query of the same kind over other events needs
the same code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from trendloom.engines.answers import answers, table_of
from trendloom.kernels.jit.compiled import counting_compilations
from trendloom.kernels.jit.interpreted import compiled_first
from trendloom.options import Options

MANY = 1 << 15
"""Events up to which nothing is compiled ahead of time: interpreting them takes less than starting a compiler."""

SLIDING = "WITHIN 10 minutes SLIDE 1 minute"
USUAL = {
    "rows, any": "RETURN a.id, b.id, c.id PATTERN SEQ(A a, B b, C c) WHERE [key] AND a.price < c.price WITHIN 20 s",
    "rows, next": "RETURN a.id, count(b[]), c.id PATTERN SEQ(A a, B+ b[], C c) SEMANTICS skip-till-next-match "
    "WHERE [key] WITHIN 1 minute",
    "rows, contiguous": "RETURN a.id, count(b[]) AS n PATTERN SEQ(A a, B+ b[], C c) SEMANTICS contiguous "
    "WHERE [key] AND b.price < NEXT(b).price WITHIN 1 hour",
    "COUNT(*)": "RETURN key, COUNT(*) PATTERN SEQ(A a+, B b) WHERE [key] GROUP BY key WITHIN 1 minute",
    "COUNT(*), sliding": f"RETURN key, COUNT(*) PATTERN SEQ(A a+, B b) WHERE [key] GROUP BY key {SLIDING}",
    "COUNT, MAX, AVG with NEXT, sliding": "RETURN key, COUNT(*), MAX(b.price), AVG(b.price) PATTERN SEQ(A a, B b+) "
    f"WHERE [key] AND b.price < NEXT(b).price GROUP BY key {SLIDING}",
    "COLLAPSED TRENDS": "RETURN COLLAPSED TRENDS PATTERN SEQ(A a, B+ b[], C c) WHERE [key] WITHIN 1 minute",
    "COMPLETE TRENDS": "RETURN COMPLETE TRENDS PATTERN B b+ WHERE [key] AND b.price < NEXT(b).price "
    "WITHIN 1 minute SLIDE 1 minute",
}
"""The eight kinds that first answers are measured by."""

MORE = {
    "all pairs": "RETURN a.id, b.id PATTERN SEQ(A a, NOT C c, B b) WHERE [key] WITHIN 20 s",
    "sums and extremes": "RETURN key, COUNT(*), SUM(b.id), MIN(b.price), AVG(b.price) PATTERN SEQ(A a, B b) "
    "WHERE [key] GROUP BY key WITHIN 1 minute",
    "COUNT(*), next": "RETURN key, COUNT(*) PATTERN SEQ(A a, B b+, C c) SEMANTICS skip-till-next-match WHERE [key] "
    f"GROUP BY key {SLIDING}",
    "the best, sliding": f"RETURN a.id, b.id, c.id PATTERN SEQ(A a, B b, C c) WHERE [key] {SLIDING} "
    "RANK BY a.price + b.price + c.price DESC LIMIT 10",
}
"""Kinds that are compiled ahead as well."""


@dataclass(frozen=True)
class UsualRun:
    """A usual query over so many events: running it compiles what queries of its kind need."""

    name: str
    query: str
    events: int
    numeric: str = "exact"

    def run(self) -> int:
        """Run it, for its side effect; says how many functions it has compiled."""
        with compiled_first(), counting_compilations() as found:
            table_of(answers(self.query, usual_events(self.events), Options(numeric=self.numeric)))
        return sum(found.values())


def usual_runs() -> list[UsualRun]:
    """All that is compiled ahead: usual queries over few events, and over many."""
    queries = USUAL | MORE
    small = [UsualRun(name, query, 2_000) for name, query in queries.items()]
    large = [UsualRun(f"{name}, many events", query, MANY + MANY // 4) for name, query in queries.items()]
    return [*small, *large]


def run_all(found: list[UsualRun], processes: int, done: Callable[[UsualRun, int], None]) -> None:
    """Run them in processes of their own; `done` hears of each and how many functions it compiled."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        running = {pool.submit(one.run): one for one in found}
        for future in as_completed(running):
            done(running[future], future.result())


def usual_events(count: int, keys: int = 20, seed: int = 3) -> pa.Table:
    """Events of types A, B and C, two per second, some of one key at one time."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "id": np.arange(count),
            "time": np.arange(count) // 2,
            "type": pa.array(np.array(["A", "B", "C"])[random.integers(0, 3, count)]),
            "key": random.integers(0, max(keys, count // 1_000), count),
            "price": random.integers(0, 10_000, count) / 100,
        }
    )
