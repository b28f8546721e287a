"""The algorithms in order of preference: the first that takes a plan runs it.

An algorithm is added by a file with an `Algorithm` and a place in this tuple. Each takes a plan only if it is right
for it, whatever the others do, so every subset in every order gives right plans; the order is a matter of speed.
"""

from __future__ import annotations

from trendloom.planner.algorithms import (
    best_paths,
    branches,
    collapsed,
    complete,
    expansion,
    expected_values,
    grains,
    join_order,
    monotone_parts,
    next_match,
    postponed,
    rank_join,
    summed_confidences,
    two_steps,
    uncertain,
)
from trendloom.planner.request import Algorithm

ALGORITHMS: tuple[Algorithm, ...] = (
    complete.ALGORITHM,
    collapsed.ALGORITHM,
    best_paths.ALGORITHM,
    branches.ALGORITHM,
    rank_join.ALGORITHM,
    monotone_parts.ALGORITHM,
    next_match.ALGORITHM,
    postponed.ALGORITHM,
    join_order.ALGORITHM,
    expansion.ALGORITHM,
    grains.TYPE_GRAINED,
    grains.PATTERN_GRAINED,
    grains.EVENT_GRAINED,
    grains.PIVOTS,
    two_steps.ALGORITHM,
    uncertain.ALGORITHM,
    expected_values.ALGORITHM,
    summed_confidences.ALGORITHM,
)
