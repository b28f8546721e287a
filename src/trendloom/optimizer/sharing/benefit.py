"""What sharing a segment saves, as the paper has it: counts per START event, in updates per unit of time.

Equations 1 to 8 of "Sharon: Shared Online Event Sequence Aggregation". A type that stands k times in a pattern has its
events update k counts, which the sum of rates over positions says by itself. An empty prefix or suffix has no terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trendloom.optimizer.sharing.segments import Letter, SharedSegment, Word

Benefit = Callable[[SharedSegment], float]
"""What a segment saves for its queries, in whatever unit; not above 0: nothing."""


@dataclass(frozen=True)
class PerStartBenefit:
    """The benefit of segments of some words, whose letters are fulfilled by events at these rates."""

    words: Sequence[Word]
    rate: Callable[[Letter], float]

    def __call__(self, segment: SharedSegment) -> float:
        """Equation 8."""
        return self.not_shared(segment) - self.shared(segment)

    def not_shared(self, segment: SharedSegment) -> float:
        """Equations 2 and 3."""
        return sum(self.alone(self.words[query]) for query in segment.queries)

    def shared(self, segment: SharedSegment) -> float:
        """Equations 4 to 7: the segment once, and for each query its prefix, its suffix and the combination."""
        once = self.alone(segment.letters)
        return once + sum(self._for_query(segment, query, first) for query, first in segment.places)

    def alone(self, word: Word) -> float:
        """Every event updates a count for each START event (equations 1 and 2)."""
        return self.rate(word[0]) * sum(map(self.rate, word)) if word else 0.0

    def _for_query(self, segment: SharedSegment, query: int, first: int) -> float:
        word = self.words[query]
        prefix, suffix = word[:first], word[first + len(segment.letters) :]
        if not prefix and not suffix:
            return 0.0
        combined = self.rate(segment.letters[0])
        for part in (prefix, suffix):
            combined *= self.rate(part[0]) if part else 1.0
        return self.alone(prefix) + self.alone(suffix) + combined
