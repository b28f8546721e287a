"""EXPLAIN with events at hand: what a kernel builds of them, and what a run takes, beside what was estimated.

`look_at` runs a kernel up to its results (`Kernel.describe`) and gives out none. `measure` runs the query in this
process and samples the processor's time and the memory it holds. `describe_run` shows both beside the estimates, figure
by figure: these come from statistics, from the candidate that was chosen, and, where its kernel builds something of the
events first, from the kernel, whose numbers are better.
"""

from __future__ import annotations

import resource
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from trendloom.engines import local
from trendloom.engines.answers import repeatedly
from trendloom.errors import RunError
from trendloom.expr.arrays import Array
from trendloom.io.events import Events
from trendloom.kernels.columns.block import Block
from trendloom.kernels.columns.keys import Keys
from trendloom.kernels.contract import BYTES, RESULTS, SECONDS, Built, Figure, Kernel
from trendloom.kernels.jit.interpreted import compiled_first
from trendloom.logical.display import Branch, show_component
from trendloom.logical.statistics import Statistics
from trendloom.model.amounts import show_bytes, show_count
from trendloom.model.time import Window
from trendloom.options import Options
from trendloom.planner.plan import Physical
from trendloom.planner.request import Estimate
from trendloom.planner.sharing.groups import Considered
from trendloom.planner.workload import PhysicalWorkload
from trendloom.runtime.blocks import build_block
from trendloom.runtime.limits import with_memory
from trendloom.runtime.planning import planned_alone
from trendloom.runtime.reading import for_queries, load_needed, queries_of

ROUNDS = 3
"""The least of so many runs counts; the first of them may have to wait for the compiler."""


@dataclass(frozen=True, eq=False)
class Look:
    """The events of a stream as the kernel of a query receives them, and what it builds of them."""

    kernel: Kernel[Any, Any]
    block: Block
    keys: Keys
    state: Any

    @cached_property
    def built(self) -> Built | None:
        return self.kernel.describe(self.state)

    def seconds(self) -> float:
        """Seconds of the processor for all results, without making rows of them."""
        used = time.process_time()
        for _ in self.kernel.finish(self.state):
            pass
        return time.process_time() - used

    def describe(self) -> Branch | None:
        """The built structure, for EXPLAIN; None where there is none."""
        return None if self.built is None else Branch(self.built.name, below=tuple(map(_branch, self.built.figures)))


def look_at(physical: Physical, events: Events) -> Look:
    """Sort the events and run the kernel up to its results, of which none is given out."""
    physical = with_memory(physical)
    block, keys = build_block(physical, local.stream_of(physical, events))
    kernel = physical.kernel
    _, state = kernel.step(kernel.start(), block, None)
    return Look(kernel, block, keys, state)


def arranged(text: str, source: object, options: Options) -> tuple[Physical, Block]:
    """The plan of one query over a stream, and the events as its kernel receives them."""
    (query,) = queries_of(text, options.query)
    events = load_needed((query,), source, for_queries(options, (query,)))
    physical = with_memory(planned_alone(query, events.schema, options.limits))
    return physical, build_block(physical, local.stream_of(physical, events))[0]


@dataclass(frozen=True)
class Measured:
    """What a run gave and took: rows, events of trends, seconds by the clock and by the processor, bytes held."""

    rows: int
    events: int
    seconds: float
    processor: float
    memory: int


def measure(physical: Physical, events: Events) -> Measured:
    """Run a query on the local engine, rows dropped as they come; memory is sampled every few milliseconds."""
    rows, entries, most, before = 0, 0, 0, resident()

    def sample() -> None:
        nonlocal most
        most = max(most, resident() - before)

    with repeatedly(sample, seconds=0.005):
        begin, used = time.perf_counter(), time.process_time()
        for batch in local.run(physical, events):
            rows += batch.num_rows
            if "events" in batch.schema.names:
                entries += len(batch.column("events").flatten())
        seconds, used = time.perf_counter() - begin, time.process_time() - used
    return Measured(rows, entries, seconds, used, most)


def measured(workload: PhysicalWorkload, events: Events) -> tuple[Considered, ...]:
    """The alternatives for each group of queries that share work, and the seconds of the chosen one, on one core."""
    found = []
    shared = {group.members: group for group in workload.groups}
    for swept in workload.shared_groups:
        group = shared[swept.members]
        block, _ = build_block(group, local.stream_of(group, events))
        seconds = []
        with compiled_first():
            for _ in range(ROUNDS):
                begin = time.thread_time()
                _, state = group.kernel.step(group.kernel.start(), block, None)
                deque(group.kernel.finish(state), maxlen=0)
                seconds.append(time.thread_time() - begin)
        found.append(replace(swept.considered, measured=min(seconds)))
    return tuple(found)


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
    """The figures of a run beside their estimates, or why there is none: a refused query is still explained."""
    try:
        run = measure(physical, events)
    except RunError as refusal:
        return Branch("Measured", f"nothing: {refusal.message}")
    figures = [*_of_events(physical, events, statistics, look), *_of_run(physical.chosen.estimate, look, run)]
    width = max(len(one.guess) for one in figures)
    basis = f"one run in this process, after reading the events; estimated from {statistics.origin.value}"
    return Branch("Measured", basis, tuple(one.branch(width) for one in figures))


def _branch(figure: Figure) -> Branch:
    return Branch(figure.name, figure.text, tuple(map(_branch, figure.below)))


def resident() -> int:
    """Bytes of memory that this process holds."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


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
