"""Estimates beside what a run came to, figure by figure, and the factor between them.

What is estimated comes from statistics, from the candidate that was chosen, and, where its kernel builds something of
the events first, from the kernel, which then knows better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from trendloom.engines.measured_run import Look, Measured, measure
from trendloom.errors import RunError
from trendloom.expr.arrays import Array
from trendloom.io.events import Events
from trendloom.kernels.contract import BYTES, RESULTS, SECONDS
from trendloom.logical.display import Branch, show_component
from trendloom.logical.statistics import Statistics
from trendloom.model.amounts import show_bytes, show_count
from trendloom.model.time import Window
from trendloom.planner.plan import Physical
from trendloom.planner.request import Estimate


@dataclass(frozen=True)
class Compared:
    """One figure, estimated (None: not) and as it is; `show` writes it, `at_most`: the estimate is a bound."""

    name: str
    estimated: float | None
    actual: float
    show: Callable[[float], str] = show_count
    at_most: bool = False
    more: str = ""

    @property
    def guess(self) -> str:
        if self.estimated is None:
            return "not estimated"
        return f"estimated {'at most ' if self.at_most else ''}{self.show(self.estimated)}"

    @property
    def factor(self) -> str:
        """How many times the estimate it is."""
        if not self.estimated or not self.actual:
            return ""
        return f" · {_rounded(self.actual / self.estimated)} ×"

    def branch(self, width: int) -> Branch:
        return Branch(self.name, f"{self.guess:{width}} · actual {self.show(self.actual)}{self.more}{self.factor}")


def describe_run(physical: Physical, events: Events, statistics: Statistics, look: Look) -> Branch:
    """What a run came to beside what was estimated; or why there is none: a refused query is still to be explained."""
    try:
        run = measure(physical, events)
    except RunError as refusal:
        return Branch("Measured", f"nothing: {refusal.message}")
    figures = [*_of_events(physical, events, statistics, look), *_of_run(physical.chosen.estimate, look, run)]
    width = max(len(one.guess) for one in figures)
    told = f"one run in this process, after reading the events; estimated from {statistics.origin.value}"
    return Branch("Measured", told, tuple(one.branch(width) for one in figures))


def _of_events(physical: Physical, events: Events, statistics: Statistics, look: Look) -> Iterator[Compared]:
    plan, window = physical.plan, physical.plan.window
    yield Compared("events", statistics.events, len(events.types))
    for position, place in enumerate(physical.pattern_spec.places):
        name = f"{position} {show_component(place.type, place.variable)}"
        yield Compared(name, statistics.fitting.get(position), len(look.block.members[position]))
    if plan.keys:
        spread = statistics.spread(plan.keys)
        yield Compared("keys", None if spread is None else spread.distinct, look.keys.count)
    if window.sliding:
        assert events.ticks is not None
        yield Compared("windows", statistics.windows(window), windows_with_events(events.ticks, window))


def _of_run(estimate: Estimate | None, look: Look, run: Measured) -> Iterator[Compared]:
    estimate = Estimate(Statistics().origin) if estimate is None else estimate
    built, foreseen = ({}, {}) if look.built is None else (look.built.numbers, look.built.foreseen)
    for name, number in built.items():
        yield Compared(name, estimate.further.get(name), number)
    with_events = f" with {run.events:,} events" if run.events else ""
    at_most = estimate.at_most and RESULTS not in foreseen
    yield Compared("rows", foreseen.get(RESULTS, estimate.results), run.rows, at_most=at_most, more=with_events)
    rate = f", {run.events / run.processor / 1e6:,.1f} M events of trends per second" if run.events else ""
    if SECONDS in foreseen:
        yield Compared(
            "search", foreseen[SECONDS], look.seconds(), _seconds, more=" on the processor, before rows are made"
        )
    emission = f" on the processor, {_seconds(run.seconds)} by the clock{rate}"
    yield Compared("time", None, run.processor, _seconds, more=emission)
    yield Compared("memory", foreseen.get(BYTES, estimate.bytes), run.memory, show_bytes, more=" more than before")


def windows_with_events(ticks: Array, window: Window) -> int:
    """How many sliding windows hold an event."""
    assert window.within is not None
    assert window.slide is not None
    times = np.unique(ticks)
    low, high = (times - window.within) // window.slide + 1, times // window.slide
    low[1:] = np.maximum(low[1:], high[:-1] + 1)
    return int(np.maximum(high - low + 1, 0).sum())


def _seconds(number: float) -> str:
    return f"{number:,.3f} s"


def _rounded(factor: float) -> str:
    return f"{factor:,.0f}" if factor >= 10 else f"{factor:.1f}" if factor >= 0.1 else f"{factor:.1g}"
