"""An event that must pass the extreme of all before it must pass the one before it, which is then the extreme itself.

Before: b[i].x >= max(b[..i-1].x).   After: b[i].x >= b[i-1].x. Likewise `>` and `=` with max, `<=`, `<`, `=` with min.
Valid because a conjunct holds for every event from the second on, so values rise (fall, stay) step by step and the
extreme is always the latest. NULLs: either form is unknown, hence false, where b[i].x is NULL; so in a match that
passes no value from the second on is NULL, nor is the first one, which is all that the second is compared with.
Both forms are about the same rounds. A step then depends on two events alone, as runs, aggregates and postponing need.
"""

from __future__ import annotations

from dataclasses import replace

from trendloom.expr.nodes import MIRRORED, Aggregate, Attribute, Comparison, Expr, Which
from trendloom.logical.display import show_expression
from trendloom.logical.plan import Condition, Plan
from trendloom.model.time import TimeAxis

RISING, FALLING = frozenset({">", ">=", "="}), frozenset({"<", "<=", "="})


def rewrite_running_extremes(plan: Plan) -> Plan:
    """Compare with the event before instead of with all events before, where that is the same."""
    return replace(plan, conditions=tuple(_rewritten(condition, plan.schema.axis) for condition in plan.conditions))


def _rewritten(condition: Condition, axis: TimeAxis) -> Condition:
    expr = condition.expr
    if not isinstance(expr, Comparison):
        return condition
    if isinstance(expr.right, Aggregate) and _is_extreme(expr.left, expr.operator, expr.right):
        after = replace(expr, right=_previous(expr.right))
    elif isinstance(expr.left, Aggregate) and _is_extreme(expr.right, MIRRORED[expr.operator], expr.left):
        after = replace(expr, left=_previous(expr.left))
    else:
        return condition
    return replace(condition, expr=after, text=show_expression(after, axis))


def _is_extreme(current: Expr, operator: str, past: Aggregate) -> bool:
    """Whether `current operator past` makes the current event the new extreme of its variable."""
    if not (isinstance(current, Attribute) and current.which is Which.CURRENT and past.before):
        return False
    passing = {"max": RISING, "min": FALLING}.get(past.function, frozenset())
    return operator in passing and (current.variable, current.column) == (past.variable, past.column)


def _previous(past: Aggregate) -> Attribute:
    assert past.column is not None
    return Attribute(past.variable, Which.PREVIOUS, past.column, past.kind)
