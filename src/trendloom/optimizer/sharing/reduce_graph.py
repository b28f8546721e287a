"""Remove segments of which it is certain whether the best plan has them.

One without conflicts is in it. One is out if everything that it does not exclude weighs less together than a plan is
known to weigh. What was set aside as certain counts in both: else a segment that belongs into the best plan could be
taken for too light. Cost: O(conflicts), and a look at all segments for each round in which some are removed, both as
operations on arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trendloom.optimizer.sharing.conflict_graph import Array, ConflictGraph, bits_of, numbers_of
from trendloom.optimizer.sharing.deadline import NEVER, Deadline

ROUNDING = 1e-9
"""Sums of weights are that far from right, at most."""


@dataclass(frozen=True)
class Reduction:
    """Which segments are still in question, which are certain, and which are out; as bits."""

    left: int
    certain: int
    pruned: int


def reduce_graph(graph: ConflictGraph, least: float, deadline: Deadline = NEVER) -> Reduction:
    """Decide what can be decided; `least`: what some plan weighs, at least."""
    weights = np.array(graph.weights)
    degrees = np.array([near.bit_count() for near in graph.near], np.int64)
    excluded = np.zeros(len(weights))  # by each, of what is left
    for vertex, near in enumerate(graph.near):
        if deadline.is_over_at(vertex):
            return _reduction(degrees == 0, np.zeros(len(weights), np.bool_))
        excluded[vertex] = weights[numbers_of(near)].sum() if near else 0.0
    possible = float(weights.sum())  # of what is left and what is certain
    pruned = np.zeros(len(weights), np.bool_)
    while not deadline.is_over:
        too_light = ~pruned & (degrees > 0) & (possible - excluded < least * (1 - ROUNDING))
        if not too_light.any():
            break
        pruned |= too_light
        possible -= float(weights[too_light].sum())
        for vertex in np.flatnonzero(too_light).tolist():
            others = numbers_of(graph.near[vertex])
            degrees[others] -= 1
            excluded[others] -= weights[vertex]
    return _reduction(~pruned & (degrees == 0), pruned)


def _reduction(certain: Array, pruned: Array) -> Reduction:
    return Reduction(bits_of(~certain & ~pruned), bits_of(certain), bits_of(pruned))
