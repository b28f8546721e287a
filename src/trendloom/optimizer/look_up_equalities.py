"""An event that must equal one that is bound already is looked up by its value instead of being sought among all.

Before: `b.id = a.id` is tested on every b after a.   After: b is looked up by a.id, and only what is found is tested.
Valid because a bare variable is universally quantified: whichever of its events is compared, the new one must equal it.
Predicates of one round of a Kleene part stay as they are: they compare the events of their round alone.
"""

from __future__ import annotations

from dataclasses import replace

from trendloom.expr.nodes import Comparison, Expr, variables
from trendloom.expr.quantifiers import shape_of
from trendloom.logical.plan import Condition, Plan


def look_up_equalities(plan: Plan) -> Plan:
    """Mark the equalities of two events, as far as they are decided on partial matches."""
    return replace(
        plan,
        conditions=tuple(
            replace(one, looked_up=True) if one.decided_at is not None and is_join(one) else one
            for one in plan.conditions
        ),
    )


def is_join(condition: Condition) -> bool:
    """Whether a condition equates a value of one event with a value of another."""
    return condition.part is None and joined_variables(condition.expr) is not None


def joined_variables(expr: Expr) -> tuple[str, str] | None:
    """The variables of an equality of two single events, that of the left side first."""
    if not (isinstance(expr, Comparison) and expr.operator == "="):
        return None
    left, right = variables(expr.left), variables(expr.right)
    if len(left) != 1 or len(right) != 1 or left == right or shape_of(expr).each != left | right:
        return None
    return next(iter(left)), next(iter(right))
