"""The algorithms, in the order in which they are asked: the first that takes a plan runs it. One file each.

An algorithm is added by a file with a `Candidate` and a place in this tuple; nothing else has to know of it.
"""

from __future__ import annotations

from trendloom.planner.algorithms import (
    best_paths,
    branches,
    collapsed,
    complete,
    event_grained,
    expansion,
    expected_values,
    join_order,
    monotone_parts,
    next_match,
    pattern_grained,
    pivots,
    postponed,
    rank_join,
    summed_confidences,
    two_steps,
    type_grained,
    uncertain,
)
from trendloom.planner.request import Candidate

CANDIDATES: tuple[Candidate, ...] = (
    complete.CANDIDATE,
    collapsed.CANDIDATE,
    best_paths.CANDIDATE,
    branches.CANDIDATE,
    rank_join.CANDIDATE,
    monotone_parts.CANDIDATE,
    next_match.CANDIDATE,
    postponed.CANDIDATE,
    join_order.CANDIDATE,
    expansion.CANDIDATE,
    type_grained.CANDIDATE,
    pattern_grained.CANDIDATE,
    event_grained.CANDIDATE,
    pivots.CANDIDATE,
    two_steps.CANDIDATE,
)

OF_IMPRECISE_TIME: tuple[Candidate, ...] = (
    uncertain.CANDIDATE,
    expected_values.CANDIDATE,
    summed_confidences.CANDIDATE,
)
"""Those for events whose times are intervals."""
