"""The algorithms, in the order in which they are asked: the first that takes a plan runs it. One file each.

An algorithm is added by a file with a `Candidate` and a place in this tuple; nothing else has to know of it.
"""

from __future__ import annotations

from trendloom.physical.candidate import Candidate
from trendloom.physical.candidates import (
    best_paths,
    branches,
    by_event,
    expansion,
    expected,
    imprecise,
    matrices,
    outside_in,
    parts,
    pivots,
    postponed,
    rank_join,
    runs,
    spines,
    summed_signatures,
    trend_graph,
    two_steps,
    waiting_runs,
)

CANDIDATES: tuple[Candidate, ...] = (
    trend_graph.CANDIDATE,
    spines.CANDIDATE,
    best_paths.CANDIDATE,
    branches.CANDIDATE,
    rank_join.CANDIDATE,
    parts.CANDIDATE,
    runs.CANDIDATE,
    postponed.CANDIDATE,
    outside_in.CANDIDATE,
    expansion.CANDIDATE,
    matrices.CANDIDATE,
    waiting_runs.CANDIDATE,
    by_event.CANDIDATE,
    pivots.CANDIDATE,
    two_steps.CANDIDATE,
)

OF_IMPRECISE_TIME: tuple[Candidate, ...] = (
    imprecise.CANDIDATE,
    expected.CANDIDATE,
    summed_signatures.CANDIDATE,
)
"""Those for events whose times are intervals."""
