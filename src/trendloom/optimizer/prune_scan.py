"""Read only the columns that the query names; rows of TRENDS emit whole events, so they need them all.

So do ranked matches: which of those with equal scores are emitted depends on all that their events hold.
"""

from __future__ import annotations

from dataclasses import replace

from trendloom.expr.nodes import Expr, columns
from trendloom.logical.plan import Plan
from trendloom.model.selection import Semantics, Trends
from trendloom.pattern.algebra import atoms


def scan_needed_columns(plan: Plan) -> Plan:
    """Restrict the scan to the columns that conditions, keys, the order of events and results read."""
    if isinstance(plan.output, Trends) or plan.ranking is not None:
        return plan
    schema = plan.schema
    needed = {schema.type, *plan.keys, *schema.order, *(schema.imprecision.columns if schema.imprecision else ())}
    needed |= set() if schema.bounds is not None else {schema.time}
    for expr in _expressions(plan):
        needed |= columns(expr)
    return replace(plan, scan=replace(plan.scan, columns=tuple(name for name in schema.names if name in needed)))


def _expressions(plan: Plan) -> list[Expr]:
    found = [condition.expr for condition in plan.conditions] + [expr for _, expr in plan.filters]
    if not isinstance(plan.output, Trends):
        found += [value.expr for value in plan.output.values]
        having = getattr(plan.output, "having", None)
        found += [having] if having is not None else []
    return found


def scan_pattern_types(plan: Plan) -> Plan:
    """Restrict the scan to the types that occur in the pattern.

    Valid because only events of these types can matter, unless anything in between ends a match: under contiguous
    semantics every event of the partition counts, so the rule leaves it alone.
    """
    if plan.semantics is Semantics.CONTIGUOUS:
        return plan
    types = tuple(sorted({atom.type for atom in atoms(plan.pattern)}))
    return replace(plan, scan=replace(plan.scan, types=types))
