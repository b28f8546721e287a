"""Which paths a query allows its events to take through Spark, and the steps of each, for EXPLAIN.

What depends on the data (how the times of its parts overlap, how many keys there are) is decided by `paths` at run
time, among the paths that are allowed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from trendloom.kernels.contract.aggregates import AggregationSpec
from trendloom.logical.display import Branch
from trendloom.logical.plan import KeySet, Plan
from trendloom.options import Options
from trendloom.planner.display import numbered, scanned
from trendloom.planner.live import describe_live
from trendloom.planner.measures import summary_obstacle
from trendloom.planner.plan import Physical
from trendloom.planner.workload import PhysicalWorkload


class Path(Enum):
    """How events come to the task that adds them up."""

    GENERAL = "general"  # all events of a key move to one task
    REDUCED = "reduced"  # events stay; tasks make matrices of them, which move to one task per key
    DIRECT = "direct"  # as REDUCED, and tasks read row groups of Parquet files themselves
    CUT = "cut"  # time is cut at starts of windows; events that overlap a cut are sent to both sides


def requested_path(options: Options) -> Path | None:
    """The path of the options; None: the engine chooses, as it does by default."""
    return None if options.path in (None, "auto") else Path(options.path)


@dataclass(frozen=True)
class AllowedPath:
    """A path that is possible and why it is taken."""

    path: Path
    reason: str


_GENERAL = AllowedPath(Path.GENERAL, "all events of a key meet in one task")


def ways(physical: Physical) -> tuple[AllowedPath, ...]:
    """The paths that the query allows, the best first; the general one is always among them."""
    if obstacle(physical, Path.REDUCED) is None:
        reason = "stretches of events are matrices: tasks reduce their own events, only matrices move"
        return AllowedPath(Path.DIRECT, reason), AllowedPath(Path.REDUCED, reason), _GENERAL
    if obstacle(physical, Path.CUT) is None and not (physical.plan.ranking is not None and physical.plan.keys):
        return AllowedPath(Path.CUT, "windows are independent: time can be cut at their starts"), _GENERAL
    return (_GENERAL,)


def obstacle(physical: Physical, path: Path) -> str | None:
    """Why the query does not allow a path; None: it does."""
    if path is Path.GENERAL:
        return None
    kernel, plan = physical.kernel, physical.plan
    if plan.schema.imprecise:
        return "its times are imprecise: who is first is known where all events of a key meet"
    ranked = path is Path.CUT and plan.ranking is not None
    if not kernel.adds_up and not ranked:
        return "its matches are found one by one"
    if ranked and plan.ranks_across_keys:
        return "its partitions are ranked together"
    if path is Path.CUT:
        return None if plan.window.sliding else "it has no windows to cut between"
    if kernel.aggregation is None:
        return "its algorithm adds up events in a way of its own"
    return summary_obstacle(plan, kernel.aggregation)


def summed(physical: Physical) -> AggregationSpec:
    """What is added up on the paths on which events need not meet."""
    found = physical.kernel.aggregation
    assert found is not None
    return found


def answered_together(workload: PhysicalWorkload) -> tuple[KeySet, ...]:
    """The sets of keys with the queries that one job answers; none where it would be a single query.

    A query without keys runs alone where tasks can divide its time or add up their own events: in this job all events
    without keys meet in one task.
    """
    found = []
    for keys in workload.key_sets:
        spread = [n for n in keys.members if keys.attributes or ways(workload.queries[n])[0].path is Path.GENERAL]
        found += [replace(keys, members=tuple(spread))] if spread else []
    return tuple(found) if sum(len(keys.members) for keys in found) > 1 else ()


# ------------------------------------------------------------------------------------------------------------- EXPLAIN


def describe_execution(physical: Physical) -> tuple[Branch, ...]:
    return (
        numbered("execution", "engine spark", _steps(physical)),
        numbered("live", "on a live stream", describe_live(physical)),
    )


def describe_workload(workload: PhysicalWorkload) -> Branch:
    return numbered("execution", "engine spark", _shared_steps(workload))


def _shared_steps(workload: PhysicalWorkload) -> Iterator[str]:
    together = answered_together(workload)
    if together:
        yield f"one job for {workload.named(n for keys in together for n in keys.members)}: read {_scanned(workload)}"
    for keys in together:
        by = f"by {', '.join(keys.attributes)}" if keys.attributes else "to one task, there is no partition key"
        yield f"move events once {by}, sort them once in each task: for {workload.named(keys.members)}"
    yield from (f"in each task: {line}" for line in workload.describe_shared())
    of_job = {number for keys in together for number in keys.members}
    alone = [number for number in range(len(workload.queries)) if number not in of_job]
    if alone:
        yield f"a job of its own for {workload.named(alone)}: no partition key, and tasks need not see all events"
    yield "on a live stream: one stream, in which events travel once for the queries that have their keys in common"


def _scanned(workload: PhysicalWorkload) -> str:
    return scanned(replace(workload.queries[0].plan, scan=workload.scan))


def _steps(physical: Physical) -> Iterator[str]:
    plan, best = physical.plan, ways(physical)[0]
    yield f"read {scanned(plan)}: project and filter as Spark columns"
    if best.path is Path.GENERAL:
        yield from _by_key(plan)
    elif best.path is Path.CUT and plan.ranking is not None:
        yield from _cut_ranks(best)
    elif best.path is Path.CUT:
        yield from _cut(plan, best)
    else:
        yield from _reduced(plan, best)
    if physical.aggregates:
        yield "add up what the tasks found, per group and window"
    if plan.ranks_across_keys and plan.ranking is not None:
        some = f"the best {plan.ranking.limit} of each task, with their events"
        yield f"repartition {some}, by window" if plan.window.sliding else f"send {some}, to one task"
        yield "mapInArrow: rank them together"


def _by_key(plan: Plan) -> Iterator[str]:
    if plan.keys:
        yield f"repartition by {', '.join(plan.keys)}"
        yield "mapInArrow: one columnar call per task, for all its partitions"
    else:
        cut = "" if plan.ranking is None else ", and there are no windows (WITHIN ... SLIDE) to cut between"
        yield f"one task: there is no partition key ([...] or GROUP BY) to spread the events by{cut}"
        yield "mapInArrow: one columnar call"


def _cut_ranks(way: AllowedPath) -> Iterator[str]:
    yield f"path cut, since there is no partition key: {way.reason}"
    yield "repartition by segment of time, with the events of a window repeated at each cut"
    yield "mapInArrow: one columnar call per task, which ranks the windows that start in its segments"


def _cut(plan: Plan, way: AllowedPath) -> Iterator[str]:
    keys = f"{', '.join(plan.keys)} and " if plan.keys else ""
    few = "if there are few keys, which" if plan.keys else "if the stream is longer than a window, which"
    yield f"path cut, {few} is decided at run time: {way.reason}"
    yield f"repartition by {keys}segment of time, with the events of a window repeated at each cut"
    yield "mapInArrow: one columnar call per task, for the windows that start in its segments"
    yield f"path general otherwise: repartition by {_keys(plan)}"


def _reduced(plan: Plan, way: AllowedPath) -> Iterator[str]:
    yield "path reduced, if the input is large and its parts hardly overlap in time, which is decided at run time"
    yield "path direct: the same, and tasks read the row groups of local Parquet files themselves"
    yield f"mapInArrow: {way.reason}; times that several parts share are sent as events"
    yield f"repartition matrices by {_keys(plan)}" if plan.keys else "matrices to one task"
    yield "mapInArrow: multiply in order of time"
    yield f"path general otherwise: repartition events by {_keys(plan)}"


def _keys(plan: Plan) -> str:
    return ", ".join(plan.keys) or "nothing, one task"
