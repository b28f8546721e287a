"""A good plan at once: the segment that weighs most for what it excludes, then the next of what is left (GWMIN).

Sakai, Togasaki and Yamazaki, "A note on greedy algorithms for the maximum weighted independent set problem": the result
weighs at least the sum of weight / (degree + 1). Cost: O(conflicts), and a look at all segments for each that is taken,
both as operations on arrays.
"""

from __future__ import annotations

import numpy as np

from trendloom.optimizer.sharing.conflict_graph import Array, ConflictGraph, members, numbers_of
from trendloom.optimizer.sharing.deadline import NEVER, Deadline


def guaranteed_weight(graph: ConflictGraph) -> float:
    """What the greedy plan weighs at least."""
    return sum(weight / (near.bit_count() + 1) for weight, near in zip(graph.weights, graph.near, strict=True))


def greedy(graph: ConflictGraph, among: int | None = None, deadline: Deadline = NEVER) -> int:
    """A plan of some of the segments."""
    left = graph.all if among is None else among
    vertices = numbers_of(left)
    weights = np.array([graph.weights[vertex] for vertex in vertices.tolist()])
    degrees = np.array([graph.degree(vertex, left) for vertex in vertices.tolist()], np.int64)
    value = weights / (degrees + 1)
    found = done = 0
    while left and not deadline.is_over_at(done):
        done += 1
        best = int(vertices[value.argmax()])
        found |= 1 << best
        gone = (graph.near[best] | 1 << best) & left
        left &= ~gone
        value[_places(gone, vertices)] = -np.inf
        for vertex in members(gone):
            others = _places(graph.near[vertex] & left, vertices)
            degrees[others] -= 1
            value[others] = weights[others] / (degrees[others] + 1)
    return found


def _places(some: int, vertices: Array) -> Array:
    """Where some of the vertices are listed."""
    return np.searchsorted(vertices, numbers_of(some))
