"""What the local engine does with the events of a query, step by step, for EXPLAIN."""

from __future__ import annotations

from collections.abc import Iterator

from trendloom.physical.display import numbered, scanned
from trendloom.physical.plan import Physical
from trendloom.plan.display import Branch
from trendloom.plan.logical import Plan


def describe_execution(physical: Physical) -> tuple[Branch, ...]:
    return (numbered("execution", "engine local", _steps(physical.plan)),)


def _steps(plan: Plan) -> Iterator[str]:
    yield f"read {scanned(plan)} into memory"
    yield f"keep events that fit a position, sort by {_sorted_by(plan)}"
    yield "one columnar call for all partitions" if plan.partition else "one columnar call"


def _sorted_by(plan: Plan) -> str:
    names = [*plan.partition, "time", *plan.schema.order]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
