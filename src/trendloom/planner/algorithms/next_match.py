"""Skip-till-next-match and contiguous, where the next event of a run depends on its last event alone. Linear."""

from __future__ import annotations

from trendloom.kernels.contract.pattern_spec import Compared
from trendloom.kernels.match.next import RunsKernel
from trendloom.model.selection import Semantics
from trendloom.planner.adjacency import pairs_of
from trendloom.planner.choice import searched
from trendloom.planner.request import Choice, PlanningRequest, Refusal, RefusalCode


def consider(request: PlanningRequest) -> Choice | Refusal:
    semantics = request.plan.semantics
    if semantics is Semantics.ANY:
        return Refusal(RefusalCode.SEMANTICS, "skip-till-any-match: an event of a run can go on at many")
    pairs = pairs_of(request.pattern_spec)
    if isinstance(pairs, Refusal):
        return pairs
    return searched(
        request,
        RunsKernel(request.pattern_spec, pairs),
        pairs,
        "next match: follow each run from an event to its successor",
        f"{semantics.value}: the next event of a run depends on its last event alone",
        _cost(pairs, semantics),
    )


def _cost(pairs: tuple[Compared, ...], semantics: Semantics) -> str:
    if not pairs or semantics is Semantics.CONTIGUOUS:
        return "O(events + output)"
    steps = [step for pair in pairs for step in pair.steps]
    if len(set(steps)) < len(steps):
        return "O(events + candidates refused + output): a step has two predicates"
    return "O(events · log events + output)"
