"""A good plan at once: the segment that weighs most for what it excludes, then the next of what is left (GWMIN).

Sakai, Togasaki and Yamazaki, "A note on greedy algorithms for the maximum weighted independent set problem": the result
weighs at least the sum of weight / (degree + 1). Cost: O(segments squared + conflicts).
"""

from __future__ import annotations

import numpy as np

from trendloom.optimize.sharing.conflict_graph import ConflictGraph, members


def guaranteed_weight(graph: ConflictGraph) -> float:
    """What the greedy plan weighs at least."""
    return sum(weight / (near.bit_count() + 1) for weight, near in zip(graph.weights, graph.near, strict=True))


def greedy(graph: ConflictGraph, among: int | None = None) -> int:
    """A plan of some of the segments."""
    left = graph.all if among is None else among
    weights = np.array(graph.weights)
    degrees = np.array([graph.degree(vertex, left) for vertex in range(len(weights))], np.int64)
    value = np.full(len(weights), -np.inf)
    for vertex in members(left):
        value[vertex] = weights[vertex] / (degrees[vertex] + 1)
    found = 0
    while left:
        best = int(value.argmax())
        found |= 1 << best
        gone = (graph.near[best] | 1 << best) & left
        left &= ~gone
        for vertex in members(gone):
            value[vertex] = -np.inf
            for other in members(graph.near[vertex] & left):
                degrees[other] -= 1
                value[other] = weights[other] / (degrees[other] + 1)
    return found
