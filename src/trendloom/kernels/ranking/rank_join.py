"""The k best combinations of several ranked components: a rank join without random access, in batches.

    while the k-th result is not certain:
        ask the schedule which components to pull, and how many entries
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

A join can be asked for more results than before. What is worse than the results asked for is not kept; when it is
needed after all, entries are joined again, but never pulled again.

Cost: accesses up to the boundary; combinations that are not worse than the k-th result so far. Batches grow with what
was read, so that a join reads at most a sixteenth more than it has to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

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
    merged_score,
    score_type,
    worst_sum,
)
from trendloom.kernels.ranking.key_numbers import KeyNumbers

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
        return merged_score(self.merge, [last if number == component else top for number, top in enumerate(self.tops)])

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


class Schedule(Protocol):
    """How accesses are distributed."""

    def choose(self, frontier: Frontier) -> Sequence[int]:
        """How many entries to pull of each component before the next choice: at least one of one that has more."""


class WasteAvoiding:
    """The cheapest way to the next boundary, by what it took to come to those before."""

    def choose(self, frontier: Frontier) -> Sequence[int]:
        """A batch of the component that holds the bound down, of others what brings them as far as it will be then."""
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
    """Scores and entries (by component) of the `size` best, and of those that equal the last, up to `most` in all."""

    def __init__(self, size: int, most: int, components: int, type_: Any) -> None:
        self.size, self.most = size, max(size + 1, most)
        self.scores = np.zeros(0, type_)
        self.rows = np.zeros((0, components), np.int64)
        self.horizon: Any = None
        """The worst score that is kept; None if any is."""
        self._known, self._score = 0, None
        self.cut = False
        """Whether results as good as the horizon were dropped, for there were too many."""

    def __len__(self) -> int:
        return len(self.scores)

    def score(self, rank: int) -> Any:
        """The score of rank 1, 2, ..."""
        if self._known != rank:
            self._known, self._score = rank, np.partition(self.scores, rank - 1).item(rank - 1)
        return self._score

    def as_good_as(self, score: Any) -> int:
        """How many results there are with this score or a better one."""
        return int(np.count_nonzero(self.scores <= score))

    def add(self, scores: Array, rows: Array) -> None:
        """Keep what is good enough of these."""
        if self.horizon is not None:
            good = scores <= self.horizon
            scores, rows = scores[good], rows[good]
        if len(scores):
            self.scores, self.rows = np.concatenate([self.scores, scores]), np.concatenate([self.rows, rows])
            self._known = 0
            self._drop_the_rest()

    def keep(self, kept: Array) -> None:
        """Keep these results alone."""
        self.scores, self.rows = self.scores[kept], self.rows[kept]
        self._known = 0

    def in_order(self, count: int) -> Array:
        """The numbers of the best results, best first."""
        return np.argsort(self.scores, kind="stable")[:count]

    def _drop_the_rest(self) -> None:
        if len(self.scores) <= self.size:
            return
        limit = self.score(self.size)
        if self.horizon is None or limit < self.horizon:
            self.horizon, self.cut = limit, False
        kept = np.flatnonzero(self.scores <= limit)
        if len(kept) > self.most:
            better, equal = kept[self.scores[kept] < limit], kept[self.scores[kept] == limit]
            kept = np.concatenate([better, equal[: self.most - len(better)]])
            self.cut = True
        self.scores, self.rows = self.scores[kept], self.rows[kept]


class RankJoin:
    """A join of components, as far as it was read. `type_`: of scores, float64 unless all components give integers."""

    def __init__(
        self,
        components: Sequence[Component],
        merge: MergeName = "sum",
        conditions: JoinConditions | None = None,
        *,
        schedule: Schedule | None = None,
        type_: Any = np.float64,
        patience: float = math.inf,
    ) -> None:
        """`patience`: combinations after which it gives up."""
        self.components = list(components)
        self.merge = MERGES.index(merge)
        self.conditions = conditions or JoinConditions()
        self._schedule = schedule or WasteAvoiding()
        self._type = score_type(self.merge, [type_])
        count = len(self.components)
        rules = self.conditions.rules(count, self.merge)
        self.frontier = Frontier(self.components, self.merge)
        self._keys = KeyNumbers(self.conditions.keys_of(0, np.zeros((0, components[0].positions), np.int64)).shape[1])
        tie_end = np.zeros(0, np.int64) if self.conditions.tie_end is None else self.conditions.tie_end
        widest = max(each.positions for each in components)
        self.store = PulledStore(rules, widest, tie_end, self._type, keyed=bool(self.conditions.keys))
        self.results = BestResults(0, 0, count, self._type)
        self._room = Combinations(np.empty(ROOM, self._type), np.empty((ROOM, count), np.int64))
        self._first_batch, self._patience, self._tested = FIRST_BATCH, patience, 0

    # ---------------------------------------------------------------------------------------------- results

    def best(self, k: int, *, ties: bool = False, most: int = MOST) -> RankedRows:
        """The k best; with `ties` also all others that are as good as the last of them, up to `most` in all."""
        most = max(k, most) if ties else k
        self._keep_at_least(k, most)
        while not self._is_certain(k, most):
            if self._tested > self._patience:
                return RankedRows(self.results.scores[:0], np.zeros((0, self.positions), np.int64), more=True)
            if self._is_short(k):
                self._join_again(self.results.size)
            else:
                self._access(k)
        return self._ranked(k, most)

    @property
    def positions(self) -> int:
        """Events of a result."""
        return sum(component.positions for component in self.components)

    def expect(self, depths: Sequence[int]) -> None:
        """Read components in larger steps at first, as one that has to read them so far will."""
        self.frontier.expected = list(depths)
        self._first_batch = max(FIRST_BATCH, sum(depths) // (NEXT_SHARE * len(depths)))

    def _is_short(self, k: int) -> bool:
        """Whether results that were dropped are among the k best."""
        if len(self.results) >= k or self.results.horizon is None:
            return False
        if self.frontier.ended:
            return True
        bound = self.frontier.bound()
        return bool(bound is not None and bound > self.results.horizon)

    def _is_certain(self, k: int, most: int) -> bool:
        if self._is_short(k):
            return False
        if k == 0 or self.frontier.ended:
            return True
        bound = self.frontier.bound()
        if bound is None or len(self.results) < k:
            return False
        last = self.results.score(k)
        if last < bound:
            return True
        return bool(last == bound and self.results.as_good_as(last) > most)

    def _ranked(self, k: int, most: int) -> RankedRows:
        results = self.results
        good = results.as_good_as(results.score(k)) if 0 < k <= len(results) else min(k, len(results))
        count = min(good, most)
        chosen = results.in_order(count)
        events = np.concatenate(self.events_of(results.rows[chosen]), axis=1)
        return RankedRows(results.scores[chosen], events, good > count)

    def events_of(self, rows: Array) -> list[Array]:
        """The events of combinations, a matrix for each component."""
        events = self.store.entries.events
        return [events[rows[:, number], : each.positions] for number, each in enumerate(self.components)]

    # ---------------------------------------------------------------------------------------------- accesses

    def _access(self, k: int) -> None:
        """Pull what the schedule asks for, until the results are certain."""
        frontier, before = self.frontier, self.store.count
        frontier.batch = max(self._first_batch, before // (SHARE * len(self.components)))
        frontier.target = self.results.score(k) if len(self.results) >= k else None
        for number, count in enumerate(self._schedule.choose(frontier)):
            if count > 0 and not frontier.exhausted[number]:
                entries = self.components[number].pull(count)
                frontier.read(number, entries.scores)
                keys = self._keys.numbers(self.conditions.keys_of(number, entries.events))
                self.store.add(number, entries, keys, self._keys.count)
                if frontier.ended:
                    break
        self.store.sort_from(before)
        self._join_all()

    # ---------------------------------------------------------------------------------------------- joining

    def _keep_at_least(self, k: int, most: int) -> None:
        """Have as many results kept as are asked for; those that were dropped before are made again."""
        results = self.results
        most = max(results.most, most + 1)
        if k > results.size or (results.cut and most > results.most):
            results.most = most
            self._join_again(max(k, 2 * results.size))
        self.results.most = max(self.results.most, most)

    def _join_again(self, size: int) -> None:
        """Join all entries that were pulled once more, in order of score, to keep so many results."""
        self.results = BestResults(size, self.results.most, len(self.components), self._type)
        self.store.join_again(np.argsort(self.store.entries.score[: self.store.count], kind="stable"))
        self._join_all()
        self.store.rewind()

    def _join_all(self) -> None:
        room = self._room
        while not self.store.joined and self._tested <= self._patience:
            found = self.store.join(self._limits(), room)
            self._tested += found
            if found:
                self._take(room.scores[:found].copy(), room.rows[:found].copy())

    def _limits(self) -> ScoreLimits:
        limit = self.results.horizon
        worst = np.zeros(1, self._type)
        if limit is not None:
            worst[0] = worst_sum(limit, len(self.components)) if self.merge == AVG else limit
        known = all(top is not None for top in self.frontier.tops)
        tops = np.array(self.frontier.tops if known else [0] * len(self.components), self._type)
        return ScoreLimits(limit is not None and known, worst, tops)

    def _take(self, scores: Array, rows: Array) -> None:
        if self.merge == AVG:
            scores = scores / len(self.components)
        residual = self.conditions.residual
        if residual is not None:
            passed = residual(self.events_of(rows))
            scores, rows = scores[passed], rows[passed]
        self.results.add(scores, rows)
