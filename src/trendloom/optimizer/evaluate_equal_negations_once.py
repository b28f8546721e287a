"""NOTs that forbid the same are evaluated once: copies in a repetition, or the same NOT written twice.

Before: SEQ(A a, NOT (B b: b.x > 1), C c, NOT (B e: e.x > 1), D d), with two columns of thresholds.
After: the note that the second NOT has the matches of the first.
Valid where both have the same pattern, filters and conditions, up to names and numbers, and depend on nothing outside,
or each on an event next to it, compared in the same way on the same side (see `decorrelate_negations`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from trendloom.expr.nodes import Expr, renamed, variables
from trendloom.logical.plan import Decorrelated, Plan
from trendloom.pattern import algebra
from trendloom.pattern.algebra import Atom, Both, Kleene, Negation, Pattern, Round

NEIGHBOUR = "the event next to the NOT"


def evaluate_equal_negations_once(plan: Plan) -> Plan:
    """Note for every NOT the first one that has the same matches, if it is another."""
    first: dict[object, int] = {}
    alike = []
    for negation in (node for node in algebra.walk(plan.pattern) if isinstance(node, Negation)):
        meaning = _Meaning(plan, negation).value
        if meaning is not None and first.setdefault(meaning, negation.scope) != negation.scope:
            alike.append((negation.scope, first[meaning]))
    return replace(plan, alike=tuple(alike))


@dataclass(frozen=True)
class _Meaning:
    """What a NOT forbids, free of names and numbers: equal for NOTs that forbid the same."""

    plan: Plan
    negation: Negation

    @property
    def value(self) -> object:
        """None: it depends on the match around it."""
        shape = self._shape(self.negation.body)
        if self.noted is not None:
            return shape, self.noted.follows, frozenset(self._unnamed(link) for link in self.noted.links)
        conditions = [c for c in self.plan.conditions if c.scope in self.scopes]
        if any(variables(c.expr) - self.names.keys() for c in conditions):
            return None
        tests = [(self.scopes[c.scope], self.parts.get(c.part), self._unnamed(c.expr)) for c in conditions]
        return shape, None, frozenset(tests)

    @cached_property
    def noted(self) -> Decorrelated | None:
        return next((one for one in self.plan.decorrelated if one.scope == self.negation.scope), None)

    @cached_property
    def names(self) -> dict[str, str]:
        atoms = algebra.atoms(self.negation.body)
        return {name: f"{number}" for number, name in enumerate(dict.fromkeys(atom.variable for atom in atoms))}

    @cached_property
    def scopes(self) -> dict[int, int]:
        """The NOT and those inside it, numbered anew."""
        inside = [node.scope for node in self._nodes() if isinstance(node, Negation)]
        return {scope: number for number, scope in enumerate(inside)}

    @cached_property
    def parts(self) -> dict[int | None, int]:
        """Repeated parts inside the NOT. It lies in one round of those around it: they make no difference."""
        inside = [node.part for node in self._nodes() if isinstance(node, Kleene | Round | Both)]
        return {part: number for number, part in enumerate(inside)}

    def _nodes(self) -> Iterator[Pattern]:
        return algebra.walk(self.negation)

    def _unnamed(self, expr: Expr) -> Expr:
        return renamed(expr, lambda name: self.names.get(name, NEIGHBOUR))

    def _shape(self, pattern: Pattern) -> object:
        if isinstance(pattern, Atom):
            filters = [self._unnamed(expr) for position, expr in self.plan.filters if position == pattern.position]
            return pattern.type, self.names[pattern.variable], frozenset(filters)
        return type(pattern).__name__, tuple(self._shape(part) for part in algebra.parts(pattern))
