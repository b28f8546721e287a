"""Sequences of single events under skip-till-any-match, with conditions between any of them.

See Zhang, "NEEL+: Supporting Predicates for Nested Complex Event Processing", ch. 3, on iterative evaluation.
"""

from __future__ import annotations

from dataclasses import replace

from trendloom.kernels.match.expansion import JoiningKernel
from trendloom.kernels.matching.automaton import Automaton
from trendloom.kernels.matching.join_order import is_straight
from trendloom.model.selection import Semantics
from trendloom.planner.adjacency import pairs_in_order
from trendloom.planner.choice import because, searched
from trendloom.planner.request import Choice, PlanningRequest, Refusal, RefusalCode

NOT_STRAIGHT = Refusal(RefusalCode.PATTERN, "the pattern is not one event for each component, one after the other")


def consider(request: PlanningRequest) -> Choice | Refusal:
    if request.plan.semantics is not Semantics.ANY:
        return Refusal(RefusalCode.SEMANTICS, "it binds events in any order, and runs grow from their first event on")
    if not is_straight(Automaton(request.pattern_spec), 0):
        return NOT_STRAIGHT
    found = searched(
        request,
        JoiningKernel(request.pattern_spec),
        None,
        "join order: bind components in the order that costs least, each between those that are bound",
        because("skip-till-any-match, but", pairs_in_order(request.pattern_spec)),
        "O(extensions tried · log events + output), in bounded memory",
    )
    return replace(found, builds=True)
