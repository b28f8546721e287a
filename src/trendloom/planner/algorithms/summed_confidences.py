"""Expected aggregates of what can only be found: signatures one by one, then the sums of their confidences."""

from __future__ import annotations

from dataclasses import fields, replace

from trendloom.kernels.uncertain.expected import LikelyMatchesKernel
from trendloom.kernels.uncertain.kernel import ImpreciseKernel
from trendloom.planner.algorithms import uncertain
from trendloom.planner.algorithms.expected_values import (
    FIRST_TIMES,
    kernel_of,
    refuse_expectation,
    refuse_probability,
    split_measures,
)
from trendloom.planner.choice import because
from trendloom.planner.request import Choice, PlanningRequest, Refusal


def consider(request: PlanningRequest) -> Choice | Refusal:
    chance, summed = split_measures(request.plan)
    refusal = refuse_probability(request) if chance else None
    if refusal is not None:
        return replace(refusal, text=f"PROBABILITY(*) is not a sum over matches, and {refusal.text}")
    found = uncertain.consider(request)
    why = because("two steps, because", refuse_expectation(request))
    if not chance:
        return replace(found, why=why)
    assert isinstance(found.kernel, ImpreciseKernel)
    given = {field.name: getattr(found.kernel, field.name) for field in fields(found.kernel)}
    kernel = LikelyMatchesKernel(**given, chance=kernel_of(request, chance), summed=summed)
    return replace(found, kernel=kernel, algorithm=f"{found.algorithm}; {FIRST_TIMES}", why=why)
