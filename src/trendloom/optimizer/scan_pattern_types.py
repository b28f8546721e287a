"""Only events of the pattern's types can matter, unless anything in between ends a match.

Under contiguous semantics every event of the partition counts, whatever its type, so the rule leaves it alone.
"""

from __future__ import annotations

from dataclasses import replace

from trendloom.logical.plan import Plan
from trendloom.model.selection import Semantics
from trendloom.pattern.algebra import atoms


def scan_pattern_types(plan: Plan) -> Plan:
    """Restrict the scan to the types that occur in the pattern."""
    if plan.semantics is Semantics.CONTIGUOUS:
        return plan
    types = tuple(sorted({atom.type for atom in atoms(plan.pattern)}))
    return replace(plan, scan=replace(plan.scan, types=types))
