"""EXPLAIN with events at hand: what a kernel builds of them, and what a run takes.

`describe_built` asks the kernel (`Kernel.describe`) and gives out no result. `measure` runs the query in this process
and watches the processor's time and the memory it holds.
"""

from __future__ import annotations

import resource
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from trendloom.engines import local
from trendloom.engines.budget import with_memory
from trendloom.engines.events import build_block
from trendloom.engines.workload import Options, load_needed, queries_of
from trendloom.errors import RunError
from trendloom.io.events import Events
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract import Built, Figure
from trendloom.model.amounts import show_bytes
from trendloom.physical.plan import Physical, plan_physically
from trendloom.plan.bind import bind
from trendloom.plan.display import Branch


def arranged(text: str, source: object, options: Options) -> tuple[Physical, Block]:
    """How one query would run over a stream, and the events as its kernel sees them: for whoever looks closer."""
    (query,) = queries_of(text, options.query)
    events = load_needed((query,), source, options.for_queries((query,)))
    physical = with_memory(plan_physically(bind(query, events.schema), options.limits))
    return physical, build_block(physical, local.stream_of(physical, events))[0]


def describe_built(physical: Physical, events: Events) -> Branch | None:
    """What the kernel builds of these events before it gives out results; None where it builds nothing."""
    built = built_of(with_memory(physical), events)
    return None if built is None else Branch(built.name, below=tuple(map(_branch, built.figures)))


def built_of(physical: Physical, events: Events) -> Built | None:
    """The same, as the kernel says it."""
    block, _ = build_block(physical, local.stream_of(physical, events))
    kernel = physical.kernel
    _, state = kernel.step(kernel.start(), block, None)
    return kernel.describe(state)


def _branch(figure: Figure) -> Branch:
    return Branch(figure.name, figure.text, tuple(map(_branch, figure.below)))


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
                Branch("memory", f"{show_bytes(self.memory)} more than before, at the most"),
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
