"""Of conditions that are decided at one component, the one that loses most for its price comes first.

Before: a.x < b.x, a.id = b.id.   After: a.id = b.id, a.x < b.x, because fewer pairs pass an equality.
Valid because a match passes all conditions, in any order of tests. The share that passes is estimated by the
sizes of domains where they are known, else by the kind of the comparison; the price is the size of the expression.
"""

from __future__ import annotations

from dataclasses import replace

from trendloom.expr.nodes import walk
from trendloom.logical.plan import Condition, Plan
from trendloom.logical.statistics import Statistics
from trendloom.optimizer.nesting_costs import selectivity


def order_conditions(plan: Plan, statistics: Statistics) -> Plan:
    """Sort the conditions by price for what they lose; equal ones stay as written."""

    def price(condition: Condition) -> float:
        lost = 1 - selectivity(condition.expr, plan, statistics)
        return sum(1 for _ in walk(condition.expr)) / max(lost, 1e-9)

    return replace(plan, conditions=tuple(sorted(plan.conditions, key=price)))
