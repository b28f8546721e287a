"""A value that occurs nowhere inside ends the search at the outer event: equalities between levels are cut short.

Before: every binding of SEQ(D d, SEQ(R r, C c), (I i: i.amount = d.amount)) is built up to i.   After: d is bound only
where its amount occurs among the i to come. A correlated NOT whose inner values do not hold the outer one is satisfied
without a look inside.
Valid because the event that is sought is in every match (of the NOT), so where no event has the value there is none.
Chosen where it pays by the cost model (`nesting_costs`), which needs the sizes of both domains: what a window
holds of the inner one has to be small against the outer one.
See Zhang, "NEEL+: Supporting Predicates for Nested Complex Event Processing", section 4.2.
"""

from __future__ import annotations

from dataclasses import replace

from trendloom.expr.nodes import variables
from trendloom.logical.plan import Condition, Plan
from trendloom.logical.statistics import Statistics
from trendloom.model.selection import Semantics
from trendloom.optimizer.look_up_equalities import is_join
from trendloom.optimizer.nesting_costs import costs_of, let_through, table_cost
from trendloom.pattern.algebra import Both, Kleene, Pattern, Round, atoms, scopes_of, walk
from trendloom.pattern.template import in_every_match

MOST = 0.8
"""A short cut that lets a greater share through decides too little."""


def short_cut_predicates(plan: Plan, statistics: Statistics) -> Plan:
    """Cut those equalities short that make the plan cheaper, the most telling first."""
    shares = {
        number: share
        for number, one in enumerate(plan.conditions)
        if can_be_cut(one, plan) and (share := let_through(one, plan, statistics)) is not None and share < MOST
    }
    for number in sorted(shares, key=lambda number: shares[number]):
        cut = _with_cut(plan, number)
        before, after = costs_of(plan, statistics), costs_of(cut, statistics)
        price = table_cost(plan.conditions[number], plan, statistics)
        if before is not None and after is not None and price is not None and after.chosen + price < before.chosen:
            plan = cut
    return plan


def _with_cut(plan: Plan, number: int) -> Plan:
    conditions = list(plan.conditions)
    conditions[number] = replace(conditions[number], short_cut=True)
    return replace(plan, conditions=tuple(conditions))


def can_be_cut(condition: Condition, plan: Plan) -> bool:
    """Whether a match is impossible where the value of the event that is bound first is not found at the other."""
    if condition.decided_at is None or not is_join(condition):
        return False
    bodies = dict(scopes_of(plan.pattern))
    body = bodies[condition.scope]
    own = {atom.variable for atom in atoms(body, negated=False)}
    inside = variables(condition.expr) & own
    if condition.scope:
        return len(inside) == 1 and in_every_match(body, *inside)
    if plan.semantics is not Semantics.ANY or len(inside) != 2:
        return False
    return _in_order(inside, body)


def _in_order(names: frozenset[str] | set[str], body: Pattern) -> bool:
    """Whether all events of one variable come before those of the other, which every match binds."""
    if any(isinstance(node, Both) for node in walk(body)):
        return False
    if any(names <= {a.variable for a in atoms(n)} for n in walk(body) if isinstance(n, Kleene | Round)):
        return False
    positions = {name: [a.position for a in atoms(body, negated=False) if a.variable == name] for name in names}
    first, second = sorted(names, key=lambda name: positions[name])
    return max(positions[first]) < min(positions[second]) and in_every_match(body, second)
