"""Everything else: partial matches are extended, many at a time, in bounded memory."""

from __future__ import annotations

from dataclasses import replace

from trendloom.kernels.match.expansion import ExpansionKernel
from trendloom.model.selection import Semantics
from trendloom.planner.adjacency import pairs_in_order, pairs_of
from trendloom.planner.choice import because, searched
from trendloom.planner.consistency import sieves_of
from trendloom.planner.request import Choice, PlanningRequest

EXTENDED = "expansion: extend partial matches, many at a time"


def consider(request: PlanningRequest) -> Choice:
    semantics, pattern_spec = request.plan.semantics, request.pattern_spec
    if semantics is Semantics.ANY:
        pattern_spec = replace(pattern_spec, sieves=sieves_of(pattern_spec))
        pairs, cost = pairs_in_order(pattern_spec), "O(partial matches that can still be completed), in bounded memory"
    else:
        pairs, cost = pairs_of(pattern_spec), "O(candidates tried + output), in bounded memory"
    why = because(f"{semantics.value}, but", pairs)
    return searched(request, ExpansionKernel(pattern_spec), None, EXTENDED, why, cost)
