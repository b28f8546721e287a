"""Segments as a graph: each weighs what it saves, and edges join those that overlap in a query (the SHARON graph).

Sets of segments are integers, a bit for each. Cost: O(letters of all segments) unions of such sets; of more letters
than `MOST_LETTERS` the heaviest segments are taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np

from trendloom.optimizer.sharing.benefit import Benefit
from trendloom.optimizer.sharing.deadline import NEVER, Deadline
from trendloom.optimizer.sharing.segments import SharedSegment

Array = np.ndarray[Any, Any]

MOST_LETTERS = 500_000
"""Letters of all segments of a graph, at all their places."""
MOST_SEGMENTS = 8_000
FEW = 24
"""Members of a set up to which it is faster to look for them one by one."""


@dataclass(frozen=True)
class ConflictGraph:
    """`near[v]`: the segments in conflict with segment v, as bits.

    `lacking`: what the segments that were left out, because there are too many, weigh together.
    """

    segments: tuple[SharedSegment, ...]
    weights: tuple[float, ...]
    near: tuple[int, ...]
    lacking: float = 0.0

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
    if some.bit_count() > FEW:
        yield from numbers_of(some).tolist()
        return
    while some:
        low = some & -some
        yield low.bit_length() - 1
        some ^= low


def numbers_of(some: int) -> Array:
    """The same as an array."""
    octets = np.frombuffer(some.to_bytes((some.bit_length() + 7) // 8, "little"), np.uint8)
    return np.flatnonzero(np.unpackbits(octets, bitorder="little"))


def bits(numbers: Iterable[int]) -> int:
    """A set of numbers as bits."""
    listed = list(numbers)
    if len(listed) <= FEW:
        found = 0
        for number in listed:
            found |= 1 << number
        return found
    flags = np.zeros(max(listed) + 1, np.uint8)
    flags[listed] = 1
    return bits_of(flags)


def bits_of(flags: Array) -> int:
    """The same of an array that says of each number whether it is in the set."""
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def conflict_graph(
    segments: Sequence[SharedSegment], benefit: Benefit, deadline: Deadline = NEVER, letters: int = MOST_LETTERS
) -> ConflictGraph:
    """The graph of the segments that save anything; those with most letters are weighed first, if time is short."""
    weights = dict[int, float]()
    for done, at in enumerate(sorted(range(len(segments)), key=lambda at: -segments[at].size)):
        if deadline.is_over_at(done):
            break
        weights[at] = benefit(segments[at])
    saving = sorted((at for at, weight in weights.items() if weight > 0), key=lambda at: -weights[at])
    sizes = accumulate(segments[at].size for at in saving)
    kept = [at for at, size in zip(saving[:MOST_SEGMENTS], sizes, strict=False) if size <= letters]
    graph = graph_of([(segments[at], weights[at]) for at in sorted(kept)])
    left_out = sum(weights[at] for at in saving[len(kept) :])
    return replace(graph, lacking=left_out if len(weights) == len(segments) else float("inf"))


def graph_of(
    weighed: Sequence[tuple[SharedSegment, float]], alternatives: Sequence[int] | None = None
) -> ConflictGraph:
    """The graph of segments with their weights; those with the same number among `alternatives` exclude each other."""
    segments = tuple(one for one, _ in weighed)
    there: dict[tuple[object, int], list[int]] = {}  # by query and place, or by alternative: the segments there
    spots = [_spots(one, None if alternatives is None else alternatives[at]) for at, one in enumerate(segments)]
    for at, mine in enumerate(spots):
        for spot in mine:
            there.setdefault(spot, []).append(at)
    covering = {spot: bits(some) for spot, some in there.items()}
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
