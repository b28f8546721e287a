"""The local engine on one core and on all: counts, rows per match, complete and collapsed trends, over 1,000 keys.

From an Arrow table in order of time, types as text, to a table of rows. One thread and all cores take turns, and their
rows are compared with their order. A machine that does other work has no second core to give: then processor time tells
more than seconds do, and is noted.
"""

from __future__ import annotations

import os
from functools import partial

import numpy as np
import pyarrow as pa

import trendloom as tl
from benchmarks.cases.events import RUN_VALUES, expected_runs, keyed_events, random_events, same_rows
from benchmarks.engines.end_to_end import expected_counts
from benchmarks.harness.report import Curve, Report, Timing, race

KEYS = 1_000
WITHIN = 100 * KEYS
PICTURE = "all cores"
QUERIES = {
    "counts": f"RETURN key, COUNT(*) PATTERN SEQ(A+, B) WHERE [key] GROUP BY key WITHIN {WITHIN} s SLIDE {WITHIN} s",
    "rows per match": RUN_VALUES,
    "complete trends": "RETURN COMPLETE TRENDS PATTERN A a+ WHERE [key] AND a.x < NEXT(a).x "
    f"WITHIN {WITHIN // 5} s SLIDE {WITHIN // 5} s",
    "collapsed trends": f"RETURN COLLAPSED TRENDS PATTERN SEQ(A a, B+ b[], C c) WHERE [key] WITHIN {WITHIN // 10} s",
}
GOAL = 1.7
FASTEST = 20e6
ONE, ALL = "one thread", "all cores"


def measure_cores(report: Report, *, quick: bool = False) -> None:
    """Every query over more and more events."""
    sizes = (500_000, 1_000_000) if quick else (1_000_000, 2_000_000, 4_000_000)
    for name, query in QUERIES.items():
        found = {size: _race(query, _events(name, size), 3 if quick else 5) for size in sizes}
        for who in (ONE, ALL):
            seconds = tuple(timings[who].best for timings in found.values())
            report.curves.append(Curve(PICTURE, f"{name}, {who}", sizes, seconds))
        for size, timings in found.items():
            _add(report, name, size, timings, last=size == sizes[-1])


def _events(name: str, size: int) -> pa.Table:
    """In order of time; counts have the types A and B alone, as where they are checked."""
    table = (keyed_events if name == "counts" else random_events)(size, KEYS).sort_by("time")
    return table.append_column("x", pa.array(np.random.default_rng(17).integers(0, 1_000, size)))


def _race(query: str, events: pa.Table, tries: int) -> dict[str, Timing]:
    threads = {ONE: 1, ALL: os.cpu_count() or 1}
    return race(tries, {who: partial(tl.run, query, events, threads=count) for who, count in threads.items()})


def _add(report: Report, name: str, size: int, timings: dict[str, Timing], *, last: bool) -> None:
    one, all_ = timings[ONE], timings[ALL]
    good = bool(all_.answer.equals(one.answer)) and _is_right(name, size, one.answer)
    for who, timing in timings.items():
        result = timing.result(f"local, {name}, {who}", size, rows=len(timing.answer), checked=good)
        result = result.noting(f"processor time {timing.processor:.3g} s")
        if who == ALL:
            result = result.against(ONE, size / one.best)
            if last and (os.cpu_count() or 1) > 1:
                fast = name != "counts" or result.rate >= FASTEST
                goal = f"{GOAL} of it" + (", 20 M events/s" if name == "counts" else "")
                result = result.with_goal(goal, (result.ratio or 0) >= GOAL and fast)
        report.add(result)


def _is_right(name: str, size: int, found: pa.Table) -> bool:
    """Compared with NumPy's answer, where there is one."""
    if name == "counts":
        return same_rows(found, expected_counts(_events(name, size), WITHIN))
    return name != "rows per match" or same_rows(found, expected_runs(_events(name, size)))
