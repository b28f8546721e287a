"""Matches of events whose times are intervals: signatures are grown many at a time, each with its confidence."""

from __future__ import annotations

from trendloom.kernels.imprecise.kernel import ImpreciseKernel
from trendloom.physical.candidate import Candidate, Choice, Wanted


def consider(wanted: Wanted) -> Choice | str:
    return "it adds up matches" if wanted.aggregates else search(wanted)


def search(wanted: Wanted) -> Choice:
    return Choice(ImpreciseKernel(wanted.detection, confidence=wanted.plan.confidence), "x", "y", "z", "r")


CANDIDATE = Candidate("imprecise", consider)
