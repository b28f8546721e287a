"""Aggregates of runs under skip-till-next-match and contiguous: those that wait at an event are one number (COGRA)."""

from __future__ import annotations

from trendloom.physical.added_up import added_up
from trendloom.physical.aggregation import waiting_runs
from trendloom.physical.candidate import Candidate, Choice, Wanted


def consider(wanted: Wanted) -> Choice | str:
    return added_up(wanted, waiting_runs)


CANDIDATE = Candidate("waiting runs", consider)
