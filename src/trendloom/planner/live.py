"""Which kernel serves a query on a live stream, and which queries cannot be served."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trendloom.errors import PlanError
from trendloom.kernels.contract import Kernel
from trendloom.kernels.contract.emission import Certain
from trendloom.logical.plan import Plan
from trendloom.model.selection import Semantics, Trends
from trendloom.planner.algorithms.collapsed import may_lack_a_spine
from trendloom.planner.plan import Physical

MOMENTS = {
    Certain.LAST: "gives out a match when the watermark has passed its last event",
    Certain.LATEST: "gives out a match when the watermark has passed the latest time of its last event",
    Certain.FIRST: "gives out a match when the watermark has passed all that could still change it",
    Certain.WINDOW: "gives out a window when the watermark has passed its end",
}


def live_kernel(physical: Physical) -> Kernel[Any, Any]:
    """The kernel that is stepped; a query whose results would never be certain is refused."""
    refusal = _never_certain(physical)
    if refusal is not None:
        raise refusal
    return physical.kernel


def _never_certain(physical: Physical) -> PlanError | None:
    """Why results of a query would never be certain on a live stream; None: they will be."""
    plan = physical.plan
    if plan.window.within is None:
        why = "a live stream has no end, so a query without WITHIN would never be done"
        return _error(plan, "PATTERN", why, "add WITHIN, e.g. WITHIN 10 minutes SLIDE 1 minute")
    if plan.output is Trends.COLLAPSED and plan.window.spanning and may_lack_a_spine(physical.pattern_spec):
        why = "matches without events outside Kleene variables are one row for the whole of a live stream, never done"
        return _error(plan, "WITHIN", why, "add SLIDE: windows end")
    if plan.ranking is not None and not plan.window.sliding:
        why = "matches without windows are ranked over the whole of a live stream, so no rank would ever be certain"
        hint = "add SLIDE: the best of each window are given out when it ends, e.g. WITHIN 10 minutes SLIDE 1 minute"
        return _error(plan, "RANK BY", why, hint)
    return None


def _error(plan: Plan, clause: str, message: str, hint: str) -> PlanError:
    return PlanError(message, plan.query.clause(clause), hint=hint, text=plan.query.text)


def describe_live(physical: Physical) -> Iterator[str]:
    """How a query runs on a live stream, for EXPLAIN."""
    plan = physical.plan
    if _never_certain(physical) is not None:
        missing = "WITHIN" if plan.window.within is None else "SLIDE"
        yield f"not at all: without {missing} nothing would ever be done"
        return
    yield MOMENTS[physical.kernel.emission.certain]
    yield f"keeps {physical.kernel.keeps}"
    if _adds_up_buckets(physical):
        yield "adds up what buckets of keys found, per group and window, in the same batch"
    if plan.ranking is None:
        return
    if plan.ranks_across_keys:
        yield "ranks the best of all buckets of keys together, per window, in the same batch"
    elif _early_obstacle(physical) is None:
        yield "with early=True a board that changes: a row replaces the one before of its window, partition and rank"


def refuse_early(physical: Physical) -> None:
    """Refuse to give out rows early that might have to be taken back, or that no single bucket can compute."""
    obstacle = _early_obstacle(physical)
    if obstacle is not None:
        clause, reason = obstacle
        message = f"rows of this query cannot be given out early: {reason}"
        hint = "leave out early=True: rows are given out when they are certain"
        raise _error(physical.plan, clause, message, hint)


def _early_obstacle(physical: Physical) -> tuple[str, str] | None:
    """Why rows cannot be given out early, with the clause that it comes from; None: they can."""
    plan = physical.plan
    obstacles = (
        (plan.schema.imprecise, "CONFIDENCE", "events that come late can make matches less likely, or more"),
        (
            not physical.aggregates and plan.ranking is None,
            "RETURN",
            "a match is given out once, when it is certain",
        ),
        (plan.semantics is not Semantics.ANY, "SEMANTICS", "events that come late can change which run goes on"),
        (len(physical.pattern_spec.scopes) > 1, "PATTERN", "events that come late can undo matches of a NOT"),
        (plan.query.having is not None, "HAVING", "a row that passed may not pass later"),
        (
            _adds_up_buckets(physical),
            "GROUP BY",
            "a group has several partitions, which are added up only when a window ends",
        ),
        (plan.ranks_across_keys, "RANK BY", "partitions are ranked together only when a window ends"),
    )
    return next(((clause, reason) for applies, clause, reason in obstacles if applies), None)


def _adds_up_buckets(physical: Physical) -> bool:
    """Whether a group has several partitions."""
    return physical.aggregates and set(physical.plan.keys) != set(physical.plan.group_by)
