"""Joins of sequences whose window moves on: nothing is enumerated twice, and nothing is joined twice.

When a window slides, sequences without expired events stay what they were, and so do results made of them. So a join
keeps the entries it has pulled and its results, drops what has expired, and its components give only entries that they
have not given before: old ones that were too bad until now, and those with a new event. A new entry meets all entries
that are kept; two that are kept have met. (dTMM: X. Wang, "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern
Queries over Event Streams", figures 3.14 to 3.19.)

After a slide a component begins again with its best entry that was not given, so bounds begin again as well: what is
unseen has an unseen entry of some component, at best the last one pulled since the slide, with the best of the others,
kept or pulled.

A result of rank k + 1 may be among the k best when others expire. Results are therefore kept up to a horizon, twice k
of them; should fewer than k be left, the entries that are kept are joined once more, without pulling any: at once if
they are few, otherwise when it turns out that results behind the horizon are needed.

How far components were read in the window before is known, so they are read in larger steps than at the beginning.

Cost: of a slide, O(entries kept); then as a rank join, of entries that are new to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from trendloom.kernels.ranking.joins.components import Component, Entries
from trendloom.kernels.ranking.joins.merging import MergeName
from trendloom.kernels.ranking.joins.rank_join import MOST, JoinConditions, RankedRows, RankJoin
from trendloom.kernels.ranking.joins.schedules import Schedule

SPARE = 2
"""How many times the results asked for are kept."""


class SlidingComponent(Component, Protocol):
    """A component over a window of events that moves on, and that gives each of its entries once."""

    def slide(self, low: int, high: int) -> None:
        """Events before `low` are gone, those up to `high` have come."""


class SlidingJoin:
    """The best combinations in a window that moves on."""

    def __init__(
        self,
        components: Sequence[SlidingComponent],
        merge: MergeName = "sum",
        conditions: JoinConditions | None = None,
        *,
        schedule: Schedule | None = None,
        type_: Any = np.float64,
    ) -> None:
        self._components = components
        self.join = RankJoin(components, merge, conditions, schedule=schedule, type_=type_, spare=SPARE)

    def best(self, k: int, *, ties: bool = False, most: int = MOST) -> RankedRows:
        """As of a `RankJoin`, in the window as it is."""
        return self.join.best(k, ties=ties, most=most)

    def slide(self, low: int, high: int) -> None:
        """Move the window on."""
        for component in self._components:
            component.slide(low, high)
        self.join.expire(low)


class OldAndNew:
    """A component over a moving window, made of components over windows that stand still.

    `matches(low, high, since)` gives the sequences of the events from `low` to `high` whose last event is not before
    `since`, best first. Every slide adds one for sequences with a new event, and the ones before it go on with what
    they have not given; of these, expired sequences are passed over.
    """

    def __init__(self, matches: Callable[[int, int, int], Component], low: int, high: int) -> None:
        self._matches, self._low, self._high = matches, low, high
        self._sources: list[_StandingWindow] = [_StandingWindow(matches(low, high, low), high)]
        self.positions = self._sources[0].component.positions

    @property
    def exhausted(self) -> bool:
        return all(source.exhausted for source in self._sources)

    @property
    def cost(self) -> float:
        return sum(source.component.cost for source in self._sources) / len(self._sources)

    def slide(self, low: int, high: int) -> None:
        self._sources = [source for source in self._sources if source.high > low]
        for source in self._sources:
            source.waiting = valid(source.waiting, low)
        self._sources.append(_StandingWindow(self._matches(low, high, self._high), high))
        self._low, self._high = low, high

    def pull(self, count: int) -> Entries:
        for source in self._sources:
            source.fill(count, self._low)
        scores = np.concatenate([source.waiting.scores for source in self._sources])
        events = np.concatenate([source.waiting.events for source in self._sources])
        number = np.repeat(np.arange(len(self._sources)), [len(source.waiting.scores) for source in self._sources])
        taken = np.argsort(scores, kind="stable")[:count]
        used_up = np.bincount(number[taken], minlength=len(self._sources))
        for source, used in zip(self._sources, used_up, strict=True):
            source.waiting = Entries(source.waiting.scores[used:], source.waiting.events[used:])
        return Entries(scores[taken], events[taken])


class _StandingWindow:
    """A component over a window that ends at `high`, and what it gave that nobody took yet."""

    def __init__(self, component: Component, high: int) -> None:
        self.component, self.high = component, high
        self.waiting = component.pull(0)

    @property
    def exhausted(self) -> bool:
        return self.component.exhausted and len(self.waiting.scores) == 0

    def fill(self, count: int, low: int) -> None:
        """Have so many entries waiting, if there are, none of them expired."""
        while len(self.waiting.scores) < count and not self.component.exhausted:
            more = valid(self.component.pull(count), low)
            self.waiting = Entries(
                np.concatenate([self.waiting.scores, more.scores]), np.concatenate([self.waiting.events, more.events])
            )


def valid(entries: Entries, low: int) -> Entries:
    """Entries without events before `low`."""
    kept = ((entries.events >= low) | (entries.events < 0)).all(axis=1)
    return Entries(entries.scores[kept], entries.events[kept])
