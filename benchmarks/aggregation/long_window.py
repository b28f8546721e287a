"""A window of 10⁸ events, fed in chunks: the answer has tens of millions of digits, the state a few numbers.

SEQ(A+, B) in `log`, a chunk at a time with the watermark behind it. Chunks are made as they are needed and forgotten
after their step, in a process of its own, whose memory at a tenth of the way and at the end is compared.

    python -m benchmarks.aggregation.long_window EVENTS CHUNK    # what that process runs: prints its figures as JSON
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.baselines import aggregation as baselines
from benchmarks.cases.events import stream
from benchmarks.harness.memory import peak_memory, reset_peak, run_apart
from benchmarks.harness.planned import planned
from benchmarks.harness.report import Report, Result
from trendloom.kernels.aggregate.kernel import AggregationKernel
from trendloom.kernels.contract.aggregates import Amounts

QUERY = "RETURN COUNT(*) PATTERN SEQ(A+, B) WITHIN 1000000000 s SLIDE 1000000000 s"
MOST_GROWTH = 0.05


def measure_long_window(report: Report, *, quick: bool = False) -> None:
    """Run it, and say how much the memory grew from a tenth of the stream to all of it."""
    events, chunk = (4_000_000, 250_000) if quick else (100_000_000, 1_000_000)
    found = run_apart("aggregation.long_window", str(events), str(chunk))
    good = bool(np.isclose(found["log"], found["expected"], rtol=1e-9))
    growth = found["peak"] / found["peak_early"] - 1
    one = Result(f"one window in log, chunks of {chunk:,}", events, found["seconds"], 1, good)
    digits = f"{int(found['log']):,} digits; peak {found['peak'] / 1e6:.0f} MB"
    one = one.noting(f"{digits}; kernel alone {events / found['kernel'] / 1e6:.1f} M events/s")
    report.add(one.with_goal(f"constant memory ({growth:+.1%} after a tenth)", bool(growth <= MOST_GROWTH)))


def watched_run(events: int, chunk: int) -> dict[str, float]:
    """The figures of a run, after a short one that compiles."""
    fed(2 * chunk, chunk)
    reset_peak()
    return fed(events, chunk)


def fed(events: int, chunk: int) -> dict[str, float]:
    """Feed the stream; seconds of building blocks and steps (`kernel`: of steps alone), without making the events."""
    state, counted = None, baselines.start_of_walk()
    seconds = in_kernel = 0.0
    early = 0
    for number in range(events // chunk):
        table = stream(chunk, {"A": 0.5, "B": 0.5}, seed=number)
        table = table.set_column(1, "time", [table["time"].to_numpy() + number * chunk])
        begin = time.perf_counter()
        case = planned(QUERY, table)
        kernel = AggregationKernel(case.spec, "log", summarised=True)
        block, state = case.block, state or kernel.start()
        stepped = time.perf_counter()
        _, state = kernel.step(state, block, (number + 1) * chunk)
        seconds += time.perf_counter() - begin
        in_kernel += time.perf_counter() - stepped
        baselines.walk_on(counted, block.fits[0])
        if number == events // chunk // 10:
            early = peak_memory()
    assert state is not None
    (totals,) = kernel.finish(replace(state, block=block.only(np.zeros(len(block), np.bool_))))
    figures = {"seconds": seconds, "kernel": in_kernel, "peak": peak_memory(), "peak_early": early}
    return {**figures, "log": _log(totals.values), "expected": baselines.log_of_walk(counted)}


def _log(values: dict[str, Any]) -> float:
    (matches,) = values.values()
    assert isinstance(matches, Amounts)
    assert matches.exponent is not None
    return float(np.log10(matches.values[0]) + matches.exponent[0] * np.log10(2.0))


if __name__ == "__main__":
    print(json.dumps(watched_run(int(sys.argv[1]), int(sys.argv[2]))))
