"""Segments as a graph: each weighs what it saves, and edges join those that overlap in a query (the SHARON graph).

Sets of segments are integers, a bit for each. Cost: O(letters of all segments) unions of such sets; of more letters
than `MOST_LETTERS` the heaviest segments are taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, combinations

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.planner.sharing.deadline import NEVER, Deadline
from trendloom.planner.sharing.segments import Benefit, SharedSegment

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


# Remove segments of which it is certain whether the best plan has them.
#
# One without conflicts is in it. One is out if everything that it does not exclude weighs less together than a plan is
# known to weigh. What was set aside as certain counts in both: else a segment that belongs into the best plan could be
# taken for too light. Cost: O(conflicts), and a look at all segments for each round in which some are removed, both as
# operations on arrays.


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


# Segments for fewer queries: one that gives up the queries where it is in conflict may be shared beside the others.
#
# A conflict between two segments, caused by some queries, is resolved if each of these queries is given up by one of
# the two; either must keep at least two queries. So a segment becomes a set of *options*, of which a plan has at most
# one, found breadth first. Their number is exponential in the worst case: so many are tried, the widest first. Where
# there are many segments, each has fewer options, and the heaviest have them.


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
