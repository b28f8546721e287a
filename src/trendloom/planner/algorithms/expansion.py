"""Everything else: partial matches are extended, many at a time, in bounded memory."""

from __future__ import annotations

from dataclasses import replace

from trendloom.kernels.match.expansion import ExpansionKernel
from trendloom.model.selection import Semantics
from trendloom.planner.choice import ADDED_UP, searched
from trendloom.planner.consistency import sieves_of
from trendloom.planner.request import Candidate, Choice, Wanted

EXTENDED = "expansion: extend partial matches, many at a time"


def consider(wanted: Wanted) -> Choice | str:
    return ADDED_UP if wanted.aggregates else search(wanted)


def search(wanted: Wanted) -> Choice:
    """The same, whatever becomes of the matches."""
    semantics, detection = wanted.plan.semantics, wanted.detection
    if semantics is Semantics.ANY:
        detection = replace(detection, sieves=sieves_of(detection))
        why, cost = wanted.refused["postponed"], "O(partial matches that can still be completed), in bounded memory"
    else:
        why, cost = wanted.refused["runs"], "O(candidates tried + output), in bounded memory"
    return searched(wanted, ExpansionKernel(detection), None, EXTENDED, f"{semantics.value}, but {why}", cost)


CANDIDATE = Candidate("expansion", consider)
