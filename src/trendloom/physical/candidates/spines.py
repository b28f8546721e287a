"""Collapsed trends: events outside Kleene variables first, then what may lie between them."""

from __future__ import annotations

from trendloom.kernels.collapsed.kernel import SpinesKernel
from trendloom.model.semantics import Trends
from trendloom.physical.candidate import Candidate, Choice, Wanted
from trendloom.physical.collapsed import TOGETHER, spine_of
from trendloom.physical.estimates import estimate_search
from trendloom.physical.hiding import HIDING


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
