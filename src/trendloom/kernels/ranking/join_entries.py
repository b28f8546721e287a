"""Entries that a join has got, and how each new one is joined with those before it.

All entries lie in one store in the order in which they came; those of one component, key and stretch of time are a
chain. There are several stretches where the order of components matters and no key keeps entries apart: then only
chains are looked at that begin late enough, or end early enough. A new entry
is combined with the chains of its key, component by component, and then joins its own chain: so every combination is
made once, when its last entry comes. A branch is left as soon as the conditions between two components fail, or as
what is chosen, with the best score of every component that is not, is worse than the limit. Chains are in order of
score, so that the first entry that is too bad ends its chain. Entries come in order of score as well, so that a chain
is walked through once for all of them.

Cost: O(components²) per branch tried. Memory: entries.

Entries are a column of scores and a matrix of events, a row for each entry in the order of its positions; −1 stands for
a position that is not bound. Scores are merged in the order of components, in results and in bounds alike: rounding
never turns a smaller sum into a greater one, so a bound of rounded sums holds for rounded scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from trendloom.expr.arrays import Array
from trendloom.kernels.jit.compiled import INSIDE, njit

FIRST = 1 << 10
NONE = -1
NEVER = 2**62
NEXT, LEVEL, LEVELS = 0, 1, 2
CURSOR, STRETCH, LAST_STRETCH, STATE = 0, 1, 2, 3
"""Where a join was left: the next entry to join, how many components are chosen for it, and for each level a cursor in
a chain, its stretch of time, and the last stretch to look at."""
STRETCHES = 32

MergeName = Literal["sum", "avg", "min", "max"]
MERGES: tuple[MergeName, ...] = ("sum", "avg", "min", "max")
SUM, AVG, MIN, MAX = range(len(MERGES))


def merged(merge: int, parts: Sequence[Any]) -> Any:
    """The merged scores of columns or numbers, one for each component."""
    found = parts[0]
    for part in parts[1:]:
        if merge in (SUM, AVG):
            found = found + part
        else:
            found = np.minimum(found, part) if merge == MIN else np.maximum(found, part)
    return found / len(parts) if merge == AVG else found


def score_type(merge: int, types: Sequence[Any]) -> Any:
    """Scores are exact integers where all parts are and nothing divides them."""
    exact = merge != AVG and all(np.issubdtype(type_, np.integer) for type_ in types)
    return np.int64 if exact else np.float64


def worst_sum(mean: Any, parts: int) -> Any:
    """A sum that no sum exceeds whose rounded mean is at most this one: their product, and what rounding may add."""
    product = mean * parts
    return product + 4 * np.spacing(np.abs(product))


@njit(**INSIDE)
def merged_one(merge: int, parts: Array) -> Any:
    """As `merged`, of one score for each component; for the mean it gives the sum."""
    found = parts[0]
    for number in range(1, len(parts)):
        if merge in (SUM, AVG):
            found += parts[number]
        elif merge == MIN:
            found = min(found, parts[number])
        else:
            found = max(found, parts[number])
    return found


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


def widened(events: Array, positions: int) -> Array:
    """Rows of so many positions, those that are missing not bound."""
    missing = positions - events.shape[1]
    return np.pad(events, ((0, 0), (0, missing)), constant_values=-1) if missing else events


def ranges(begin: Array, end: Array) -> Array:
    """All numbers from each begin to its end, one range after the other."""
    sizes = end - begin
    starts = np.cumsum(sizes) - sizes
    return np.repeat(begin - starts, sizes) + np.arange(int(sizes.sum()))


# ------------------------------------------------------------------------------------------------ store


class PulledEntries(NamedTuple):
    """The store. Events of narrow components are filled up with −1."""

    score: Array
    component: Array
    key: Array
    first: Array  # the first event of an entry
    later: Array  # the first event that is later than all of it, where that matters
    begins: Array  # the stretch of time of `first`
    ends: Array  # and that of `later`
    events: Array
    next: Array  # of the same chain, or NONE


class Chains(NamedTuple):
    """By key, stretch and component: the best entry, and the one that came last, behind which the next one goes.

    `follows`: by component, whether its chains are by where entries begin, not by where they end.
    """

    head: Array
    latest: Array
    follows: Array


class JoinRules(NamedTuple):
    """What combinations have to fulfil: in order by time, without common events."""

    merge: int
    before: Array  # by two components: whether the first one ends before the second begins
    apart: Array  # by two components: whether they have no event in common


class ScoreLimits(NamedTuple):
    """What is too bad to be made: scores worse than `worst[0]`, if `bounded`."""

    bounded: bool
    worst: Array
    tops: Array  # the best score of each component


class Combinations(NamedTuple):
    """Room for combinations: their scores, and their entries by component."""

    scores: Array
    rows: Array


class PulledStore:
    """The entries so far, their chains, and how far they are joined."""

    def __init__(self, rules: JoinRules, positions: int, tie_end: Array, type_: Any, *, keyed: bool) -> None:
        """`tie_end`: by event, the first later one; if it is empty, that is the next one."""
        self.count = 0
        self._tie_end, self._rules = tie_end, rules
        self._components, self._positions = len(rules.before), positions
        self._stretches = 1 if keyed or not rules.before.any() else STRETCHES
        self._begin, self._width = 0, 0
        component, key, first, later, begins, ends, following = (np.empty(FIRST, np.int64) for _ in range(7))
        events, score = np.empty((FIRST, positions), np.int64), np.empty(FIRST, type_)
        self.entries = PulledEntries(score, component, key, first, later, begins, ends, events, following)
        self._chains = self._no_chains(FIRST if keyed else 1)
        self._place = np.zeros(LEVELS + STATE * self._components, np.int64)
        self._chosen = np.zeros(self._components, np.int64)

    @property
    def joined(self) -> bool:
        """Whether all entries have met all others."""
        return int(self._place[NEXT]) == self.count

    def add(self, component: int, entries: Entries, keys: Array, key_count: int) -> None:
        """Put entries behind those there are."""
        more = len(entries.scores)
        self._make_room(more, key_count)
        some, kept = slice(self.count, self.count + more), self.entries
        events = widened(entries.events, self._positions)
        kept.score[some], kept.component[some], kept.key[some] = entries.scores, component, keys
        kept.events[some], kept.next[some] = events, NONE
        kept.first[some] = np.where(events < 0, NEVER, events).min(axis=1, initial=NEVER)
        last = events.max(axis=1, initial=NONE)
        kept.later[some] = self._tie_end[last] if len(self._tie_end) else last + 1
        self.count += more
        if self._width == 0 and more:
            self._begin = int(kept.first[some].min())
            self._width = max(1, int(kept.later[some].max()) - self._begin)
        self._stretch(some)

    def _stretch(self, some: slice) -> None:
        """Stretches of time of entries; any division is right as long as it is in order."""
        kept = self.entries
        for events, stretch in ((kept.first, kept.begins), (kept.later, kept.ends)):
            if self._stretches == 1:
                stretch[some] = 0
            else:
                since = np.clip(events[some] - self._begin, 0, self._width - 1)
                stretch[some] = since * self._stretches // self._width

    def sort_from(self, first: int) -> None:
        """Have the entries from this one on, none of which has met another, in order of score."""
        some = slice(first, self.count)
        order = first + np.argsort(self.entries.score[some], kind="stable")
        for column in self.entries:
            column[some] = column[order]

    def join(self, limits: ScoreLimits, room: Combinations) -> int:
        """Join entries that are not joined yet until all are or there is no more room: the number of combinations."""
        place = self._place, self._chosen, self.count
        return int(_join(self.entries, self._chains, self._rules, limits, room, place))

    def _make_room(self, more: int, key_count: int) -> None:
        size = len(self.entries.score)
        while self.count + more > size:
            size *= 2
        if size > len(self.entries.score):
            self.entries = PulledEntries(*(_resized(column, size) for column in self.entries))
        if key_count > len(self._chains.head):
            chains = self._no_chains(max(key_count, 2 * len(self._chains.head)))
            chains.head[: len(self._chains.head)] = self._chains.head
            chains.latest[: len(self._chains.head)] = self._chains.latest
            self._chains = chains

    def _no_chains(self, keys: int) -> Chains:
        shape = keys, self._stretches, self._components
        follows = np.logical_or.reduce(self._rules.before, axis=0)
        return Chains(np.full(shape, NONE, np.int64), np.full(shape, NONE, np.int64), follows)


def _resized(column: Array, size: int) -> Array:
    found = np.empty((size, *column.shape[1:]), column.dtype)
    found[: len(column)] = column
    return found


# ------------------------------------------------------------------------------------------------ compiled


@njit(nogil=True)
def _join(
    entries: PulledEntries,
    chains: Chains,
    rules: JoinRules,
    limits: ScoreLimits,
    room: Combinations,
    left_at: tuple[Array, Array, int],
) -> int:
    """Join entry after entry from where it was left until the room is full; the number of combinations."""
    place, chosen, end = left_at
    components = len(chosen)
    parts = limits.tops.copy()
    entry, level, found = place[NEXT], place[LEVEL], 0
    if level > 0:
        _restore(entries, chosen, parts, entries.component[entry], level)
    full = False
    while entry < end and not full:
        own, key = entries.component[entry], entries.key[entry]
        if level == 0:
            chosen[own], parts[own] = entry, entries.score[entry]
            level = 1
            if components > 1:
                _open(entries, chains, rules, chosen, place, own, 1)
        while level > 0:
            if found == len(room.scores):
                full = True
                break
            if components == 1:
                found = _take(parts, chosen, rules, limits, room, found)
                level = 0
                break
            other, at = _at_level(own, level), LEVELS + STATE * level
            candidate = place[at + CURSOR]
            if level == components - 1:
                while candidate != NONE and found < len(room.scores):
                    parts[other] = entries.score[candidate]
                    if limits.bounded and merged_one(rules.merge, parts) > limits.worst[0]:
                        candidate = NONE
                        break
                    chosen[other] = candidate
                    if _fits(entries, rules, chosen, own, level):
                        found = _take(parts, chosen, rules, limits, room, found)
                    candidate = entries.next[candidate]
                place[at + CURSOR] = candidate
                if candidate != NONE:
                    continue
            if candidate == NONE and place[at + STRETCH] < place[at + LAST_STRETCH]:
                place[at + STRETCH] += 1
                place[at + CURSOR] = chains.head[key, place[at + STRETCH], other]
                continue
            if candidate == NONE:
                parts[other] = limits.tops[other]
                level -= 1
                continue
            place[at + CURSOR] = entries.next[candidate]
            chosen[other], parts[other] = candidate, entries.score[candidate]
            if limits.bounded and merged_one(rules.merge, parts) > limits.worst[0]:
                place[at + CURSOR] = NONE
            elif _fits(entries, rules, chosen, own, level):
                level += 1
                _open(entries, chains, rules, chosen, place, own, level)
        if not full:
            parts[own] = limits.tops[own]
            _insert(entries, chains, entry)
            entry += 1
    place[NEXT], place[LEVEL] = entry, level
    return found


@njit(**INSIDE)
def _at_level(own: int, level: int) -> int:
    """The component that is chosen at a level for an entry of `own`, which is chosen first."""
    return level - 1 if level <= own else level


@njit(**INSIDE)
def _open(
    entries: PulledEntries, chains: Chains, rules: JoinRules, chosen: Array, place: Array, own: int, level: int
) -> None:
    """Begin a level with the first chain that can have what fits those chosen before."""
    new, first, last = _at_level(own, level), 0, chains.head.shape[1] - 1
    for before in range(level):
        old = own if before == 0 else _at_level(own, before)
        if rules.before[old, new]:
            first = max(first, entries.ends[chosen[old]])
        if rules.before[new, old]:
            last = min(last, entries.begins[chosen[old]])
    at = LEVELS + STATE * level
    place[at + STRETCH], place[at + LAST_STRETCH] = first, last
    place[at + CURSOR] = chains.head[entries.key[chosen[own]], first, new] if first <= last else NONE


@njit(**INSIDE)
def _restore(entries: PulledEntries, chosen: Array, parts: Array, own: int, level: int) -> None:
    """The scores of what was chosen when a join was left."""
    parts[own] = entries.score[chosen[own]]
    for before in range(1, level):
        other = _at_level(own, before)
        parts[other] = entries.score[chosen[other]]


@njit(**INSIDE)
def _take(parts: Array, chosen: Array, rules: JoinRules, limits: ScoreLimits, room: Combinations, found: int) -> int:
    score = merged_one(rules.merge, parts)
    if limits.bounded and score > limits.worst[0]:
        return found
    room.scores[found] = score
    for component in range(len(chosen)):
        room.rows[found, component] = chosen[component]
    return found + 1


@njit(**INSIDE)
def _fits(entries: PulledEntries, rules: JoinRules, chosen: Array, own: int, level: int) -> bool:
    """Whether what was chosen last fits what was chosen before."""
    new = _at_level(own, level)
    for before in range(level):
        old = own if before == 0 else _at_level(own, before)
        if rules.before[old, new] and entries.first[chosen[new]] < entries.later[chosen[old]]:
            return False
        if rules.before[new, old] and entries.first[chosen[old]] < entries.later[chosen[new]]:
            return False
        if rules.apart[old, new] and _share_event(entries.events, chosen[old], chosen[new]):
            return False
    return True


@njit(**INSIDE)
def _share_event(events: Array, one: int, other: int) -> bool:
    for mine in range(events.shape[1]):
        for theirs in range(events.shape[1]):
            if events[one, mine] >= 0 and events[one, mine] == events[other, theirs]:
                return True
    return False


@njit(**INSIDE)
def _insert(entries: PulledEntries, chains: Chains, entry: int) -> None:
    """Give an entry its place in its chain, not before the one that came last."""
    key, component, score = entries.key[entry], entries.component[entry], entries.score[entry]
    stretch = entries.begins[entry] if chains.follows[component] else entries.ends[entry]
    before = chains.latest[key, stretch, component]
    after = chains.head[key, stretch, component] if before == NONE else entries.next[before]
    while after != NONE and entries.score[after] <= score:
        before, after = after, entries.next[after]
    entries.next[entry] = after
    if before == NONE:
        chains.head[key, stretch, component] = entry
    else:
        entries.next[before] = entry
    chains.latest[key, stretch, component] = entry
