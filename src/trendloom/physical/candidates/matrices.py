"""One running aggregate per position: stretches of events are matrices. Type- and pattern-grained (COGRA)."""

from __future__ import annotations

from trendloom.physical.added_up import added_up
from trendloom.physical.aggregation import matrices
from trendloom.physical.candidate import Candidate, Choice, Wanted


def consider(wanted: Wanted) -> Choice | str:
    return added_up(wanted, matrices)


CANDIDATE = Candidate("matrices", consider)
