"""Find all segments that more than one query has, by a suffix automaton over all of them.

A state of the automaton stands for segments that end at the same places; it has segments of several lengths, from one
letter longer than its link up to its longest, and each of them is a candidate: which is best depends on what it
excludes. Cost: O(letters) for the automaton, and O(places) for every segment that is found; if time is short, only the
first words are looked at, and segments with most letters in all are found.
"""

from __future__ import annotations

from collections.abc import Sequence

from trendloom.optimizer.sharing.deadline import NEVER, Deadline
from trendloom.optimizer.sharing.segments import Letter, SharedSegment, Word

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
