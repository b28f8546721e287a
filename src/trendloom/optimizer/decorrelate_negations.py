"""A NOT that depends on one event next to it alone need not be tested for every match around it.

Before: SEQ(A a, NOT (B b: b.id = a.id), C c), tested for every a and c.
After: the note that matches of the NOT are those whose b.id is that of the event before it. For each a the first such b
is found once (an anti-join by id and time); c must come no later.

Valid where every step that crosses the NOT binds the one outer variable of its conditions on the same side of it, and
no condition can mean another event of that variable: it binds once in a match, or once in the round in which a
condition attached to the NOT applies. What may be compared:

- a NOT of one position: any equalities, and at most one order or `!=`;
- a NOT of several: equalities that give all its variables the value of that event.

Left alone are NOTs before the first or after the last event, inside AND, with NOTs of their own, or with any other
condition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from trendloom.expr.nodes import MIRRORED, Comparison, renamed, variables
from trendloom.expr.quantifiers import shape_of
from trendloom.logical.plan import Condition, Decorrelated, Plan
from trendloom.pattern import algebra
from trendloom.pattern.algebra import Both, Either, Kleene, Maybe, Negation, Pattern, Round
from trendloom.pattern.template import Crossing, Edge, Template, build_template, closure

Names = frozenset[str]


def decorrelate_negations(plan: Plan) -> Plan:
    """Note the NOTs whose conditions compare their events with one event next to them."""
    found = [_decorrelated(plan, parent, negation) for parent, negation in _negations(plan.pattern)]
    return replace(plan, decorrelated=tuple(one for one in found if one is not None))


def _negations(pattern: Pattern) -> Iterator[tuple[Pattern, Negation]]:
    """The NOTs outside AND, each with the pattern of the scope it stands in."""
    joined = [node for node in algebra.walk(pattern) if isinstance(node, Both)]
    beside = {negation.scope for node in joined for negation in algebra.negations(node)}
    for negation in algebra.negations(pattern):
        if negation.scope not in beside:
            yield pattern, negation
        yield from _negations(negation.body)


def _decorrelated(plan: Plan, parent: Pattern, negation: Negation) -> Decorrelated | None:
    conditions = [condition for condition in plan.conditions if condition.scope == negation.scope]
    forbidden = _Forbidden(negation.body)
    compared = [forbidden.compared(condition) for condition in conditions]
    links = forbidden.links([one for one in compared if one is not None])
    if None in compared or links is None:
        return None
    (name,) = variables(links[0].right)
    around = _Around(parent, negation.scope, name)
    parts = {c.part for c, one in zip(conditions, compared, strict=True) if one and forbidden.is_link(one)}
    for follows in (False, True):
        if all(around.is_neighbour(follows, part) for part in parts):
            return Decorrelated(negation.scope, follows, links)
    return None


# ------------------------------------------------------------------------------------------- what is forbidden


@dataclass(frozen=True)
class _Forbidden:
    """The pattern of a NOT, and what its conditions compare."""

    body: Pattern

    @cached_property
    def names(self) -> Names:
        return frozenset(atom.variable for atom in algebra.atoms(self.body))

    @cached_property
    def parts(self) -> frozenset[int]:
        return frozenset(node.part for node in algebra.walk(self.body) if isinstance(node, Kleene | Round))

    def compared(self, condition: Condition) -> Comparison | None:
        """The condition with an event of the NOT on the left and another event on the right; None: it is not such."""
        expr, shape = condition.expr, shape_of(condition.expr)
        if not isinstance(expr, Comparison) or not shape.compares_events or condition.part in self.parts:
            return None
        left, right = variables(expr.left), variables(expr.right)
        if len(left) != 1 or len(right) != 1 or left == right or not (left | right) & self.names:
            return None
        if left <= self.names:
            return expr
        return Comparison(cast("Any", MIRRORED[expr.operator]), expr.right, expr.left)

    def is_link(self, compared: Comparison) -> bool:
        """Whether it is compared with an event outside."""
        return not variables(compared.right) & self.names

    def links(self, compared: list[Comparison]) -> tuple[Comparison, ...] | None:
        """What the conditions come to for each event of a match; None: that is not all they require."""
        if any(isinstance(node, Negation | Both) for node in algebra.walk(self.body)):
            return None
        links = {self._unnamed(one): one for one in reversed(compared) if self.is_link(one)}
        if len({name for one in links.values() for name in variables(one.right)}) != 1:
            return None
        ordered = [one for one in compared if one.operator != "="]
        if len(list(algebra.atoms(self.body))) == 1:
            return tuple(reversed(links.values())) if len(ordered) <= 1 else None
        inside = [one for one in compared if not self.is_link(one)]
        if ordered or not all(self._like(one, links) for one in inside):
            return None
        if all(self._reached(link, compared) == self.names for link in links):
            return tuple(reversed(links.values()))
        return None

    def _unnamed(self, compared: Comparison) -> Comparison:
        """The same whichever variable of the NOT is compared."""
        return cast("Comparison", renamed(compared, lambda name: "" if name in self.names else name))

    def _like(self, inside: Comparison, links: dict[Comparison, Comparison]) -> bool:
        """Whether two events of the NOT are compared by what links one of them."""
        sides = self._unnamed(inside)
        return sides.left == sides.right and any(link.left == sides.left for link in links)

    def _reached(self, link: Comparison, compared: list[Comparison]) -> Names:
        """The variables that have the linked value in every match."""
        found = {name for one in compared if self._unnamed(one) == link for name in variables(one.left)}
        if any(isinstance(node, Maybe | Either) for node in algebra.walk(self.body)):
            return frozenset(found)  # a variable between two others may be missing
        equal = [one for one in compared if not self.is_link(one) and self._unnamed(one).left == link.left]
        for _ in equal:
            found |= {name for one in equal if variables(one) & found for name in variables(one)}
        return frozenset(found)


# --------------------------------------------------------------------------------------------- what is around


@dataclass(frozen=True)
class _Around:
    """The steps of a scope that cross a NOT in it, and the events of a variable beside them."""

    pattern: Pattern
    scope: int
    name: str

    @cached_property
    def template(self) -> Template:
        return build_template(self.pattern)

    @cached_property
    def states(self) -> frozenset[int]:
        """Those that bind the variable."""
        mine = {atom.position for atom in algebra.atoms(self.pattern, negated=False) if atom.variable == self.name}
        return frozenset(state for state, position in enumerate(self.template.position_of) if position in mine)

    @cached_property
    def crossed(self) -> list[tuple[int, Edge, Crossing]]:
        """The states before, the steps, and in which round the NOT lies."""
        return [
            (state, edge, crossing)
            for state, edges in enumerate(self.template.edges)
            for edge in edges
            for crossing in edge.crossings
            if crossing.scope == self.scope
        ]

    @cached_property
    def between(self) -> bool:
        """Whether there is always an event before the NOT, and one after it."""
        starts = [edge.crossings for edge in self.template.starts]
        ends = [way for ways in self.template.accepts for way in ways]
        outside = any(crossing.scope == self.scope for way in (*starts, *ends) for crossing in way)
        return bool(self.crossed) and not outside

    def is_neighbour(self, follows: bool, part: int | None) -> bool:
        """Whether the variable, in one round of a part if one is given, always means the event on that side."""
        sides = [edge.target if follows else state for state, edge, _ in self.crossed]
        mine = self.states & self._states_in(part)
        same_round = [part not in edge.rounds or crossing.late == follows for _, edge, crossing in self.crossed]
        return self.between and mine.issuperset(sides) and all(same_round) and not self._binds_again(mine, part)

    def _states_in(self, part: int | None) -> frozenset[int]:
        """The states of a part; of the whole pattern, if the part is around it or there is none."""
        nodes = [n for n in algebra.walk(self.pattern) if isinstance(n, Kleene | Round) and n.part == part]
        inside = {atom.position for atom in algebra.atoms(nodes[0] if nodes else self.pattern)}
        return frozenset(state for state, position in enumerate(self.template.position_of) if position in inside)

    def _binds_again(self, mine: frozenset[int], part: int | None) -> bool:
        """Whether a match can bind events at two of these states, or twice at one, in one round of the part."""
        allowed = self._states_in(part)

        def following(state: int) -> set[int]:
            return {edge.target for edge in self.template.edges[state] if part not in edge.rounds} & allowed

        return bool(closure(set[int]().union(*map(following, mine)), following) & mine)
