"""Which paths a query allows its events to take to the tasks that add them up.

What the data decide (how the times of its parts overlap, how many keys there are) `paths` finds out at run time,
among those that are listed here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from trendloom.kernels.contract.measures import AggregationSpec
from trendloom.logical.plan import KeySet
from trendloom.options import Options
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
    """The path that the caller asks for; None: the engine chooses, as it does by default."""
    return None if options.path in (None, "auto") else Path(options.path)


@dataclass(frozen=True)
class AllowedPath:
    """A path that is possible and why it is taken."""

    path: Path
    reason: str


def ways(physical: Physical) -> tuple[AllowedPath, ...]:
    """The paths that the query allows, the best first; the general one is always among them."""
    if obstacle(physical, Path.REDUCED) is None:
        reason = "stretches of events are matrices: tasks reduce their own events, only matrices move"
        return AllowedPath(Path.DIRECT, reason), AllowedPath(Path.REDUCED, reason), _GENERAL
    if obstacle(physical, Path.CUT) is None and not (physical.plan.ranking is not None and physical.plan.keys):
        return AllowedPath(Path.CUT, "windows are independent: time can be cut at their starts"), _GENERAL
    return (_GENERAL,)


_GENERAL = AllowedPath(Path.GENERAL, "all events of a key meet in one task")


def summed(physical: Physical) -> AggregationSpec:
    """What is added up on the paths on which events need not meet."""
    found = physical.kernel.aggregation
    assert found is not None
    return found


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


def joined(workload: PhysicalWorkload) -> tuple[KeySet, ...]:
    """The sets of keys with the queries that one job answers; none where it would be a single query.

    A query without keys runs alone where tasks can divide its time or add up their own events: in this job all events
    without keys meet in one task.
    """
    found = []
    for keys in workload.key_sets:
        spread = [n for n in keys.members if keys.attributes or ways(workload.queries[n])[0].path is Path.GENERAL]
        found += [replace(keys, members=tuple(spread))] if spread else []
    return tuple(found) if sum(len(keys.members) for keys in found) > 1 else ()
