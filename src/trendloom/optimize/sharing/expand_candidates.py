"""Segments for fewer queries: one that gives up the queries where it is in conflict may be shared beside the others.

A conflict between two segments, caused by some queries, is resolved if each of these queries is given up by one of the
two; either must keep at least two queries. So a segment becomes a set of *options*, of which a plan has at most one,
found breadth first. Their number is exponential in the worst case: so many are tried, the widest first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import combinations

from trendloom.optimize.sharing.benefit import Benefit
from trendloom.optimize.sharing.conflict_graph import ConflictGraph, graph_of, members
from trendloom.optimize.sharing.segments import SharedSegment

MOST_OPTIONS = 32
"""Options of one segment, itself included."""
MOST_CAUSES = 4
"""Queries that cause a conflict, up to which every way to divide them is tried; else all of them or none."""


def expand_candidates(graph: ConflictGraph, benefit: Benefit, most: int = MOST_OPTIONS) -> ConflictGraph:
    """The graph of all options that save anything."""
    weighed: list[tuple[SharedSegment, float]] = []
    alternatives: list[int] = []
    for vertex, segment in enumerate(graph.segments):
        others = [graph.segments[other] for other in members(graph.near[vertex])]
        for option in options_of(segment, others, most):
            weight = graph.weights[vertex] if option is segment else benefit(option)
            if weight > 0:
                weighed.append((option, weight))
                alternatives.append(vertex)
    return graph_of(weighed, alternatives)


def options_of(
    segment: SharedSegment, others: Sequence[SharedSegment], most: int = MOST_OPTIONS
) -> list[SharedSegment]:
    """A segment, and itself for fewer queries, by which conflicts with others are resolved."""
    found, known, waiting = [segment], {segment.queries}, deque([segment])
    while waiting:
        one = waiting.popleft()
        for other in others:
            for given_up in _resolving(one.conflicts_in(other), other):
                kept = one.queries - given_up
                if len(kept) > 1 and kept not in known and len(found) < most:
                    known.add(kept)
                    found.append(one.only(kept))
                    waiting.append(found[-1])
    return found


def _resolving(causes: frozenset[int], other: SharedSegment) -> Iterator[frozenset[int]]:
    """Which queries to give up so that the other segment can give up the rest of those that cause a conflict."""
    if not causes:
        return
    sizes = range(1, len(causes) + 1) if len(causes) <= MOST_CAUSES else (len(causes),)
    for size in sizes:
        for some in combinations(sorted(causes), size):
            given_up = frozenset(some)
            if len(other.queries - (causes - given_up)) > 1:
                yield given_up
