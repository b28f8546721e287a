"""EXPLAIN with events at hand: the trend graph, how it is cut, what that should cost; and what a run did cost.

Estimates come from the graph, which is built for them; no trend is. `measured` runs the query in this process and
watches the processor's time and the memory it holds.
"""

from __future__ import annotations

import resource
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from trendloom.engines import local
from trendloom.engines.budget import with_memory
from trendloom.engines.events import build_block
from trendloom.engines.options import Options
from trendloom.engines.reading import load_needed, queries_of
from trendloom.errors import PlanError, RunError
from trendloom.io.events import Events
from trendloom.kernels.complete.kernel import MOST_STEPS, TrendGraphKernel
from trendloom.kernels.complete.spec import WalkPlan
from trendloom.kernels.complete.trends import ChosenWalk, TrendsOfGraph, trends_of
from trendloom.kernels.contract import Expected
from trendloom.physical.plan import Physical, plan_physically
from trendloom.plan.bind import bind
from trendloom.plan.display import Branch

MOST_SHOWN = 3
MOST_SIZES = 16
MEBI = 1 << 20


def trend_graph(text: str, source: object, options: Options, plan: WalkPlan = WalkPlan.AUTO) -> TrendsOfGraph:
    """The trend graph of one query for complete trends over a stream, to be looked at or walked in other ways."""
    (query,) = queries_of(text, options.query)
    events = load_needed((query,), source, options.for_queries((query,)))
    physical = with_memory(plan_physically(bind(query, events.schema), options.limits))
    kernel = physical.kernel
    if not isinstance(kernel, TrendGraphKernel):
        raise PlanError("only RETURN COMPLETE TRENDS of one variable with + has a trend graph", text=text)
    block, _ = build_block(physical, local.stream_of(physical, events))
    return trends_of(replace(kernel.graph, plan=plan), block, physical.limits.memory)


def describe_trends(physical: Physical, events: Events) -> Branch | None:
    """The trend graph of these events and the plan for walking it; None where a query has none."""
    physical = with_memory(physical)
    if not isinstance(physical.kernel, TrendGraphKernel):
        return None
    block, _ = build_block(physical, local.stream_of(physical, events))
    trends = trends_of(physical.kernel.graph, block, physical.limits.memory)
    return Branch("Trend graph", below=(*_graph(trends), *_plans(trends)))


def _graph(trends: TrendsOfGraph) -> Iterator[Branch]:
    graph = trends.graph
    counted = trends.counting <= MOST_STEPS
    forecast = Expected(trends.count(), not trends.spec.whole) if counted else None
    yield Branch("events", f"{len(graph):,}, of which {len(trends.starts):,} can begin a complete trend")
    yield Branch("edges", f"{graph.edges:,} that no longer path replaces, {_size(graph.bytes)}")
    yield Branch("trends", f"{forecast if forecast is not None else 'not counted: that would take long'}")
    yield Branch("memory", f"{_size(trends.memory)} at most")


def _plans(trends: TrendsOfGraph) -> Iterator[Branch]:
    plans = sorted(trends.plans(), key=lambda chosen: -chosen.cpu)
    for chosen in plans[:MOST_SHOWN]:
        yield _plan(trends, chosen)
    if len(plans) > MOST_SHOWN:
        cut = sum(chosen.bounds is not None for chosen in plans)
        yield Branch("in all", f"{len(plans):,} stretches of the stream, {cut:,} of them cut into graphlets")


def _plan(trends: TrendsOfGraph, chosen: ChosenWalk) -> Branch:
    first = trends.starts[chosen.stretch.first]
    where = f"beginning at event {first:,}" if chosen.stretch.first else "from the first event on"
    if chosen.bounds is None:
        why = "few trends" if chosen.stretch.few else f"about {chosen.cpu / 1e6:,.1f} ms; storing parts would not pay"
        return Branch(chosen.plan.value, f"{where}: one trend at a time ({why})")
    sizes = np.diff(chosen.bounds).tolist()
    shown = ", ".join(f"{size:,}" for size in sizes[:MOST_SIZES]) + (", ..." if len(sizes) > MOST_SIZES else "")
    return Branch(
        chosen.plan.value,
        where,
        (
            Branch("graphlets", f"{len(sizes)}, of {shown} events"),
            Branch("estimated", f"{chosen.cpu / 1e6:,.1f} ms besides copying, {_size(chosen.memory)} stored"),
        ),
    )


def _size(number: float) -> str:
    return f"{number / MEBI:,.1f} MiB" if number >= MEBI / 10 else f"{number / 1024:,.1f} KiB"


# ------------------------------------------------------------------------------------------------ measured


@dataclass(frozen=True)
class Measured:
    """What a run gave and took: rows, events of trends, seconds by the clock and by the processor, bytes held."""

    rows: int
    events: int
    seconds: float
    processor: float
    memory: int

    def describe(self) -> Branch:
        rate = f", {self.events / self.processor / 1e6:,.1f} M events of trends per second" if self.events else ""
        return Branch(
            "Measured",
            "one run in this process, after reading the events",
            (
                Branch("rows", f"{self.rows:,}" + (f" with {self.events:,} events" if self.events else "")),
                Branch("time", f"{self.seconds:,.3f} s, {self.processor:,.3f} s of them on the processor{rate}"),
                Branch("memory", f"{_size(self.memory)} more than before, at the most"),
            ),
        )


def describe_run(physical: Physical, events: Events) -> Branch:
    """What a run took, or why there is none: a query that is refused is still to be explained."""
    try:
        return measure(physical, events).describe()
    except RunError as refusal:
        return Branch("Measured", f"nothing: {refusal.message}")


def measure(physical: Physical, events: Events) -> Measured:
    """Run a query on the local engine, rows dropped as they come."""
    rows, entries = 0, 0
    with _MemoryWatch() as memory:
        begin, used = time.perf_counter(), time.process_time()
        for batch in local.run(physical, events):
            rows += batch.num_rows
            if "events" in batch.schema.names:
                entries += len(batch.column("events").flatten())
        seconds, used = time.perf_counter() - begin, time.process_time() - used
    return Measured(rows, entries, seconds, used, memory.most)


class _MemoryWatch:
    """How much more memory this process holds than at the beginning, looked at every few milliseconds."""

    def __init__(self) -> None:
        self.most = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> _MemoryWatch:
        self._begin = resident()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(0.005):
            self.most = max(self.most, resident() - self._begin)


def resident() -> int:
    """Bytes of memory that this process holds."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
