"""Whether a conjunct is true of a binding: every way of choosing the events it speaks of, one after another.

A conjunct is a universal statement. Its variables get their events (`bound_to`), every choice of single events is an
*instance* (`instances`), and each instance must be TRUE; unknown is not.
Cost: the product of the numbers of events of its variables.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trendloom.expr.nodes import Aggregate, Attribute, Expr, Extent, Fold, Group, Total, Which, variables, walk
from trendloom.logical.plan import Condition, Plan
from trendloom.pattern.algebra import Kleene, Negation, Pattern, Round, atoms, negations, parts
from trendloom.reference.derive import TOP, BoundEvent, Mark, Nesting, Trace
from trendloom.reference.scalar import Leaf, aggregate, evaluate, extent
from trendloom.reference.stream import Instant, StepBudget, StreamEvent

# Which predicate restricts what: the pattern itself is scope 0, every NOT a scope of its own.
#
# Everything here is read off the plan once, so that the tests of a binding can be short.


@dataclass(frozen=True)
class Conjunct:
    """A condition, and how its variables are quantified."""

    expr: Expr
    part: int | None
    variables: frozenset[str]
    each: frozenset[str]  # read as `b.x`; without the left side of a NEXT
    indexed: tuple[tuple[str, int], ...]  # read by i, and the first i: 1 where the event before is spoken of, else 0
    pair: tuple[str, str] | None  # the variables of an adjacent pair, where NEXT occurs
    whole: frozenset[str]  # read as b[first], b[last], f(b[]), duration(b)

    @property
    def local(self) -> bool:
        """Speaks of every single event of one variable."""
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
    """All scopes of a plan by number."""
    bodies: dict[int, list[Pattern]] = {0: [plan.pattern]}
    parents: dict[int, int] = {}
    for parent, negation in _nested(plan.pattern, 0):
        bodies.setdefault(negation.scope, []).append(negation.body)  # copies of a repetition may share a scope
        parents[negation.scope] = parent
    own = {number: _variables(copies) for number, copies in bodies.items()}
    return {
        number: ScopeRules(
            number,
            own[number],
            frozenset(part for body in copies for part in _parts(body)),
            tuple(_conjunct(condition, copies) for condition in plan.conditions if condition.scope == number),
            tuple(_needs(number, plan.conditions, own, parents)),
        )
        for number, copies in bodies.items()
    }


def _nested(pattern: Pattern, scope: int) -> Iterator[tuple[int, Negation]]:
    for negation in negations(pattern):
        yield scope, negation
        yield from _nested(negation.body, negation.scope)


def _variables(copies: list[Pattern]) -> frozenset[str]:
    return frozenset(atom.variable for body in copies for atom in atoms(body, negated=False))


def _parts(pattern: Pattern) -> Iterator[int]:
    if isinstance(pattern, Kleene | Round):
        yield pattern.part
    for part in parts(pattern):
        if not isinstance(part, Negation):
            yield from _parts(part)


def _needs(
    number: int, conditions: tuple[Condition, ...], own: Mapping[int, frozenset[str]], parents: Mapping[int, int]
) -> Iterator[tuple[str, int | None]]:
    for condition in conditions:
        chain = [condition.scope]
        while chain[-1] != number and chain[-1] in parents:
            chain.append(parents[chain[-1]])
        if chain[-1] != number:
            continue
        inside = frozenset(name for scope in chain for name in own[scope])
        for name in sorted(variables(condition.expr) - inside):
            yield name, condition.part


def _conjunct(condition: Condition, copies: list[Pattern]) -> Conjunct:
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
    return _without_rounds(conjunct, copies)


def _without_rounds(conjunct: Conjunct, copies: list[Pattern]) -> Conjunct:
    """A predicate on single events holds of each, whatever its round: then rounds need not be distinguished."""
    if conjunct.part is None or not conjunct.local:
        return conjunct
    named = {atom for body in copies for atom in atoms(body, negated=False) if atom.variable in conjunct.each}
    inside = {atom for body in copies for atom in _atoms_of(body, conjunct.part)}
    if not named or not named <= inside:
        return conjunct
    return Conjunct(conjunct.expr, None, conjunct.variables, conjunct.each, (), None, frozenset())


def _atoms_of(pattern: Pattern, part: int) -> Iterator[object]:
    if isinstance(pattern, Kleene | Round) and pattern.part == part:
        yield from atoms(pattern, negated=False)
    for inner in parts(pattern):
        if not isinstance(inner, Negation):
            yield from _atoms_of(inner, part)


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
