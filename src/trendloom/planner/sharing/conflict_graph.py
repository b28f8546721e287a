"""Segments that queries may share, as a graph: each weighs what it saves, and edges join those that overlap in a query.

Sets of segments are integers, a bit for each. Cost: O(steps of all segments) unions of such sets; of more steps than
`MOST_STEPS` the heaviest segments are taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, combinations

import numpy as np

from trendloom.expr.arrays import Array

PatternSteps = tuple[Hashable, ...]
"""The event filters of the positions of a pattern: the same events fit equal steps."""
Benefit = Callable[["SharedSegment"], float]
"""What a segment saves for its queries, in whatever unit; not above 0: nothing."""

MOST_STEPS = 500_000
"""Steps of all segments of a graph, at all their places."""
MOST_SEGMENTS = 8_000
LEAST_WEIGHED = 8
"""Segments that are weighed in any case."""
ROUNDING = 1e-9
"""Sums of weights are that far from right, at most."""
MOST_OPTIONS = 32
"""Options of one segment, itself included."""
LEAST_OPTIONS = 4
"""The same, however many segments there are."""
MOST_CAUSES = 4
"""Queries that cause a conflict, up to which every way to divide them is tried; else all of them or none."""


class SearchBudget:
    """Elementary steps that a search may still take; None: as many as it needs.

    Steps are counted, not seconds, so that the same queries and statistics give the same plan on every machine. What
    ends early is valid all the same.
    """

    def __init__(self, steps: float | None = None, whole: SearchBudget | None = None) -> None:
        self.left = float("inf") if steps is None else steps
        self.spent = 0.0
        self._whole = whole

    @property
    def is_over(self) -> bool:
        return self.left <= 0

    @property
    def endless(self) -> bool:
        return self.left == float("inf")

    def spend(self, steps: int) -> None:
        """Count steps here and in the budget that this one is a part of."""
        self.left -= steps
        self.spent += steps
        if self._whole is not None:
            self._whole.spend(steps)

    def part(self, share: float) -> SearchBudget:
        """A share of what is left."""
        return self.at_most(self.left * share)

    def at_most(self, steps: float) -> SearchBudget:
        """So many of the steps that are left."""
        return SearchBudget(min(steps, self.left), self)


@dataclass(frozen=True)
class SharedSegment:
    """A sharing candidate: some consecutive steps, and where they stand: by query, the first position of each.

    They may stand in a query more than once; these places do not overlap.
    """

    steps: PatternSteps
    places: tuple[tuple[int, int], ...]

    @cached_property
    def queries(self) -> frozenset[int]:
        return frozenset(query for query, _ in self.places)

    @property
    def size(self) -> int:
        """Steps at all places."""
        return len(self.steps) * len(self.places)

    @property
    def is_prefix(self) -> bool:
        return all(first == 0 for _, first in self.places)

    def only(self, queries: Iterable[int]) -> SharedSegment:
        """The same segment for some of its queries."""
        kept = frozenset(queries)
        return SharedSegment(self.steps, tuple(place for place in self.places if place[0] in kept))

    def conflicts_in(self, other: SharedSegment) -> frozenset[int]:
        """The queries in which this segment overlaps with another one, so that only one of them can be shared."""
        found = set()
        mine: dict[int, list[int]] = {}
        for query, first in self.places:
            mine.setdefault(query, []).append(first)
        for query, first in other.places:
            if any(first < at + len(self.steps) and at < first + len(other.steps) for at in mine.get(query, ())):
                found.add(query)
        return frozenset(found)


def mine_segments(patterns: Sequence[PatternSteps], budget: SearchBudget | None = None) -> list[SharedSegment]:
    """The segments of at least two steps that at least two of the patterns have, the shortest first.

    Places with equal steps are divided by the step that comes next, level by level: a segment that several patterns
    have begins with one that they have. Cost: O(places) for every segment that is found.
    """
    budget = budget or SearchBudget()
    level = [[(query, first) for query, steps in enumerate(patterns) for first in range(len(steps))]]
    found: list[SharedSegment] = []
    length = 0
    while level:
        longer: list[list[tuple[int, int]]] = []
        for places in level:
            if budget.is_over and found:
                break
            budget.spend(len(places))
            following: dict[Hashable, list[tuple[int, int]]] = {}
            for query, first in places:
                if first + length < len(patterns[query]):
                    following.setdefault(patterns[query][first + length], []).append((query, first))
            longer += [some for some in following.values() if some[0][0] != some[-1][0]]
        level, length = longer, length + 1
        if length > 1:
            for places in level:
                query, first = places[0]
                found.append(SharedSegment(patterns[query][first : first + length], _apart(places, length)))
    return sorted(found, key=lambda one: (len(one.steps), one.places))


def _apart(places: list[tuple[int, int]], length: int) -> tuple[tuple[int, int], ...]:
    """The places without those that overlap with an earlier one in the same pattern."""
    found: list[tuple[int, int]] = []
    for query, first in places:
        if not found or found[-1][0] != query or found[-1][1] + length <= first:
            found.append((query, first))
    return tuple(found)


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


def members(some: int) -> list[int]:
    """The numbers of the bits that are set."""
    numbers: list[int] = numbers_of(some).tolist()
    return numbers


def numbers_of(some: int) -> Array:
    """The numbers of the bits that are set, as an array."""
    octets = np.frombuffer(some.to_bytes((some.bit_length() + 7) // 8, "little"), np.uint8)
    return np.flatnonzero(np.unpackbits(octets, bitorder="little"))


def bits(numbers: Iterable[int]) -> int:
    """A set of numbers as bits."""
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def bits_of(flags: Array) -> int:
    """A set of numbers, given as an array of flags, as bits."""
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def conflict_graph(
    segments: Sequence[SharedSegment], benefit: Benefit, budget: SearchBudget | None = None, steps: int = MOST_STEPS
) -> ConflictGraph:
    """The graph of the segments that save anything; those with most steps are weighed first."""
    budget = budget or SearchBudget()
    weights = dict[int, float]()
    for at in sorted(range(len(segments)), key=lambda at: -segments[at].size):
        if budget.is_over and len(weights) >= LEAST_WEIGHED:
            break
        budget.spend(segments[at].size)
        weights[at] = benefit(segments[at])
    saving = sorted((at for at, weight in weights.items() if weight > 0), key=lambda at: -weights[at])
    sizes = accumulate(segments[at].size for at in saving)
    kept = [at for at, size in zip(saving[:MOST_SEGMENTS], sizes, strict=False) if size <= steps]
    graph = graph_of([(segments[at], weights[at]) for at in sorted(kept)])
    left_out = sum(weights[at] for at in saving[len(kept) :])
    return replace(graph, lacking=left_out if len(weights) == len(segments) else float("inf"))


def graph_of(
    weighed: Sequence[tuple[SharedSegment, float]], alternatives: Sequence[int] | None = None
) -> ConflictGraph:
    """The graph of segments with their weights; those with the same number among `alternatives` exclude each other."""
    segments = tuple(one for one, _ in weighed)
    covering: dict[tuple[object, int], int] = {}  # by query and position, or by alternative: the segments there
    taken = [_taken(one, None if alternatives is None else alternatives[at]) for at, one in enumerate(segments)]
    for at, mine in enumerate(taken):
        for spot in mine:
            covering[spot] = covering.get(spot, 0) | 1 << at
    near = [0] * len(segments)
    for at, mine in enumerate(taken):
        for spot in mine:
            near[at] |= covering[spot]
        near[at] &= ~(1 << at)
    return ConflictGraph(segments, tuple(weight for _, weight in weighed), tuple(near))


def _taken(segment: SharedSegment, alternative: int | None) -> list[tuple[object, int]]:
    """What no other segment of a plan may take: positions of queries, and the number of an alternative."""
    found: list[tuple[object, int]] = [
        (query, position) for query, first in segment.places for position in range(first, first + len(segment.steps))
    ]
    return found if alternative is None else [*found, ("alternative", alternative)]


@dataclass(frozen=True)
class Reduction:
    """Which segments are still in question, which are certain, and which are out; as bits."""

    left: int
    certain: int
    pruned: int


def reduce_graph(graph: ConflictGraph, least: float, budget: SearchBudget | None = None) -> Reduction:
    """Remove segments of which it is certain whether the best plan has them; `least`: what some plan weighs, at least.

    One without conflicts is in it. One is out if everything that it does not exclude weighs less together than `least`.
    What was set aside as certain counts in both: else a segment that belongs into the best plan could be taken for too
    light. Cost: O(conflicts), and a look at all segments for each round in which some are removed, both as operations
    on arrays.
    """
    budget = budget or SearchBudget()
    weights = np.array(graph.weights)
    degrees = np.array([near.bit_count() for near in graph.near], np.int64)
    pruned = np.zeros(len(weights), np.bool_)
    budget.spend(int(degrees.sum()))
    if not budget.is_over:
        excluded = np.array([weights[numbers_of(near)].sum() for near in graph.near])  # by each, of what is left
        possible = float(weights.sum())  # of what is left and what is certain
    while not budget.is_over:
        budget.spend(len(weights))
        too_light = ~pruned & (degrees > 0) & (possible - excluded < least * (1 - ROUNDING))
        if not too_light.any():
            break
        pruned |= too_light
        possible -= float(weights[too_light].sum())
        for vertex in np.flatnonzero(too_light).tolist():
            others = numbers_of(graph.near[vertex])
            degrees[others] -= 1
            excluded[others] -= weights[vertex]
    certain = ~pruned & (degrees == 0)
    return Reduction(bits_of(~certain & ~pruned), bits_of(certain), bits_of(pruned))


def expand_candidates(
    graph: ConflictGraph,
    benefit: Benefit,
    budget: SearchBudget | None = None,
    *,
    in_all: int = MOST_SEGMENTS,
    steps: int = MOST_STEPS,
) -> ConflictGraph:
    """The graph of all options that save anything; there are `in_all` at most, unless there are more segments.

    A segment that gives up the queries where it is in conflict may be shared beside the others. A conflict between two
    segments, caused by some queries, is resolved if each of these queries is given up by one of the two; either must
    keep at least two queries. So a segment becomes a set of *options*, of which a plan has at most one, found breadth
    first. Their number is exponential in the worst case: so many are tried, the widest first. Where there are many
    segments, each has fewer options, and the heaviest have them.
    """
    budget = budget or SearchBudget()
    found = [[(segment, weight)] for segment, weight in zip(graph.segments, graph.weights, strict=True)]
    room = in_all - len(found)
    steps -= sum(segment.size for segment in graph.segments)
    most = min(max(in_all // max(len(found), 1), LEAST_OPTIONS), MOST_OPTIONS)
    for vertex in sorted(range(len(found)), key=lambda vertex: -graph.weights[vertex]):
        segment = graph.segments[vertex]
        size = min(most, 1 + room, 1 + steps // segment.size)
        if size < 2 or not graph.near[vertex]:
            continue
        if budget.is_over:
            break
        others = [graph.segments[other] for other in members(graph.near[vertex])]
        weighed = [(one, benefit(one)) for one in options_of(segment, others, size, budget)[1:]]
        saving = [(one, weight) for one, weight in weighed if weight > 0]
        found[vertex] += saving
        room -= len(saving)
        steps -= sum(one.size for one, _ in saving)
    alternatives = [vertex for vertex, some in enumerate(found) for _ in some]
    return replace(graph_of([one for some in found for one in some], alternatives), lacking=graph.lacking)


def options_of(
    segment: SharedSegment,
    others: Sequence[SharedSegment],
    most: int = MOST_OPTIONS,
    budget: SearchBudget | None = None,
) -> list[SharedSegment]:
    """A segment, and itself for fewer queries, by which conflicts with others are resolved."""
    budget = budget or SearchBudget()
    conflicts = [(segment.conflicts_in(other), other) for other in others]
    budget.spend(len(others) * len(segment.places))
    found, known, waiting = [segment], {segment.queries}, deque([segment])
    while waiting and not budget.is_over:
        one = waiting.popleft()
        budget.spend(len(conflicts))
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
