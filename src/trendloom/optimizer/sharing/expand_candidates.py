"""Segments for fewer queries: one that gives up the queries where it is in conflict may be shared beside the others.

A conflict between two segments, caused by some queries, is resolved if each of these queries is given up by one of the
two; either must keep at least two queries. So a segment becomes a set of *options*, of which a plan has at most one,
found breadth first. Their number is exponential in the worst case: so many are tried, the widest first. Where there are
many segments, each has fewer options, and the heaviest have them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from trendloom.optimizer.sharing.benefit import Benefit
from trendloom.optimizer.sharing.conflict_graph import MOST_LETTERS, MOST_SEGMENTS, ConflictGraph, graph_of, members
from trendloom.optimizer.sharing.deadline import NEVER, Deadline
from trendloom.optimizer.sharing.segments import SharedSegment

MOST_OPTIONS = 32
"""Options of one segment, itself included."""
LEAST_OPTIONS = 4
"""The same, however many segments there are."""
MOST_CAUSES = 4
"""Queries that cause a conflict, up to which every way to divide them is tried; else all of them or none."""


def expand_candidates(
    graph: ConflictGraph,
    benefit: Benefit,
    most: int = MOST_OPTIONS,
    deadline: Deadline = NEVER,
    *,
    in_all: int = MOST_SEGMENTS,
    letters: int = MOST_LETTERS,
) -> ConflictGraph:
    """The graph of all options that save anything; there are `in_all` at most, unless there are more segments."""
    found = [[(segment, weight)] for segment, weight in zip(graph.segments, graph.weights, strict=True)]
    room = in_all - len(found)
    letters -= sum(segment.size for segment in graph.segments)
    most = max(min(most, in_all // max(len(found), 1)), min(most, LEAST_OPTIONS))
    for vertex in sorted(range(len(found)), key=lambda vertex: -graph.weights[vertex]):
        segment = graph.segments[vertex]
        size = min(most, 1 + room, 1 + letters // segment.size)
        if size < 2 or not graph.near[vertex]:
            continue
        if deadline.is_over:
            break
        others = [graph.segments[other] for other in members(graph.near[vertex])]
        weighed = [(one, benefit(one)) for one in options_of(segment, others, size, deadline)[1:]]
        saving = [(one, weight) for one, weight in weighed if weight > 0]
        found[vertex] += saving
        room -= len(saving)
        letters -= sum(one.size for one, _ in saving)
    alternatives = [vertex for vertex, some in enumerate(found) for _ in some]
    return replace(graph_of([one for some in found for one in some], alternatives), lacking=graph.lacking)


def options_of(
    segment: SharedSegment, others: Sequence[SharedSegment], most: int = MOST_OPTIONS, deadline: Deadline = NEVER
) -> list[SharedSegment]:
    """A segment, and itself for fewer queries, by which conflicts with others are resolved."""
    conflicts = [(segment.conflicts_in(other), other) for other in others]
    found, known, waiting = [segment], {segment.queries}, deque([segment])
    while waiting and not deadline.is_over:
        one = waiting.popleft()
        for causes, other in conflicts:
            for given_up in _resolving(causes & one.queries, other):
                kept = one.queries - given_up
                if len(kept) > 1 and kept not in known:
                    if len(found) == most:
                        return found
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
