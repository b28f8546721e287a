"""Which kernel serves a query on a live stream, and which queries cannot be served."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trendloom.errors import PlanError
from trendloom.kernels.contract import Kernel
from trendloom.kernels.contract.emission import Certain
from trendloom.model.selection import Semantics, Trends
from trendloom.planner.algorithms.collapsed import may_lack_a_spine
from trendloom.planner.plan import Physical


def live_kernel(physical: Physical) -> Kernel[Any, Any]:
    """The kernel that is stepped; a query whose results would never be certain is refused."""
    plan = physical.plan
    if plan.window.within is None:
        raise PlanError(
            "a live stream has no end, so a query without WITHIN would never be done",
            plan.query.clause("PATTERN"),
            hint="add WITHIN, e.g. WITHIN 10 minutes SLIDE 1 minute",
            text=plan.query.text,
        )
    if _never_done(physical):
        raise PlanError(
            "matches without events outside Kleene variables are one row for the whole of a live stream, never done",
            plan.query.clause("WITHIN"),
            hint="add SLIDE: windows end",
            text=plan.query.text,
        )
    if _never_ranked(physical):
        raise PlanError(
            "matches without windows are ranked over the whole of a live stream, so no rank would ever be certain",
            plan.query.clause("RANK BY"),
            hint="add SLIDE: the best of each window are given out when it ends, e.g. WITHIN 10 minutes SLIDE 1 minute",
            text=plan.query.text,
        )
    return physical.kernel


def _never_ranked(physical: Physical) -> bool:
    """Whether a better match may always come: ranks without windows."""
    return physical.plan.ranking is not None and not physical.plan.window.sliding


def _never_done(physical: Physical) -> bool:
    """Whether matches all over the stream are one row: collapsed trends of Kleene variables alone, without windows."""
    spanning = physical.plan.output is Trends.COLLAPSED and physical.plan.window.spanning
    return spanning and may_lack_a_spine(physical.pattern_spec)


def describe_live(physical: Physical) -> Iterator[str]:
    """How a query runs on a live stream, for EXPLAIN."""
    plan = physical.plan
    if plan.window.within is None or _never_done(physical) or _never_ranked(physical):
        missing = "WITHIN" if plan.window.within is None else "SLIDE"
        yield f"not at all: without {missing} nothing would ever be done"
        return
    kernel = live_kernel(physical)
    yield MOMENTS[kernel.emission.certain]
    yield f"keeps {kernel.keeps}"
    if physical.aggregates and set(plan.keys) != set(plan.group_by):
        yield "adds up what buckets of keys found, per group and window, in the same batch"
    if plan.ranking is None:
        return
    if plan.ranks_across_keys:
        yield "ranks the best of all buckets of keys together, per window, in the same batch"
    elif _early_obstacle(physical) is None:
        yield "with early=True a board that changes: a row replaces the one before of its window, partition and rank"


MOMENTS = {
    Certain.LAST: "gives out a match when the watermark has passed its last event",
    Certain.LATEST: "gives out a match when the watermark has passed the latest time of its last event",
    Certain.FIRST: "gives out a match when the watermark has passed all that could still change it",
    Certain.WINDOW: "gives out a window when the watermark has passed its end",
}


def refuse_early(physical: Physical) -> None:
    """Refuse to give out rows early that might have to be taken back, or that no single bucket knows."""
    plan, obstacle = physical.plan, _early_obstacle(physical)
    if obstacle is not None:
        clause, reason = obstacle
        raise PlanError(
            f"rows of this query cannot be given out early: {reason}",
            plan.query.clause(clause),
            hint="leave out early=True: rows are given out when they are certain",
            text=plan.query.text,
        )


def _early_obstacle(physical: Physical) -> tuple[str, str] | None:
    """Why rows cannot be given out early, with the clause that it comes from; None: they can."""
    plan = physical.plan
    imprecise = "events that come late can make matches less likely, or more" if plan.schema.imprecise else None
    given_once = not physical.aggregates and plan.ranking is None
    coarse = physical.aggregates and set(plan.keys) != set(plan.group_by)
    obstacles: dict[str, str | None] = {
        "CONFIDENCE": imprecise,
        "RETURN": "a match is given out once, when it is certain" if given_once else None,
        "SEMANTICS": None if plan.semantics is Semantics.ANY else "events that come late can change which run goes on",
        "PATTERN": "events that come late can undo matches of a NOT" if len(physical.pattern_spec.scopes) > 1 else None,
        "HAVING": "a row that passed may not pass later" if plan.query.having is not None else None,
        "GROUP BY": "a group has several partitions, which are added up only when a window ends" if coarse else None,
        "RANK BY": "partitions are ranked together only when a window ends" if plan.ranks_across_keys else None,
    }
    return next(((clause, reason) for clause, reason in obstacles.items() if reason is not None), None)
