"""What a rank join joins: components that give their matches best first, on demand.

Sorted access (`pull`) gives the next best entries, smaller scores first. Random access (`lookup`), which not every
component has, gives all entries with some values of the key of the join, in the same order. What an access costs is the
component's to say, in any unit that all components of a join share: schedules compare costs with each other only.

Entries are a column of scores and a matrix of events, a row for each entry in the order of its positions; −1 stands for
a position that is not bound. Events are numbers of a block, in order of time.

Cost: an `ArrayComponent` sorts once; `MergedComponent` takes O(entries · log) of what it gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.ranking.joins.key_numbers import KeyNumbers


class Entries(NamedTuple):
    """Some matches of a component."""

    scores: Array  # int64 or float64
    events: Array  # int64, by entry and position


class Component(Protocol):
    """Sorted access: matches of a sequence, best first."""

    @property
    def positions(self) -> int:
        """Events of an entry."""

    @property
    def exhausted(self) -> bool:
        """Whether there is nothing left to give. May become true only with the next `pull`."""

    @property
    def cost(self) -> float:
        """Of one sorted access, as measured so far or known before."""

    def pull(self, count: int) -> Entries:
        """The next `count` best; fewer only if there are no more."""


@runtime_checkable
class AskableComponent(Component, Protocol):
    """A component that can also be asked for the entries with a value of the key."""

    @property
    def lookup_cost(self) -> float:
        """Of asking for one value."""

    @property
    def unique(self) -> bool:
        """Whether no two entries have the same key."""

    def lookup(self, keys: Array) -> Entries:
        """All entries with one of these different keys (a row each), in any order of keys, best first for each."""


class ArrayComponent:
    """A component whose matches are all there. `keys` (a row for each entry) makes it answer lookups."""

    def __init__(
        self, scores: Array, events: Array, keys: Array | None = None, *, cost: float = 1.0, lookup_cost: float = 1.0
    ) -> None:
        order = np.argsort(scores, kind="stable")
        self._entries = Entries(scores[order], events[order].astype(np.int64, copy=False))
        self._given = 0
        self.positions = events.shape[1]
        self.cost, self.lookup_cost = cost, lookup_cost
        self._index = None if keys is None else _EntriesByKey(keys[order])

    @property
    def exhausted(self) -> bool:
        return self._given >= len(self._entries.scores)

    @property
    def unique(self) -> bool:
        return self._asked().unique

    def pull(self, count: int) -> Entries:
        some = slice(self._given, self._given + count)
        self._given = min(some.stop, len(self._entries.scores))
        return Entries(self._entries.scores[some], self._entries.events[some])

    def lookup(self, keys: Array) -> Entries:
        found = self._asked().rows(keys)
        return Entries(self._entries.scores[found], self._entries.events[found])

    def _asked(self) -> _EntriesByKey:
        if self._index is None:
            raise TypeError("this component has no keys, so that it cannot be asked for them")
        return self._index


class _EntriesByKey:
    """Entries by their key."""

    def __init__(self, keys: Array) -> None:
        self._numbers = KeyNumbers(keys.shape[1])
        number = self._numbers.numbers(keys)
        self._order = np.argsort(number, kind="stable")
        self._begin = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=self._numbers.count))])
        self.unique = self._numbers.count == len(keys)

    def rows(self, keys: Array) -> Array:
        number = self._numbers.known(keys)
        number = number[number >= 0]
        return self._order[ranges(self._begin[number], self._begin[number + 1])]


class ProducedComponent:
    """A component over a function that gives its next matches, and fewer than asked for only when there are no more.

    With a clock its costs are what it takes, otherwise every access costs the same.
    """

    def __init__(
        self, produce: Callable[[int], tuple[Array, Array]], positions: int, emission: Callable[[], float] | None = None
    ) -> None:
        self._produce, self._clock = produce, emission
        self._taken, self._given = 0.0, 0
        self.positions, self.exhausted = positions, False

    @property
    def cost(self) -> float:
        return self._taken / self._given if self._clock and self._given else 1.0

    def pull(self, count: int) -> Entries:
        begin = self._clock() if self._clock else 0.0
        scores, events = self._produce(count)
        if self._clock:
            self._taken += self._clock() - begin
        self._given += len(scores)
        self.exhausted = len(scores) < count
        return Entries(scores, events.astype(np.int64, copy=False))


class MergedComponent:
    """The entries of several components in one order: an OR takes the best of any of them.

    `component` of what was pulled last says where each entry is from. Narrower entries are filled up with −1.
    """

    def __init__(self, components: Sequence[Component]) -> None:
        self._components = list(components)
        self.positions = max(component.positions for component in self._components)
        self._waiting = [self._pulled(component, 0) for component in self._components]
        self.component = np.zeros(0, np.int64)

    @property
    def exhausted(self) -> bool:
        return all(map(self._is_empty, range(len(self._components))))

    @property
    def cost(self) -> float:
        return sum(component.cost for component in self._components) / len(self._components)

    def pull(self, count: int) -> Entries:
        """Every component has its next `count` waiting, so the `count` best of all are among them."""
        for number in range(len(self._components)):
            self._fill(number, count)
        scores = np.concatenate([waiting.scores for waiting in self._waiting])
        events = np.concatenate([waiting.events for waiting in self._waiting])
        source = np.repeat(np.arange(len(self._waiting)), [len(waiting.scores) for waiting in self._waiting])
        taken = np.argsort(scores, kind="stable")[:count]
        self.component = source[taken]
        for number, used in enumerate(np.bincount(self.component, minlength=len(self._waiting))):
            waiting = self._waiting[number]
            self._waiting[number] = Entries(waiting.scores[used:], waiting.events[used:])
        return Entries(scores[taken], events[taken])

    def _is_empty(self, number: int) -> bool:
        return len(self._waiting[number].scores) == 0 and self._components[number].exhausted

    def _fill(self, number: int, count: int) -> None:
        waiting, component = self._waiting[number], self._components[number]
        missing = count - len(waiting.scores)
        if missing > 0 and not component.exhausted:
            more = self._pulled(component, missing)
            scores, events = zip(waiting, more, strict=True)
            self._waiting[number] = Entries(np.concatenate(scores), np.concatenate(events))

    def _pulled(self, component: Component, count: int) -> Entries:
        found = component.pull(count)
        return Entries(found.scores, widened(found.events, self.positions))


def widened(events: Array, positions: int) -> Array:
    """Rows of so many positions, those that are missing not bound."""
    missing = positions - events.shape[1]
    return np.pad(events, ((0, 0), (0, missing)), constant_values=-1) if missing else events


def ranges(begin: Array, end: Array) -> Array:
    """All numbers from each begin to its end, one range after the other."""
    sizes = end - begin
    starts = np.cumsum(sizes) - sizes
    return np.repeat(begin - starts, sizes) + np.arange(int(sizes.sum()))
