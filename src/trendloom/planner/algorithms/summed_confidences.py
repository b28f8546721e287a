"""Expected aggregates of what can only be found: signatures one by one, then the sums of their confidences."""

from __future__ import annotations

from dataclasses import fields, replace

from trendloom.kernels.uncertain.expected.kernel import LikelyMatchesKernel
from trendloom.kernels.uncertain.kernel import ImpreciseKernel
from trendloom.planner.algorithms import uncertain
from trendloom.planner.algorithms.expected_values import FIRST_TIMES, kernel_of, obstacle_of_probability, told_apart
from trendloom.planner.request import Candidate, Choice, PlanningRequest


def consider(request: PlanningRequest) -> Choice | str:
    if not request.aggregates:
        return "it adds up matches"
    chance, summed = told_apart(request.plan)
    obstacle = obstacle_of_probability(request) if chance else None
    if obstacle is not None:
        return f"PROBABILITY(*) is not a sum over matches, and {obstacle}"
    found = uncertain.search(request)
    why = f"two steps, because {request.refused['expected']}"
    if not chance:
        return replace(found, why=why)
    assert isinstance(found.kernel, ImpreciseKernel)
    given = {field.name: getattr(found.kernel, field.name) for field in fields(found.kernel)}
    kernel = LikelyMatchesKernel(**given, chance=kernel_of(request, chance), summed=summed)
    return replace(found, kernel=kernel, algorithm=f"{found.algorithm}; {FIRST_TIMES}", why=why)


CANDIDATE = Candidate("summed signatures", consider)
