"""What the local engine does with the events of a query, step by step, for EXPLAIN."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from trendloom.logical.display import Branch
from trendloom.logical.plan import Plan
from trendloom.planner.display import numbered, scanned
from trendloom.planner.plan import Physical
from trendloom.planner.workload import PhysicalWorkload


def describe_execution(physical: Physical) -> tuple[Branch, ...]:
    return (numbered("execution", "engine local", _steps(physical.plan)),)


def describe_workload(workload: PhysicalWorkload) -> Branch:
    return numbered("execution", "engine local", _shared_steps(workload))


def _shared_steps(workload: PhysicalWorkload) -> Iterator[str]:
    yield f"read {scanned(replace(workload.queries[0].plan, scan=workload.scan))} into memory, once for all queries"
    for names in sorted(workload.optimized.shared_attributes):
        members = [n for n, one in enumerate(workload.queries) if one.plan.keys == names]
        yield f"sort all events once by {' and '.join([*names, 'time'])}: for {workload.named(members)}"
    yield from workload.describe_shared()
    if len(workload.queries) > sum(len(group.members) for group in workload.shared_groups):
        rest = "other query" if workload.shared_groups else "query"
        yield f"run one {rest} after the other; columns and keys are converted once"


def _steps(plan: Plan) -> Iterator[str]:
    yield f"read {scanned(plan)} into memory"
    yield f"keep events that fit a position, sort by {_sorted_by(plan)}"
    yield "one columnar call for all partitions" if plan.keys else "one columnar call"


def _sorted_by(plan: Plan) -> str:
    names = [*plan.keys, "time", *plan.schema.order]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
