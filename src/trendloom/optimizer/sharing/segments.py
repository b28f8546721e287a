"""Segments of patterns that queries may share, and where they are."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property

Letter = Hashable
"""What a position of a pattern asks for: equal letters are fulfilled by the same events in the same way."""
Word = tuple[Letter, ...]


@dataclass(frozen=True)
class SharedSegment:
    """A sharing candidate: some neighbouring letters, and where they stand: by query, the first place of each.

    They may stand in a query more than once; these places do not overlap.
    """

    letters: Word
    places: tuple[tuple[int, int], ...]

    @cached_property
    def queries(self) -> frozenset[int]:
        return frozenset(query for query, _ in self.places)

    @property
    def size(self) -> int:
        """Letters at all places."""
        return len(self.letters) * len(self.places)

    def only(self, queries: Iterable[int]) -> SharedSegment:
        """The same segment for some of its queries."""
        kept = frozenset(queries)
        return SharedSegment(self.letters, tuple(place for place in self.places if place[0] in kept))

    def conflicts_in(self, other: SharedSegment) -> frozenset[int]:
        """The queries in which this segment overlaps with another one, so that only one of them can be shared."""
        found = set()
        mine: dict[int, list[int]] = {}
        for query, first in self.places:
            mine.setdefault(query, []).append(first)
        for query, first in other.places:
            if any(first < at + len(self.letters) and at < first + len(other.letters) for at in mine.get(query, ())):
                found.add(query)
        return frozenset(found)
