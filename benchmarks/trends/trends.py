"""Trends themselves: complete trends, the search for a plan, and postponing, each beside the algorithms of the papers.

All contenders get the same sorted columns and give out every trend as numbers of events, into buffers that are dropped.
Answers are compared by the number of trends, of their events, and the sum of all these events' numbers. Times are those
of one thread on the processor. What decides a comparison is written beside it: a baseline that compares every two
events loses on wide windows, one that walks trends one by one where they share long stretches, one that shares nothing
where windows overlap; where all of the work is copying trends out, everybody is about equally fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import pyarrow as pa

from benchmarks.baselines.trend_columns import Columns, Found, check_columns, rising_columns, summed, taken
from benchmarks.baselines.trends import baseline_trends, sase_stack_trends
from benchmarks.cases.trends import KITES, RISING_PRICES, RISING_RATES, activity, check_kites, stocks
from benchmarks.harness.planned import Planned, planned
from benchmarks.harness.report import Curve, Report, Result, Timing, race
from benchmarks.trends.partitioning import measure_partitioning
from benchmarks.trends.postponing import measure_postponing
from trendloom.kernels.trends.complete import TrendGraphKernel, TrendsOfGraph, trends_of
from trendloom.kernels.trends.graph import WalkPlan
from trendloom.kernels.trends.partition import weigh

GIBI = 1 << 30
KERNEL, STACK, ALL_KEPT = "the kernel", "SASE stack", "all trends kept"
VARIANTS = {
    KERNEL: WalkPlan.AUTO,
    "M-CET": WalkPlan.ONE_BY_ONE,
    "T-CET": WalkPlan.ALL_STORED,
    "H-CET": WalkPlan.BEST_CUTS,
}
"""The kernel chooses by its costs; the others are forced."""
OUT = 0.45
"""Nanoseconds that an event of a trend takes to be given out, in any plan."""
MOST_STORED = 40_000_000
"""Events of trends beyond which variants that store all of them are left out."""


def measure_trends(report: Report, *, quick: bool = False) -> None:
    """Complete trends by what makes them many, the search for plans, and matches by postponing."""
    _compile()
    by_events(report, (2_000, 10_000, 100_000) if quick else (2_000, 10_000, 50_000, 200_000), 1 if quick else 3)
    by_number(report, (8, 10, 12) if quick else (8, 10, 12, 14, 15), 2 if quick else 5)
    by_stretch(report, (0, 10, 40), 9 if quick else 12, 2 if quick else 5)
    by_overlap(report, (1, 5, 25) if quick else (1, 5, 25, 50), 40 if quick else 200, 1)
    by_compatibility(report, 24 if quick else 36, 2 if quick else 5)
    by_memory(report, 9 if quick else 12, 2 if quick else 5)
    on_records(report, quick=quick)
    by_estimate(report, 9 if quick else 12, 2 if quick else 5)
    measure_partitioning(report, quick=quick)
    measure_postponing(report, quick=quick)


# ------------------------------------------------------------------------------------------------- one comparison


@dataclass(frozen=True)
class Case:
    """A query over a stream, for the kernel and, as the same columns, for the baselines."""

    name: str
    text: str
    table: pa.Table
    columns: Columns

    @cached_property
    def plan(self) -> Planned:
        return planned(self.text, self.table)

    def trends(self, plan: WalkPlan, memory: int = GIBI) -> TrendsOfGraph:
        """The graph and what is needed to walk it: part of what is measured."""
        assert isinstance(self.plan.physical.kernel, TrendGraphKernel)
        return trends_of(replace(self.plan.physical.kernel.graph, plan=plan), self.plan.block, memory)


def kites(name: str, table: pa.Table, within: int | None = None, slide: int | None = None) -> Case:
    window = "" if within is None else f" WITHIN {within} SLIDE {slide}"
    return Case(name, KITES + window, table, check_columns(table, within, slide))


def contenders(case: Case, names: Iterable[str]) -> dict[str, Callable[[], Any]]:
    made: dict[str, Callable[[], Any]] = {}
    for name in names:
        if name == STACK:
            made[name] = partial(sase_stack_trends, case.columns)
        elif name == ALL_KEPT:
            made[name] = partial(baseline_trends, case.columns)
        else:
            made[name] = lambda plan=VARIANTS[name]: taken(case.trends(plan).matches())  # type: ignore[misc]
    return made


def compare(report: Report, case: Case, names: Iterable[str], tries: int, goal: float = 0.0) -> dict[str, Timing]:
    """Race some contenders; every answer is compared with that of the stack. `goal`: times the rate of the stack."""
    _ = case.plan.block
    timings = race(tries, contenders(case, names), warm=False, on_processor=True)
    right: Found = timings[STACK].answer
    expected = (right.trends, right.trend_events, right.checksum)
    for name, timing in timings.items():
        answer = timing.answer
        if isinstance(answer, Found):
            good = (answer.trends, answer.trend_events, answer.checksum) == expected
        else:
            good = answer == expected[:2] and summed(case.trends(VARIANTS[name]).matches()) == expected
        one = timing.result(f"{case.name}, {name}", len(case.table), rows=right.trends, checked=good)
        one = one.noting(f"{right.trend_events / timing.best / 1e6:.3g} M trend events/s")
        if name != STACK:
            one = one.against(STACK, len(case.table) / timings[STACK].best)
        if goal and name == KERNEL:
            one = one.with_goal(f"{goal:g}× the stack", bool((one.ratio or 0.0) >= goal))
        report.add(one)
    return timings


def _compile() -> None:
    """Run everything once, so that no contender pays for its compilation."""
    for case in (kites("", check_kites(4, 3, 3)), kites("", check_kites(4, 3, 3), 3, 1), _prices(60, 8), _rates(30, 8)):
        for work in contenders(case, (*VARIANTS, STACK, ALL_KEPT)).values():
            work()


# ------------------------------------------------------------------------------------------------- what is varied


def by_events(report: Report, sizes: tuple[int, ...], tries: int) -> None:
    """More and more events in one window of five seconds: finding adjacent events is what costs."""
    seconds: dict[str, dict[int, float]] = {}
    for size in sizes:
        case = kites(f"complete, {size:,} events in a window", check_kites(5, size // 5, 2))
        names = [*VARIANTS, STACK, *([ALL_KEPT] if size <= 2_000 else [])]
        timings = compare(report, case, names, tries, goal=40.0 if size == sizes[-1] else 0.0)
        for name, timing in timings.items():
            seconds.setdefault(name, {})[size] = timing.best
    for name, some in seconds.items():
        if len(some) > 1:
            curve = Curve("complete trends by events per window", name, tuple(some), tuple(some.values()))
            report.curves.append(curve)


def by_number(report: Report, depths: tuple[int, ...], tries: int) -> None:
    """The worst case, three events each second that all fit those of the second before: 3^seconds trends."""
    for depth in depths:
        case = kites(f"complete, 3^{depth} trends", check_kites(depth, 3, 3))
        names = [*VARIANTS, STACK, ALL_KEPT] if depth * 3**depth < MOST_STORED else [KERNEL, "M-CET", STACK]
        timings = compare(report, case, names, tries)
    events = timings[STACK].answer.trend_events
    rate = events / timings[KERNEL].best
    good = timings[KERNEL].answer == (3**depth, events)
    one = Result("complete, trend events given out", events, timings[KERNEL].best, 3**depth, good)
    report.add(one.with_goal("20 M trend events/s", rate >= 20e6))


def by_stretch(report: Report, stretches: tuple[int, ...], branchings: int, tries: int) -> None:
    """Trends that share long stretches: what graphlets store once is walked again by a search that stores nothing."""
    for stretch in stretches:
        fewer = branchings if stretch < 40 else branchings - 2
        case = kites(f"complete, stretches of {stretch}", check_kites(fewer * (stretch + 1), 3, 3, stretch=stretch))
        compare(report, case, [*VARIANTS, STACK], tries)


def by_overlap(report: Report, overlaps: tuple[int, ...], rate: int, tries: int) -> None:
    """Windows of 50 seconds that begin more and more often: the stack builds each anew."""
    table = check_kites(150, rate, 1)
    for overlap in overlaps:
        case = kites(f"complete, {overlap} windows at a time", table, 50, 50 // overlap)
        compare(report, case, [*VARIANTS, STACK], tries, goal=13.0 if overlap == overlaps[-1] else 0.0)


def by_compatibility(report: Report, events: int, tries: int) -> None:
    """The same events in groups of 2 to 6 that all fit those of the group before: most trends at 3."""
    for width in (2, 3, 4, 6):
        case = kites(f"complete, compatibility {width}, {events} events", check_kites(events // width, width, width))
        compare(report, case, [KERNEL, "M-CET", "H-CET", STACK], tries)


def by_memory(report: Report, branchings: int, tries: int) -> None:
    """The same trends within less and less memory; `note` says what the pieces of graphlets took."""
    case = kites("", check_kites(11 * branchings, 3, 3, stretch=10))
    expected = summed(case.trends(WalkPlan.ONE_BY_ONE).matches())
    first = 0.0
    for memory in (GIBI, GIBI >> 4, GIBI >> 8, GIBI >> 12, GIBI >> 15):
        timing = race(tries, {"": lambda m=memory: taken(case.trends(WalkPlan.AUTO, m).matches())}, warm=False)[""]  # type: ignore[misc]
        measured = case.trends(WalkPlan.AUTO, memory)
        good = timing.answer == expected[:2] and summed(measured.matches()) == expected
        stored = sum(size for _, size in measured.measured)
        one = timing.result(f"complete, within {memory >> 10:,} KiB", len(case.table), rows=expected[0], checked=good)
        first = first or one.rate
        one = one.against("a gibibyte", first).noting(f"{stored / 1024:,.0f} KiB stored")
        report.add(one.with_goal("pieces within the limit", stored <= memory))


def by_estimate(report: Report, branchings: int, tries: int) -> None:
    """What the costs foretell beside what it took: steps, pieces and copies, and giving trends out."""
    for stretch in (0, 5, 20):
        case = kites("", check_kites(branchings * (stretch + 1), 3, 3, stretch=stretch))
        for plan in (WalkPlan.ONE_BY_ONE, WalkPlan.BEST_CUTS):
            graph = case.trends(plan)
            (chosen,) = graph.plans()
            weights = weigh(graph.graph, graph.starts, len(graph.graph))
            estimate = chosen.cpu if chosen.bounds is not None else weights.one_by_one
            estimate += OUT * weights.events
            timing = race(tries, {"": lambda graph=graph: taken(graph.matches())}, on_processor=True)[""]  # type: ignore[misc]
            good = timing.answer == (weights.trends, weights.events)
            name = f"complete, costs of {plan.value}, stretches of {stretch}"
            one = timing.result(name, len(case.table), rows=timing.answer[0], checked=good)
            report.add(one.noting(f"{estimate / 1e6:.3g} ms estimated, {timing.best * 1e3:.3g} ms measured"))


def on_records(report: Report, *, quick: bool) -> None:
    """Rising prices of each company and rising rates of each person, in sliding windows."""
    prices, rates = (20_000, 300) if quick else (100_000, 3_000)
    compare(report, _prices(prices, 10), [*VARIANTS, STACK], 2)
    compare(report, _rates(rates, 20), [*VARIANTS, STACK], 2)


def _prices(count: int, within: int) -> Case:
    table = stocks(count, companies=10, rate=20)
    columns = rising_columns(table, "company", "price", within, within // 2)
    return Case("complete, rising prices", f"{RISING_PRICES} WITHIN {within} SLIDE {within // 2}", table, columns)


def _rates(seconds: int, within: int) -> Case:
    table = activity(seconds)
    columns = rising_columns(table, "person", "rate", within, within // 4)
    return Case("complete, rising heart rates", f"{RISING_RATES} WITHIN {within} SLIDE {within // 4}", table, columns)
