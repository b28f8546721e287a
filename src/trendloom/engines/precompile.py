"""Compile what queries will need before they run: usual queries (`trendloom warm`), or given ones while Spark starts.

A kernel is compiled for types and layouts of columns, not for a query: a query of the same kind over other events needs
the same code. So queries are run over made-up events, in other processes, because Numba compiles under a lock and a
thread would not help. A process leaves its code in the folder that all processes of this machine share; one that needs
a function which is being compiled waits for it instead of compiling it too.

`python -m trendloom.engines.precompile` reads a `Precompilation` from its standard input. If it fails, nothing is lost.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.engines.answers import answers, table_of
from trendloom.frontend.tree import Query
from trendloom.io.events import prepare
from trendloom.io.parquet import ParquetFiles
from trendloom.kernels.jit.compiled import counting_compilations
from trendloom.kernels.jit.interpreted import compiled_first
from trendloom.options import Options
from trendloom.runtime.planning import planned_alone

MANY = 1 << 15
"""Events up to which nothing is compiled ahead of time: interpreting them takes less than starting a compiler."""
ROWS = 200
"""Made-up events, enough for all that is done with few of them."""
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
_running: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class UsualRun:
    """A usual query over so many events: running it compiles what queries of its kind need."""

    name: str
    query: str
    events: int
    numeric: str = "exact"

    def run(self) -> int:
        """Run the query for its side effect; returns how many functions were compiled."""
        with compiled_first(), counting_compilations() as found:
            table_of(answers(self.query, usual_events(self.events), Options()))
        return sum(found.values())


def usual_runs() -> list[UsualRun]:
    """All that is compiled ahead: usual queries over few events, and over many."""
    queries = USUAL | MORE
    small = [UsualRun(name, query, 2_000) for name, query in queries.items()]
    large = [UsualRun(f"{name}, many events", query, MANY + MANY // 4) for name, query in queries.items()]
    return [*small, *large]


def run_all(found: list[UsualRun], processes: int, done: Callable[[UsualRun, int], None]) -> None:
    """Run them in other processes; `done` receives each, and how many functions it compiled."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        running = {pool.submit(one.run): one for one in found}
        for future in as_completed(running):
            done(running[future], future.result())


def usual_events(count: int) -> pa.Table:
    """Events of types A, B and C, two per second, some of one key at one time."""
    random = np.random.default_rng(3)
    return pa.table(
        {
            "id": np.arange(count),
            "time": np.arange(count) // 2,
            "type": pa.array(np.array(["A", "B", "C"])[random.integers(0, 3, count)]),
            "key": random.integers(0, max(20, count // 1_000), count),
            "price": random.integers(0, 10_000, count) / 100,
        }
    )


@dataclass(frozen=True)
class Precompilation:
    """Queries over columns of these types."""

    queries: tuple[Query, ...]
    columns: pa.Schema
    options: Options

    def run(self) -> None:
        """Find the matches of made-up events: of a few, and of many."""
        from trendloom.engines import local

        for rows in (ROWS, MANY + ROWS):
            for query in self.queries:
                events = prepare(made_up(query, self.columns, rows, self.options), **self.options.columns())
                physical = planned_alone(query, events.schema, self.options.limits)
                for _ in local.run(physical, events, numeric=self.options.numeric, limit=self.options.limit):
                    pass


def begin(queries: tuple[Query, ...], source: object, options: Options) -> None:
    """Start to compile the kernels that queries will need over a source, and return at once.

    For few events nothing is compiled: tasks interpret their kernels, and a compiler would take a processor from them.
    """
    columns, rows = _known(source)
    if columns is None or rows <= MANY:
        return
    command = [sys.executable, "-m", "trendloom.engines.precompile"]
    with suppress(OSError):
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(command, stdin=subprocess.PIPE, **quiet)
        _running.append(process)
        assert process.stdin is not None
        with process.stdin as to:
            pickle.dump(Precompilation(queries, columns, options), to)


def wait() -> None:
    """Return when everything that was begun has ended."""
    while _running:
        _running.pop().wait()


def _known(source: object) -> tuple[pa.Schema | None, int]:
    """The columns and the number of events that are known before the events are read."""
    if isinstance(source, ParquetFiles):
        return source.columns, source.rows
    table = getattr(source, "table", None)
    return (table.schema, len(table)) if isinstance(table, pa.Table) else (None, 0)


def made_up(query: Query, columns: pa.Schema, rows: int, options: Options) -> pa.Table:
    """Events of these columns and of the types that the query names; some have equal times, most do not."""
    types = _types(query, columns, options)
    found = {}
    for field in columns:
        if field.name in (options.time, options.time_low, options.time_high):
            found[field.name] = _times(rows, field.type)
        elif field.name == options.type:
            found[field.name] = pa.array([types[at % len(types)] for at in range(rows)]).cast(field.type)
        else:
            found[field.name] = _values(rows, field.type)
    return pa.table(found, schema=columns)


def _types(query: Query, columns: pa.Schema, options: Options) -> list[str]:
    events = prepare(columns.empty_table(), **options.columns())
    physical = planned_alone(query, events.schema)
    return sorted({place.type for place in physical.pattern_spec.places}) or [""]


def _times(rows: int, kind: pa.DataType) -> pa.Array:
    at = np.arange(rows, dtype=np.int64)
    seconds = np.where(at < rows // 4, at // 2, at)
    if pa.types.is_integer(kind):
        return pa.array(seconds).cast(kind)
    moments = pa.array(seconds * 1_000_000).cast(pa.timestamp("us"))
    return moments.cast(pa.string()).cast(kind) if pa.types.is_string(kind) else moments.cast(kind)


def _values(rows: int, kind: pa.DataType) -> pa.Array:
    """Some values of a type; NULL where none are easy to make."""
    with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.array(np.arange(rows) // 2 * 7 % 13).cast(kind)
    return pa.nulls(rows, kind)


if __name__ == "__main__":
    with suppress(Exception), compiled_first():
        pickle.load(sys.stdin.buffer).run()
