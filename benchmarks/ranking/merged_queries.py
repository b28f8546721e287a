"""Queries with MERGE, from events to rows: joined beside listed, and two ways through windows that overlap.

- Listed: every match is made and scored, where there are not too many for that.
- Window by window: the sequences of every window are found for itself.
- Together: the sequences of windows are found in one call, which shares what they have in common; it is what runs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

import trendloom as tl
from benchmarks.harness.report import Report, race
from trendloom.kernels.ranking import join_stretches
from trendloom.planner import plan as physical_plan
from trendloom.planner.algorithms import ALGORITHMS

Array = np.ndarray[Any, Any]

JOINED, LISTED, BY_WINDOW, TOGETHER = "joined", "listed", "window by window", "together"
TWO_PAIRS = "SEQ(A a, B b), SEQ(C c, D d)"
BY_PAIRS = "RANK BY MERGE(sum, a.w + b.w, c.w + d.w) LIMIT 10"
QUERIES = {
    "AND in windows": (f"PATTERN AND({TWO_PAIRS}) WITHIN 80 SLIDE 40 {BY_PAIRS}", 4_000),
    "SEQ in windows": (f"PATTERN SEQ({TWO_PAIRS}) WITHIN 120 SLIDE 60 {BY_PAIRS}", 4_000),
    "an operand with a window": (
        "PATTERN AND(SEQ(A a, B b) WITHIN 60, SEQ(C c, D d)) WITHIN 120 SLIDE 60 " + BY_PAIRS, 4_000,
    ),
    "equal ids": ("PATTERN AND(A a, B b) WHERE a.id = b.ref RANK BY MERGE(sum, a.w, b.w) LIMIT 10", 12_000),
    "bare WITHIN": (f"PATTERN AND({TWO_PAIRS}) WITHIN 40 {BY_PAIRS}", 10_000),
    "1,000 keys": (f"PATTERN AND({TWO_PAIRS}) WHERE [k] {BY_PAIRS}", 30_000),
    "1,000 keys OVERALL": (f"PATTERN AND({TWO_PAIRS}) WHERE [k] {BY_PAIRS} OVERALL", 30_000),
    "OR": (
        "PATTERN OR(SEQ(A a, B b, C c), SEQ(C d, D e, A f)) "
        "RANK BY MERGE(sum, a.w + b.w + c.w, d.w + e.w + f.w) LIMIT 10", 600,
    ),
}  # fmt: skip


def measure_merged_queries(report: Report, *, quick: bool = False) -> None:
    """Queries beside listing, and windows that overlap by half and by nine tenths."""
    for name, (query, events) in QUERIES.items():
        _measure_beside_listing(report, name, query, merged_events(events // (4 if quick else 1)))
    for step in (500, 100):
        for condition in ("", "WHERE a.s = d.s", "WHERE abs(a.s - d.s) <= 1"):
            _measure_windows(report, condition, step, 10 if quick else 40)


def merged_events(count: int, types: str = "ABCD") -> pa.Table:
    """Events one after the other, with weights and ids that nothing correlates."""
    random = np.random.default_rng(15)
    return pa.table(
        {
            "time": np.arange(count),
            "type": np.array(list(types))[random.integers(0, len(types), count)],
            "w": random.random(count),
            "s": random.integers(0, 50, count),
            "k": random.integers(0, 1_000, count),
            "id": random.permutation(count),
            "ref": random.permutation(count),
        }
    )


def run_with(changes: dict[tuple[object, str], object], query: str, events: pa.Table) -> list[dict[str, Any]]:
    """The rows of a query on the local engine, with some constants of its kernels changed."""
    with ExitStack() as stack:
        for (module, name), value in changes.items():
            stack.enter_context(patch.object(module, name, value))
        return tl.run(query, events, engine="local").to_pylist()


WITHOUT_LISTING = ("branches", "rank join")
OTHERS = tuple(one for one in ALGORITHMS if one.name not in WITHOUT_LISTING)


def _measure_beside_listing(report: Report, name: str, query: str, events: pa.Table) -> None:
    contenders = {
        JOINED: partial(run_with, {}, query, events),
        LISTED: partial(run_with, {(physical_plan, "ALGORITHMS"): OTHERS}, query, events),
    }
    _report(report, f"MERGE, {name}, {len(events):,} events", contenders, events, LISTED)


def _measure_windows(report: Report, condition: str, step: int, windows: int) -> None:
    query = (
        f"PATTERN AND(SEQ(A a, B b, C c), SEQ(D d, E e, F f)) {condition} WITHIN 1000 SLIDE {step} "
        "RANK BY MERGE(sum, a.w + b.w + c.w, d.w + e.w + f.w) LIMIT 20"
    )
    events = merged_events(1_000 + step * windows, "ABCDEF")
    one_by_one: dict[tuple[object, str], object] = {
        (join_stretches, "FIRST_TURN"): 1,
        (join_stretches, "LONGEST_TURN"): 1,
    }
    contenders = {
        BY_WINDOW: partial(run_with, one_by_one, query, events),
        TOGETHER: partial(run_with, {}, query, events),
    }
    _report(report, f"MERGE, windows of 1,000 by {step} {condition}", contenders, events, BY_WINDOW)


def _report(
    report: Report, name: str, contenders: dict[str, Callable[[], Any]], events: pa.Table, baseline: str
) -> None:
    timings = race(2, contenders, on_processor=True)
    checked = all(each.answer == timings[baseline].answer for each in timings.values())
    assert checked, name
    rate = len(events) / timings[baseline].best
    for each, timing in timings.items():
        result = timing.result(f"{name}: {each}", len(events), rows=len(timing.answer), checked=checked)
        report.add(result if each == baseline else result.against(baseline, rate))
