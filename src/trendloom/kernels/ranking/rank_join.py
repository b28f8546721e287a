"""The k best combinations of several ranked components: a rank join without random access, in batches.

    while the k-th result is not certain:
        choose which components to pull, and how many entries
        pull them, join the new entries with those before them, keep the best results

Components give their entries best first, so what a component has not given is at most as good as its last entry. An
unseen result may combine an unseen entry of one component with the best entries of all others, which may have been
seen. So the *corner bound* is the best over components of: its last entry, the best ones of the others. For two lists
A and B, smaller is better, and the sum:

    A:  1  2  4 | ...    last 4, best 1
    B:  1  1  3 | ...    last 3, best 1        corner bound: min(4 + 1, 1 + 3) = 4

A join has its k best results when the k-th is at least as good as the bound; strictly better if all results of that
score are wanted, because an unseen one may be exactly as good as the bound. (NRA in R. Fagin, "Combining fuzzy
information: an overview", as it must be for joins of many with many: a hash index of what was seen.)

Which component is read next is decided as in WABS (X. Wang, "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern
Queries over Event Streams", 3.3): under corner bounds every component has to come to its own depth, and only the one
that holds the bound down can raise it, so that one is read. No boundary is cheaper than this one.

Cost: accesses up to the boundary; combinations that are not worse than the k-th result so far. Batches grow with what
was read, so that a join reads at most a sixteenth more than it has to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.ranking.join_entries import (
    AVG,
    MERGES,
    SUM,
    Combinations,
    Component,
    JoinRules,
    MergeName,
    PulledStore,
    ScoreLimits,
    merged,
    score_type,
    worst_sum,
)
from trendloom.kernels.ranking.join_keys import KeyNumbers

ROOM = 1 << 10
"""Combinations that are made before the worse ones are dropped."""
FIRST_BATCH, SHARE = 8, 16
"""Entries of a first access, and the share of what was read of later ones."""
NEXT_SHARE = 8
"""The share of what joins before have read that a first access has."""
MOST = 100_000
"""Results of the same score as the last one that are given, if there is no other bound."""
LEAST = 3
"""Which part of a batch is read at the least: what a target is expected to be away is an estimate."""
RECENT = 4
"""Which part of its entries says how a component rises."""


@dataclass(frozen=True)
class JoinConditions:
    """Which entries make a result. Pairs are of components.

    `keys`: for each component a function from events (by entry and position) to rows of integers that must be equal.
    `before`: the first one's last event is earlier than the second one's first, by `tie_end` (by event the first one
    that is later). `apart`: they have no event in common. `residual`: of the events of all components, which pass.
    """

    keys: Sequence[Callable[[Array], Array]] = ()
    before: Sequence[tuple[int, int]] = ()
    apart: Sequence[tuple[int, int]] = ()
    tie_end: Array | None = None
    residual: Callable[[Sequence[Array]], Array] | None = None

    def rules(self, components: int, merge: int) -> JoinRules:
        before, apart = (np.zeros((components, components), np.bool_) for _ in range(2))
        for one, other in self.before:
            before[one, other] = True
        for one, other in self.apart:
            apart[one, other] = apart[other, one] = True
        return JoinRules(SUM if merge == AVG else merge, before, apart)

    def keys_of(self, component: int, events: Array) -> Array:
        return self.keys[component](events) if self.keys else np.zeros((len(events), 0), np.int64)


@dataclass(frozen=True)
class RankedRows:
    """The best results, best first. `more`: there are others with the score of the last one, or it gave up."""

    scores: Array
    events: Array  # by result: the positions of the first component, then those of the second, ...
    more: bool


class Frontier:
    """How far each component was read: its scores, its best and its last one, and whether there is more of it.

    `expected`: entries that a join like this one reads of each. `batch`, `target`: entries of the next access, and the
    score of the k-th result so far, if there are so many.
    """

    def __init__(self, components: Sequence[Component], merge: int) -> None:
        count = len(components)
        self.merge, self.components = merge, components
        self.tops: list[Any] = [None] * count
        self.lasts: list[Any] = [None] * count
        self.exhausted, self.empty = [False] * count, [False] * count
        self.depths, self.expected = [0] * count, [0] * count
        self._scores: list[list[Array]] = [[] for _ in components]
        self.batch = 1
        self.target: Any = None

    def read(self, component: int, scores: Array) -> None:
        """Take note of the next entries of a component."""
        if len(scores):
            if self.tops[component] is None:
                self.tops[component] = scores.item(0)
            self.lasts[component] = scores.item(-1)
            self._scores[component].append(scores)
            self.depths[component] += len(scores)
        self.exhausted[component] = self.components[component].exhausted
        self.empty[component] = self.exhausted[component] and self.tops[component] is None

    @property
    def ended(self) -> bool:
        """Whether everything was seen that can be part of a result."""
        return any(self.empty) or all(self.exhausted)

    def bound(self) -> Any:
        """The best score that an unseen result can have; None before all components were read."""
        if any(last is None and not self.exhausted[number] for number, last in enumerate(self.lasts)):
            return None
        return min(self.corner(number, self.lasts[number]) for number, done in enumerate(self.exhausted) if not done)

    def corner(self, component: int, last: Any) -> Any:
        """The best that can be made with an entry of this score and the best entries of all other components."""
        return merged(self.merge, [last if number == component else top for number, top in enumerate(self.tops)])

    def open(self) -> list[int]:
        """The components that have more to give."""
        return [number for number, done in enumerate(self.exhausted) if not done]

    def rise(self, component: int) -> float:
        """By how much the corner of a component has lately risen per entry."""
        depth = self.depths[component]
        back = min(depth - 1, max(self.batch, depth // RECENT))
        earlier, at = self._scores[component], depth - 1 - back
        for scores in earlier:
            if at < len(scores):
                before = self.corner(component, scores.item(at))
                return float((self.corner(component, self.lasts[component]) - before) / max(1, back))
            at -= len(scores)
        return 0.0


Schedule = Callable[[Frontier], Sequence[int]]
"""How many entries to pull of each component before the next choice: at least one of one that has more."""


def waste_avoiding(frontier: Frontier) -> Sequence[int]:
    """A batch of the component that holds the bound down, of others what brings them as far as it will be then.

    The cheapest way to the next boundary, by what it took to come to those before.
    """
    candidates, depths = frontier.open(), frontier.depths
    if any(depths[each] == 0 for each in candidates):
        several = zip(depths, frontier.expected, strict=True)
        return [0 if depth else max(frontier.batch, expected // 2) for depth, expected in several]
    heights = {each: frontier.corner(each, frontier.lasts[each]) for each in candidates}
    rises = {each: frontier.rise(each) for each in candidates}
    lowest = min(candidates, key=lambda each: (heights[each], frontier.components[each].cost))
    batch = frontier.batch + frontier.batch // 2
    level = heights[lowest] + rises[lowest] * batch
    if frontier.target is not None:
        level = min(level, frontier.target)
    counts = [0] * len(depths)
    for each in candidates:
        if heights[each] <= level:
            missing = (level - heights[each]) / rises[each] if rises[each] > 0 else batch
            counts[each] = max(frontier.batch // LEAST, min(batch, 1 + int(min(missing, batch))))
    return counts


class BestResults:
    """Scores and entries (by component) of the `size` best, and of those that equal the last, up to `most` in all.

    One more of these is kept, which shows that there are more.
    """

    def __init__(self, size: int, most: int, components: int, type_: Any) -> None:
        self.size, self.most = size, max(size, most) + 1
        self.scores = np.zeros(0, type_)
        self.rows = np.zeros((0, components), np.int64)
        self.horizon: Any = None
        """The worst score that is kept; None if any is."""

    @property
    def last(self) -> Any:
        """The score of the last one of the best; None if there are too few."""
        return None if len(self.scores) < self.size else np.partition(self.scores, self.size - 1).item(self.size - 1)

    def are_certain(self, bound: Any) -> bool:
        """Whether nothing with this score or a worse one can be missing; None: anything can be."""
        last = self.last
        if bound is None or last is None:
            return False
        return bool(last < bound or (last == bound and np.count_nonzero(self.scores <= last) == self.most))

    def add(self, scores: Array, rows: Array) -> None:
        """Keep what is good enough of these."""
        if self.horizon is not None:
            good = scores <= self.horizon
            scores, rows = scores[good], rows[good]
        if not len(scores):
            return
        self.scores, self.rows = np.concatenate([self.scores, scores]), np.concatenate([self.rows, rows])
        if len(self.scores) > self.size:
            self.horizon = self.last
            kept = np.flatnonzero(self.scores <= self.horizon)
            if len(kept) > self.most:
                better, equal = kept[self.scores[kept] < self.horizon], kept[self.scores[kept] == self.horizon]
                kept = np.concatenate([better, equal[: self.most - len(better)]])
            self.scores, self.rows = self.scores[kept], self.rows[kept]

    def ranked(self) -> tuple[Array, Array, bool]:
        """Scores and entries, best first, and whether there are more with the score of the last one."""
        chosen = np.argsort(self.scores, kind="stable")[: self.most - 1]
        return self.scores[chosen], self.rows[chosen], len(self.scores) == self.most


class RankJoin:
    """A join of components. `type_`: of scores, float64 unless all components give integers."""

    def __init__(
        self,
        components: Sequence[Component],
        merge: MergeName = "sum",
        conditions: JoinConditions | None = None,
        *,
        schedule: Schedule = waste_avoiding,
        type_: Any = np.float64,
        patience: float = math.inf,
    ) -> None:
        """`patience`: combinations after which it gives up."""
        self.components = list(components)
        self.merge = MERGES.index(merge)
        self.conditions = conditions or JoinConditions()
        self._schedule = schedule
        self._type = score_type(self.merge, [type_])
        count = len(self.components)
        rules = self.conditions.rules(count, self.merge)
        self.frontier = Frontier(self.components, self.merge)
        self._keys = KeyNumbers(self.conditions.keys_of(0, np.zeros((0, components[0].positions), np.int64)).shape[1])
        tie_end = np.zeros(0, np.int64) if self.conditions.tie_end is None else self.conditions.tie_end
        widest = max(each.positions for each in components)
        self.store = PulledStore(rules, widest, tie_end, self._type, keyed=bool(self.conditions.keys))
        self._room = Combinations(np.empty(ROOM, self._type), np.empty((ROOM, count), np.int64))
        self._first_batch, self._patience, self._tested = FIRST_BATCH, patience, 0

    def best(self, k: int, most: int = MOST) -> RankedRows:
        """The k best, and others that are as good as the last of them, up to `most` in all."""
        results = BestResults(k, most, len(self.components), self._type)
        while not self.frontier.ended and not results.are_certain(self.frontier.bound()):
            self._access(results)
            if self._tested > self._patience:
                positions = sum(component.positions for component in self.components)
                return RankedRows(results.scores[:0], np.zeros((0, positions), np.int64), more=True)
        scores, rows, more = results.ranked()
        return RankedRows(scores, np.concatenate(self._events_of(rows), axis=1), more)

    def expect(self, depths: Sequence[int]) -> None:
        """Read components in larger steps at first, as one that has to read them so far will."""
        self.frontier.expected = list(depths)
        self._first_batch = max(FIRST_BATCH, sum(depths) // (NEXT_SHARE * len(depths)))

    def _events_of(self, rows: Array) -> list[Array]:
        """The events of combinations, a matrix for each component."""
        events = self.store.entries.events
        return [events[rows[:, number], : each.positions] for number, each in enumerate(self.components)]

    def _access(self, results: BestResults) -> None:
        """Pull what the schedule says, and join it with what was pulled before."""
        frontier, before = self.frontier, self.store.count
        frontier.batch = max(self._first_batch, before // (SHARE * len(self.components)))
        frontier.target = results.last
        for number, count in enumerate(self._schedule(frontier)):
            if count > 0 and not frontier.exhausted[number]:
                entries = self.components[number].pull(count)
                frontier.read(number, entries.scores)
                keys = self._keys.numbers(self.conditions.keys_of(number, entries.events))
                self.store.add(number, entries, keys, self._keys.count)
                if frontier.ended:
                    break
        self.store.sort_from(before)
        room = self._room
        while not self.store.joined and self._tested <= self._patience:
            found = self.store.join(self._limits(results.horizon), room)
            self._tested += found
            if found:
                self._take(room.scores[:found].copy(), room.rows[:found].copy(), results)

    def _limits(self, limit: Any) -> ScoreLimits:
        """What is too bad to be made, where no score worse than the limit is kept."""
        worst = np.zeros(1, self._type)
        if limit is not None:
            worst[0] = worst_sum(limit, len(self.components)) if self.merge == AVG else limit
        known = all(top is not None for top in self.frontier.tops)
        tops = np.array(self.frontier.tops if known else [0] * len(self.components), self._type)
        return ScoreLimits(limit is not None and known, worst, tops)

    def _take(self, scores: Array, rows: Array, results: BestResults) -> None:
        """Keep combinations that pass the conditions."""
        if self.merge == AVG:
            scores = scores / len(self.components)
        residual = self.conditions.residual
        if residual is not None:
            passed = residual(self._events_of(rows))
            scores, rows = scores[passed], rows[passed]
        results.add(scores, rows)
