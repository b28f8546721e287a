"""Remove segments of which it is certain whether the best plan has them.

One without conflicts is in it. One is out if everything that it does not exclude weighs less together than a plan is
known to weigh. What was set aside as certain counts in both: else a segment that belongs into the best plan could be
taken for too light. Cost: O(conflicts), and a look at every segment for each round in which
one is removed.
"""

from __future__ import annotations

from dataclasses import dataclass

from trendloom.optimize.sharing.conflict_graph import ConflictGraph, members

ROUNDING = 1e-9
"""Sums of weights are that far from right, at most."""


@dataclass(frozen=True)
class Reduction:
    """Which segments are still in question, which are certain, and which are out; as bits."""

    left: int
    certain: int
    pruned: int


def reduce_graph(graph: ConflictGraph, least: float) -> Reduction:
    """Decide what can be decided; `least`: what some plan weighs, at least."""
    left, certain = graph.all, 0
    excluded = [graph.weight(near) for near in graph.near]  # by each, of what is left
    possible = graph.weight(left)  # of what is left and what is certain
    changed = True
    while changed:
        changed = False
        for vertex in members(left):
            near = graph.near[vertex] & left
            if not near:
                certain |= 1 << vertex
            elif possible - excluded[vertex] < least * (1 - ROUNDING):
                possible -= graph.weights[vertex]
                for other in members(near):
                    excluded[other] -= graph.weights[vertex]
            else:
                continue
            left &= ~(1 << vertex)
            changed = True
    return Reduction(left, certain, graph.all & ~left & ~certain)
