"""A conjunct on one event alone decides whether the event fits its position at all.

Before: conditions {M.rate > 90}.   After: position M carries the filter, conditions {}.
Valid because a bare variable is universally quantified: every event bound to it must pass, in any semantics.
"""

from __future__ import annotations

from dataclasses import replace

from trendloom.expr.nodes import Expr
from trendloom.expr.quantifiers import shape_of
from trendloom.logical.plan import Condition, Plan
from trendloom.pattern.algebra import Both, Kleene, Pattern, Round, atoms, scopes_of, walk

OUTSIDE = "the match around it"
"""Where a predicate of a NOT is decided that uses none of its variables."""


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


def push_predicates_in(plan: Plan) -> Plan:
    """Decide conditions at the component with which the last of their events is bound, not on the whole match.

    Before: SEQ(R r, W w, (O o: o.id = w.id), X x) tests `o.id = w.id` on r w o x.   After: decided at o, x is never
    sought where it is false. It does not matter at which component a predicate was written, as (W w: w.id = o.id), nor
    whether one of the events is in a nested SEQ: it moves to the component that completes it. A predicate of a NOT that
    is about the match around it alone is decided before anything is bound inside. Valid because such a condition is for
    every choice of events: one that is false stays false, whatever is bound later. Conditions on the whole of a
    variable (`count(b[])`, `b[last].x`) stay where they are: more events may make them true. See Zhang, "NEEL+:
    Supporting Predicates for Nested Complex Event Processing", section 4.1.
    """
    bodies = dict(scopes_of(plan.pattern))
    return replace(plan, conditions=tuple(_pushed(one, bodies[one.scope]) for one in plan.conditions))


def _pushed(condition: Condition, body: Pattern) -> Condition:
    shape = shape_of(condition.expr)
    if shape.whole or not shape.chosen:
        return condition
    last = _bound_last(shape.chosen, body)
    return replace(condition, decided_at=" or ".join(last) if last else OUTSIDE)


def _bound_last(names: frozenset[str], body: Pattern) -> list[str]:
    """Which of the variables can be the last to be bound: that of the last position, or any of an AND's."""
    positions: dict[str, int] = {}
    for atom in atoms(body, negated=False):
        if atom.variable in names:
            positions[atom.variable] = atom.position
    if not positions:
        return []
    last = max(positions, key=lambda name: positions[name])
    unordered = [part for part in walk(body) if isinstance(part, Both)]
    beside = {
        name
        for part in unordered
        for name in positions
        if {name, last} <= {atom.variable for atom in atoms(part, negated=False)}
    }
    return sorted(beside | {last}, key=lambda name: positions[name])
