"""Collapsed trends: events outside Kleene variables first, then what may lie between them."""

from __future__ import annotations

from trendloom.kernels.trends.collapsed.kernel import SpinesKernel
from trendloom.model.selection import Trends
from trendloom.planner.algorithms.collapsed import TOGETHER, spine_of
from trendloom.planner.estimates import estimate_search
from trendloom.planner.exists import HIDING
from trendloom.planner.request import Candidate, Choice, Wanted


def consider(wanted: Wanted) -> Choice | str:
    if wanted.plan.output is not Trends.COLLAPSED:
        return "it finds collapsed trends only"
    if wanted.plan.hidden:
        return HIDING
    found = spine_of(wanted.detection)
    if isinstance(found, str):
        return found
    return Choice(
        SpinesKernel(wanted.detection, found.spine),
        "spines: events outside Kleene variables first, then what may lie between them",
        "what lies between two events outside Kleene variables does not depend on the rest of the match",
        found.cost,
        TOGETHER,
        estimate=estimate_search(wanted),
    )


CANDIDATE = Candidate("spines", consider)
