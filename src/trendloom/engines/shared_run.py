"""Queries that are answered together, run to see what that takes beside what was estimated."""

from __future__ import annotations

import time
from dataclasses import replace

from trendloom.engines import local
from trendloom.io.events import Events
from trendloom.kernels.jit.interpreted import compiled_first
from trendloom.planner.considered import Considered
from trendloom.planner.workload import PhysicalWorkload
from trendloom.runtime.blocks import block_of_letters

ROUNDS = 3
"""The least of so many runs counts; the first of them may have to wait for the compiler."""


def measured(workload: PhysicalWorkload, events: Events) -> tuple[Considered, ...]:
    """What was weighed for each group of queries, and how many seconds the way took that was chosen, on one core."""
    found = []
    for group in workload.together:
        plan, kernel = workload.queries[group.members[0]].plan, group.kernel
        stream = local.stream_of_columns(workload.scan.columns, workload.bound[0], events)
        block, _, bits = block_of_letters(kernel.asked, plan, stream, kernel.columns)
        seconds = []
        with compiled_first():
            for _ in range(ROUNDS):
                begin = time.thread_time()
                kernel.totals(block, bits)
                seconds.append(time.thread_time() - begin)
        found.append(replace(group.considered, measured=min(seconds)))
    return tuple(found)
