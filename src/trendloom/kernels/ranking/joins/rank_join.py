"""The k best combinations of several ranked components: the threshold algorithm and its kin, in batches.

    while the k-th result is not certain:
        ask the schedule whom to pull, and how many entries
        pull them; with random access, look their keys up in the other components
        join the new entries with those before them, keep the best results

Results are certain when none that is unseen can be better (`boundaries`). With random access this is TA (R. Fagin,
"Combining fuzzy information: an overview", and X. Wang, "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern
Queries over Event Streams", 3.3); without, NRA as it must be for joins of many with many: a hash index of what was
seen, and corner bounds.

A join is itself a source of ranked matches: it can be asked for more results than before, and is a component of another
join by `pull`. What is worse than the results asked for is not kept; when it is needed after all, entries are joined
again, but never pulled again.

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
from trendloom.kernels.ranking.joins.best_results import BestResults
from trendloom.kernels.ranking.joins.boundaries import Frontier
from trendloom.kernels.ranking.joins.components import AskableComponent, Component, Entries
from trendloom.kernels.ranking.joins.key_numbers import KeyNumbers
from trendloom.kernels.ranking.joins.merging import AVG, MERGES, SUM, MergeName, score_type, worst_sum
from trendloom.kernels.ranking.joins.pulled import Combinations, JoinRules, PulledStore, ScoreLimits
from trendloom.kernels.ranking.joins.schedules import JoinProgress, Schedule, WasteAvoiding

ROOM = 1 << 10
"""Combinations that are made before the worse ones are dropped."""
FIRST_BATCH, SHARE = 8, 16
"""Entries of a first access, and the share of what was read of later ones."""
NEXT_BATCH, NEXT_SHARE = 2, 8
"""Entries of an access when there were results before: at the least, and the share of what was read for those."""
MOST = 100_000
"""Results of the same score as the last one that are given, if nobody says how many."""


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


class RankJoin:
    """A join of components, as far as it was read.

    `random_access`: complete every entry when it is seen, which all components must be able to do. `type_`: of scores,
    float64 unless all components give integers.
    """

    def __init__(
        self,
        components: Sequence[Component],
        merge: MergeName = "sum",
        conditions: JoinConditions | None = None,
        *,
        schedule: Schedule | None = None,
        random_access: bool = False,
        type_: Any = np.float64,
        spare: int = 1,
        patience: float = math.inf,
    ) -> None:
        """`spare`: how many times the results asked for are kept. `patience`: combinations after which it gives up."""
        self.components = list(components)
        self.merge = MERGES.index(merge)
        self.conditions = conditions or JoinConditions()
        self._schedule = schedule or WasteAvoiding()
        self._type, self._spare = score_type(self.merge, [type_]), spare
        count = len(self.components)
        rules = self.conditions.rules(count, self.merge)
        self.frontier = Frontier(count, self.merge, completed=random_access)
        self._keys = KeyNumbers(self.conditions.keys_of(0, np.zeros((0, components[0].positions), np.int64)).shape[1])
        tie_end = np.zeros(0, np.int64) if self.conditions.tie_end is None else self.conditions.tie_end
        widest = max(each.positions for each in components)
        self.store = PulledStore(rules, widest, tie_end, self._type, keyed=bool(self.conditions.keys))
        self.results = BestResults(0, 0, count, self._type)
        self._completed_keys = 0
        self._room = Combinations(np.empty(ROOM, self._type), np.empty((ROOM, count), np.int64))
        self.progress = JoinProgress(self.frontier, count)
        self._given, self._asked, self._first_batch = 0, 0, FIRST_BATCH
        self._patience, self._tested = patience, 0
        self._askable = [each for each in components if isinstance(each, AskableComponent)] if random_access else []
        if random_access and len(self._askable) < count:
            raise TypeError("random access needs components that can be asked for keys")

    # ---------------------------------------------------------------------------------------------- results

    def best(self, k: int, *, ties: bool = False, most: int = MOST) -> RankedRows:
        """The k best; with `ties` also all others that are as good as the last of them, up to `most` in all."""
        most = max(k, most) if ties else k
        self._asked = k
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

    @property
    def exhausted(self) -> bool:
        """Whether all results were pulled."""
        return self.frontier.ended and self.results.horizon is None and self._given >= len(self.results)

    @property
    def cost(self) -> float:
        """What a result has cost so far."""
        return self.progress.spent / max(1, self._given) if self._given else self.progress.spent + 1.0

    def pull(self, count: int) -> Entries:
        """The next best results, as entries of another join."""
        found = self.best(self._given + count)
        some = slice(self._given, None)
        self._given = len(found.scores)
        return Entries(found.scores[some], found.events[some])

    def expect(self, depths: Sequence[int]) -> None:
        """Read components in larger steps at first, as one that has to read them so far will."""
        self.progress.before = list(depths)
        self._first_batch = max(FIRST_BATCH, sum(depths) // (NEXT_SHARE * len(depths)))

    def expire(self, low: int) -> None:
        """Drop what has events before `low`; components start again, with entries that they have not given before.

        If too few results are left, entries are joined again at once, as long as there are few.
        """
        store, results, before = self.store, self.results, self.store.count
        kept = np.argsort(store.entries.score[:before], kind="stable")
        kept = kept[store.entries.first[kept] >= low]
        numbers = np.full(before, -1, np.int64)
        numbers[kept] = np.arange(len(kept))
        results.rows = numbers[results.rows]
        results.keep(results.rows.min(axis=1) >= 0)
        store.keep(kept, met=True)
        self._first_batch = max(NEXT_BATCH, sum(self.progress.depths) // (NEXT_SHARE * len(self.components)))
        self.frontier.restart(self._best_kept())
        self.progress.restart()
        few = 2 * len(kept) <= before
        results.size = self._asked * (1 if few else self._spare)
        if results.cut or (few and results.horizon is not None and len(results) < self._asked):
            self._join_again(results.size)

    def _best_kept(self) -> list[Any]:
        """The best score that is kept of each component."""
        count, entries, tops = self.store.count, self.store.entries, []
        for number in range(len(self.components)):
            scores = entries.score[:count][entries.component[:count] == number]
            tops.append(scores.min().item() if len(scores) else None)
        return tops

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
        progress = self.progress
        read = sum(progress.depths) if self.frontier.completed else self.store.count
        progress.batch = max(self._first_batch, read // (SHARE * len(self.components)))
        progress.costs = [self._access_cost(number) for number in range(len(self.components))]
        progress.found = self.results.scores
        progress.target = self.results.score(k) if len(self.results) >= k else None
        wanted = self._schedule.choose(progress)
        before = self.store.count
        for number, count in enumerate(wanted):
            if count > 0 and not self.frontier.exhausted[number]:
                self._pull(number, count)
                if self.frontier.ended:
                    break
        self.store.sort_from(before)
        self._join_all()

    def _pull(self, number: int, count: int) -> None:
        component = self.components[number]
        entries = component.pull(count)
        self.frontier.read(number, entries.scores, exhausted=component.exhausted)
        self.progress.note_pulled(number, entries.scores, component.cost)
        if self.frontier.completed:
            self._complete(number, entries)
        else:
            self._add(number, entries)

    def _access_cost(self, number: int) -> float:
        """What a sorted access costs, with the lookups it leads to."""
        lookups = 0.0
        if self.frontier.completed:
            asked = (each for other, each in enumerate(self._askable) if other != number or not each.unique)
            lookups = sum(each.lookup_cost for each in asked) * self.progress.new_share(number)
        return self.components[number].cost + lookups

    def _add(self, number: int, entries: Entries) -> None:
        keys = self._keys.numbers(self.conditions.keys_of(number, entries.events))
        self.store.add(number, entries, keys, self._keys.count)

    def _complete(self, number: int, entries: Entries) -> None:
        """Add all entries of all components with the keys that are new."""
        keys = self.conditions.keys_of(number, entries.events)
        numbers = self._keys.numbers(keys)
        first = np.unique(numbers, return_index=True)
        new = np.sort(first[1][first[0] >= self._completed_keys])
        self._completed_keys = self._keys.count
        self.progress.note_new(number, len(new))
        if len(new) == 0:
            return
        for other, component in enumerate(self._askable):
            if other == number and component.unique:
                self._add(other, Entries(entries.scores[new], entries.events[new]))
            else:
                self._add(other, component.lookup(keys[new]))
                self.progress.note_lookups(other, len(new), component.lookup_cost)

    # ---------------------------------------------------------------------------------------------- joining

    def _keep_at_least(self, k: int, most: int) -> None:
        """Have as many results kept as are asked for; those that were dropped before are made again."""
        results = self.results
        most = max(results.most, most + 1)
        if k > results.size or (results.cut and most > results.most):
            results.most = most
            self._join_again(max(k * self._spare, 2 * results.size))
        self.results.most = max(self.results.most, most)

    def _join_again(self, size: int) -> None:
        """Join all entries that were pulled once more, in order of score, to keep so many results."""
        self.results = BestResults(size, self.results.most, len(self.components), self._type)
        self.store.keep(np.argsort(self.store.entries.score[: self.store.count], kind="stable"), met=False)
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
