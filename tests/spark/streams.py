"""Events for tests of live streams, in files that make one micro-batch each, and what should come out of them.

What is late is decided here by the definition alone (an event is late if the watermark of its batch has passed it), so
that the engine's own idea of it can be compared: rows with those of the local engine over all events that were on time,
and the side table with the late ones.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import trendloom as tl

SCHEMA = pa.schema([("type", pa.string()), ("time", pa.int64()), ("k", pa.int64()), ("x", pa.int64())])
COLUMNS = "type string, time long, k long, x long"
DELAY = 10
WATERMARK = f"{DELAY} seconds"

MATCHES = "QUERY m: PATTERN SEQ(A a, B+ b[], C c) SEMANTICS skip-till-next-match WHERE [k] WITHIN 20\n"
GROUPS = "QUERY g: RETURN k, COUNT(*), SUM(A.x) PATTERN SEQ(A+, B) WHERE [k] GROUP BY k WITHIN 20 SLIDE 5\n"
TOTALS = "QUERY t: RETURN COUNT(*) PATTERN SEQ(A+, B) WHERE [k] WITHIN 20 SLIDE 5\n"
WORKLOAD = MATCHES + GROUPS + TOTALS
"""Rows per match; aggregates per group; aggregates whose group is coarser than the partition."""

Rows = dict[str, Counter[str]]


def batches_of_events(count: int, *, rows: int = 60, length: int = 40, seed: int = 7) -> list[pa.Table]:
    """Events of so many batches, a little out of order and some of them late; the last batch only moves the clock."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        start = 1000 + number * length
        times = sorted(draw.randrange(start, start + length) for _ in range(rows))
        times = [time - draw.randrange(DELAY // 2) for time in times]
        if number > 1:  # far behind the watermark
            times[5], times[rows // 2] = start - 3 * length, start - 2 * length
        events = [event(draw.choice("ABC"), time, draw.randrange(6), draw.randrange(9)) for time in times]
        found.append(pa.Table.from_pylist(events, SCHEMA))
    return [*found, pa.Table.from_pylist([event("Z", 10**6, 0, 0)], SCHEMA)]


def event(kind: str, time: int, key: int, value: int) -> dict[str, Any]:
    return {"type": kind, "time": time, "k": key, "x": value}


def write_batch(folder: Path, number: int, events: pa.Table) -> None:
    """A file that appears whole, and is the next one that Spark takes: it goes by the time of change."""
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".{number:06d}"
    pq.write_table(events, unfinished)
    os.utime(unfinished, (10**9 + number, 10**9 + number))
    unfinished.rename(folder / f"{number:06d}.parquet")


def split_by_lateness(batches: Iterable[pa.Table]) -> tuple[pa.Table, pa.Table]:
    """The events that were on time, and those that were late."""
    timely, late, newest = [], [], None
    for batch in batches:
        times = batch["time"].to_pylist()
        passed = [newest is not None and time < newest - DELAY for time in times]
        late.append(batch.filter(pa.array(passed)))
        timely.append(batch.filter(pa.array([not one for one in passed])))
        newest = max(times) if newest is None else max(newest, *times)
    return pa.concat_tables(timely), pa.concat_tables(late)


# ------------------------------------------------------------------------------------------------- comparing


def names_of(workload: str) -> list[str]:
    return [part.split(":", 1)[0].strip() for part in workload.split("QUERY ")[1:]]


def expected_rows(workload: str, events: pa.Table) -> Rows:
    """What the local engine finds, by query."""
    found = {name: tl.run(workload, events, query=name, engine="local") for name in names_of(workload)}
    return {name: counted(table, without=["query"]) for name, table in found.items()}


def counted(table: pa.Table, without: Sequence[str] = ()) -> Counter[str]:
    """Rows as a multiset; columns without a value are those of other queries."""
    rows = table.drop_columns([name for name in without if name in table.column_names]).to_pylist()
    return Counter(
        json.dumps({name: value for name, value in row.items() if value is not None}, default=int, sort_keys=True)
        for row in rows
    )


def rows_given_out(folder: Path, names: Iterable[str]) -> Rows:
    """The rows of all finished batches in a sink's folder, by query."""
    found: Rows = {name: Counter() for name in names}
    for path in sorted(folder.glob("[0-9]*/*.parquet")):
        table = pq.read_table(path, partitioning=None)
        for name in pc.unique(table["query"]).to_pylist():
            of_query = counted(table.filter(pc.equal(table["query"], name)), without=["query"])
            found.setdefault(name, Counter()).update(of_query)
    return found


def late_events(folder: Path, query: str) -> Counter[str]:
    """What the side table holds for a query."""
    found: Counter[str] = Counter()
    for path in sorted(folder.glob("*.parquet")):
        table = pq.read_table(path, partitioning=None)
        if table["query"][0].as_py() == query:
            found.update(counted(table, without=["query"]))
    return found


def difference(got: Rows, want: Rows) -> dict[str, tuple[int, int]]:
    """For every query whose rows differ: how many are missing, and how many are too many."""
    told = {}
    for name in {*got, *want}:
        here, there = got.get(name, Counter()), want.get(name, Counter())
        if here != there:
            told[name] = ((there - here).total(), (here - there).total())
    return told
