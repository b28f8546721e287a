"""Matches of SEQ(A a, B+ b[], C c): the kernel, which builds them last, beside runs that are cloned event by event.

Cloning pays for every run, whether or not it ever ends; the kernel pays for what it gives out. So the comparison turns
on how many runs there are per match: few Cs, or a condition that most runs fail at their end, and the ratio grows with
the window without bound; a C after every few Bs, and nearly all runs end well, so that both do the same work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from benchmarks.baselines.matches import ABOVE_AVG, ABOVE_MAX, BELOW_MAX, NOT_LESS, Steps, run_cloning_matches, steps
from benchmarks.baselines.trend_columns import Found, taken
from benchmarks.cases.trends import CLASSES, MICRO, microbench
from benchmarks.harness.planned import Planned, planned
from benchmarks.harness.report import Curve, Report, race
from trendloom.kernels.match.any import PostponedKernel, share_matching

KERNEL, CLONING = "the kernel", "run cloning"
PICTURE = "matching phase by events"
FEW_ENDS, MANY_ENDS = (1.0, 8.0, 0.002), (1.0, 8.0, 1.0)
"""Shares of A, B and C: thousands of events between two Cs, or ten.

The paper speaks of selectivity, matches per event, from 10⁻⁶ to 1.6: that is few Cs. `note` gives it.
"""


@dataclass(frozen=True)
class Rule:
    """A condition as a query says it and as the baseline receives it."""

    condition: str
    rules: dict[str, int]
    above: float | None = None


RULES = {
    "previous": Rule("b[i].val >= b[i-1].val", {"b_rule": NOT_LESS}),
    "true-value": Rule(CLASSES["true-value consistent"], {"b_rule": ABOVE_MAX}),
    "false-value": Rule(CLASSES["false-value consistent"], {"c_rule": BELOW_MAX}),
    "both": Rule(CLASSES["both"], {}, above=500.0),
    "inconsistent": Rule(CLASSES["inconsistent"], {"b_rule": ABOVE_AVG}),
}

WINDOWS = {"previous": (12, 25, 50), "true-value": (12, 25, 50), "false-value": (12, 16, 18), "both": (12, 25, 32)}
"""By class, windows as long as cloning can bear them."""


def measure_postponing(report: Report, *, quick: bool = False) -> None:
    """Every class of conditions over longer and longer windows, then how the shared phase grows."""
    count, tries = (20_000, 1) if quick else (50_000, 2)
    few, many = microbench(count, shares=FEW_ENDS), microbench(count, shares=MANY_ENDS)
    for name in RULES:
        for table, kind in ((many, "many ends"), (few, "few ends")):
            windows = WINDOWS.get(name, (12, 18, 25))
            for within in windows[: 2 if table is many else 3]:
                goal = 300.0 if table is few and name == "both" and within == windows[-1] else 0.0
                race_matches(report, f"postponing, {name}, {kind}, within {within}", name, table, within, tries, goal)
    matching_phase(report, (10_000, 30_000, 100_000) if quick else (30_000, 100_000, 300_000, 1_000_000), tries + 1)


def race_matches(
    report: Report, title: str, name: str, table: pa.Table, within: int, tries: int, goal: float = 0.0
) -> None:
    """The kernel beside cloning on one stream; answers are compared by count, events and checksum."""
    rule = RULES[name]
    case = planned(MICRO.format(condition=rule.condition, within=within), table)
    events = steps(table, within, above=rule.above)
    _warm(rule)
    contenders: dict[str, Callable[[], Any]] = {
        KERNEL: partial(_matches, case),
        CLONING: partial(_cloned, events, rule),
    }
    _ = case.block
    timings = race(tries, contenders, warm=False, on_processor=True)
    right: Found = timings[CLONING].answer
    good = timings[KERNEL].answer == (right.trends, right.trend_events)
    good = good and _times(case) == int(events.time[right.members].sum()) if right.whole else good
    cloned = timings[CLONING].result(f"{title}, {CLONING}", len(table), rows=right.trends, checked=good)
    report.add(cloned.noting(f"{right.built:,} runs, {right.built / timings[CLONING].best / 1e6:.3g} M/s"))
    one = timings[KERNEL].result(f"{title}, {KERNEL}", len(table), rows=right.trends, checked=good)
    one = one.against(CLONING, cloned.rate).noting(
        f"{case.physical.chosen.algorithm.partition(':')[0]}, {right.trends / len(table):.2g} matches per event"
    )
    report.add(one.with_goal(f"{goal:g}× cloning", bool((one.ratio or 0.0) >= goal)) if goal else one)


def matching_phase(report: Report, sizes: tuple[int, ...], tries: int) -> None:
    """The phase that all matches share, alone: close to linear in the events."""
    seconds = {}
    for size in sizes:
        case = planned(MICRO.format(condition=RULES["previous"].condition, within=100), microbench(size))
        kernel, block = case.physical.kernel, case.block
        assert isinstance(kernel, PostponedKernel)
        work = partial(share_matching, kernel.pattern_spec, kernel.pairs, block)
        timing = race(tries, {"": work}, on_processor=True)[""]
        seconds[size] = timing.best
        one = timing.result("postponing, the shared phase", size, rows=0, checked=None)
        if size == sizes[-1]:
            curve = Curve(PICTURE, "the shared phase", tuple(seconds), tuple(seconds.values()))
            report.curves.append(curve)
            one = one.with_goal(f"exponent ≤ 1.2 ({curve.exponent:.2f})", curve.exponent <= 1.2)
        report.add(one)


def _matches(case: Planned) -> tuple[int, int]:
    return taken(_chunks(case))


def _chunks(case: Planned) -> Any:
    kernel = case.physical.kernel
    return kernel.finish(kernel.step(kernel.start(), case.block, None)[1])


def _times(case: Planned) -> int:
    """The times of all events of all matches, added up: what does not depend on how events are numbered."""
    return sum(int(case.block.time[chunk.events].sum()) for chunk in _chunks(case))


def _cloned(events: Steps, rule: Rule) -> Found:
    return run_cloning_matches(events, **rule.rules)


def _warm(rule: Rule) -> None:
    table = microbench(30)
    _matches(planned(MICRO.format(condition=rule.condition, within=5), table))
    _cloned(steps(table, 5, above=rule.above), rule)
