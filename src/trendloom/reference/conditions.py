"""Whether a conjunct is true of a binding: every way of choosing the events it speaks of, one after another.

A conjunct is a universal statement. Its variables get their events (`bound_to`), every choice of single events is an
*instance* (`instances`), and each instance must be TRUE; unknown is not.
Cost: the product of the numbers of events of its variables.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trendloom.expr.nodes import Attribute, Extent, Fold, Group, Total, Which
from trendloom.reference.budget import StepBudget
from trendloom.reference.derive import TOP, BoundEvent, Mark, Nesting, Trace
from trendloom.reference.scalar import Leaf, evaluate
from trendloom.reference.scopes import Conjunct, ScopeRules
from trendloom.reference.stream import Instant, StreamEvent
from trendloom.reference.summary import aggregate, extent

Events = tuple[StreamEvent, ...]


@dataclass(frozen=True)
class Match:
    """A derivation of a binding, complete or not; for a NOT, also the match around it and its place there."""

    scope: ScopeRules
    trace: Trace
    outer: Match | None = None
    site: Nesting = TOP

    @property
    def bound(self) -> tuple[BoundEvent, ...]:
        return tuple(item for item in self.trace if isinstance(item, BoundEvent))


def holder(variable: str, match: Match) -> tuple[Match | None, Nesting]:
    """The match whose scope binds the variable, and where in it the inner match lies."""
    found: Match | None = match
    site = TOP
    while found is not None and variable not in found.scope.variables:
        site, found = found.site, found.outer
    return found, site


def bound_to(variable: str, part: int | None, match: Match, own_round: Mark | None) -> Events:
    """The events of a variable: in one round, if the conjunct speaks of rounds of a part, else all.

    The round is `own_round` in the match itself; in a match around it, it is the round in which the NOT lies.
    """
    found, site = holder(variable, match)
    if found is None:
        return ()
    events = [item for item in found.bound if item.atom.variable == variable]
    if part is not None and part in found.scope.parts:
        wanted = own_round if found is match else site.round(part)
        events = [item for item in events if item.place.round(part) == wanted]
    return tuple(item.event for item in events)


@dataclass(frozen=True)
class Instance:
    """One choice of events for a conjunct."""

    events: Mapping[str, Events]
    each: Mapping[str, StreamEvent]
    indices: Mapping[str, int]
    following: StreamEvent | None

    @property
    def chosen(self) -> frozenset[StreamEvent]:
        current = (self.events[name][index] for name, index in self.indices.items())
        return frozenset((*self.each.values(), *current, *(() if self.following is None else (self.following,))))

    def read(self, leaf: Leaf) -> object:
        if isinstance(leaf, Fold | Group | Total):
            raise TypeError(f"{leaf} has no meaning in a condition")
        events = self.events[leaf.variable]
        if isinstance(leaf, Extent):
            return extent(events)
        if isinstance(leaf, Attribute):
            return self._event(leaf).value(leaf.column)
        spoken_of = events[: self.indices[leaf.variable]] if leaf.before else events
        return aggregate(leaf.function, leaf.column, spoken_of)

    def _event(self, leaf: Attribute) -> StreamEvent:
        events = self.events[leaf.variable]
        if leaf.which is Which.EACH:
            return self.each[leaf.variable]
        if leaf.which is Which.NEXT:
            assert self.following is not None
            return self.following
        if leaf.which is Which.FIRST:
            return events[0]
        if leaf.which is Which.LAST:
            return events[-1]
        index = self.indices[leaf.variable]
        return events[index] if leaf.which is Which.CURRENT else events[index - 1]


def instances(conjunct: Conjunct, events: Mapping[str, Events], match: Match) -> Iterator[Instance]:
    """Every choice of events that the conjunct speaks of."""
    names = sorted(conjunct.each)
    ranges = [range(first, len(events[name])) for name, first in conjunct.indexed]
    pairs: Sequence[tuple[StreamEvent, StreamEvent] | None] = [None]
    if conjunct.pair is not None:
        pairs = list(_pairs(conjunct.pair, events, match))
    for pair, each, indices in itertools.product(
        pairs, itertools.product(*(events[name] for name in names)), itertools.product(*ranges)
    ):
        chosen = dict(zip(names, each, strict=True))
        if pair is not None and conjunct.pair is not None:
            chosen[conjunct.pair[0]] = pair[0]
        numbered = {name: index for (name, _), index in zip(conjunct.indexed, indices, strict=True)}
        yield Instance(events, chosen, numbered, None if pair is None else pair[1])


def _pairs(
    names: tuple[str, str], events: Mapping[str, Events], match: Match
) -> Iterator[tuple[StreamEvent, StreamEvent]]:
    """The adjacent events of the match of which the first is bound to one variable and the second to the other."""
    left, right = names
    found, _ = holder(right, match)
    if found is None or holder(left, match)[0] is not found:
        return
    by_instant: dict[Instant, list[StreamEvent]] = {}
    for item in found.bound:
        by_instant.setdefault(item.event.instant, []).append(item.event)
    for earlier, later in itertools.pairwise(sorted(by_instant)):
        for first, second in itertools.product(by_instant[earlier], by_instant[later]):
            if first in events[left] and second in events[right]:
                yield first, second


def holds(conjunct: Conjunct, match: Match, budget: StepBudget, new: BoundEvent | None = None) -> bool:
    """Whether every instance is true; with `new`, only those instances that speak of the new event."""
    for own_round in _rounds(conjunct, match, new):
        events = {name: bound_to(name, conjunct.part, match, own_round) for name in conjunct.variables}
        if not all(events.values()):
            continue  # a variable is not bound: true as a whole
        for instance in instances(conjunct, events, match):
            if new is not None and new.event not in instance.chosen:
                continue
            budget.spend()
            if evaluate(conjunct.expr, instance.read) is not True:
                return False
    return True


def _rounds(conjunct: Conjunct, match: Match, new: BoundEvent | None) -> Sequence[Mark | None]:
    """The rounds of the match that the conjunct speaks of, one by one; [None] where it does not speak of rounds."""
    part = conjunct.part
    if part is None or part not in match.scope.parts:
        return [None]
    places = [item.place for item in match.bound] if new is None else [new.place]
    marks = (place.round(part) for place in places)
    return list(dict.fromkeys(mark for mark in marks if mark is not None))
