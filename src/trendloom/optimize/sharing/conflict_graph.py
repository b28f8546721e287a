"""Segments as a graph: each weighs what it saves, and edges join those that overlap in a query (the SHARON graph).

Sets of segments are integers, a bit for each. Cost: O(letters of all segments) unions of such sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from trendloom.optimize.sharing.benefit import Benefit
from trendloom.optimize.sharing.segments import SharedSegment


@dataclass(frozen=True)
class ConflictGraph:
    """`near[v]`: the segments in conflict with segment v, as bits."""

    segments: tuple[SharedSegment, ...]
    weights: tuple[float, ...]
    near: tuple[int, ...]

    @property
    def all(self) -> int:
        return (1 << len(self.segments)) - 1

    def degree(self, vertex: int, among: int) -> int:
        return (self.near[vertex] & among).bit_count()

    def weight(self, some: int) -> float:
        return sum(self.weights[vertex] for vertex in members(some))

    def is_valid(self, some: int) -> bool:
        """Whether no two of some segments are in conflict."""
        return not any(self.near[vertex] & some for vertex in members(some))

    def edges(self) -> Iterator[tuple[int, int]]:
        for vertex, near in enumerate(self.near):
            yield from ((vertex, other) for other in members(near) if vertex < other)


def members(some: int) -> Iterator[int]:
    """The numbers of the bits that are set."""
    while some:
        low = some & -some
        yield low.bit_length() - 1
        some ^= low


def bits(numbers: Iterable[int]) -> int:
    """A set of numbers as bits."""
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def conflict_graph(segments: Sequence[SharedSegment], benefit: Benefit) -> ConflictGraph:
    """The graph of the segments that save anything."""
    weighed = [(one, benefit(one)) for one in segments]
    return graph_of([(one, weight) for one, weight in weighed if weight > 0])


def graph_of(
    weighed: Sequence[tuple[SharedSegment, float]], alternatives: Sequence[int] | None = None
) -> ConflictGraph:
    """The graph of segments with their weights; those with the same number among `alternatives` exclude each other."""
    segments = tuple(one for one, _ in weighed)
    covering: dict[tuple[object, int], int] = {}  # by query and place, or by alternative: the segments there
    spots = [_spots(one, None if alternatives is None else alternatives[at]) for at, one in enumerate(segments)]
    for at, mine in enumerate(spots):
        for spot in mine:
            covering[spot] = covering.get(spot, 0) | 1 << at
    near = [0] * len(segments)
    for at, mine in enumerate(spots):
        for spot in mine:
            near[at] |= covering[spot]
        near[at] &= ~(1 << at)
    return ConflictGraph(segments, tuple(weight for _, weight in weighed), tuple(near))


def _spots(segment: SharedSegment, alternative: int | None) -> list[tuple[object, int]]:
    found: list[tuple[object, int]] = [
        (query, place) for query, first in segment.places for place in range(first, first + len(segment.letters))
    ]
    return found if alternative is None else [*found, ("alternative", alternative)]
