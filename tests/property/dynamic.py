"""Aggregates over all matches by a plain dynamic program over Python integers: the truth where nobody can enumerate.

Idea: a match is a path of (event, position) pairs. All paths that end in one pair share a `Tally`, and a later event
adds up the tallies of the pairs it may follow. Nothing is shared with the engine but the text of the query.

Under skip-till-any-match an edge of the pattern keeps the pairs that may still go on in a *pool*: one number where
there are no predicates, a Fenwick tree for an inequality, a dictionary for equalities, else a list that is scanned.
Scanning is the definition: `answers(..., scan=True)` uses nothing else, in O(n²), to check the other pools. Under
skip-till-next-match and contiguous a pair waits until the earliest time at which something may follow it.

It knows the NOT of a single event type, predicates on single and on adjacent events, windows, and one key.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import groupby
from typing import Any, NamedTuple

from tests.property.dynamic_queries import ANY, CONTIGUOUS, Adjacent, Compare, Event, One, Query, template_of, the_way

# --------------------------------------------------------------------------------------------------------- tallies


class Tally(NamedTuple):
    """What is known of a set of matches: how many, and of the measured events in them how many, how large."""

    matches: int = 0
    occurrences: int = 0
    values: int = 0
    total: int = 0
    least: int | None = None
    greatest: int | None = None

    def plus(self, other: Tally) -> Tally:
        return Tally(
            self.matches + other.matches,
            self.occurrences + other.occurrences,
            self.values + other.values,
            self.total + other.total,
            _best(min, self.least, other.least),
            _best(max, self.greatest, other.greatest),
        )

    def extended(self, value: int | None) -> Tally:
        """All these matches, each with one more measured event."""
        counted = self._replace(occurrences=self.occurrences + self.matches)
        if value is None:
            return counted
        return counted._replace(
            values=self.values + self.matches,
            total=self.total + value * self.matches,
            least=_best(min, self.least, value),
            greatest=_best(max, self.greatest, value),
        )


def _best(choose: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else choose(one, other)


NONE, ONE = Tally(), Tally(matches=1)


def added(tallies: Iterable[Tally]) -> Tally:
    return reduce(Tally.plus, tallies, NONE)


# ----------------------------------------------------------------------------------------------------------- pools


class Sum:
    """Every pair kept may be followed by every event."""

    def __init__(self) -> None:
        self.total = NONE

    def add(self, event: Event, tally: Tally) -> None:
        self.total = self.total.plus(tally)

    def reaching(self, event: Event) -> Tally:
        return self.total


class Scan:
    """The definition: look at every pair kept."""

    def __init__(self, tests: Sequence[Compare | Adjacent]) -> None:
        self.tests = tests
        self.kept: list[tuple[Event, Tally]] = []

    def add(self, event: Event, tally: Tally) -> None:
        self.kept.append((event, tally))

    def reaching(self, event: Event) -> Tally:
        found = NONE
        for before, tally in self.kept:
            if all(test.holds(before, event) for test in self.tests):
                found = found.plus(tally)
        return found


class Ordered:
    """One inequality: a Fenwick tree over the ranks of left values, so that a prefix is a sum of O(log n) tallies."""

    def __init__(self, test: Compare, sign: int, values: Sequence[int]) -> None:
        self.test, self.sign, self.values = test, sign, values  # values: sign · left value, sorted
        self.tree: dict[int, Tally] = {}

    def add(self, event: Event, tally: Tally) -> None:
        if event[self.test.left] is None:
            return
        node = bisect_left(self.values, self.sign * event[self.test.left]) + 1
        while node <= len(self.values):
            self.tree[node] = self.tree.get(node, NONE).plus(tally)
            node += node & -node

    def reaching(self, event: Event) -> Tally:
        if event[self.test.right] is None:
            return NONE
        cut = bisect_left if self.test.op in ("<", ">") else bisect_right
        node, found = cut(self.values, self.sign * event[self.test.right]), NONE
        while node > 0:
            found = found.plus(self.tree.get(node, NONE))
            node -= node & -node
        return found


Pool = Sum | Scan | Ordered


class Alike:
    """Equalities: a pool for every combination of left values."""

    def __init__(self, tests: Sequence[Compare], inner: Callable[[], Pool]) -> None:
        self.tests = tests
        self.inner = inner
        self.pools: dict[tuple[Any, ...], Pool] = {}

    def add(self, event: Event, tally: Tally) -> None:
        own = tuple(event[test.left] for test in self.tests)
        if None in own:
            return
        if own not in self.pools:
            self.pools[own] = self.inner()
        self.pools[own].add(event, tally)

    def reaching(self, event: Event) -> Tally:
        pool = self.pools.get(tuple(event[test.right] for test in self.tests))
        return NONE if pool is None else pool.reaching(event)


def new_pool(tests: Sequence[Compare | Adjacent], events: Sequence[Event], *, scan: bool) -> Callable[[], Pool | Alike]:
    """Makes empty pools of the fastest kind that decides these tests, for these events."""
    equal = [test for test in tests if isinstance(test, Compare) and test.op == "="]
    rest = [test for test in tests if test not in equal]
    if scan or len(rest) > 1 or not all(isinstance(test, Compare) and test.op != "!=" for test in rest):
        return lambda: Scan(tests)
    inner: Callable[[], Pool] = Sum
    for test in rest:
        assert isinstance(test, Compare)
        sign = 1 if test.op in ("<", "<=") else -1  # a > b is −a < −b
        values = sorted({sign * event[test.left] for event in events if event[test.left] is not None})
        inner = partial(Ordered, test, sign, values)
    return partial(Alike, equal, inner) if equal else inner


# ------------------------------------------------------------------------------------------------ one stretch of events

Pair = tuple[int, int]
"""An event of one moment, by its number there, at a position."""


@dataclass(frozen=True)
class Edge:
    """From one position to another: what is forbidden on the way, and how the two events must compare."""

    source: int
    target: int
    forbidden: frozenset[str]
    tests: Sequence[Compare | Adjacent]


class Automaton:
    """A query as positions and edges: which positions an event may take, where matches begin and end."""

    def __init__(self, query: Query) -> None:
        self.query = query
        template = template_of(query.pattern)
        self.atoms = template.atoms
        self.begins = {at: the_way(ways) for at, ways in template.first.items()}
        self.ends = {at: the_way(ways) for at, ways in template.last.items()}
        self.edges = [Edge(*edge, the_way(ways), self._tests(*edge)) for edge, ways in template.follow.items()]

    def _tests(self, source: int, target: int) -> list[Compare | Adjacent]:
        ends = self.atoms[source].variable, self.atoms[target].variable
        return [test for test in self.query.adjacent if (test.first, test.second) == ends]

    def positions(self, event: Event) -> list[int]:
        return [at for at, atom in self.atoms.items() if atom.type == event["type"] and self._passes(atom, event)]

    def _passes(self, atom: One, event: Event) -> bool:
        return all(local.test(event) for local in self.query.local if local.variable == atom.variable)

    def pairs(self, now: list[Event]) -> list[Pair]:
        return [(number, at) for number, event in enumerate(now) for at in self.positions(event)]

    def arrive(self, now: list[Event], seen: set[str], reached: dict[Pair, Tally]) -> list[tuple[Event, int, Tally]]:
        """Every pair of one moment with the matches, whole or begun, that end in it. `seen`: the types before."""
        arrived = []
        for number, at in self.pairs(now):
            event, atom, tally = now[number], self.atoms[at], reached.get((number, at), NONE)
            if at in self.begins and seen.isdisjoint(self.begins[at]):
                tally = tally.plus(ONE)
            if self.query.of in (atom.variable, atom.type):
                tally = tally.extended(event[self.query.column])
            if tally.matches:
                arrived.append((event, at, tally))
        return arrived


def moments(events: Sequence[Event]) -> Iterator[list[Event]]:
    """The events of each time: they are never adjacent to one another."""
    for _, group in groupby(events, key=lambda event: event["time"]):
        yield list(group)


class Keeper:
    """A pool, emptied by every event that is forbidden on the way: what came before it cannot go on after it."""

    def __init__(self, forbidden: frozenset[str], new: Callable[[], Pool | Alike] = Sum) -> None:
        self.forbidden, self.new, self.pool = forbidden, new, new()

    def pass_by(self, now: list[Event]) -> None:
        if any(event["type"] in self.forbidden for event in now):
            self.pool = self.new()


def any_match(automaton: Automaton, events: Sequence[Event], *, scan: bool) -> Tally:
    """All matches under skip-till-any-match."""
    edges = [(edge, Keeper(edge.forbidden, new_pool(edge.tests, events, scan=scan))) for edge in automaton.edges]
    ends = {at: Keeper(forbidden) for at, forbidden in automaton.ends.items()}
    seen: set[str] = set()
    for now in moments(events):
        reached: dict[Pair, Tally] = {}
        for number, at in automaton.pairs(now):
            found = [keeper.pool.reaching(now[number]) for edge, keeper in edges if edge.target == at]
            reached[number, at] = added(found)
        arrived = automaton.arrive(now, seen, reached)
        # a NOT of this moment lies after all earlier pairs, but not after those of its own time: first empty, then add
        for _, keeper in edges:
            keeper.pass_by(now)
        for event, at, tally in arrived:
            for edge, keeper in edges:
                if edge.source == at:
                    keeper.pool.add(event, tally)
        _finish(now, arrived, ends)
        seen |= {event["type"] for event in now}
    return added(keeper.pool.reaching({}) for keeper in ends.values())


def _finish(now: list[Event], arrived: list[tuple[Event, int, Tally]], ends: dict[int, Keeper]) -> None:
    """Whole matches; a trailing NOT of this moment ends all earlier ones."""
    for keeper in ends.values():
        keeper.pass_by(now)
    for event, at, tally in arrived:
        if at in ends:
            ends[at].pool.add(event, tally)


@dataclass
class Waiting:
    """A pair whose matches have not gone on yet, and the edges on which nothing forbidden has come since."""

    event: Event
    tally: Tally
    edges: list[Edge]

    def targets(self, automaton: Automaton, now: list[Event]) -> list[Pair]:
        """What may follow at this moment."""
        return [
            (number, at)
            for number, at in automaton.pairs(now)
            for edge in self.edges
            if edge.target == at and all(test.holds(self.event, now[number]) for test in edge.tests)
        ]

    def pass_by(self, now: list[Event]) -> None:
        types = {event["type"] for event in now}
        self.edges = [edge for edge in self.edges if types.isdisjoint(edge.forbidden)]


def runs(automaton: Automaton, events: Sequence[Event], *, contiguous: bool) -> Tally:
    """All matches under skip-till-next-match or contiguous."""
    ends = {at: Keeper(forbidden) for at, forbidden in automaton.ends.items()}
    waiting: list[Waiting] = []
    seen: set[str] = set()
    for now in moments(events):
        reached: dict[Pair, Tally] = {}
        still: list[Waiting] = []
        for one in waiting:
            targets = one.targets(automaton, now)
            for target in targets:
                reached[target] = reached.get(target, NONE).plus(one.tally)
            one.pass_by(now)
            # under contiguous the next moment is the only one
            if not targets and not contiguous and one.edges:
                still.append(one)
        arrived = automaton.arrive(now, seen, reached)
        out = {at: [edge for edge in automaton.edges if edge.source == at] for _, at, _ in arrived}
        waiting = still + [Waiting(event, tally, out[at]) for event, at, tally in arrived if out[at]]
        _finish(now, arrived, ends)
        seen |= {event["type"] for event in now}
    return added(keeper.pool.reaching({}) for keeper in ends.values())


# --------------------------------------------------------------------------------------------------------- answers

Answers = dict[tuple[Any, int | None], Tally]
"""By group and start of the window; None where the query has none. Only where there is a match."""


def answers(query: Query, events: Sequence[Event], *, scan: bool = False) -> Answers:
    """The aggregates of every group and window."""
    automaton = Automaton(query)
    found: Answers = {}
    for key, own in _partitions(query, events):
        for start, stretch in _windows(query, own):
            if query.semantics == ANY:
                tally = any_match(automaton, stretch, scan=scan)
            else:
                tally = runs(automaton, stretch, contiguous=query.semantics == CONTIGUOUS)
            if tally.matches:
                cell = (key if query.grouped else None, start)
                found[cell] = found.get(cell, NONE).plus(tally)
    return found


def _partitions(query: Query, events: Sequence[Event]) -> Iterator[tuple[Any, list[Event]]]:
    """The events of each key in time order; a NULL is in no partition."""
    parts: dict[Any, list[Event]] = {}
    for event in sorted(events, key=lambda event: event["time"]):
        key = None if query.key is None else event[query.key]
        if query.key is None or key is not None:
            parts.setdefault(key, []).append(event)
    yield from parts.items()


def _windows(query: Query, events: list[Event]) -> Iterator[tuple[int | None, list[Event]]]:
    """Every window [k · slide, k · slide + within) that holds an event."""
    if query.within is None:
        yield None, events
        return
    slide = query.slide or query.within
    times = [event["time"] for event in events]
    for k in range((times[0] - query.within) // slide, times[-1] // slide + 1):
        stretch = events[bisect_left(times, k * slide) : bisect_left(times, k * slide + query.within)]
        if stretch:
            yield k * slide, stretch
