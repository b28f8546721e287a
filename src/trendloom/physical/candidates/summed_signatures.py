"""Expected aggregates of what can only be found: signatures one by one, then the sums of their confidences."""

from __future__ import annotations

from dataclasses import replace

from trendloom.kernels.imprecise.expected.results import PROBABILITY
from trendloom.physical.aggregation import measures_of
from trendloom.physical.candidate import Candidate, Choice, Wanted
from trendloom.physical.candidates import imprecise

RESULT = "two steps: find the signatures, then add up their confidences per group and window"


def consider(wanted: Wanted) -> Choice | str:
    if not wanted.aggregates:
        return "it adds up matches"
    if any(measure.function == PROBABILITY for measure in measures_of(wanted.plan)):
        return "PROBABILITY(*) is not a sum over matches"
    found = imprecise.search(wanted)
    return replace(found, why=f"two steps, because {wanted.refused['expected']}", result=RESULT, builds=False)


CANDIDATE = Candidate("summed signatures", consider)
