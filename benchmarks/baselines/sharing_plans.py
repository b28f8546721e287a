"""All plans, to compare with: level by level as published, or every set of segments.

Plans of s + 1 segments are made of two plans of s that differ in the last one only; they are valid if these two
segments are not in conflict, so no invalid plan is ever made.
"""

from __future__ import annotations

from collections.abc import Iterator

from trendloom.planner.sharing.conflict_graph import ConflictGraph, members

Decisions = tuple[int, ...]


def valid_plans(graph: ConflictGraph, among: int | None = None) -> Iterator[int]:
    """Every valid plan of at least one segment, level by level; as many as there are independent sets."""
    level: list[Decisions] = [(vertex,) for vertex in members(graph.all if among is None else among)]
    while level:
        for plan in level:
            yield sum(1 << vertex for vertex in plan)
        level = list(_next_level(graph, level))


def _next_level(graph: ConflictGraph, parents: list[Decisions]) -> Iterator[Decisions]:
    """Plans with one segment more; parents are in order, so those with the same beginning are neighbours."""
    for at, one in enumerate(parents):
        for other in parents[at + 1 :]:
            if other[:-1] != one[:-1]:
                break
            if not graph.near[one[-1]] >> other[-1] & 1:
                yield (*one, other[-1])


def heaviest(graph: ConflictGraph, among: int | None = None) -> int:
    """The best of all valid plans."""
    return max(valid_plans(graph, among), key=graph.weight, default=0)


def heaviest_of_all_sets(graph: ConflictGraph) -> int:
    """The best plan, by looking at every set of segments, valid or not."""
    return max(filter(graph.is_valid, range(graph.all + 1)), key=graph.weight)
