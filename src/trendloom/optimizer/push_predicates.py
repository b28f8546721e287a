"""A conjunct that speaks of one event alone decides whether the event fits its position at all.

Before: conditions {M.rate > 90}.   After: position M carries the filter, conditions {}.
Valid because a bare variable is universally quantified: every event bound to it must pass, in any semantics.
"""

from __future__ import annotations

from dataclasses import replace

from trendloom.expr.nodes import Expr
from trendloom.expr.quantifiers import shape_of
from trendloom.logical.plan import Condition, Plan
from trendloom.pattern.algebra import Kleene, Pattern, Round, atoms, scopes_of, walk


def push_predicates_to_positions(plan: Plan) -> Plan:
    """Move local conjuncts from `conditions` to `filters`."""
    kept: list[Condition] = []
    filters: list[tuple[int, Expr]] = list(plan.filters)
    scopes = {scope: list(atoms(body, negated=False)) for scope, body in scopes_of(plan.pattern)}
    for condition in plan.conditions:
        variable = shape_of(condition.expr).local
        own = [atom for atom in scopes[condition.scope] if atom.variable == variable]
        if variable is None or not own:
            kept.append(condition)
            continue
        inside = _positions_of_part(plan.pattern, condition.part)
        filters.extend((a.position, condition.expr) for a in own if inside is None or a.position in inside)
    return replace(plan, conditions=tuple(kept), filters=tuple(filters))


def _positions_of_part(pattern: Pattern, part: int | None) -> frozenset[int] | None:
    if part is None:
        return None
    for node in walk(pattern):
        if isinstance(node, Kleene | Round) and node.part == part:
            return frozenset(atom.position for atom in atoms(node))
    return frozenset()
