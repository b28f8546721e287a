"""Compile what queries will need while something else takes its time: another process runs them over made-up events.

Numba compiles under a lock, so a thread would not help. The process leaves its code in the folder that all processes of
this machine share; one that needs a function which is being compiled waits for it instead of compiling it too.
`python -m trendloom.engines.precompile` reads a `Precompilation` from its standard input. If it fails, nothing is lost.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from trendloom.engines.precompile_queries import MANY
from trendloom.frontend.tree import Query
from trendloom.io.events import prepare
from trendloom.io.parquet import ParquetFiles
from trendloom.kernels.jit.interpreted import compiled_first
from trendloom.options import Options
from trendloom.runtime.planning import planned_alone

ROWS = 200
"""Made-up events, enough for all that is done with few of them."""

_running: list[subprocess.Popen[bytes]] = []


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
    """Start to compile what these queries will need over this source, and return at once.

    For few events nothing is: tasks interpret their kernels, and a compiler would only take a processor from them.
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


def _known(source: object) -> tuple[pa.Schema | None, int]:
    """The columns and the number of events, as far as they are known before the events are read."""
    if isinstance(source, ParquetFiles):
        return source.columns, source.rows
    table = getattr(source, "table", None)
    return (table.schema, len(table)) if isinstance(table, pa.Table) else (None, 0)


def wait() -> None:
    """Return when everything that was begun has ended."""
    while _running:
        _running.pop().wait()


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
