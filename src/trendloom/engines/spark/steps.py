"""What Spark does with the events of a query, step by step, for EXPLAIN: a batch, and a live stream."""

from __future__ import annotations

from collections.abc import Iterator

from trendloom.engines.spark.allowed_paths import Path, Way, ways
from trendloom.physical.display import numbered, scanned
from trendloom.physical.live import describe_live
from trendloom.physical.plan import Physical
from trendloom.plan.display import Branch
from trendloom.plan.logical import Plan


def describe_execution(physical: Physical) -> tuple[Branch, ...]:
    return (
        numbered("execution", "engine spark", _steps(physical)),
        numbered("live", "on a live stream", describe_live(physical)),
    )


def _steps(physical: Physical) -> Iterator[str]:
    plan, best = physical.plan, ways(physical)[0]
    yield f"read {scanned(plan)}: project and filter as Spark columns"
    if best.path is Path.GENERAL:
        yield from _by_key(plan)
    elif best.path is Path.CUT:
        yield from _cut(plan, best)
    else:
        yield from _reduced(plan, best)
    if physical.aggregates:
        yield "add up what the tasks found, per group and window"


def _by_key(plan: Plan) -> Iterator[str]:
    if plan.partition:
        yield f"repartition by {', '.join(plan.partition)}"
        yield "mapInArrow: one columnar call per task, for all its partitions"
    else:
        yield "one task: there is no partition key ([...] or GROUP BY) to spread the events by"
        yield "mapInArrow: one columnar call"


def _cut(plan: Plan, way: Way) -> Iterator[str]:
    keys = f"{', '.join(plan.partition)} and " if plan.partition else ""
    few = "if there are few keys, which" if plan.partition else "if the stream is longer than a window, which"
    yield f"path cut, {few} is decided at run time: {way.reason}"
    yield f"repartition by {keys}segment of time, with the events of a window repeated at each cut"
    yield "mapInArrow: one columnar call per task, for the windows that start in its segments"
    yield f"path general otherwise: repartition by {_keys(plan)}"


def _reduced(plan: Plan, way: Way) -> Iterator[str]:
    yield "path reduced, if the parts of the input hardly overlap in time, which is decided at run time"
    yield "path direct: the same, and tasks read the row groups of local Parquet files themselves"
    yield f"mapInArrow: {way.reason}; times that several parts share are sent as events"
    yield f"repartition matrices by {_keys(plan)}" if plan.partition else "matrices to one task"
    yield "mapInArrow: multiply in order of time"
    yield f"path general otherwise: repartition events by {_keys(plan)}"


def _keys(plan: Plan) -> str:
    return ", ".join(plan.partition) or "nothing, one task"
