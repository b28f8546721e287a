"""Segments of patterns that queries may share, and where they are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from trendloom.planner.sharing.deadline import NEVER, Deadline

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


# Find all segments that more than one query has, by a suffix automaton over all of them.
#
# A state of the automaton stands for segments that end at the same places; it has segments of several lengths, from
# one letter longer than its link up to its longest, and each of them is a candidate: which is best depends on what it
# excludes. Cost: O(letters) for the automaton, and O(places) for every segment that is found; if time is short, only
# the first words are looked at, and segments with most letters in all are found.


SHORTEST = 2
"""Letters of a segment: one letter alone is read off the event."""


def mine_segments(words: Sequence[Word], deadline: Deadline = NEVER) -> list[SharedSegment]:
    """The segments of at least two letters that at least two of the words have, the shortest first."""
    states = _automaton(words, deadline)
    found = []
    heaviest = sorted(range(1, len(states.longest)), key=lambda state: -states.longest[state] * len(states.ends[state]))
    for done, state in enumerate(heaviest):
        if deadline.is_over_at(done):
            break
        ends = states.ends[state]
        if len({word for word, _ in ends}) < 2:
            continue
        shortest = states.longest[states.link[state]] + 1
        for length in range(max(shortest, SHORTEST), states.longest[state] + 1):
            word, end = ends[0]
            letters = tuple(words[word][end - length : end])
            found.append(SharedSegment(letters, _apart(ends, length)))
    found = [one for one in found if len(one.queries) > 1]
    return sorted(found, key=lambda one: (len(one.letters), one.places))


def _apart(ends: list[tuple[int, int]], length: int) -> tuple[tuple[int, int], ...]:
    """Where segments begin that end there: of those that overlap in a word the first, and so on."""
    found: list[tuple[int, int]] = []
    for word, end in ends:
        if not found or found[-1][0] != word or found[-1][1] + length <= end - length:
            found.append((word, end - length))
    return tuple(found)


class _States:
    """A suffix automaton of several words; state 0 is the empty segment."""

    def __init__(self) -> None:
        self.next: list[dict[Letter, int]] = [{}]
        self.link = [-1]
        self.longest = [0]
        self.ends: list[list[tuple[int, int]]] = [[]]

    def add(self, longest: int, following: dict[Letter, int], link: int) -> int:
        self.next.append(following)
        self.link.append(link)
        self.longest.append(longest)
        self.ends.append([])
        return len(self.link) - 1

    def extend(self, last: int, letter: Letter) -> int:
        """The state of a segment that is one letter longer."""
        known = self.next[last].get(letter)
        if known is not None:
            return known if self.longest[known] == self.longest[last] + 1 else self._split(last, letter, known)
        new = self.add(self.longest[last] + 1, {}, 0)
        state = last
        while state >= 0 and letter not in self.next[state]:
            self.next[state][letter] = new
            state = self.link[state]
        if state >= 0:
            known = self.next[state][letter]
            whole = self.longest[known] == self.longest[state] + 1
            self.link[new] = known if whole else self._split(state, letter, known)
        return new

    def _split(self, state: int, letter: Letter, known: int) -> int:
        """Keep shorter segments of a state apart from its longer ones."""
        copy = self.add(self.longest[state] + 1, dict(self.next[known]), self.link[known])
        while state >= 0 and self.next[state].get(letter) == known:
            self.next[state][letter] = copy
            state = self.link[state]
        self.link[known] = copy
        return copy


def _automaton(words: Sequence[Word], deadline: Deadline) -> _States:
    """Of all words, or of as many as there is time for."""
    states, building = _States(), deadline.share(0.5)
    for number, word in enumerate(words):
        if building.is_over_at(number):
            words = words[:number]
            break
        last = 0
        for letter in word:
            last = states.extend(last, letter)
    for number, word in enumerate(words):  # where every segment ends: its own place, and that of all shorter ones
        if deadline.is_over_at(number):
            break
        state = 0
        for end, letter in enumerate(word, 1):
            state = states.next[state][letter]
            above = state
            while above > 0:
                states.ends[above].append((number, end))
                above = states.link[above]
    return states


# What sharing a segment saves, as the paper has it: counts per START event, in updates per unit of time.
#
# Equations 1 to 8 of "Sharon: Shared Online Event Sequence Aggregation". A type that stands k times in a pattern has
# its events update k counts, which the sum of rates over positions says by itself. An empty prefix or suffix has no
# terms.


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
