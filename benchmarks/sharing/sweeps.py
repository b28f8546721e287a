"""A workload whose queries have parts in common, beside other ways to answer it: time, memory, and the same rows.

The overlap between queries is a parameter and stated with every figure: `taxi 200k, 20 × 10, 90% beginning, 10 open`
is the taxi stream with 200,000 events per window, 20 queries of length 10, of whose positions 90 % are common and stand
at the beginning, and 10 windows open at a time (`in 6`: in six families with parts of their own).

Everything is compared with the *unshared* workload, which reads and sorts once and then has a kernel for each query.
How far that is another kernel and how far sharing, *swept apart* tells: there every query has a sweep of its own.
*Kernel* is the time from sorted events to totals; *end to end* is that from an Arrow table and texts of queries to a
table of rows. One thread by default, because A-Seq is written for one; it receives the words of the queries, not their
texts. See `sharing_contenders` for the contenders and `sharing_streams` for streams and workloads; `sharing_plans`
executes the greedy plan of sharing beside the best one.

Kernels of the unshared and the shared workload are noted with what the planner expected of them, and the shared one
with the way that it took: estimates are right where their share of the time that was measured is near 1.

    python -m benchmarks.sharing.sweeps [--quick] [--sweeps queries lengths ...] [--threads N]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.cases.events import same_rows
from benchmarks.cases.sharing import OVERLAPS, PLACES, STREAMS
from benchmarks.harness.report import Curve, Report, Result, Timing, race
from benchmarks.sharing.contenders import (
    A_SEQ,
    SHARED,
    TWO_STEPS,
    UNSHARED,
    Contest,
    SharingCase,
    modulo_words,
    peak_of,
    quietly,
)
from benchmarks.sharing.on_spark import measure_sharing_on_spark
from benchmarks.sharing.optimizer import measure_sharing_optimizer
from benchmarks.sharing.plans import measure_sharing_plans
from trendloom.kernels.jit.interpreted import compiled_first
from trendloom.planner.sharing.groups import Way

GOALS = {20: 5.0, 120: 18.0}
"""By number of queries with high overlap, how many times as fast as unshared."""
LEAST = 0.95
"""The same for any workload: never much slower."""
MOST_MATCHES = 300_000
"""Up to so many matches of all queries, two steps are a contender."""
QUICK: dict[str, Any] = {"per_window": 10_000, "windows": 1.0}


# --------------------------------------------------------------------------------------------------- sweeps


def by_queries(case: SharingCase, *, quick: bool) -> Iterator[SharingCase]:
    """More and more queries of length 10 with high overlap, on every stream, in sliding and in tumbling windows."""
    for stream in STREAMS:
        for queries in (5, 20) if quick else (20, 40, 80, 120):
            yield replace(case, stream=stream, queries=queries)
    for queries in (20,) if quick else (20, 120):
        yield replace(case, queries=queries, windows_open=1)
    yield replace(case, queries=20 if quick else 120, families=6)


def by_length(case: SharingCase, *, quick: bool) -> Iterator[SharingCase]:
    """Longer and longer patterns of 20 queries."""
    for stream in ("linear road",) if quick else ("taxi", "linear road"):
        for length in (5, 15) if quick else (5, 10, 20, 30):
            yield replace(case, stream=stream, length=length)


def by_events(case: SharingCase, *, quick: bool) -> Iterator[SharingCase]:
    """More and more events per window."""
    for stream in ("taxi",) if quick else ("taxi", "e-commerce"):
        for times in (1, 2) if quick else (1, 2, 4, 6):
            yield replace(case, stream=stream, per_window=case.per_window * times)


def by_overlap(case: SharingCase, *, quick: bool) -> Iterator[SharingCase]:
    """Little, half or most of a query in common, at its beginning, its end or in the middle."""
    for place in PLACES:
        for overlap in OVERLAPS.values():
            yield replace(case, queries=20 if quick else 60, overlap=overlap, place=place)


def by_values(case: SharingCase, *, quick: bool) -> Iterator[SharingCase]:
    """Other aggregates than the number of matches."""
    for values in ("SUM", "SUM AVG MIN MAX"):
        yield replace(case, values=values, queries=5 if quick else 20)


def of_two_steps(case: SharingCase, *, quick: bool) -> Iterator[SharingCase]:
    """So few events and such short patterns that matches can be built."""
    for per_window in (1_000,) if quick else (1_000, 2_000, 4_000):
        yield replace(case, stream="e-commerce", per_window=per_window, queries=5, length=3)


SWEEPS = {
    "queries": by_queries,
    "lengths": by_length,
    "events": by_events,
    "overlaps": by_overlap,
    "values": by_values,
    "two steps": of_two_steps,
}
GROWING = {"queries": "queries", "lengths": "length", "events": "per_window"}
"""Sweeps of which curves are drawn, and what grows in them."""


def measure_all_of_sharing(report: Report, *, quick: bool = False) -> None:
    """Executing, deciding what to share, what better plans are worth, and 1,000 queries on Spark."""
    measure_sharing(report, quick=quick)
    measure_sharing_optimizer(report, quick=quick)
    measure_sharing_plans(report, quick=quick)
    measure_sharing_on_spark(report, quick=quick)


def measure_sharing(
    report: Report, *, quick: bool = False, sweeps: tuple[str, ...] = tuple(SWEEPS), threads: int = 1
) -> None:
    """All sweeps; every case is measured once, also where two sweeps have it, and its events are dropped then."""
    first = replace(SharingCase(threads=threads), **QUICK) if quick else SharingCase(threads=threads)
    known: dict[SharingCase, dict[str, Timing]] = {}
    for sweep in sweeps:
        cases = list(SWEEPS[sweep](first, quick=quick))
        for case in cases:
            if case not in known:
                known[case] = measure_case(report, replace(case), tries=2 if quick else 3, memory=not quick)
        if sweep in GROWING:
            _draw(report, sweep, {case: known[case] for case in cases})


def _draw(report: Report, sweep: str, found: dict[SharingCase, dict[str, Timing]]) -> None:
    sizes_of = GROWING[sweep]
    for stream in dict.fromkeys(case.stream for case in found):
        alike = {case: times for case, times in found.items() if case.stream == stream and _is_usual(case)}
        for who in (UNSHARED, A_SEQ, SHARED):
            sizes = tuple(int(getattr(case, sizes_of)) for case in alike)
            seconds = tuple(times[who].best for times in alike.values())
            report.curves.append(Curve(f"sharing by {sweep} on {stream}", f"{who}, end to end", sizes, seconds))


def _is_usual(case: SharingCase) -> bool:
    return case.families == 1 and case.windows_open == SharingCase.windows_open


# ------------------------------------------------------------------------------------------------- one case


def measure_case(report: Report, case: SharingCase, *, tries: int, memory: bool) -> dict[str, Timing]:
    """Kernels, then everything end to end, in turns. Gives the times of the latter."""
    contest = case.contest
    rows = quietly(contest.shared)()
    contenders = contest.contenders()
    if contest.counts_alone and _matches(rows) <= MOST_MATCHES:
        contenders[TWO_STEPS] = quietly(contest.two_steps)
    whole = race(tries, contenders)
    right = {who: _same(who, timing.answer, rows) for who, timing in whole.items()}
    kernels = race(tries, contest.kernels(), on_processor=case.threads == 1)
    for who, timing in kernels.items():
        note = _note_of_kernel(contest, who, timing.best)
        _add(report, case, f"{who}, kernel", timing, kernels, len(rows), checked=right[who], note=note)
    phases = ", ".join(f"{name} {timing.best:.2g}" for name, timing in race(tries, contest.phases()).items())
    for who, timing in whole.items():
        note = f"processor {timing.processor:.3g} s"
        if memory and who != TWO_STEPS:
            note += f", peak {peak_of(case, who) / 1e6:.1f} MB"
        if who == SHARED:
            note += f", {phases}"
        _add(report, case, f"{who}, end to end", timing, whole, len(rows), checked=right[who], note=note)
    return whole


def _add(
    report: Report, case: SharingCase, name: str, timing: Timing, timings: dict[str, Timing], rows: int, *,
    checked: bool, note: str,
) -> None:  # fmt: skip
    events = len(case.contest.stream)
    one = timing.result(f"{case.describe()}: {name}", events, rows=rows, checked=checked).noting(note)
    if not name.startswith(UNSHARED):
        one = one.against(UNSHARED, events / timings[UNSHARED].best)
    if name.startswith(SHARED):
        one = _with_goal(one, case, timings)
    report.add(one)


def _with_goal(one: Result, case: SharingCase, timings: dict[str, Timing]) -> Result:
    """Much faster than unshared with high overlap, never slower, and never slower than A-Seq."""
    ratio = one.ratio or 0.0
    times = GOALS.get(case.queries, LEAST) if case.overlap == OVERLAPS["high"] else LEAST
    if A_SEQ not in timings:
        return one.with_goal(f"{times:g} times", ratio >= times)
    beside = timings[A_SEQ].best / one.seconds
    return one.with_goal(f"{times:g} times, and A-Seq's time ({beside:.2g})", ratio >= times and beside >= 1)


def _note_of_kernel(contest: Contest, who: str, seconds: float) -> str:
    if who == A_SEQ:
        return f"counters of all queries: {contest.prefix_counts().counters / 1e3:.1f} kB"
    if who == UNSHARED:
        return "; ".join(_estimate(group.ways[0], seconds) for group in contest.plan().shared_groups)
    if who == SHARED:
        groups = contest.plan().shared_groups
        taken = [f"{_estimate(group.ways[group.taken], seconds)}, {group.saved}" for group in groups]
        alone = contest.alone_after_all()
        return "; ".join(taken or ["nothing is shared"]) + (
            f"; {alone} queries with too large numbers" if alone else ""
        )
    return ""


def _estimate(way: Way, seconds: float) -> str:
    """A way with what was expected of it, which is so many times what was measured."""
    if way.seconds is None:
        return way.name
    return f"{way.name}: estimated {way.seconds:.2g} s ({way.seconds / seconds:.2g} of it)"


def _matches(rows: pa.Table) -> float:
    """The matches of all queries; their number may exceed any integer column."""
    return float(pc.sum(rows["COUNT(*)"].cast(pa.float64(), safe=False)).as_py() or 0.0)


def _same(who: str, found: pa.Table, expected: pa.Table) -> bool:
    """A-Seq counts in words: its rows are compared modulo 2⁶⁴."""
    if who == A_SEQ:
        return same_rows(found, modulo_words(expected))
    return same_rows(found, expected)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="few events and queries, minutes in all")
    options.add_argument("--sweeps", nargs="+", choices=SWEEPS, default=tuple(SWEEPS), metavar="SWEEP")
    options.add_argument("--threads", type=int, default=1, help="of the engine; A-Seq has one")
    options.add_argument("--output", type=Path, default=Path("benchmark-output/sharing.json"))
    chosen = options.parse_args()
    report = Report()
    measure_sharing(report, quick=chosen.quick, sweeps=tuple(chosen.sweeps), threads=chosen.threads)
    report.show()
    report.write(chosen.output)


if __name__ == "__main__":
    with compiled_first():
        main()
