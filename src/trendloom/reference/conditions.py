"""Whether a conjunct is true of a binding: every way of choosing the events that it quantifies over, one by one.

A conjunct is a universal statement. Its variables get their events (`bound_to`), every choice of single events is an
*instance* (`instances`), and each instance must be TRUE; unknown is not. `read_scopes` reads the conjuncts of all
scopes off the plan once.
Cost: the product of the numbers of events of its variables.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from trendloom.expr.nodes import Aggregate, Attribute, Expr, Extent, Fold, Group, Total, Which, variables, walk
from trendloom.logical.plan import Condition, Plan
from trendloom.pattern.algebra import Kleene, Negation, Pattern, Round, atoms, negations, parts, scopes_of
from trendloom.reference.derive import TOP, BoundEvent, Mark, Nesting, Trace
from trendloom.reference.scalar import Leaf, aggregate, evaluate, extent
from trendloom.reference.stream import Instant, StepBudget, StreamEvent


@dataclass(frozen=True)
class Conjunct:
    """A condition, and how its variables are quantified."""

    expr: Expr
    part: int | None
    variables: frozenset[str]
    each: frozenset[str]  # read as `b.x`; without the left side of a NEXT
    indexed: tuple[tuple[str, int], ...]  # read by i, and the first i: 1 where the event before is read too, else 0
    pair: tuple[str, str] | None  # the variables of an adjacent pair, where NEXT occurs
    whole: frozenset[str]  # read as b[first], b[last], f(b[]), duration(b)

    @property
    def local(self) -> bool:
        """Whether it is about every single event of one variable."""
        return not (self.indexed or self.pair or self.whole) and len(self.each) == 1


@dataclass(frozen=True)
class ScopeRules:
    """What restricts the matches of the pattern or of one NOT."""

    number: int
    variables: frozenset[str]  # bound by its positive positions
    parts: frozenset[int]  # Kleene and Round parts of the scope itself
    conjuncts: tuple[Conjunct, ...]
    needs: tuple[tuple[str, int | None], ...]  # variables of enclosing scopes that it uses, each with its part


def read_scopes(plan: Plan) -> dict[int, ScopeRules]:
    """All scopes of a plan by number: the pattern itself is scope 0, every NOT a scope of its own."""
    bodies = dict(scopes_of(plan.pattern))
    parents = {negation.scope: scope for scope, body in bodies.items() for negation in negations(body)}
    own = {number: frozenset(atom.variable for atom in atoms(body, negated=False)) for number, body in bodies.items()}
    return {
        number: ScopeRules(
            number,
            own[number],
            frozenset(part.part for part in _rounds_in(body)),
            tuple(_conjunct(condition, body) for condition in plan.conditions if condition.scope == number),
            tuple(_needs(number, plan.conditions, own, parents)),
        )
        for number, body in bodies.items()
    }


def _rounds_in(pattern: Pattern) -> Iterator[Kleene | Round]:
    """The parts of a scope itself that have rounds."""
    if isinstance(pattern, Kleene | Round):
        yield pattern
    for part in parts(pattern):
        if not isinstance(part, Negation):
            yield from _rounds_in(part)


def _needs(
    number: int, conditions: tuple[Condition, ...], own: Mapping[int, frozenset[str]], parents: Mapping[int, int]
) -> Iterator[tuple[str, int | None]]:
    for condition in conditions:
        chain = [condition.scope]
        while chain[-1] != number and chain[-1] in parents:
            chain.append(parents[chain[-1]])
        if chain[-1] == number:
            inside = frozenset(name for scope in chain for name in own[scope])
            yield from ((name, condition.part) for name in sorted(variables(condition.expr) - inside))


def _conjunct(condition: Condition, body: Pattern) -> Conjunct:
    expr = condition.expr
    attributes = [node for node in walk(expr) if isinstance(node, Attribute)]
    aggregates = [node for node in walk(expr) if isinstance(node, Aggregate)]
    each = frozenset(node.variable for node in attributes if node.which is Which.EACH)
    following = sorted({node.variable for node in attributes if node.which is Which.NEXT})
    pair = ((min(each) if each else following[0]), following[0]) if following else None
    second = {node.variable for node in attributes if node.which is Which.PREVIOUS}
    second |= {node.variable for node in aggregates if node.before}
    current = {node.variable for node in attributes if node.which is Which.CURRENT} | second
    whole = {node.variable for node in attributes if node.which in (Which.FIRST, Which.LAST)}
    whole |= {node.variable for node in aggregates if not node.before}
    whole |= {node.variable for node in walk(expr) if isinstance(node, Extent)}
    conjunct = Conjunct(
        expr,
        condition.part,
        variables(expr),
        each - {pair[0]} if pair else each,
        tuple((name, int(name in second)) for name in sorted(current)),
        pair,
        frozenset(whole),
    )
    return replace(conjunct, part=None) if conjunct.local and _rounds_do_not_matter(conjunct, body) else conjunct


def _rounds_do_not_matter(conjunct: Conjunct, body: Pattern) -> bool:
    """Whether all events of a conjunct on single events lie in its part: then it holds of each, whatever its round."""
    named = {atom for atom in atoms(body, negated=False) if atom.variable in conjunct.each}
    rounds = [part for part in _rounds_in(body) if part.part == conjunct.part]
    return bool(named) and named <= {atom for part in rounds for atom in atoms(part, negated=False)}


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
    """The events of a variable: in one round, if the conjunct is about rounds of a part, else all.

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
        return aggregate(leaf.function, leaf.column, events[: self.indices[leaf.variable]] if leaf.before else events)

    def _event(self, leaf: Attribute) -> StreamEvent:
        events, which = self.events[leaf.variable], leaf.which
        if which is Which.EACH:
            return self.each[leaf.variable]
        if which is Which.NEXT:
            assert self.following is not None
            return self.following
        if which in (Which.FIRST, Which.LAST):
            return events[0 if which is Which.FIRST else -1]
        return events[self.indices[leaf.variable] - (which is Which.PREVIOUS)]


def instances(conjunct: Conjunct, events: Mapping[str, Events], match: Match) -> Iterator[Instance]:
    """Every choice of events that the conjunct quantifies over."""
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
    """Whether every instance is true; with `new`, only those instances that include the new event."""
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
    """The rounds of the match that the conjunct is about, one by one; [None] where rounds do not matter."""
    part = conjunct.part
    if part is None or part not in match.scope.parts:
        return [None]
    places = [item.place for item in match.bound] if new is None else [new.place]
    marks = (place.round(part) for place in places)
    return list(dict.fromkeys(mark for mark in marks if mark is not None))
