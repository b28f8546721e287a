"""How time grows with the events of one window: one inequality on adjacent events, beside the ways of the papers.

`S+` with `S.price < NEXT(S).price` counts rising subsequences, about e^(2·√n) of n random prices. The kernel asks a
Fenwick tree; the papers try every predecessor; two steps build every match. Exponents are slopes of log-log lines.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.aggregation.kernels import amounts
from benchmarks.baselines import aggregation as baselines
from benchmarks.cases.events import stream
from benchmarks.harness.planned import Planned, planned
from benchmarks.harness.report import Curve, Report, Timing, race
from trendloom.kernels.aggregate import event_grained
from trendloom.kernels.columns.numbers import Scaled, zeros

RISING = "RETURN COUNT(*) PATTERN S+ WHERE S.price < NEXT(S).price WITHIN 4000000 s SLIDE 4000000 s"
PICTURE = "one inequality"
SCANS = ("the quadratic kernel", "a quadratic loop by hand", "a quadratic loop by hand, doubles")
LOG2 = float(np.log10(2.0))

Contenders = dict[str, Callable[[], Any]]


def measure_growth(report: Report, *, quick: bool = False) -> None:
    """All curves, then the kernel beside the quadratic ones at one size."""
    sizes = (1_000, 3_000, 10_000, 30_000) if quick else (10_000, 30_000, 100_000, 300_000, 1_000_000)
    scanned = (500, 1_000, 2_000) if quick else (2_500, 5_000, 10_000, 20_000)
    listed = (16, 24, 36) if quick else (16, 24, 36, 54)
    by_tree(report, sizes, 3 if quick else 5)
    by_scan(report, scanned, 2 if quick else 3)
    by_enumeration(report, listed)


def by_tree(report: Report, sizes: tuple[int, ...], tries: int) -> None:
    """The kernel and a tree written by hand, in `log`, over more and more events."""
    found = {size: _race(_case(size), tries, _trees) for size in sizes}
    for name in ("the kernel", "a tree by hand"):
        curve = _curve(report, name, {size: timings[name].best for size, timings in found.items()})
        for size, timings in found.items():
            good = _near(timings["the kernel"].answer, timings["a tree by hand"].answer)
            one = timings[name].result(f"one inequality, log, {name}", size, rows=1, checked=good)
            one = one.against("a tree by hand", size / timings["a tree by hand"].best)
            if name == "the kernel" and size == sizes[-1]:
                goal = f"exponent ≤ 1.2 ({curve.exponent:.2f})"
                one = one.with_goal(goal, curve.exponent <= 1.2)
            report.add(one)


def by_scan(report: Report, sizes: tuple[int, ...], tries: int) -> None:
    """The quadratic kernel on the same columns, and loops by hand, one in plain doubles (which still hold these)."""
    found = {size: _race(_case(size), tries, _scans) for size in sizes}
    for name in SCANS:
        _curve(report, name, {size: timings[name].best for size, timings in found.items()})
        timings = found[sizes[-1]]
        good = _near(timings[name].answer, timings["the kernel"].answer)
        report.add(timings[name].result(f"one inequality, {name}", sizes[-1], rows=1, checked=good))
    size, timings = sizes[-1], found[sizes[-1]]
    good = _near(timings["the kernel"].answer, timings[SCANS[1]].answer)
    tree = timings["the kernel"].result("one inequality, log, the kernel", size, rows=1, checked=good)
    for name in SCANS:
        one = tree.against(name, size / timings[name].best)
        report.add(one if name != SCANS[0] else one.with_goal("100× as fast", bool((one.ratio or 0) >= 100)))


def by_enumeration(report: Report, sizes: tuple[int, ...]) -> None:
    """Two steps, as long as they end: the number of matches is what they cost."""
    seconds = {}
    for size in sizes:
        case = _case(size)
        timings = race(2, {"two steps": partial(case.partial, two_steps=True)}, on_processor=True)
        counted = int(timings["two steps"].answer.column(timings["two steps"].answer.num_columns - 1)[0].as_py())
        good = _near(float(np.log10(counted)), baselines.log_increasing(_prices(case)))
        seconds[size] = timings["two steps"].best
        note = f"{counted:,} matches"
        one = timings["two steps"].result(f"one inequality, two steps, {note}", size, rows=1, checked=good)
        report.add(one)
    report.curves.append(Curve(PICTURE, "two steps", tuple(seconds), tuple(seconds.values()), power=False))


def _case(size: int) -> Planned:
    return planned(RISING, stream(size, {"S": 1.0}))


def _prices(case: Planned) -> Any:
    return case.block.columns["price"].values


def _trees(case: Planned) -> Contenders:
    price = _prices(case)
    return {
        "the kernel": lambda: _log(case, event_grained.add_up),
        "a tree by hand": lambda: baselines.log_increasing(price),
    }


def _scans(case: Planned) -> Contenders:
    price = _prices(case)
    return {
        "the kernel": lambda: _log(case, event_grained.add_up),
        SCANS[0]: lambda: _log(case, event_grained.quadratic),
        SCANS[1]: lambda: baselines.log_increasing_by_scan(price),
        SCANS[2]: lambda: float(np.log10(baselines.increasing_by_scan(price))),
    }


def _race(case: Planned, tries: int, contenders: Callable[[Planned], Contenders]) -> dict[str, Timing]:
    _ = case.addends, case.spans
    return race(tries, contenders(case), on_processor=True)


def _log(case: Planned, sweep: Callable[..., Any]) -> float:
    found = amounts(sweep(case.addends, case.spans, zeros(Scaled, 1, 1)))
    return float(found[0]) * LOG2


def _near(one: float, other: float) -> bool:
    return bool(np.isclose(one, other, rtol=1e-9))


def _curve(report: Report, name: str, seconds: dict[int, float]) -> Curve:
    curve = Curve(PICTURE, name, tuple(seconds), tuple(seconds.values()))
    report.curves.append(curve)
    return curve
