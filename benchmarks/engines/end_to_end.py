"""The local engine from an unsorted Arrow table to rows: rate, peak memory, and where the time goes.

Memory is measured in a process of its own: the high-water mark of resident memory while the query runs, over what the
process held before it read the table. Arrow uses the system's allocator here, which gives memory back at once, so
that the mark shows what is needed and not what is cached.

    python -m benchmarks.engines.end_to_end FILE QUERY    # what that process runs: prints its figures as JSON
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import trendloom as tl
from benchmarks.baselines import aggregation as baselines
from benchmarks.cases.events import keyed_events, same_rows
from benchmarks.harness.memory import peak_memory, reset_peak, resident, run_apart
from benchmarks.harness.planned import planned
from benchmarks.harness.report import Report, Result, race
from trendloom.kernels.aggregate.block import aggregate
from trendloom.runtime.blocks import build_block

KEYS = 1_000
COUNTED = "RETURN key, COUNT(*) PATTERN SEQ(A+, B) WHERE [key] GROUP BY key WITHIN {within} s SLIDE {within} s"
GOAL = 8e6
MOST_MEMORY = 3.0


def measure_end_to_end(report: Report, *, quick: bool = False) -> None:
    """SEQ(A+, B) in windows of about 100 events of a key."""
    events, tries = (500_000, 3) if quick else (10_000_000, 5)
    query = COUNTED.format(within=100 * KEYS)
    table = keyed_events(events, KEYS)
    coded = table.set_column(0, "type", table["type"].combine_chunks().dictionary_encode())
    ordered = table.sort_by("time")
    expected = expected_counts(table, 100 * KEYS)
    names = {"text": table, "dictionary": coded, "text, in order of time": ordered}
    timings = race(tries, {name: partial(tl.run, query, some) for name, some in names.items()})
    for name, timing in timings.items():
        good = same_rows(timing.answer, expected)
        one = timing.result(f"local, SEQ(A+, B), types as {name}", events, rows=len(expected), checked=good)
        one = one.with_goal("8 M events/s", one.rate >= GOAL) if "order" not in name else one
        report.add(one.noting(f"processor time {timing.processor:.3g} s"))
    where_time_goes(report, query, table, tries)
    for name in ("text", "dictionary"):
        report.add(measure_memory(query, names[name], name, len(expected)))


def expected_counts(table: pa.Table, within: int) -> pa.Table:
    """The rows of COUNTED by NumPy and a loop written by hand."""
    key, time = table["key"].to_numpy(), table["time"].to_numpy()
    order = np.lexsort([time, key])
    fits = (table["type"].to_numpy(zero_copy_only=False)[order] == "A").astype(np.uint8)
    window = key[order] * (len(table) // within + 1) + time[order] // within
    low = np.flatnonzero(np.r_[True, window[1:] != window[:-1]])
    counts = baselines.exact(baselines.walk_wide(fits, low, np.r_[low[1:], len(fits)]))
    some = np.flatnonzero(counts != 0)
    start = (time[order][low] // within * within)[some]
    wide = pa.array(counts[some].tolist(), pa.decimal128(38, 0))
    columns = {"key": key[order][low][some], "window_start": start, "window_end": start + within, "COUNT(*)": wide}
    return pa.table(columns)


def where_time_goes(report: Report, query: str, table: pa.Table, tries: int) -> None:
    """The same run in three parts: check the table and plan, sort and encode, add up."""
    case = planned(query, table)

    def build() -> Any:
        case.stream.vectors.pop("key", None)
        return build_block(case.physical, case.stream)

    contenders = {
        "check and plan": lambda: planned(query, table),
        "encode and sort": build,
        "add up": lambda: list(aggregate(case.spec, case.block, "exact")),
    }
    for name, timing in race(tries, contenders).items():
        one = timing.result(f"local, of which: {name}", len(table), rows=0, checked=None)
        report.add(one.noting(f"processor time {timing.processor:.3g} s"))


# ------------------------------------------------------------------------------------------------- memory


def measure_memory(query: str, table: pa.Table, name: str, rows: int) -> Result:
    """Peak memory of a run in a process of its own, as a multiple of the columns used."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.arrow"
        with pa.ipc.new_file(path, table.schema) as sink:
            sink.write_table(table)
        found = run_apart("engines.end_to_end", str(path), query)
    columns = table.nbytes
    peak, more = (found["peak"] - found["before"]) / columns, (found["peak"] - found["loaded"]) / columns
    one = Result(f"local, memory, types as {name}", len(table), found["seconds"], found["rows"], found["rows"] == rows)
    note = f"peak {peak:.2f}× the {columns / 1e6:.0f} MB of columns, with them; {more:.2f}× without"
    return one.noting(note).with_goal("peak ≤ 3× the columns", peak <= MOST_MEMORY)


def watched_run(path: str, query: str) -> dict[str, float]:
    """Resident bytes before the table is read, after that, and at most while the query runs."""
    tl.run(query, keyed_events(300_000, KEYS))  # load and compile
    before = resident()
    with pa.OSFile(path) as source, pa.ipc.open_file(source) as reader:
        table = reader.read_all()
    loaded = resident()
    reset_peak()
    begin = time.perf_counter()
    rows = tl.run(query, table)
    seconds = time.perf_counter() - begin
    return {"before": before, "loaded": loaded, "peak": peak_memory(), "rows": len(rows), "seconds": seconds}


if __name__ == "__main__":
    print(json.dumps(watched_run(*sys.argv[1:3])))
