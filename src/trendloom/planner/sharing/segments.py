"""Segments of patterns that queries may share, and where they are; and how long the search for the best may go on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

PatternSteps = tuple[Hashable, ...]
"""What the positions of a pattern ask for: the same events fit equal steps."""
Benefit = Callable[["SharedSegment"], float]
"""What a segment saves for its queries, in whatever unit; not above 0: nothing."""


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
